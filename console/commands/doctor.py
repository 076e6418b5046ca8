"""`opsleuth doctor`: try every configured source and print what works, what does not, and what to do."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from opsleuth.console import event_lines
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options
from opsleuth.console.screen import LinePart, Style
from opsleuth.state.errors import ConfigError
from opsleuth.state.run_status import ExitCode

if TYPE_CHECKING:
    from opsleuth.configuration.sources import ConfiguredSources
    from opsleuth.console.source_checks import CheckedSource
    from opsleuth.tools.declared.load_declarations import Tables

STATE_STYLES: Mapping[str, Style] = {"ok": "good", "warning": "warn", "failed": "bad"}


@click.command(
    "doctor",
    cls=CliCommand,
    help="Try every configured source and the model: what works, what does not, and how to fix it.",
)
def check_configuration() -> int:
    """Exit code 0 where everything works, 8 where something does not. Raises ConfigError for an unreadable file."""
    import asyncio

    from opsleuth.console.configured_sources import no_source_error, read_configured_sources
    from opsleuth.console.run_settings import resolve_model_for_run
    from opsleuth.tools.policy_file import collect_declared_tables, find_policy_files

    options = current_options()
    found = read_configured_sources(options)
    tables = collect_declared_tables(find_policy_files(str(options.policy) if options.policy else None))
    model = resolve_model_for_run(options)
    if not found.sources and not found.platform and not any(tables.values()) and model is None:
        missing = no_source_error()
        if options.json:
            event_lines.write_json(sys.stdout, checks_to_json(found, ()) | {"error": str(missing)})
        raise missing
    if found.untrusted:
        raise ConfigError(
            f"{found.untrusted} is not trusted, so nothing was tried. Read it, then: opsleuth trust"
        )
    checked = asyncio.run(check_everything(found, tables, model))
    if options.json:
        event_lines.write_json(sys.stdout, checks_to_json(found, checked))
    else:
        print_checks(options, found, checked)
    failed = any(check.state == "failed" for source in checked for check in source.checks)
    return ExitCode.CONFIG if failed else ExitCode.OK


async def check_everything(
    found: "ConfiguredSources", tables: "Tables", model: Mapping[str, Any] | None
) -> "Sequence[CheckedSource]":
    """The sources, and the model where one is configured. Raises ConfigError for a declaration that cannot be used."""
    from opsleuth.console.source_checks import check_sources

    checked = await check_sources(found, tables)
    if model is None:
        return checked
    from opsleuth.configuration.model_settings import ModelSettings
    from opsleuth.console.model_check import check_model

    return [*checked, await check_model(ModelSettings.model_validate(model))]


def checks_to_json(found: "ConfiguredSources", checked: "Sequence[CheckedSource]") -> dict[str, Any]:
    return {
        "environment": found.environment,
        "files": [str(path) for path in found.files],
        "sources": [
            {
                "name": source.name,
                "kind": source.kind,
                "seconds": round(source.seconds, 2),
                "secrets": list(source.secrets),
                "checks": [asdict(check) for check in source.checks],
            }
            for source in checked
        ],
    }


def print_checks(
    options: GlobalOptions, found: "ConfiguredSources", checked: "Sequence[CheckedSource]"
) -> None:
    screen = screen_for_options(options)
    room = max((screen.width or 200) - 11, 40)
    screen.line(f"environment {found.environment}   {', '.join(map(str, found.files))}")
    for source in checked:
        secrets = f"   {', '.join(source.secrets)}" if source.secrets else ""
        screen.line(LinePart(source.name, "title"), f"   {source.kind}   {source.seconds:.1f} s{secrets}")
        for check in source.checks:
            first, *rest = wrap(f"{check.what}: {check.text}", room) or [check.what]
            screen.line("  ", LinePart(f"{check.state:<8}", STATE_STYLES[check.state]), first)
            for line in (*rest, *wrap(f"-> {check.remedy}" if check.remedy else "", room)):
                screen.line(" " * 10, line)

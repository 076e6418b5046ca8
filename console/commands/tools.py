"""`opsleuth tools`: what can be asked and which source answers; `opsleuth tools test`: one call, as a run makes it."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsleuth.console import event_lines
from opsleuth.console.options import CliGroup, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.screen import LinePart, TableColumn, lay_out_table
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import UsageError
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import ExitCode

if TYPE_CHECKING:
    from opsleuth.tools.spec import CallResult, ToolSpec


@click.group(
    "tools",
    cls=CliGroup,
    invoke_without_command=True,
    help="The available tools, and the configured source behind each.",
)
@click.pass_context
def tools(context: click.Context) -> int:
    return list_tools(current_options()) if context.invoked_subcommand is None else ExitCode.OK


def list_tools(options: GlobalOptions) -> int:
    """Every tool that is built in or declared, with the configured sources that serve it. No source is asked."""
    from opsleuth.configuration.secret_references import Vault
    from opsleuth.console.configured_sources import read_configured_sources
    from opsleuth.tools.builtin import BUILTIN
    from opsleuth.tools.extra_tools import load_extra_tools
    from opsleuth.tools.sources.open_sources import open_live_sources
    from opsleuth.tools.sources.source_protocols import RunSources

    configured = read_configured_sources(options).sources
    added = load_extra_tools(find_policy_file(options), Vault())
    behind = RunSources(open_live_sources(configured, Vault())) if configured else RunSources()
    rows = [
        (spec, [s.name for s in behind.serving(spec.capability)] if spec.capability else [])
        for spec in (*BUILTIN, *added.specs)
    ]
    if options.json:
        event_lines.write_json(sys.stdout, {"tools": [tool_to_json(spec, names) for spec, names in rows]})
        return ExitCode.OK
    screen = screen_for_options(options)
    columns = (
        TableColumn("TOOL"),
        TableColumn("RISK", drop=2),
        TableColumn("SOURCES", drop=1),
        TableColumn("WHAT IT IS FOR"),
    )
    screen.lines(lay_out_table(screen, columns, [render_tool_row(spec, names) for spec, names in rows]))
    for problem in added.problems:
        write_note(problem)
    return ExitCode.OK


def render_tool_row(spec: "ToolSpec", sources: Sequence[str]) -> list[LinePart]:
    behind = ", ".join(sources) if sources else "no source" if spec.capability else "-"
    return [
        LinePart(spec.name, "id"),
        LinePart(str(spec.risk)),
        LinePart(behind, "" if sources else "dim"),
        LinePart(spec.purpose),
    ]


def tool_to_json(spec: "ToolSpec", sources: Sequence[str]) -> dict[str, Any]:
    return {
        "name": spec.name,
        "risk": spec.risk,
        "origin": spec.origin,
        "capability": spec.capability,
        "sources": list(sources),
        "purpose": spec.purpose,
        "not_for": spec.not_for,
        "arguments": spec.arguments.model_json_schema(),
        "example": dict(spec.example),
    }


@tools.command("test", help="Make one read call, as a run would.")
@click.argument("name", metavar="NAME")
@click.option("--args", "arguments", default="{}", metavar="JSON", help="The arguments, a JSON object.")
@click.option(
    "--case", type=click.Path(path_type=Path), metavar="DIR", help="Ask a recorded incident instead."
)
@click.option("--since", metavar="T", help="Start of the window (default: an hour ago, or the case's own).")
@click.option("--until", metavar="T", help="End of the window.")
def test_tool(name: str, arguments: str, case: Path | None, since: str | None, until: str | None) -> int:
    """Raises UsageError for a call that no tool takes; exit code 7 where a source does not answer."""
    import asyncio

    from opsleuth.console.single_call import make_call_context, make_single_call, read_call_settings
    from opsleuth.graph.approvals.decisions import parse_typed_call
    from opsleuth.graph.lifecycle.first_state import OpenedSources, open_sources
    from opsleuth.tools.builtin import BUILTIN
    from opsleuth.tools.extra_tools import load_extra_tools
    from opsleuth.tools.registry import Toolbox
    from opsleuth.tools.sources.source_protocols import RunSources

    options = current_options()
    settings = read_call_settings(options, case)
    opened = open_sources(settings) if settings.case or settings.sources else OpenedSources(RunSources())
    added = load_extra_tools(find_policy_file(options), opened.vault)
    toolbox = Toolbox((*BUILTIN, *added.specs), opened.sources, read_only=True)
    context = make_call_context(settings, opened, since, until)
    request = parse_typed_call(name, parse_arguments(arguments))
    result = asyncio.run(make_single_call(request, toolbox, context, opened.vault, added))
    print_call_result(options, result)
    return ExitCode.UNREACHABLE if result.status.is_error else ExitCode.OK


def find_policy_file(options: GlobalOptions) -> str | None:
    return str(options.policy) if options.policy else None


def parse_arguments(text: str) -> dict[str, Any]:
    """The JSON object of `--args`. Raises UsageError for anything else."""
    try:
        document = parse_json_text(text)
    except ValueError as error:
        raise UsageError(f'--args is not JSON ({error}): write an object such as {{"limit": 5}}') from None
    if not isinstance(document, dict):
        raise UsageError(
            f'--args holds a JSON {type(document).__name__}: write an object such as {{"limit": 5}}'
        )
    return document


def print_call_result(options: GlobalOptions, result: "CallResult") -> None:
    if options.json:
        document = {"status": result.status, "headline": result.headline, "source": result.source, "query": result.query,
                    "scanned": result.scanned, "matched": result.matched, "ms": result.ms, "tries": result.tries,
                    "record": result.record}  # fmt: skip
        event_lines.write_json(sys.stdout, document)
        return
    screen = screen_for_options(options)
    screen.line(
        LinePart(str(result.status), "bad" if result.status.is_error else "good"), f"  {result.headline}"
    )
    for line in json.dumps(result.record, ensure_ascii=False, indent=1).splitlines():
        screen.line(line)
    write_note(
        f"{result.source or 'no source'}   {result.ms} ms   {format_count(result.tries, 'try', 'tries')}"
    )
    if options.verbose and result.query:
        write_note(result.query)

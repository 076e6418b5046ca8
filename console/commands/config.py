"""`opsleuth config show`: the effective settings, and where each value comes from.

No secret is shown, only its place.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any, NamedTuple

import click

from opsleuth.configuration.config_file import CONFIG, POLICY, config_file_locations, read_config_file
from opsleuth.console import event_lines
from opsleuth.console.options import CliGroup, GlobalOptions, current_options, option_origins
from opsleuth.console.output import screen_for_options
from opsleuth.console.screen import LinePart, TableColumn, lay_out_table
from opsleuth.state.json_types import JSON

SECRET_WORDS = ("password", "token", "secret", "key")
"""A setting with such a word in its name is not shown."""
PLACE_SUFFIXES = ("_env", "_file", "_command", "_tokens")
"""Settings whose names end so hold the place of a secret, or a number of tokens: they are shown."""


class SettingRow(NamedTuple):
    """One value and where it comes from: flag, a variable, a layer, a profile, or default."""

    name: str
    origin: str
    value: Any


@click.group("config", cls=CliGroup)
def config() -> None:
    """What is configured."""


@config.command("show")
@click.option("--origin", is_flag=True, help="Every option, and where its value comes from.")
def show_configuration(*, origin: bool) -> int:
    """What holds for this invocation: options, files, sources."""
    from opsleuth.console.configured_sources import read_configured_sources

    options = current_options()
    found = read_configured_sources(options)
    rows = [*sorted(list_option_rows(options)), *list_model_rows(options)]
    sources = {
        name: (found.layers.get(name, "services"), remove_secrets(raw)) for name, raw in found.sources.items()
    }
    if options.json:
        document = {
            "options": {row.name: {"value": row.value, "origin": row.origin} for row in rows},
            "files": dict(list_files()),
            "environment": found.environment,
            "sources": {name: {**values, "origin": layer} for name, (layer, values) in sources.items()},
        }
        event_lines.write_json(sys.stdout, document)
        return 0
    screen = screen_for_options(options)
    columns = (TableColumn("OPTION"), *((TableColumn("FROM"),) if origin else ()), TableColumn("VALUE"))
    shown = [row for row in rows if origin or row.value not in (None, False, 0)]
    screen.lines(lay_out_table(screen, columns, [render_setting_row(row, origin=origin) for row in shown]))
    for name, (layer, values) in sources.items():
        screen.whole(f"source {name}  {f'{layer}  ' if origin else ''}{event_lines.format_arguments(values)}")
    for path, state in list_files():
        screen.whole(f"file {path}  {state}")
    return 0


def render_setting_row(row: SettingRow, *, origin: bool) -> list[LinePart | str]:
    return [
        LinePart(row.name.replace("_", "-"), "id"),
        *((row.origin,) if origin else ()),
        format_value(row.value),
    ]


def list_option_rows(options: GlobalOptions) -> Iterator[SettingRow]:
    known = option_origins()
    for field in fields(options):
        yield SettingRow(
            field.name, known.get(field.name, "default"), value_to_json(getattr(options, field.name))
        )
    yield SettingRow("database", known.get("db", "default"), str(options.database))


def list_model_rows(options: GlobalOptions) -> Iterator[SettingRow]:
    """The model's settings that are not defaults, each with what set it last."""
    from opsleuth.configuration.model_settings import VARIABLES
    from opsleuth.console.run_settings import resolve_model_for_run

    known = option_origins()
    settings = resolve_model_for_run(options) or {}
    variables = {field: name for name, field in VARIABLES.items() if os.environ.get(name)}
    flags = {"model": "model", "mode": "model_mode", "fallback": "fallback"}
    for name, value in remove_secrets(settings).items():
        if value not in (None, {}, ""):
            profile = f"profile {options.profile}" if options.profile else "default"
            source = known.get(flags.get(name, "")) or variables.get(name) or profile
            yield SettingRow(f"model.{name}", source, value)


def list_files() -> Iterator[tuple[str, str]]:
    """Every place of a file with its layer, and whether something is there that counts."""
    for name in (CONFIG, POLICY):
        for layer, path in config_file_locations(name):
            file = read_config_file(layer, path)
            state = "" if file.trusted and file.digest else ", not trusted" if file.digest else ", absent"
            yield str(path), f"{layer}{state}"


def value_to_json(value: object) -> JSON:
    if value is None or isinstance(value, bool | int | str):
        return value
    return f"{value.total_seconds():g}s" if isinstance(value, timedelta) else str(value)


def format_value(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def remove_secrets(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without what could be a secret: of that only where it is kept."""
    return {
        name: value
        for name, value in settings.items()
        if not any(word in name for word in SECRET_WORDS) or name.endswith(PLACE_SUFFIXES)
    }

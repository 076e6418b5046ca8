"""`config show`: what holds for this invocation, and where each value comes from. No secret is shown, only its place."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any, NamedTuple

from opsleuth.console import events
from opsleuth.console.configured_sources import look
from opsleuth.console.options import Options, origins
from opsleuth.console.output import screen_of
from opsleuth.console.run_settings import wanted
from opsleuth.console.screen import Column, Part, table
from opsleuth.models.settings import VARIABLES
from opsleuth.state.configfile import CONFIG, POLICY, places, read_file

_SECRET = ("password", "token", "secret", "key")


class Row(NamedTuple):
    """One value and where it comes from: flag, a variable, a layer, a profile, or default."""

    name: str
    origin: str
    value: Any


def show(options: Options, *, origin: bool) -> int:
    """`config show`: raises ConfigError for a file that cannot be used."""
    found = look(options)
    rows = [*sorted(_options(options)), *_model(options)]
    sources = {
        name: (found.layers.get(name, "services"), _public(raw)) for name, raw in found.sources.items()
    }
    if options.json:
        document = {
            "options": {row.name: {"value": row.value, "origin": row.origin} for row in rows},
            "files": dict(_files()),
            "environment": found.environment,
            "sources": {name: {**values, "origin": layer} for name, (layer, values) in sources.items()},
        }
        events.write_json(sys.stdout, document)
        return 0
    screen = screen_of(options)
    columns = (Column("OPTION"), *((Column("FROM"),) if origin else ()), Column("VALUE"))
    screen.lines(
        table(
            screen,
            columns,
            [
                [
                    Part(row.name.replace("_", "-"), "id"),
                    *((row.origin,) if origin else ()),
                    _shown(row.value),
                ]
                for row in rows
                if origin or row.value not in (None, False, 0)
            ],
        )
    )
    for name, (layer, values) in sources.items():
        screen.whole(f"source {name}  {f'{layer}  ' if origin else ''}{events.arguments(values)}")
    for path, state in _files():
        screen.whole(f"file {path}  {state}")
    return 0


def _options(options: Options) -> Iterator[Row]:
    told = origins()
    for field in fields(options):
        yield Row(field.name, told.get(field.name, "default"), _plain(getattr(options, field.name)))
    yield Row("database", told.get("db", "default"), str(options.database))


def _model(options: Options) -> Iterator[Row]:
    """The model's settings that are no defaults, each with what said it last."""
    told = origins()
    settings = wanted(options) or {}
    variables = {field: name for name, field in VARIABLES.items() if os.environ.get(name)}
    flags = {"model": "model", "mode": "model_mode", "fallback": "fallback"}
    for name, value in _public(settings).items():
        if value not in (None, {}, ""):
            profile = f"profile {options.profile}" if options.profile else "default"
            said = told.get(flags.get(name, "")) or variables.get(name) or profile
            yield Row(f"model.{name}", said, value)


def _files() -> Iterator[tuple[str, str]]:
    """Every place of a file with its layer, and whether something is there that counts."""
    for name in (CONFIG, POLICY):
        for layer, path in places(name):
            file = read_file(layer, path)
            state = "" if file.trusted and file.digest else ", not trusted" if file.digest else ", absent"
            yield str(path), f"{layer}{state}"


def _plain(value: Any) -> Any:  # noqa: ANN401 - any option
    if value is None or isinstance(value, bool | int | str):
        return value
    return f"{value.total_seconds():g}s" if isinstance(value, timedelta) else str(value)


def _shown(value: Any) -> str:  # noqa: ANN401 - as above
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _public(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without what could be a secret: of that only where it is kept."""
    return {
        name: value
        for name, value in settings.items()
        if not any(word in name for word in _SECRET)
        or name.endswith(("_env", "_file", "_command", "_tokens"))
    }

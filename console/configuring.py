"""`config show`: what holds for this invocation, and where each value comes from. No secret is shown, only its place."""

import sys
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any

from opsleuth.console import events
from opsleuth.console.options import Options, origins
from opsleuth.console.reading import screen_of
from opsleuth.console.screen import Column, Line, Part, table
from opsleuth.console.sourcing import is_trusted, look, user_file
from opsleuth.state.configfile import PROJECT_FILE

_SECRET = ("password", "token", "secret", "key")


def show(options: Options, *, origin: bool) -> int:
    """`config show`: raises ConfigError for a file that cannot be read."""
    found = look(options)
    told = origins()
    rows = {f.name: (_plain(getattr(options, f.name)), told.get(f.name, "default")) for f in fields(options)}
    rows["database"] = (str(options.database), told.get("db", "default"))
    trusted = "trusted" if found.project and is_trusted(found) else "not trusted"
    files = {
        str(user_file()): "user" if user_file().exists() else "user, absent",
        str(found.project or PROJECT_FILE): f"project, {trusted}" if found.project else "project, absent",
    }
    sources = {name: _public(settings) for name, settings in found.sources.items()}
    if options.json:
        values = {name: {"value": value, "origin": where} for name, (value, where) in rows.items()}
        document = {"options": values, "files": files, "environment": found.environment, "sources": sources}
        events.write_json(sys.stdout, document)
        return 0
    screen = screen_of(options)
    columns = (
        (Column("OPTION"), Column("FROM"), Column("VALUE")) if origin else (Column("OPTION"), Column("VALUE"))
    )
    cells: list[list[Part | str]] = [
        [Part(name.replace("_", "-"), "id"), *((where,) if origin else ()), _shown(value)]
        for name, (value, where) in sorted(rows.items())
        if origin or value not in (None, False, 0)
    ]
    lines: list[Line] = table(screen, columns, cells)
    lines += [["file ", Part(path, "id"), f"  {what}"] for path, what in files.items()]
    lines += [
        ["source ", Part(name, "id"), f"  {events.arguments(values)}"] for name, values in sources.items()
    ]
    screen.lines(lines)
    return 0


def _plain(value: Any) -> Any:  # noqa: ANN401 - any option
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    return str(value) if isinstance(value, Path | tzinfo) or value is not None else None


def _shown(value: Any) -> str:  # noqa: ANN401 - as above
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _public(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A source without what could be a secret: of that only where it is kept."""
    return {
        name: value
        for name, value in settings.items()
        if not any(word in name for word in _SECRET) or name.endswith(("_env", "_file", "_command"))
    }

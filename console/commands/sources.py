"""`opsleuth sources explain FILE`: how a file is recognised, and how its lines are read."""

import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsleuth.console import event_lines
from opsleuth.console.options import CliGroup, current_options
from opsleuth.console.output import screen_for_options
from opsleuth.console.reading_flags import ReadingFlags, add_reading_flags
from opsleuth.console.screen import TableColumn, lay_out_table
from opsleuth.state.clock import format_timestamp

if TYPE_CHECKING:
    from opsleuth.analysis.records import LogLine
    from opsleuth.tools.sources.file_kinds import FileKind
    from opsleuth.tools.sources.log_formats.log_file import ReadingRules

LINES_SHOWN = 10


@click.group("sources", cls=CliGroup, help="How files are read.")
def sources() -> None:
    """Commands about what opsleuth looks at."""


@sources.command(
    "explain", help="Show the recognized format of FILE, and how its first ten lines are read with it."
)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@add_reading_flags
def explain_file(file: Path, flags: ReadingFlags) -> int:
    """Prints what the file is; of a log also time, level, service and message of the first records."""
    from opsleuth.tools.sources.file_kinds import recognize_file

    options = current_options()
    kind = recognize_file(file, flags.rules)
    lines = _first_lines(kind, flags.rules) if kind.holds in ("logs", "other") else []
    if options.json:
        event_lines.write_json(sys.stdout, _explanation_to_json(kind, lines))
        return 0
    screen = screen_for_options(options)
    screen.line(kind.sentence)
    if kind.services:
        screen.line(f"services: {', '.join(kind.services[:12])}")
    if lines:
        columns = (TableColumn("TIME"), TableColumn("LEVEL"), TableColumn("SERVICE"), TableColumn("MESSAGE"))
        rows = [[_time_text(line), line.level or "", line.service, _one_line(line.message)] for line in lines]
        screen.lines(lay_out_table(screen, columns, rows))
    return 0


def _first_lines(kind: "FileKind", rules: "ReadingRules") -> "list[LogLine]":
    from opsleuth.tools.sources.log_formats.log_file import LogFile
    from opsleuth.tools.sources.logtables import is_log_table

    if is_log_table(kind.path) and kind.format == "a table":
        return []
    file = LogFile(kind.path, rules)
    if file.is_document:
        return list(islice(file.records(file.documents()), LINES_SHOWN))
    with file.open() as stream:
        return list(islice(file.records(stream), LINES_SHOWN))


def _time_text(line: "LogLine") -> str:
    return "none" if line.time is None else _format_seconds(line.time)


def _format_seconds(seconds: float) -> str:
    return format_timestamp(datetime.fromtimestamp(seconds, UTC))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _explanation_to_json(kind: "FileKind", lines: "list[LogLine]") -> dict[str, Any]:
    return {
        "file": str(kind.path),
        "holds": kind.holds,
        "format": kind.format,
        "records": kind.lines,
        "without_time": kind.without_time,
        "first": None if kind.first is None else _format_seconds(kind.first),
        "last": None if kind.last is None else _format_seconds(kind.last),
        "services": list(kind.services),
        "why": kind.why,
        "lines": [
            {
                "time": None if line.time is None else _format_seconds(line.time),
                "level": line.level,
                "service": line.service,
                "message": line.message,
            }
            for line in lines
        ],
    }

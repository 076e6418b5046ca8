"""Records of several lines that are read as a whole: java.util.logging, slow statements, csvlog, an exported journal."""

import csv
import io
import re
from dataclasses import replace
from typing import Any

from opsleuth.analysis.log_times import read_epoch
from opsleuth.analysis.records import LogLine
from opsleuth.tools.sources.log_formats.declaration import JAVA_LEVELS

_JUL_LEVEL = re.compile(rf"({'|'.join(JAVA_LEVELS)}|[A-Z]{{4,}}): ?")
_SLOW_FIGURES = re.compile(r"\b(Query_time|Lock_time|Rows_sent|Rows_examined|Rows_affected): ([\d.]+)")
_SET_TIME = re.compile(r"SET timestamp=(\d+(?:\.\d+)?);")
_SLOW_USER = re.compile(r"# User@Host: (\S+?)\[.*?@\s+(\S*) ?\[([^\]]*)\]")
_CSV_EXTRA = {
    1: "user", 2: "database", 3: "pid", 4: "client", 7: "command", 12: "code", 14: "detail", 15: "hint", 18: "context",
    19: "statement", 22: "application",
}  # fmt: skip
_CSV_LEVEL, _CSV_MESSAGE = 11, 13
_MORE_OF_MESSAGE = (("DETAIL", 14), ("HINT", 15), ("CONTEXT", 18), ("STATEMENT", 19))
_PRIORITIES = ("emerg", "alert", "crit", "error", "warning", "notice", "info", "debug")


def finish_jul(line: LogLine, text: str) -> LogLine:
    """The level and the message stand on the second line."""
    rest = text.partition("\n")[2]
    found = _JUL_LEVEL.match(rest)
    if not found:
        return replace(line, message=rest or text)
    return replace(line, level=JAVA_LEVELS.get(found[1], found[1]), message=rest[found.end() :])


def finish_slow_query(line: LogLine, text: str) -> LogLine:
    """The statement with its figures; its time is that of the head, else the one set on the server."""
    figures: dict[str, Any] = {name: float(value) for name, value in _SLOW_FIGURES.findall(text)}
    if user := _SLOW_USER.search(text):
        figures |= {"user": user[1], "client": user[2] or user[3]}
    time, set_time = line.time, _SET_TIME.search(text)
    if time is None and set_time:
        time = read_epoch(float(set_time[1]))
    _, _, rest = text.partition("\n") if text.startswith("# Time:") else ("", "", text)
    return replace(line, time=time, message=rest or text, extra=figures or line.extra)


def finish_csvlog(line: LogLine, text: str) -> LogLine:
    """The columns of the server's csvlog; a record that is no such row keeps its text."""
    try:
        cells = next(csv.reader(io.StringIO(text, newline="")))
    except (csv.Error, StopIteration):
        return line
    if len(cells) <= _CSV_MESSAGE:
        return line
    extra = {name: cells[at] for at, name in _CSV_EXTRA.items() if at < len(cells) and cells[at]}
    more = [f"{name}:  {cells[at]}" for name, at in _MORE_OF_MESSAGE if at < len(cells) and cells[at]]
    return replace(
        line,
        level=cells[_CSV_LEVEL],
        message="\n".join((cells[_CSV_MESSAGE], *more)),
        extra=extra,
        context="\n".join(extra.values()),
    )


def read_export_fields(text: str) -> dict[str, str]:
    """Fields of an exported entry; a value of several lines stands below its name, behind eight bytes of its length."""
    fields: dict[str, str] = {}
    name = ""
    for row in text.split("\n"):
        key, equals, value = row.partition("=")
        if equals and re.fullmatch(r"[A-Z\d_]+", key):
            fields[key], name = value, ""
        elif re.fullmatch(r"[A-Z\d_]+", row):
            name = row
        elif name:
            fields[name] = f"{fields[name]}\n{row}" if name in fields else row[8:]
    return fields


def finish_journal_export(line: LogLine, text: str) -> LogLine:
    fields = read_export_fields(text)
    stamp = fields.get("_SOURCE_REALTIME_TIMESTAMP") or fields.get("__REALTIME_TIMESTAMP", "")
    priority = fields.get("PRIORITY", "")
    unit = fields.get("_SYSTEMD_UNIT", "").removesuffix(".service").partition("@")[0]
    return replace(
        line,
        time=int(stamp) / 1e6 if stamp.isdigit() else None,
        service=fields.get("SYSLOG_IDENTIFIER") or unit or line.service,
        level=_PRIORITIES[int(priority)] if priority.isdigit() and int(priority) < 8 else None,
        message=fields.get("MESSAGE", text),
        host=fields.get("_HOSTNAME"),
        extra={"unit": unit} if unit else None,
        context="\n".join(
            value for key, value in fields.items() if key in ("_SYSTEMD_UNIT", "_COMM", "_EXE")
        ),
    )

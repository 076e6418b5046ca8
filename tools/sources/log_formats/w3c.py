"""Logs that name their fields in their head (W3C extended: IIS, CloudFront): the format is made from that line."""

import re

from opsleuth.tools.sources.log_formats.declaration import LogFormat

_GROUPS = {
    "sc-status": "status",
    "sc-bytes": "bytes",
    "time-taken": "duration",
    "s-computername": "host",
    "cs-method": "method",
    "cs-uri-stem": "path",
    "c-ip": "client",
}
_CELL = r'(?:"[^"]*"|\S+)'


def w3c_format(line: str) -> LogFormat | None:
    """The format of the rows below a line `#Fields: date time …`; None for any other line. Their times are UTC."""
    if not line.startswith("#Fields:"):
        return None
    fields = line.removeprefix("#Fields:").split()
    if fields[:2] != ["date", "time"]:
        return None
    cells = [_build_cell_pattern(name, fields) for name in fields[2:]]
    start = r"\s+".join((r"(?P<time>\d{4}-\d\d-\d\d\s\d\d:\d\d:\d\d)", *cells))
    return LogFormat(
        "w3c", "W3C extended (IIS)", start, (line, line, line), begins="0123456789", form="iso_utc"
    )


def _build_cell_pattern(name: str, fields: list[str]) -> str:
    group = _GROUPS.get(name)
    return (
        rf"(?P<{group}>{_CELL})"
        if group and fields.count(name) == 1 and re.fullmatch(r"\w+", group)
        else _CELL
    )

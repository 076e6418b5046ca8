"""Reading one line of a log, whoever wrote it: JSON objects, RFC 3339, web servers, syslog.

A time without a zone is in the zone that the source is configured with. What has no time that is understood has
none: it is never guessed from the file.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from opsleuth.analysis.records import LogLine

_TIME_FIELDS = ("timestamp", "@timestamp", "time", "ts", "datetime", "date")
_LEVEL_FIELDS = ("level", "severity", "lvl", "log.level", "loglevel", "levelname")
_MESSAGE_FIELDS = ("message", "msg", "log", "text", "event")
_SERVICE_FIELDS = (
    "service",
    "service.name",
    "service_name",
    "app",
    "application",
    "container_name",
    "logger_service",
)
_POD_FIELDS = ("pod", "pod_name", "kubernetes.pod_name", "container_id")
_TRACE_FIELDS = ("trace_id", "traceId", "trace.id")
_ISO = re.compile(r"\[?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\s?(Z|UTC|[+-]\d\d:?\d\d)?\b")
_WEB = re.compile(r"\[?(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\]?")
_SYSLOG = re.compile(r"(?:<\d{1,3}>)?([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (\S+) ([\w./-]+)(?:\[\d+\])?: ")
_LEVEL = re.compile(
    r"\b(TRACE|DEBUG|INFO|NOTICE|LOG|WARN|WARNING|ERROR|ERR|SEVERE|FATAL|CRITICAL|PANIC|EMERG)\b|\[(debug|info|notice|warn|error|crit|alert|emerg)\]"
)
_NUMBER = re.compile(r"\d{9,19}(?:\.\d{1,9})?")
# Where in a line of text its time and level stand.
_HEAD = 160
# Numbers as times: seconds, milliseconds, microseconds or nanoseconds since the epoch, told apart by size.
_SCALES = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))


@dataclass(frozen=True, slots=True)
class LineReader:
    """Reads lines; `zone` is that of times without one."""

    zone: tzinfo = UTC

    def read(self, text: str, year_of: float) -> LogLine:
        """The line; its service is empty where it names none. `year_of` is a time in or after the line's year (syslog has none)."""
        if text.startswith("{") and (row := _object(text)) is not None:
            return self.of_row(row, text)
        return self._of_text(text, year_of)

    def time_of(self, year_of: float) -> Callable[[bytes], float | None]:
        """What tells the time of a raw line, for the search by halves."""
        return lambda raw: self.read(raw.decode("utf-8", "replace").rstrip("\r\n"), year_of).time

    def of_row(self, row: Mapping[str, Any], text: str) -> LogLine:
        """The line that an object or a row of a table is; `text` is all of it."""
        known = (
            *_TIME_FIELDS,
            *_LEVEL_FIELDS,
            *_MESSAGE_FIELDS,
            *_SERVICE_FIELDS,
            *_POD_FIELDS,
            *_TRACE_FIELDS,
        )
        extra = {key: value for key, value in row.items() if key not in known and value not in (None, "")}
        return LogLine(
            time=self._moment(_first(row, _TIME_FIELDS)),
            service=_word(_first(row, _SERVICE_FIELDS)) or "",
            message=str(_first(row, _MESSAGE_FIELDS) or text),
            level=_word(_first(row, _LEVEL_FIELDS)),
            pod=_word(_first(row, _POD_FIELDS)),
            trace_id=_word(_first(row, _TRACE_FIELDS)),
            extra=extra or None,
        )

    def _of_text(self, text: str, year_of: float) -> LogLine:
        head = text[:_HEAD]
        level = _LEVEL.search(head)
        name = (level[1] or level[2]) if level else None
        if found := _ISO.match(head) or _ISO.search(head[:60]):
            return LogLine(
                self._iso(found[1], found[2]), "", text[found.end() :].strip(" ]:-\t") or text, name
            )
        if found := _WEB.search(head):
            return LogLine(_parsed(found[1], "%d/%b/%Y:%H:%M:%S %z"), "", text, name)
        if found := _SYSLOG.match(head):
            return LogLine(
                self._syslog(found[1], year_of), found[3], text[found.end() :], name, host=found[2]
            )
        return LogLine(None, "", text, name)

    def _moment(self, value: Any) -> float | None:  # noqa: ANN401 - any JSON value
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return next((value / scale for least, scale in _SCALES if value >= least), None)
        if isinstance(value, str) and (found := _ISO.match(value)):
            return self._iso(found[1], found[2])
        return None

    def _iso(self, text: str, zone: str | None) -> float | None:
        whole, dot, part = text.replace(",", ".").partition(".")
        try:
            moment = datetime.fromisoformat(whole)
            if zone and zone not in ("Z", "UTC"):
                moment = datetime.fromisoformat(f"{whole}{zone}")
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC if zone else self.zone)
        return moment.timestamp() + (float(f"0.{part}") if dot else 0.0)

    def _syslog(self, text: str, year_of: float) -> float | None:
        """The latest year in which the line can have been written before the file was last changed."""
        last = datetime.fromtimestamp(year_of, self.zone)
        for year in (last.year, last.year - 1):
            try:
                moment = datetime.strptime(f"{year} {text}", "%Y %b %d %H:%M:%S").replace(tzinfo=self.zone)
            except ValueError:
                continue
            if moment.timestamp() <= year_of + 86_400:
                return moment.timestamp()
        return None


def service_of_file(path: Path) -> str:
    """What a log file is called without what rotation adds: `orders-api.log.2.gz` is `orders-api`."""
    name = re.sub(r"\.(gz|bz2|xz|zst)$", "", path.name)
    name = re.sub(r"\.(log|txt|out|err|jsonl?|csv|parquet)(\b.*)?$", "", name)
    return re.sub(r"[-_.]\d{4}[-_]?\d\d[-_]?\d\d.*$|\.\d+$", "", name) or path.stem


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON value
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _word(value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    return str(value) if isinstance(value, str | int | float) else None


def _parsed(text: str, form: str) -> float | None:
    try:
        return datetime.strptime(text, form).timestamp()  # noqa: DTZ007 - the form holds the zone
    except ValueError:
        return None

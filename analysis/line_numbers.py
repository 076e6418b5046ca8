"""Numbers inside log lines as series: durations, sizes, statuses, waits, pauses, queue lengths, named by their statement.

A number counts as a measurement where its unit stands behind it, or where the word before it is that of a measure: what
else appears in a line (ports, ids, versions) does not.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from opsleuth.analysis.log_templates import LONE_NUMBER, MAX_CHARACTERS, UNITS
from opsleuth.analysis.records import LogLine, MetricSeries
from opsleuth.analysis.template_counts import MINUTE, TemplateCounter

_UNITS: Mapping[str, tuple[str, float]] = {
    "ns": ("ms", 1e-6), "us": ("ms", 1e-3), "µs": ("ms", 1e-3), "ms": ("ms", 1.0), "msec": ("ms", 1.0), "msecs": ("ms", 1.0), "millis": ("ms", 1.0),
    "milliseconds": ("ms", 1.0), "millisecond": ("ms", 1.0), "s": ("ms", 1e3), "sec": ("ms", 1e3), "secs": ("ms", 1e3), "second": ("ms", 1e3),
    "seconds": ("ms", 1e3), "m": ("", 0.0), "min": ("ms", 6e4), "minutes": ("ms", 6e4), "b": ("bytes", 1.0), "byte": ("bytes", 1.0), "bytes": ("bytes", 1.0),
    "kb": ("bytes", 1e3), "kib": ("bytes", 1024.0), "mb": ("bytes", 1e6), "mib": ("bytes", 1024.0**2), "gb": ("bytes", 1e9), "gib": ("bytes", 1024.0**3),
    "%": ("%", 1.0),
}  # fmt: skip
_KINDS = {"ms": "duration", "bytes": "size", "%": "share"}
_BEFORE = re.compile(
    r"(?:(?P<key>[A-Za-z_][\w.]*)[\"']?\s?[=:]\s?[\"'(\[]?|(?P<word>[A-Za-z][\w-]*)\s(?:(?:in|after|for|of|is|was|to|at)\s)?)$"
)
_BEHIND = re.compile(rf"\s?({UNITS})(?![\w:/\-])")
_SPLIT = re.compile(r"[_.\-]|(?<=[a-z\d])(?=[A-Z])")
_MEASURES = frozenset(
    [
        "duration",
        "time",
        "latency",
        "elapsed",
        "took",
        "rt",
        "size",
        "bytes",
        "length",
        "len",
        "depth",
        "queue",
        "queued",
        "pending",
        "backlog",
        "lag",
        "wait",
        "waited",
        "waiting",
        "lock",
        "pause",
        "rows",
        "connections",
        "active",
        "idle",
        "heap",
        "memory",
        "used",
        "free",
        "usage",
        "retries",
        "attempts",
        "lost",
        "dropped",
        "errors",
        "count",
        "load",
        "rate",
        "inflight",
        "threads",
        "sessions",
        "hits",
        "misses",
        "examined",
        "sent",
        "received",
    ]
)
_NEVER = frozenset(
    [
        "id",
        "pid",
        "tid",
        "port",
        "version",
        "line",
        "code",
        "build",
        "seq",
        "offset",
        "epoch",
        "timestamp",
        "ts",
        "uid",
        "gid",
        "user",
        "year",
        "date",
        "uptime",
    ]
)
_FILLERS = frozenset(["in", "after", "for", "of", "is", "was", "to", "at", "and", "with", "than", "the", "a"])
_SECONDS = frozenset(["query_time", "lock_time", "request_time", "rt", "time_taken_s"])
_SUFFIXES = {"ms": "ms", "millis": "ms", "milliseconds": "ms", "seconds": "s", "secs": "s", "s": "s", "bytes": "bytes", "us": "us", "ns": "ns", "nanos": "ns", "percent": "%", "pct": "%"}  # fmt: skip
_MOST_REMEMBERED = 50_000
_NEAR = 60
_MOST_IN_LINE = 12
_MOST_SERIES = 2_000
_KEPT_VALUES = 64


class MeasuredNumber(NamedTuple):
    """A measurement in a line; durations in ms, sizes in bytes. `unit` is empty for a plain count."""

    name: str
    unit: str
    value: float


class _Place(NamedTuple):
    """Which of a line's lone numbers is a measurement, and of what."""

    number: int
    name: str
    unit: str
    scale: float


class NumberReader:
    """Finds the measurements of lines; lines of one form have them at the same numbers."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Place, ...]] = {}

    def read(self, line: LogLine, form: str) -> list[MeasuredNumber]:
        """`form` is that of the line's message (`Masker.form`)."""
        places = self._known.get(form)
        if places is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            places = self._known[form] = tuple(_find_places(form))
        found = []
        if places:
            numbers = LONE_NUMBER.findall(line.message, 0, MAX_CHARACTERS)
            found = [
                MeasuredNumber(p[1], p[2], float(numbers[p[0]]) * p[3]) for p in places if p[0] < len(numbers)
            ]
        if line.extra:
            found += _in_fields(line.extra)
        return found


def _find_places(form: str) -> Iterator[_Place]:
    for number, found in enumerate(LONE_NUMBER.finditer(form)):
        if number >= _MOST_IN_LINE:
            return
        start = found.start()
        before = _BEFORE.search(form[max(0, start - _NEAR) : start])
        behind = _BEHIND.match(form, found.end())
        key, word = (before["key"] or "", before["word"] or "") if before else ("", "")
        measured = _name_measure(key, word, behind[1].lower() if behind else "")
        if measured:
            yield _Place(number, *measured)


def _name_measure(key: str, word: str, unit: str) -> tuple[str, str, float] | None:
    """Name, unit and factor of a number after this key or word; None where it measures nothing that is known."""
    name = key or ("" if word.lower() in _FILLERS else word)
    parts = [part.lower() for part in _SPLIT.split(name) if part]
    if unit and unit in _UNITS:
        kind, scale = _UNITS[unit]
        return (name.lower() or _KINDS[kind]), kind, scale
    if not key or not parts or _NEVER & set(parts):
        return None
    suffix = _SUFFIXES.get(parts[-1]) or ("s" if name.lower() in _SECONDS else None)
    if suffix:
        kind, scale = _UNITS[suffix]
        return name.lower(), kind, scale
    return (name.lower(), "", 1.0) if _MEASURES & set(parts) else None


def _in_fields(fields: Mapping[str, Any], depth: int = 0) -> Iterator[MeasuredNumber]:
    for name, value in fields.items():
        if isinstance(value, bool):
            continue
        if isinstance(value, int | float):
            measured = (name, "", 1.0) if name in _STATUS else _name_measure(name, "", "")
            if measured:
                yield MeasuredNumber(measured[0], measured[1], value * measured[2])
        elif isinstance(value, Mapping) and depth == 0:
            yield from _in_fields(value, 1)


_STATUS = frozenset(
    ("status", "status_code", "statusCode", "http_status", "response_code", "http.response.status_code")
)


@dataclass(slots=True)
class _Bucket:
    """Measurements of one time range: their sum, extreme and number exactly, and some of them."""

    count: int = 0
    total: float = 0.0
    highest: float = 0.0
    kept: list[float] = field(default_factory=list)
    step: int = 1

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.highest = max(self.highest, value) if self.count > 1 else value
        if self.count % self.step == 0:
            self.kept.append(value)
            if len(self.kept) > _KEPT_VALUES:
                self.kept = self.kept[1::2]
                self.step *= 2


_SeriesKey = tuple[str, str, str, str]


class LineNumbers:
    """Collects the measurements of lines by statement and time range, beside the counts of the statements."""

    def __init__(self, width: float = MINUTE) -> None:
        self.width = width
        self.counter = TemplateCounter(width)
        self.left_out = 0
        self._reader = NumberReader()
        self._series: dict[tuple[str, int, str, str], dict[int, _Bucket]] = {}
        self._templates: dict[int, Any] = {}
        self._statuses: dict[tuple[str, str], dict[int, int]] = {}

    def add(self, line: LogLine) -> None:
        form = self.counter.form(line)
        row = self.counter.add(line, form)
        if line.time is None:
            return
        bucket = int(line.time // self.width)
        for name, unit, value in self._reader.read(line, form):
            if name in _STATUS:
                self._count_status(line.service, int(value), bucket)
            else:
                self._measure((line.service, id(row.template), name, unit), row.template, value, bucket)

    def _count_status(self, service: str, status: int, bucket: int) -> None:
        if 100 <= status < 600:
            counts = self._statuses.setdefault((service, f"{status // 100}xx"), {})
            counts[bucket] = counts.get(bucket, 0) + 1

    def _measure(self, key: tuple[str, int, str, str], template: Any, value: float, bucket: int) -> None:  # noqa: ANN401 - kept as it is
        buckets = self._series.get(key)
        if buckets is None:
            if len(self._series) >= _MOST_SERIES:
                self.left_out += 1
                return
            buckets = self._series[key] = {}
            self._templates[key[1]] = template
        if (cell := buckets.get(bucket)) is None:
            cell = buckets[bucket] = _Bucket()
        cell.add(value)

    def series(self) -> list[MetricSeries]:
        """Median and maximum of each measurement, and requests by class of status, in order of their names."""
        found = [*self._measured(), *self._by_status()]
        return sorted(found, key=lambda one: (one.service, one.metric))

    def _measured(self) -> Iterator[MetricSeries]:
        for (service, template, name, unit), buckets in self._series.items():
            of = f'{name} of "{str(self._templates[template])[:120]}"'
            times = [bucket * self.width for bucket in sorted(buckets)]
            cells = [buckets[bucket] for bucket in sorted(buckets)]
            middle = [median(cell.kept) if cell.kept else cell.total / cell.count for cell in cells]
            yield MetricSeries(service, f"median {of}", unit, times, middle)
            yield MetricSeries(service, f"maximum {of}", unit, times, [cell.highest for cell in cells])

    def _by_status(self) -> Iterator[MetricSeries]:
        unit = f"count/{self.width:g}s"
        for service in sorted({service for service, _ in self._statuses}):
            classes = {name: counts for (of, name), counts in self._statuses.items() if of == service}
            buckets = sorted({bucket for counts in classes.values() for bucket in counts})
            times = [bucket * self.width for bucket in buckets]
            for name, counts in classes.items():
                yield MetricSeries(
                    service,
                    f"requests with status {name}",
                    unit,
                    times,
                    [float(counts.get(b, 0)) for b in buckets],
                )


def number_series(lines: Iterable[LogLine], width: float = MINUTE) -> list[MetricSeries]:
    """The measurements inside the lines as series, one value for each stretch of `width` seconds."""
    numbers = LineNumbers(width)
    for line in lines:
        numbers.add(line)
    return numbers.series()

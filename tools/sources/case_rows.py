"""From the rows of a case's tables to the records that detectors read: one small function per table.

Each takes a row and its file's `Trouble` and returns a record; KeyError, TypeError and ValueError mean that
the row is broken.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from opsleuth.analysis.records import (
    Change,
    Dependency,
    EdgeLatency,
    LogLine,
    ObjectState,
    PatternCount,
    PlatformEvent,
    Series,
    SpanStat,
    StatementLoad,
    TraceSpan,
)
from opsleuth.tools.sources.tables import Row, Trouble, number, read_rows, shortened

Record = TypeVar("Record")

# Characters of a service's, a metric's or an object's name.
LONGEST_NAME = 300
# The last whole number that a JSON number surely holds.
MOST_COUNTED = 2**53

_OWN_TIME = (None, "", "log")
_LOG_COLUMNS = frozenset(
    {
        "timestamp",
        "service",
        "message",
        "level",
        "pod",
        "namespace",
        "host",
        "trace_id",
        "previous",
        "timestamp_source",
    }
)


def _text(row: Row, column: str) -> str:
    value = row[column]
    if not isinstance(value, str):
        raise TypeError(f"{column} is {shortened(value)}, not a text")
    return value


def _named(row: Row, column: str) -> str:
    value = _text(row, column)
    if not value:
        raise ValueError(f"{column} is empty")
    if len(value) > LONGEST_NAME:
        raise ValueError(f"{column} has {len(value):,} characters, a name has at most {LONGEST_NAME}")
    return value


def _window(row: Row, trouble: Trouble) -> str:
    """A window's name; one that looks like a time must be one."""
    name = _named(row, "window")
    if name[0].isdigit():
        trouble.time(name)
    return name


def _maybe(row: Row, column: str) -> str | None:
    value = row.get(column)
    return None if value is None or value == "" else str(value)


def _need(row: Row, column: str) -> float:
    value = number(row[column])
    if value is None:
        raise ValueError(f"{column} is empty")
    return value


def _count(row: Row, column: str) -> int | None:
    return None if row.get(column) in (None, "") else _whole(row, column)


def _whole(row: Row, column: str) -> int:
    value = _need(row, column)
    if abs(value) > MOST_COUNTED:
        raise ValueError(f"{column} is {value:g}: more than can be counted")
    return int(value)


def _mapping(row: Row, column: str) -> Mapping[str, Any] | None:
    value = row.get(column)
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{column} is {type(value).__name__}, not an object")
    return value


def _when(row: Row, column: str, trouble: Trouble) -> float | None:
    value = row.get(column)
    return None if value is None or value == "" else trouble.time(value)


def _extra(row: Row, known: frozenset[str]) -> Mapping[str, Any] | None:
    if row.keys() <= known:
        return None
    return {k: v for k, v in row.items() if k not in known and v is not None and v != ""} or None


def log_line(row: Row, trouble: Trouble) -> LogLine:
    own = row.get("timestamp_source") in _OWN_TIME
    return LogLine(
        time=trouble.time(row["timestamp"]) if own else None,
        service=_named(row, "service") if row.get("service") else "",
        message=_text(row, "message"),
        level=_maybe(row, "level"),
        pod=_maybe(row, "pod"),
        namespace=_maybe(row, "namespace"),
        host=_maybe(row, "host"),
        trace_id=_maybe(row, "trace_id"),
        previous=row.get("previous") in (True, "true", "True"),
        extra=_extra(row, _LOG_COLUMNS),
    )


def pattern_count(row: Row, trouble: Trouble) -> PatternCount:
    return PatternCount(
        window=_window(row, trouble),
        service=_named(row, "service"),
        level=_maybe(row, "level"),
        pattern=_text(row, "pattern"),
        count=_whole(row, "count"),
        traces_in_window=_count(row, "traces_in_window"),
    )


def trace_span(row: Row, trouble: Trouble) -> TraceSpan:
    return TraceSpan(
        trace_id=_named(row, "trace_id"),
        span_id=_named(row, "span_id"),
        parent_id=_maybe(row, "parent_id"),
        service=_named(row, "service"),
        operation=_text(row, "operation"),
        start=trouble.time(row["start"]),
        duration_ms=_need(row, "duration_ms"),
        status=_maybe(row, "status"),
    )


def span_stat(row: Row, trouble: Trouble) -> SpanStat:
    return SpanStat(
        window=_window(row, trouble),
        service=_named(row, "service"),
        operation=_text(row, "operation"),
        count=_whole(row, "count"),
        traces_in_window=_count(row, "traces_in_window"),
        duration_ms_p50=number(row.get("duration_ms_p50")),
        self_ms_p50=number(row.get("self_ms_p50")),
        self_ms_mean=number(row.get("self_ms_mean")),
        children_mean=number(row.get("children_mean")),
    )


def edge_latency(row: Row, trouble: Trouble) -> EdgeLatency:
    return EdgeLatency(
        window=_window(row, trouble),
        caller=_named(row, "caller"),
        callee=_named(row, "callee"),
        count=_whole(row, "count"),
        network_gap_ms_p50=number(row.get("network_gap_ms_p50")),
    )


def dependency(row: Row, _: Trouble) -> Dependency:
    return Dependency(_named(row, "caller"), _named(row, "callee"))


_CHANGE_COLUMNS = frozenset({"timestamp", "service", "kind", "summary", "version", "author", "diff"})


def change(row: Row, trouble: Trouble) -> Change:
    return Change(
        time=trouble.time(row["timestamp"]),
        service=_named(row, "service"),
        kind=_named(row, "kind"),
        summary=_text(row, "summary"),
        version=_maybe(row, "version"),
        author=_maybe(row, "author"),
        diff=_maybe(row, "diff"),
        extra=_extra(row, _CHANGE_COLUMNS),
    )


_EVENT_COLUMNS = frozenset(
    {"timestamp", "first_timestamp", "source", "object", "type", "reason", "message", "count"}
)


def platform_event(row: Row, trouble: Trouble) -> PlatformEvent:
    return PlatformEvent(
        time=trouble.time(row["timestamp"]),
        source=str(row.get("source") or ""),
        object=_named(row, "object"),
        type=str(row.get("type") or ""),
        reason=str(row.get("reason") or ""),
        message=str(row.get("message") or ""),
        count=_count(row, "count"),
        first_time=_when(row, "first_timestamp", trouble),
        extra=_extra(row, _EVENT_COLUMNS),
    )


_OBJECT_COLUMNS = frozenset({"captured_at", "kind", "name", "namespace", "status", "spec", "labels"})


def object_state(row: Row, trouble: Trouble) -> ObjectState:
    status = row.get("status")
    return ObjectState(
        time=_when(row, "captured_at", trouble),
        kind=_named(row, "kind"),
        name=_named(row, "name"),
        status=status if isinstance(status, Mapping) else str(status or ""),
        namespace=_maybe(row, "namespace"),
        spec=row.get("spec"),
        labels=_mapping(row, "labels"),
        extra=_extra(row, _OBJECT_COLUMNS),
    )


_STATEMENT_COLUMNS = frozenset(
    {
        "captured_at",
        "database",
        "statement",
        "calls",
        "calls_per_sec",
        "mean_ms",
        "total_ms",
        "load",
        "load_unit",
        "waits",
        "rows",
    }
)


def statement_load(row: Row, trouble: Trouble) -> StatementLoad:
    waits = _mapping(row, "waits") or {}
    return StatementLoad(
        time=_when(row, "captured_at", trouble),
        database=_named(row, "database"),
        statement=_text(row, "statement"),
        calls=number(row.get("calls")),
        calls_per_sec=number(row.get("calls_per_sec")),
        mean_ms=number(row.get("mean_ms")),
        total_ms=number(row.get("total_ms")),
        load=number(row.get("load")),
        load_unit=_maybe(row, "load_unit"),
        waits={str(k): _need(waits, k) for k in waits},
        rows=number(row.get("rows")),
        extra=_extra(row, _STATEMENT_COLUMNS),
    )


def stream(
    path: Path, parse: Callable[[Row, Trouble], Record], trouble: Trouble, start: int = 0
) -> Iterator[Record]:
    """The records of a file one by one, from byte `start` on; broken rows are counted in `trouble`."""
    for line, row in read_rows(path, trouble, start):
        try:
            record = parse(row, trouble)
        except KeyError as missing:
            trouble.broke(line, f"no {missing.args[0]!r} among {shortened(', '.join(row))}")
        except (TypeError, ValueError) as error:
            trouble.broke(line, str(error))
        else:
            yield record


SeriesKey = tuple[str, str, str, str | None]


def sample(row: Row, trouble: Trouble) -> tuple[SeriesKey, float, float]:
    key = (_named(row, "service"), _named(row, "metric"), str(row.get("unit") or ""), _maybe(row, "instance"))
    return key, trouble.time(row["timestamp"]), _need(row, "value")


def metric_series(path: Path, trouble: Trouble) -> list[Series]:
    """The samples of a metrics table as series ordered by time; samples of one instant keep the file's order."""
    return series_of(stream(path, sample, trouble))


def series_of(samples: Iterable[tuple[SeriesKey, float, float]]) -> list[Series]:
    collected: dict[SeriesKey, tuple[list[float], list[float]]] = {}
    for key, time, value in samples:
        times, values = collected.setdefault(key, ([], []))
        times.append(time)
        values.append(value)
    return [_series(key, times, values) for key, (times, values) in collected.items()]


def _series(key: SeriesKey, times: list[float], values: list[float]) -> Series:
    service, metric, unit, instance = key
    if any(later < earlier for earlier, later in pairwise(times)):
        order = sorted(range(len(times)), key=times.__getitem__)
        times, values = [times[i] for i in order], [values[i] for i in order]
    return Series(service, metric, unit, tuple(times), tuple(values), instance)

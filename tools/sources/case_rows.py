"""From the rows of a case's tables to the records that detectors read: one small function per table.

Each takes a row and its file's `Trouble` and returns a record; KeyError, TypeError and ValueError mean that
the row is broken.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from opsleuth.analysis.records import (
    EdgeLatency,
    LogLine,
    LogPatternCount,
    MetricSeries,
    ObjectState,
    PlatformEvent,
    ServiceChange,
    ServiceDependency,
    SpanStat,
    StatementLoad,
    TraceSpan,
)
from opsleuth.tools.sources.table_files import FileProblems, Row, parse_number, read_rows, shorten_value

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


def _text_cell(row: Row, column: str) -> str:
    value = row[column]
    if not isinstance(value, str):
        raise TypeError(f"{column} is {shorten_value(value)}, not a text")
    return value


def _name_cell(row: Row, column: str) -> str:
    value = _text_cell(row, column)
    if not value:
        raise ValueError(f"{column} is empty")
    if len(value) > LONGEST_NAME:
        raise ValueError(f"{column} has {len(value):,} characters, a name has at most {LONGEST_NAME}")
    return value


def _window_cell(row: Row, trouble: FileProblems) -> str:
    """A window's name; one that looks like a time must be one."""
    name = _name_cell(row, "window")
    if name[0].isdigit():
        trouble.time(name)
    return name


def _optional_text(row: Row, column: str) -> str | None:
    value = row.get(column)
    return None if value is None or value == "" else str(value)


def _required_number(row: Row, column: str) -> float:
    value = parse_number(row[column])
    if value is None:
        raise ValueError(f"{column} is empty")
    return value


def _optional_count(row: Row, column: str) -> int | None:
    return None if row.get(column) in (None, "") else _whole_number(row, column)


def _whole_number(row: Row, column: str) -> int:
    value = _required_number(row, column)
    if abs(value) > MOST_COUNTED:
        raise ValueError(f"{column} is {value:g}: more than can be counted")
    return int(value)


def _optional_mapping(row: Row, column: str) -> Mapping[str, Any] | None:
    value = row.get(column)
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{column} is {type(value).__name__}, not an object")
    return value


def _optional_time(row: Row, column: str, trouble: FileProblems) -> float | None:
    value = row.get(column)
    return None if value is None or value == "" else trouble.time(value)


def _extra_columns(row: Row, known: frozenset[str]) -> Mapping[str, Any] | None:
    if row.keys() <= known:
        return None
    return {k: v for k, v in row.items() if k not in known and v is not None and v != ""} or None


def parse_log_line(row: Row, trouble: FileProblems) -> LogLine:
    own = row.get("timestamp_source") in _OWN_TIME
    return LogLine(
        time=trouble.time(row["timestamp"]) if own else None,
        service=_name_cell(row, "service") if row.get("service") else "",
        message=_text_cell(row, "message"),
        level=_optional_text(row, "level"),
        pod=_optional_text(row, "pod"),
        namespace=_optional_text(row, "namespace"),
        host=_optional_text(row, "host"),
        trace_id=_optional_text(row, "trace_id"),
        previous=row.get("previous") in (True, "true", "True"),
        extra=_extra_columns(row, _LOG_COLUMNS),
    )


def parse_pattern_count(row: Row, trouble: FileProblems) -> LogPatternCount:
    return LogPatternCount(
        window=_window_cell(row, trouble),
        service=_name_cell(row, "service"),
        level=_optional_text(row, "level"),
        pattern=_text_cell(row, "pattern"),
        count=_whole_number(row, "count"),
        traces_in_window=_optional_count(row, "traces_in_window"),
    )


def parse_trace_span(row: Row, trouble: FileProblems) -> TraceSpan:
    return TraceSpan(
        trace_id=_name_cell(row, "trace_id"),
        span_id=_name_cell(row, "span_id"),
        parent_id=_optional_text(row, "parent_id"),
        service=_name_cell(row, "service"),
        operation=_text_cell(row, "operation"),
        start=trouble.time(row["start"]),
        duration_ms=_required_number(row, "duration_ms"),
        status=_optional_text(row, "status"),
        kind=_span_kind(row),
        peer=_optional_text(row, "peer"),
    )


def _span_kind(row: Row) -> str | None:
    """In small letters and without the prefix that OTLP gives it (`SPAN_KIND_CLIENT`)."""
    kind = _optional_text(row, "kind")
    return kind.lower().removeprefix("span_kind_") if kind else None


def parse_span_stat(row: Row, trouble: FileProblems) -> SpanStat:
    return SpanStat(
        window=_window_cell(row, trouble),
        service=_name_cell(row, "service"),
        operation=_text_cell(row, "operation"),
        count=_whole_number(row, "count"),
        traces_in_window=_optional_count(row, "traces_in_window"),
        duration_ms_p50=parse_number(row.get("duration_ms_p50")),
        self_ms_p50=parse_number(row.get("self_ms_p50")),
        self_ms_mean=parse_number(row.get("self_ms_mean")),
        children_mean=parse_number(row.get("children_mean")),
    )


def parse_edge_latency(row: Row, trouble: FileProblems) -> EdgeLatency:
    return EdgeLatency(
        window=_window_cell(row, trouble),
        caller=_name_cell(row, "caller"),
        callee=_name_cell(row, "callee"),
        count=_whole_number(row, "count"),
        network_gap_ms_p50=parse_number(row.get("network_gap_ms_p50")),
    )


def parse_dependency(row: Row, _: FileProblems) -> ServiceDependency:
    return ServiceDependency(_name_cell(row, "caller"), _name_cell(row, "callee"))


_CHANGE_COLUMNS = frozenset({"timestamp", "service", "kind", "summary", "version", "author", "diff"})


def parse_change(row: Row, trouble: FileProblems) -> ServiceChange:
    return ServiceChange(
        time=trouble.time(row["timestamp"]),
        service=_name_cell(row, "service"),
        kind=_name_cell(row, "kind"),
        summary=_text_cell(row, "summary"),
        version=_optional_text(row, "version"),
        author=_optional_text(row, "author"),
        diff=_optional_text(row, "diff"),
        extra=_extra_columns(row, _CHANGE_COLUMNS),
    )


_EVENT_COLUMNS = frozenset(
    {"timestamp", "first_timestamp", "source", "object", "type", "reason", "message", "count"}
)


def parse_platform_event(row: Row, trouble: FileProblems) -> PlatformEvent:
    return PlatformEvent(
        time=trouble.time(row["timestamp"]),
        source=str(row.get("source") or ""),
        object=_name_cell(row, "object"),
        type=str(row.get("type") or ""),
        reason=str(row.get("reason") or ""),
        message=str(row.get("message") or ""),
        count=_optional_count(row, "count"),
        first_time=_optional_time(row, "first_timestamp", trouble),
        extra=_extra_columns(row, _EVENT_COLUMNS),
    )


_OBJECT_COLUMNS = frozenset({"captured_at", "kind", "name", "namespace", "status", "spec", "labels"})


def parse_object_state(row: Row, trouble: FileProblems) -> ObjectState:
    status = row.get("status")
    if isinstance(row.get("metadata"), Mapping) and "name" not in row:
        return _whole_object(row, trouble)
    return ObjectState(
        time=_optional_time(row, "captured_at", trouble),
        kind=_name_cell(row, "kind"),
        name=_name_cell(row, "name"),
        status=status if isinstance(status, Mapping) else str(status or ""),
        namespace=_optional_text(row, "namespace"),
        spec=row.get("spec"),
        labels=_optional_mapping(row, "labels"),
        extra=_extra_columns(row, _OBJECT_COLUMNS),
    )


def _whole_object(row: Row, trouble: FileProblems) -> ObjectState:
    """An object as the API gives it: its name appears in its metadata."""
    metadata = row["metadata"]
    return ObjectState(
        time=_optional_time(row, "captured_at", trouble),
        kind=_name_cell(row, "kind"),
        name=_name_cell(metadata, "name"),
        status=row.get("status") or {},
        namespace=_optional_text(metadata, "namespace"),
        spec=row.get("spec"),
        labels=_optional_mapping(metadata, "labels"),
        extra=_extra_columns(row, _OBJECT_COLUMNS),
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


def parse_statement_load(row: Row, trouble: FileProblems) -> StatementLoad:
    waits = _optional_mapping(row, "waits") or {}
    return StatementLoad(
        time=_optional_time(row, "captured_at", trouble),
        database=_name_cell(row, "database"),
        statement=_text_cell(row, "statement"),
        calls=parse_number(row.get("calls")),
        calls_per_sec=parse_number(row.get("calls_per_sec")),
        mean_ms=parse_number(row.get("mean_ms")),
        total_ms=parse_number(row.get("total_ms")),
        load=parse_number(row.get("load")),
        load_unit=_optional_text(row, "load_unit"),
        waits={str(k): _required_number(waits, k) for k in waits},
        rows=parse_number(row.get("rows")),
        extra=_extra_columns(row, _STATEMENT_COLUMNS),
    )


def stream_records(
    path: Path, parse: Callable[[Row, FileProblems], Record], trouble: FileProblems, start: int = 0
) -> Iterator[Record]:
    """The records of a file one by one, from byte `start` on; broken rows are counted in `trouble`."""
    for line, row in read_rows(path, trouble, start):
        try:
            record = parse(row, trouble)
        except KeyError as missing:
            trouble.add_broken_row(line, f"no {missing.args[0]!r} among {shorten_value(', '.join(row))}")
        except (TypeError, ValueError) as error:
            trouble.add_broken_row(line, str(error))
        else:
            yield record


SeriesKey = tuple[str, str, str, str | None]


def parse_sample(row: Row, trouble: FileProblems) -> tuple[SeriesKey, float, float]:
    key = (
        _name_cell(row, "service"),
        _name_cell(row, "metric"),
        str(row.get("unit") or ""),
        _optional_text(row, "instance"),
    )
    return key, trouble.time(row["timestamp"]), _required_number(row, "value")


def read_metric_series(path: Path, trouble: FileProblems) -> list[MetricSeries]:
    """The samples of a metrics table as series ordered by time; samples of one instant keep the file's order."""
    return collect_series(stream_records(path, parse_sample, trouble))


def collect_series(samples: Iterable[tuple[SeriesKey, float, float]]) -> list[MetricSeries]:
    collected: dict[SeriesKey, tuple[list[float], list[float]]] = {}
    for key, time, value in samples:
        times, values = collected.setdefault(key, ([], []))
        times.append(time)
        values.append(value)
    return [_build_series(key, times, values) for key, (times, values) in collected.items()]


def _build_series(key: SeriesKey, times: list[float], values: list[float]) -> MetricSeries:
    service, metric, unit, instance = key
    if any(later < earlier for earlier, later in pairwise(times)):
        order = sorted(range(len(times)), key=times.__getitem__)
        times, values = [times[i] for i in order], [values[i] for i in order]
    return MetricSeries(service, metric, unit, tuple(times), tuple(values), instance)

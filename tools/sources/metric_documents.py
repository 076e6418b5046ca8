"""Metrics in files of other programs: wide and long CSV, Prometheus' text format and its query API, CloudWatch.

What names a service names it here too; a file without such a name gives its own. Times without a zone are read in the zone
that is given.
"""

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

from opsleuth.alerts.labels import is_exporter
from opsleuth.analysis.log_times import TimeReader
from opsleuth.analysis.records import MetricSeries
from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.case_rows import SeriesKey, collect_series
from opsleuth.tools.sources.compressed_files import open_decompressed
from opsleuth.tools.sources.log_formats.encodings import decode_text
from opsleuth.tools.sources.metric_objects import OBJECT_METRICS, name_object, name_state

TIME_NAMES = frozenset(
    ["time", "timestamp", "ts", "date", "datetime", "@timestamp", "_time", "epoch", "label"]
)
VALUE_NAMES = frozenset(["value", "val", "_value", "v", "reading", "average", "sum", "maximum", "mean"])
METRIC_NAMES = (
    "metric",
    "metric_name",
    "metricname",
    "name",
    "__name__",
    "series",
    "_measurement",
    "measurement",
    "key",
    "kpi",
    "_field",
)
SERVICE_NAMES = (
    "service",
    "service_name",
    "app",
    "application",
    "deployment",
    "component",
    "cmdb_id",
    "container",
    "job",
)
INSTANCE_NAMES = ("instance", "pod", "pod_name", "host", "hostname", "node")
_UNIT_NAMES = ("unit", "units")
_SAMPLE = re.compile(
    r"(?P<name>[A-Za-z_:][\w:.]*)(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?\s+(?P<value>[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|Inf|NaN))(?:\s+(?P<time>-?\d+(?:\.\d+)?))?(?:\s+#.*)?"
)
_LABEL = re.compile(r'([A-Za-z_][\w.]*)="((?:[^"\\]|\\.)*)"')
_UNIT_IN_NAME = re.compile(r"\s*[\[(]([^\[\]()]{1,20})[\])]\s*$")
_EPOCH = re.compile(r"\d{10}(?:\.\d+)?|\d{13}|\d{16}|\d{19}")
_MOST_HEAD_ROWS = 20

Sample = tuple[SeriesKey, float, float]


def is_exposition(lines: Sequence[str]) -> bool:
    """Whether lines are of Prometheus' text format or OpenMetrics: most are samples, and some say what they are."""
    kept = [line for line in lines if line.strip()]
    about = sum(line.startswith(("# HELP ", "# TYPE ", "# UNIT ", "# EOF")) for line in kept)
    samples = sum(_SAMPLE.fullmatch(line) is not None for line in kept)
    return (
        samples > 0
        and about + samples >= 0.9 * len(kept)
        and (about > 0 or any("{" in line for line in kept))
    )


def read_exposition(lines: Iterable[str], service: str, scraped: float | None) -> list[MetricSeries]:
    """The samples; those without a time are of `scraped`, the moment of the scrape. OpenMetrics writes seconds."""
    held = [line for line in lines if line.strip()]
    scale = 1.0 if any(line.startswith("# EOF") for line in held) else 1e-3
    units = dict(line.split()[2:4] for line in held if line.startswith("# UNIT ") and len(line.split()) > 3)
    return collect_series(_read_exposition(held, scale, units, service, scraped))


def _read_exposition(
    lines: Iterable[str], scale: float, units: Mapping[str, str], service: str, scraped: float | None
) -> Iterator[Sample]:
    for line in lines:
        found = _SAMPLE.fullmatch(line)
        if line.startswith("#") or found is None:
            continue
        value, time = (
            _parse_number(found["value"]),
            float(found["time"]) * scale if found["time"] else scraped,
        )
        if value is not None and time is not None:
            labels = {
                "__name__": found["name"],
                **{k: _unescape_text(v) for k, v in _LABEL.findall(found["labels"] or "")},
            }
            yield _make_series_key(labels, service, units.get(found["name"], "")), time, value


def read_metric_document(document: JSON, service: str) -> list[MetricSeries] | None:
    """The series of a JSON document of Prometheus or CloudWatch; None if it is of neither."""
    if not isinstance(document, Mapping):
        return None
    data = document.get("data", document)
    if (
        isinstance(data, Mapping)
        and data.get("resultType") in ("matrix", "vector")
        and isinstance(data.get("result"), list)
    ):
        return collect_series(_read_query_result(data["result"], service))
    if isinstance(document.get("MetricDataResults"), list):
        return collect_series(_cloudwatch_data(document["MetricDataResults"], service))
    if isinstance(document.get("Datapoints"), list):
        return collect_series(_cloudwatch_points(document, service))
    return None


def _read_query_result(rows: Iterable[Any], service: str) -> Iterator[Sample]:
    for row in rows:
        labels = {str(k): str(v) for k, v in row.get("metric", {}).items()}
        pairs = row.get("values") or [row.get("value")]
        for pair in pairs:
            if isinstance(pair, list) and len(pair) == 2 and (value := _parse_number(pair[1])) is not None:
                yield _make_series_key(labels, service, ""), float(pair[0]), value


def _cloudwatch_data(results: Iterable[Any], service: str) -> Iterator[Sample]:
    times = TimeReader()
    for row in results:
        name = str(row.get("Label") or row.get("Id"))
        for stamp, value in zip(row.get("Timestamps", ()), row.get("Values", ()), strict=False):
            if (time := times.read_value(stamp)) is not None and (number := _parse_number(value)) is not None:
                yield (service, name, "", None), time, number


def _cloudwatch_points(document: Mapping[str, Any], service: str) -> Iterator[Sample]:
    times, name = TimeReader(), str(document.get("Label") or "value")
    for point in document["Datapoints"]:
        time = times.read_value(point.get("Timestamp"))
        for statistic in ("Average", "Sum", "Maximum", "Minimum", "SampleCount"):
            if time is not None and (value := _parse_number(point.get(statistic))) is not None:
                yield (service, f"{name} {statistic}", str(point.get("Unit") or ""), None), time, value


def read_metric_table(text: str, service: str, zone: tzinfo = UTC) -> list[MetricSeries] | None:
    """The series of a CSV, long (a row is a sample) or wide (a column is a series); None if it is neither."""
    rows = _split_cells(text)
    head = next(
        (at for at in range(min(len(rows) - 1, _MOST_HEAD_ROWS)) if _is_header(rows[at], rows[at + 1], zone)),
        None,
    )
    if head is None:
        head = _head_before_times(rows, zone)
    if head is None:
        return None
    names, body = rows[head], rows[head + 1 :]
    lowered = [name.strip().lower() for name in names]
    value_at = next((at for at, name in enumerate(lowered) if name in VALUE_NAMES), None)
    metric_at = next((lowered.index(name) for name in METRIC_NAMES if name in lowered), None)
    if value_at is not None and metric_at is not None:
        return collect_series(_read_long_table(lowered, body, value_at, service, zone))
    return collect_series(_read_wide_table(names, body, service, zone))


def _split_cells(text: str) -> list[list[str]]:
    lines = text.lstrip("\ufeff")
    first, _, rest = lines.partition("\n")
    separator = ","
    if first.strip().lower().startswith("sep="):
        separator, lines = first.strip()[4:5] or ",", rest
    elif first.count(";") > first.count(","):
        separator = ";"
    elif first.count("\t") > first.count(","):
        separator = "\t"
    try:
        return [row for row in csv.reader(io.StringIO(lines, newline=""), delimiter=separator) if any(row)]
    except csv.Error:
        return []


def _is_header(names: Sequence[str], row: Sequence[str], zone: tzinfo) -> bool:
    lowered = [name.strip().lower() for name in names]
    at = next((at for at, name in enumerate(lowered) if name in TIME_NAMES), None)
    return at is not None and len(names) > 1 and at < len(row) and read_cell_time(row[at], zone) is not None


def _head_before_times(rows: Sequence[Sequence[str]], zone: tzinfo) -> int | None:
    """Where no column is called a time: the first row of names before rows that all begin with one (CloudWatch)."""
    begin = next(
        (at for at, row in enumerate(rows[:_MOST_HEAD_ROWS]) if read_cell_time(row[0], zone) is not None),
        None,
    )
    if (
        not begin
        or len(rows[begin]) < 2
        or any(_parse_number(cell) is None for cell in rows[begin][1:] if cell)
    ):
        return None
    heads = [at for at in range(begin) if len(rows[at]) == len(rows[begin])]
    return next((at for at in heads if rows[at][0].strip().lower() == "label"), heads[0] if heads else None)


def read_cell_time(cell: str, zone: tzinfo) -> float | None:
    """The time in a cell: ISO with T or a blank, with slashes, or since the epoch."""
    cell = cell.strip()
    if _EPOCH.fullmatch(cell) or re.match(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d", cell):
        return TimeReader(zone).read_value(cell)
    if re.fullmatch(r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d", cell):
        return TimeReader(zone).read_value(f"{cell}:00")
    return None


def _read_long_table(
    names: Sequence[str], rows: Iterable[Sequence[str]], value_at: int, service: str, zone: tzinfo
) -> Iterator[Sample]:
    times_at = next(at for at, name in enumerate(names) if name in TIME_NAMES)
    for row in rows:
        if len(row) != len(names):
            continue
        time, value = read_cell_time(row[times_at], zone), _parse_number(row[value_at])
        if time is None or value is None:
            continue
        labels = {
            name: cell
            for at, (name, cell) in enumerate(zip(names, row, strict=True))
            if at not in (times_at, value_at) and cell
        }
        metric = next((labels.pop(name) for name in METRIC_NAMES if name in labels), "value")
        unit = next((labels.pop(name) for name in _UNIT_NAMES if name in labels), "")
        yield _make_series_key({**labels, "__name__": metric}, service, unit), time, value


def _read_wide_table(
    names: Sequence[str], rows: Iterable[Sequence[str]], service: str, zone: tzinfo
) -> Iterator[Sample]:
    keys = [_column_key(name, service) for name in names]
    lowered = [name.strip().lower() for name in names]
    times_at = next((at for at, name in enumerate(lowered) if name in TIME_NAMES), 0)
    for row in rows:
        time = read_cell_time(row[times_at], zone) if times_at < len(row) else None
        for at, cell in enumerate(row[: len(keys)]):
            if time is not None and at != times_at and (value := _parse_number(cell)) is not None:
                yield keys[at], time, value


def _column_key(name: str, service: str) -> SeriesKey:
    """A column's series: labels in braces are read, a unit in brackets is one."""
    if found := re.fullmatch(r"(?P<name>[\w:.]*)\{(?P<labels>.*)\}", name.strip()):
        labels = dict(_LABEL.findall(found["labels"])) or _plain_labels(found["labels"])
        return _make_series_key({**labels, "__name__": found["name"] or "value"}, service, "")
    unit = _UNIT_IN_NAME.search(name)
    return service, _UNIT_IN_NAME.sub("", name).strip() or "value", unit[1] if unit else "", None


def _plain_labels(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {key.strip(): word.strip().strip('"') for key, _, word in pairs}


def _make_series_key(labels: Mapping[str, str], service: str, unit: str) -> SeriesKey:
    rest = dict(labels)
    name = rest.pop("__name__", "value")
    named = next((rest.pop(label) for label in SERVICE_NAMES if rest.get(label)), service)
    if is_exporter(labels.get("service", labels.get("job", ""))) and re.fullmatch(OBJECT_METRICS, name):
        about = name_object(labels)
        return about.service if about else named, name_state(name, labels), unit, about.pod if about else None
    instance = next((rest.pop(label) for label in INSTANCE_NAMES if rest.get(label)), None)
    others = ",".join(f"{key}={word}" for key, word in sorted(rest.items()) if key not in SERVICE_NAMES)
    return named, f"{name}{{{others}}}" if others else name, unit, instance


def _parse_number(value: JSON) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value.strip().replace(",", "") if isinstance(value, str) else value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _unescape_text(text: str) -> str:
    if "\\" not in text:
        return text
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


_CASE_COLUMNS = frozenset(("timestamp", "service", "metric", "value"))
LARGEST_FILE = 64_000_000
_HEAD = 65_536


def read_foreign_metrics(
    path: Path, service: str | None = None, zone: tzinfo = UTC
) -> list[MetricSeries] | None:
    """The series of a file that is not in the form of a case's `metrics.csv`; None for one that is, or of no known form.

    Raises OSError, Damaged.
    """
    if path.suffix == ".parquet":
        return None
    with open_decompressed(path) as file:
        raw = file.read(LARGEST_FILE)
    text, named = decode_text(raw), service or path.name.partition(".")[0]
    head = text[:_HEAD]
    if {name.strip().strip('"') for name in head.split("\n", 1)[0].strip().split(",")} >= _CASE_COLUMNS:
        return None
    if head.lstrip()[:1] in ("{", "["):
        try:
            return read_metric_document(json.loads(text), named)
        except (ValueError, RecursionError):
            return None
    if is_exposition(head.splitlines()[:-1] or head.splitlines()):
        return read_exposition(text.splitlines(), named, path.stat().st_mtime)
    return read_metric_table(text, named, zone)

"""What to ask a Prometheus: one query for each metric of the services, by what kind of metric it is.

Counters are asked as rates, histograms as quantiles, everything else as it is, the worst of a service's instances.
The kind comes from the name's suffix first: servers tell no metadata of recorded, remote-written or federated
series. Where neither name nor metadata says it, the samples do: what only ever grows is a counter.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

from opsleuth.analysis.records import MetricSeries, TimeRange
from opsleuth.configuration.source_settings import PrometheusSettings
from opsleuth.state.plurals import format_count

# Labels that hold the status of requests, as exporters and meshes call them.
ERROR_LABELS = ("code", "status", "status_code", "http_status_code", "response_code")
STEPS = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0)
MOST_POINTS = 400
# Gauges that are asked for together.
_BATCH = 40
_UNITS = {
    "seconds": "s",
    "milliseconds": "ms",
    "ms": "ms",
    "bytes": "bytes",
    "percent": "%",
    "ratio": "",
    "celsius": "°C",
}
# What tells most about how a service does comes first where there is too much.
_TELLING = re.compile(
    r"request|latency|duration|error|fail|cpu|memory|mem_|connection|pool|queue|saturat|lag|disk|restart|throttl"
)
_SKIPPED = ("_created", "_info", "_build_info")
_GROWTH_STEPS = 20
_TIMES = frozenset({"duration", "latency", "time", "seconds", "milliseconds", "ms"})

MetricKind = Literal["counter", "histogram", "native", "gauge", "unknown"]


class QueryRange(NamedTuple):
    """A time range and the distance of its points, in seconds; both ends lie on the grid of the step."""

    start: float
    end: float
    step: float

    @classmethod
    def over(cls, window: TimeRange, before: float, least: float) -> "QueryRange":
        """The window and the time before it, with a step that keeps the points few."""
        start, end = window.start - before, window.end
        step = next((s for s in STEPS if s >= least and (end - start) / s <= MOST_POINTS), STEPS[-1])
        step = max(step, least)
        return cls(start // step * step, end // step * step, step)


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One query. Without `metric` the series' own names are taken; `guessed` series are looked at for counters.

    One that takes rates over `window` seconds names the series behind them with `selector`. One for several metrics can be
    asked for fewer of its `names` with `for_names`. With `by_object` a series is about the object that its labels name.
    """

    query: str
    metric: str = ""
    unit: str | None = None
    service: str | None = None
    guessed: bool = False
    window: float = 0.0
    selector: str = ""
    names: Sequence[str] = ()
    by_object: bool = False
    for_names: Callable[[Sequence[str]], "PlannedQuery"] | None = None

    def over(self, seconds: float) -> "PlannedQuery":
        """The same rates over another time range, in whole seconds."""
        window = float(math.ceil(seconds))
        query = self.query.replace(f"[{self.window:g}s]", f"[{window:g}s]")
        return replace(self, query=query, window=window)

    def halves(self) -> Sequence["PlannedQuery"]:
        """Two queries for half of the metrics each; none where it is about one."""
        if self.for_names is None or len(self.names) < 2:
            return ()
        middle = len(self.names) // 2
        return [self.for_names(self.names[:middle]), self.for_names(self.names[middle:])]


@dataclass(frozen=True, slots=True)
class MetricCatalogue:
    """Metric names by the service label they carry, by the label that reports failed requests, and their types.

    `about_objects` are those that one program reports about many objects: they are not planned here.
    """

    by_label: Mapping[str, Sequence[str]]
    failing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    about_objects: frozenset[str] = frozenset()


def queries_from_settings(settings: PrometheusSettings) -> Sequence[PlannedQuery]:
    return [PlannedQuery(q.query, q.metric, q.unit, q.service) for q in settings.queries]


def plan_queries(
    catalogue: MetricCatalogue, settings: PrometheusSettings, span: QueryRange
) -> tuple[Sequence[PlannedQuery], list[str]]:
    """The queries, and notes on what was left out."""
    owner = label_by_metric(catalogue)
    known = frozenset(owner)
    wanted = [
        name
        for name in owner
        if name not in catalogue.about_objects and not _is_metric_part(name, known, catalogue)
    ]
    wanted.sort(key=lambda name: (not _TELLING.search(name), name))
    notes = []
    if len(wanted) > settings.max_metrics:
        left = len(wanted) - settings.max_metrics
        notes.append(
            f"{left:,} of {format_count(len(wanted), 'metric was', 'metrics were')} not looked at: narrow `match`, give `queries`, or raise max_metrics"
        )
    chosen = wanted[: settings.max_metrics]
    return list(_queries_for_metrics(chosen, owner, catalogue, settings, span)), notes


def classify_metric(name: str, types: Mapping[str, str]) -> MetricKind:
    """What kind of metric this is, as far as its name and the server's metadata say."""
    if name.endswith("_bucket"):
        return "histogram"
    if name.endswith("_total"):
        return "counter"
    if name.endswith(("_count", "_sum")) and types.get(name.rpartition("_")[0]) in ("histogram", "summary"):
        return "counter"
    told = types.get(name, "")
    if told in ("histogram", "gaugehistogram"):  # one of buckets has no series of its plain name
        return "native"
    if told in ("counter", "gauge"):
        return "counter" if told == "counter" else "gauge"
    return "gauge" if told == "summary" else "unknown"


def find_metric_unit(name: str, settings: PrometheusSettings) -> str:
    """The configured unit, else what the name's last word says."""
    return settings.units.get(name, _UNITS.get(name.rpartition("_")[2], ""))


def rate_if_counter(series: MetricSeries) -> MetricSeries:
    """The series as it is, or per second if it does what only counters do: grow by whole numbers at nearly every step."""
    steps = [b - a for a, b in pairwise(series.values)]
    grows = sum(step > 0 for step in steps)
    whole = all(value == int(value) for value in series.values)
    if len(steps) < _GROWTH_STEPS or not whole or min(steps) < 0 or grows < 0.9 * len(steps):
        return series
    rates = [
        (b - a) / (t - s)
        for (a, b), (s, t) in zip(pairwise(series.values), pairwise(series.times), strict=True)
    ]
    return replace(
        series,
        metric=f"{series.metric}_rate",
        unit=f"{series.unit}/s",
        times=series.times[1:],
        values=tuple(rates),
    )


def label_by_metric(catalogue: MetricCatalogue) -> dict[str, str]:
    """Metric name to the first service label that it carries."""
    owner: dict[str, str] = {}
    for label, names in catalogue.by_label.items():
        for name in names:
            owner.setdefault(name, label)
    return owner


def _is_metric_part(name: str, known: frozenset[str], catalogue: MetricCatalogue) -> bool:
    """Whether the name is only a part of another metric, or tells nothing about behaviour."""
    if name.endswith(_SKIPPED) or name in ("ALERTS", "ALERTS_FOR_STATE"):
        return True
    base, _, part = name.rpartition("_")
    if part == "count" and f"{_count_metric_name(name)}_total" in known:
        return True
    return part == "sum" and (f"{base}_count" in known or catalogue.types.get(base) == "summary")


def _queries_for_metrics(
    names: Iterable[str],
    owner: Mapping[str, str],
    catalogue: MetricCatalogue,
    settings: PrometheusSettings,
    span: QueryRange,
) -> Iterator[PlannedQuery]:
    plain: dict[tuple[str, MetricKind, str], list[str]] = {}
    window = max(span.step, settings.rate)
    for name in names:
        label, kind = owner[name], classify_metric(name, catalogue.types)
        if name.endswith("_count") and f"{name.removesuffix('_count')}_bucket" in owner:
            kind = "counter"  # of a histogram, whatever the server says of its parts
        if kind == "native":
            yield from _plan_native_histogram(name, label, settings, window)
        elif kind == "histogram":
            yield from _quantile_queries(name, label, settings, window)
            if f"{name.removesuffix('_bucket')}_sum" in owner:
                yield _mean_query(name.removesuffix("_bucket"), label, settings, window)
        elif kind == "counter":
            yield from _rate_queries(name, label, catalogue, settings, window)
        else:
            plain.setdefault((label, kind, find_metric_unit(name, settings)), []).append(name)
    for (label, kind, unit), group in plain.items():
        for at in range(0, len(group), _BATCH):
            yield _gauge_query(group[at : at + _BATCH], label, kind, unit, settings, span)


def _by_clause(label: str, settings: PrometheusSettings, *more: str) -> str:
    instance = (settings.instance_label,) if settings.instance_label else ()
    return f"by ({', '.join((*more, label, *instance))})"


def _metric_selector(name: str, label: str, settings: PrometheusSettings, *more: str) -> str:
    conditions = ",".join(filter(None, [f'{label}!=""', settings.match, *more]))
    return f"{name}{{{conditions}}}"


def _quantile_queries(
    name: str, label: str, settings: PrometheusSettings, window: float
) -> Iterator[PlannedQuery]:
    base = name.removesuffix("_bucket")
    rates = f"sum {_by_clause(label, settings, 'le')} (rate({_metric_selector(name, label, settings)}[{window:g}s]))"
    for quantile, suffix in ((0.5, "p50"), (0.95, "p95")):
        yield PlannedQuery(
            f"histogram_quantile({quantile}, {rates})", f"{base}_{suffix}", find_metric_unit(base, settings),
            window=window, selector=_metric_selector(name, label, settings),
        )  # fmt: skip


def _plan_native_histogram(
    name: str, label: str, settings: PrometheusSettings, window: float
) -> Iterator[PlannedQuery]:
    """A native histogram is one series with its buckets inside."""
    selector = _metric_selector(name, label, settings)
    rates = f"sum {_by_clause(label, settings)} (rate({selector}[{window:g}s]))"
    unit = find_metric_unit(name, settings)
    for function, suffix in (("histogram_quantile(0.5, ", "p50"), ("histogram_quantile(0.95, ", "p95")):
        yield PlannedQuery(f"{function}{rates})", f"{name}_{suffix}", unit, window=window, selector=selector)
    mean = f"histogram_sum({rates}) / histogram_count({rates})"
    yield PlannedQuery(mean, f"{name}_mean", unit, window=window, selector=selector)
    yield PlannedQuery(
        f"histogram_count({rates})",
        _count_metric_name(f"{name}_count"),
        "/s",
        window=window,
        selector=selector,
    )


def _mean_query(base: str, label: str, settings: PrometheusSettings, window: float) -> PlannedQuery:
    """What all of it adds up to: quantiles hide what happens to the fewer half."""
    total, count = (
        f"sum {_by_clause(label, settings)} (rate({_metric_selector(f'{base}_{part}', label, settings)}[{window:g}s]))"
        for part in ("sum", "count")
    )
    selector = _metric_selector(f"{base}_count", label, settings)
    return PlannedQuery(
        f"{total} / {count}",
        f"{base}_mean",
        find_metric_unit(base, settings),
        window=window,
        selector=selector,
    )


def _rate_queries(
    name: str, label: str, catalogue: MetricCatalogue, settings: PrometheusSettings, window: float
) -> Iterator[PlannedQuery]:
    base = name.removesuffix("_total")
    own = find_metric_unit(base, settings)
    unit = settings.units.get(name, "cores" if own == "s" and "cpu" in name else f"{own}/s")
    by = _by_clause(label, settings)
    selector = _metric_selector(name, label, settings)
    every = f"sum {by} (rate({selector}[{window:g}s]))"
    yield PlannedQuery(every, _count_metric_name(base), unit, window=window, selector=selector)
    for status, names in catalogue.failing.items():
        if name in names:
            failed = _metric_selector(name, label, settings, f'{status}=~"5..|5xx"')
            # A series of failures begins with the first one: before that there were none of so many.
            query = f"sum {by} (rate({failed}[{window:g}s])) or 0 * {every}"
            yield PlannedQuery(query, f"{base}_errors", unit, window=window, selector=selector)


def _count_metric_name(base: str) -> str:
    """`http_request_duration_seconds_count` is a number of requests and no duration: `http_requests`."""
    if not base.endswith("_count"):
        return base
    words = [word for word in base.removesuffix("_count").split("_") if word not in _TIMES]
    return "_".join([*words[:-1], f"{words[-1]}s"]) if words else base


def _gauge_query(
    names: Sequence[str],
    label: str,
    kind: MetricKind,
    unit: str,
    settings: PrometheusSettings,
    span: QueryRange,
) -> PlannedQuery:
    """The last sample of each step, so that a series which has ended does not go on for minutes."""
    pattern = "|".join(re.escape(name) for name in names)
    conditions = [f'__name__=~"{pattern}"', f'{label}!=""', settings.match]
    selector = f"{{{','.join(filter(None, conditions))}}}"
    query = f"max {_by_clause(label, settings, '__name__')} (last_over_time({selector}[{max(span.step, 1.0):g}s]))"
    fewer = partial(_gauge_query, label=label, kind=kind, unit=unit, settings=settings, span=span)
    return PlannedQuery(query, unit=unit, guessed=kind == "unknown", names=names, for_names=fewer)

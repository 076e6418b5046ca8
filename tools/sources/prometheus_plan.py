"""What to ask a Prometheus: one query for each metric of the services, by what kind of metric it is.

Counters are asked as rates, histograms as quantiles, everything else as it is, the worst of a service's instances.
The kind comes from the name's suffix first: servers tell no metadata of recorded, remote-written or federated
series. Where neither name nor metadata says it, the samples do: what only ever grows is a counter.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from opsleuth.analysis.records import Series, Span
from opsleuth.state.words import counted
from opsleuth.tools.sources.settings import Prometheus

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

Kind = Literal["counter", "histogram", "gauge", "unknown"]


class Range(NamedTuple):
    """A stretch of time and the distance of its points, in seconds; both ends lie on the grid of the step."""

    start: float
    end: float
    step: float

    @classmethod
    def over(cls, window: Span, before: float, least: float) -> "Range":
        """The window and the time before it, with a step that keeps the points few."""
        start, end = window.start - before, window.end
        step = next((s for s in STEPS if s >= least and (end - start) / s <= MOST_POINTS), STEPS[-1])
        step = max(step, least)
        return cls(start // step * step, end // step * step, step)


@dataclass(frozen=True, slots=True)
class Asked:
    """One query. Without `metric` the series' own names are taken; `guessed` series are looked at for counters."""

    query: str
    metric: str = ""
    unit: str | None = None
    service: str | None = None
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Metric names by the service label they carry, by the label that tells of failed requests, and their types."""

    by_label: Mapping[str, Sequence[str]]
    failing: Mapping[str, Sequence[str]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)


def from_settings(settings: Prometheus) -> Sequence[Asked]:
    return [Asked(q.query, q.metric, q.unit, q.service) for q in settings.queries]


def plan(catalogue: Catalogue, settings: Prometheus, span: Range) -> tuple[Sequence[Asked], list[str]]:
    """The queries, and notes on what was left out."""
    owner = _owners(catalogue)
    known = frozenset(owner)
    wanted = [name for name in owner if not _is_part(name, known, catalogue)]
    wanted.sort(key=lambda name: (not _TELLING.search(name), name))
    notes = []
    if len(wanted) > settings.max_metrics:
        left = len(wanted) - settings.max_metrics
        notes.append(
            f"{left:,} of {counted(len(wanted), 'metric was', 'metrics were')} not looked at: narrow `match`, give `queries`, or raise max_metrics"
        )
    chosen = wanted[: settings.max_metrics]
    return list(_asked(chosen, owner, catalogue, settings, span)), notes


def kind_of(name: str, types: Mapping[str, str]) -> Kind:
    """What kind of metric this is, as far as its name and the server's metadata say."""
    if name.endswith("_bucket"):
        return "histogram"
    if name.endswith("_total"):
        return "counter"
    if name.endswith(("_count", "_sum")) and types.get(name.rpartition("_")[0]) in ("histogram", "summary"):
        return "counter"
    told = types.get(name, "")
    if told in ("counter", "gauge"):
        return "counter" if told == "counter" else "gauge"
    return "gauge" if told == "summary" else "unknown"


def unit_of(name: str, settings: Prometheus) -> str:
    """The configured unit, else what the name's last word says."""
    return settings.units.get(name, _UNITS.get(name.rpartition("_")[2], ""))


def as_rate(series: Series) -> Series:
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


def _owners(catalogue: Catalogue) -> dict[str, str]:
    """Metric name to the first service label that it carries."""
    owner: dict[str, str] = {}
    for label, names in catalogue.by_label.items():
        for name in names:
            owner.setdefault(name, label)
    return owner


def _is_part(name: str, known: frozenset[str], catalogue: Catalogue) -> bool:
    """Whether the name is only a part of another metric, or tells nothing about behaviour."""
    if name.endswith(_SKIPPED) or name in ("ALERTS", "ALERTS_FOR_STATE"):
        return True
    base, _, part = name.rpartition("_")
    if part == "count" and f"{_counted(name)}_total" in known:
        return True
    return part == "sum" and (f"{base}_count" in known or catalogue.types.get(base) == "summary")


def _asked(
    names: Iterable[str], owner: Mapping[str, str], catalogue: Catalogue, settings: Prometheus, span: Range
) -> Iterator[Asked]:
    plain: dict[tuple[str, Kind, str], list[str]] = {}
    window = f"{max(span.step, settings.rate):g}s"
    for name in names:
        label, kind = owner[name], kind_of(name, catalogue.types)
        if name.endswith("_count") and f"{name.removesuffix('_count')}_bucket" in owner:
            kind = "counter"  # of a histogram, whatever the server says of its parts
        if kind == "histogram":
            yield from _quantiles(name, label, settings, window)
            if f"{name.removesuffix('_bucket')}_sum" in owner:
                yield _mean(name.removesuffix("_bucket"), label, settings, window)
        elif kind == "counter":
            yield from _rates(name, label, catalogue, settings, window)
        else:
            plain.setdefault((label, kind, unit_of(name, settings)), []).append(name)
    for (label, kind, unit), group in plain.items():
        for at in range(0, len(group), _BATCH):
            yield _as_they_are(group[at : at + _BATCH], label, kind, unit, settings, span)


def _by(label: str, settings: Prometheus, *more: str) -> str:
    instance = (settings.instance_label,) if settings.instance_label else ()
    return f"by ({', '.join((*more, label, *instance))})"


def _select(name: str, label: str, settings: Prometheus, *more: str) -> str:
    conditions = ",".join(filter(None, [f'{label}!=""', settings.match, *more]))
    return f"{name}{{{conditions}}}"


def _quantiles(name: str, label: str, settings: Prometheus, window: str) -> Iterator[Asked]:
    base = name.removesuffix("_bucket")
    rates = f"sum {_by(label, settings, 'le')} (rate({_select(name, label, settings)}[{window}]))"
    for quantile, suffix in ((0.5, "p50"), (0.95, "p95")):
        yield Asked(f"histogram_quantile({quantile}, {rates})", f"{base}_{suffix}", unit_of(base, settings))


def _mean(base: str, label: str, settings: Prometheus, window: str) -> Asked:
    """What all of it adds up to: quantiles hide what happens to the fewer half."""
    total, count = (
        f"sum {_by(label, settings)} (rate({_select(f'{base}_{part}', label, settings)}[{window}]))"
        for part in ("sum", "count")
    )
    return Asked(f"{total} / {count}", f"{base}_mean", unit_of(base, settings))


def _rates(name: str, label: str, catalogue: Catalogue, settings: Prometheus, window: str) -> Iterator[Asked]:
    base = name.removesuffix("_total")
    own = unit_of(base, settings)
    unit = settings.units.get(name, "cores" if own == "s" and "cpu" in name else f"{own}/s")
    by = _by(label, settings)
    every = f"sum {by} (rate({_select(name, label, settings)}[{window}]))"
    yield Asked(every, _counted(base), unit)
    for status, names in catalogue.failing.items():
        if name in names:
            failed = _select(name, label, settings, f'{status}=~"5..|5xx"')
            # A series of failures begins with the first one: before that there were none of so many.
            yield Asked(f"sum {by} (rate({failed}[{window}])) or 0 * {every}", f"{base}_errors", unit)


def _counted(base: str) -> str:
    """`http_request_duration_seconds_count` is a number of requests and no duration: `http_requests`."""
    if not base.endswith("_count"):
        return base
    words = [word for word in base.removesuffix("_count").split("_") if word not in _TIMES]
    return "_".join([*words[:-1], f"{words[-1]}s"]) if words else base


def _as_they_are(
    names: Sequence[str], label: str, kind: Kind, unit: str, settings: Prometheus, span: Range
) -> Asked:
    """The last sample of each step, so that a series which has ended does not go on for minutes."""
    pattern = "|".join(re.escape(name) for name in names)
    conditions = [f'__name__=~"{pattern}"', f'{label}!=""', settings.match]
    selector = f"{{{','.join(filter(None, conditions))}}}"
    query = f"max {_by(label, settings, '__name__')} (last_over_time({selector}[{max(span.step, 1.0):g}s]))"
    return Asked(query, unit=unit, guessed=kind == "unknown")

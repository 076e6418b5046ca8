"""Metrics: which there are, the samples of one, and which left their usual level."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.records import Series, Span
from opsleuth.analysis.robust import change_point, quantile
from opsleuth.state.calls import ResultStatus
from opsleuth.state.words import counted
from opsleuth.tools.arguments import Service, Windowed, zulu
from opsleuth.tools.nearest import nearest
from opsleuth.tools.reading import (
    figure,
    finding_record,
    findings_of,
    not_recorded,
    read,
    require_service,
    source_names,
    span_record,
    window_span,
    within,
    without_empty,
)
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

MOST_POINTS = 60


class MetricsList(Arguments):
    service: Service | None = None
    contains: Annotated[str, Field(max_length=100, description="part of the metric's name")] = ""


async def metrics_list(arguments: MetricsList, context: ToolContext) -> ToolResult:
    recording = await read(context, "metrics")
    series = recording.metrics or ()
    await require_service(context, arguments.service, (s.service for s in series))
    chosen = [s for s in series if arguments.service in (None, s.service)]
    if not chosen:
        return not_recorded(context, "metrics", f"no metrics of {arguments.service or 'any service'}")
    part = arguments.contains.casefold()
    matched = [s for s in chosen if part in s.metric.casefold()]
    return ToolResult(
        record={
            "groups": _groups(matched),
            "series": len(matched),
            "scanned": len(chosen),
            "covered": span_record(_covered(matched)) if matched else None,
            "baseline": recording.metrics_baseline is not None,
        },
        headline=f"{len(matched)} series of {counted(len({s.service for s in matched}), 'service')}",
        status=ResultStatus.OK if matched else ResultStatus.NONE_MATCHED,
        source=source_names(context, "metrics"),
        scanned=len(chosen),
        matched=len(matched),
    )


def _groups(series: Iterable[Series]) -> list[dict[str, Any]]:
    """Services with the same metrics together, so that a large shop stays a small record."""
    metrics: dict[str, set[str]] = defaultdict(set)
    for one in series:
        metrics[one.service].add(f"{one.metric} [{one.unit}]" if one.unit else one.metric)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for service, names in sorted(metrics.items()):
        groups[tuple(sorted(names))].append(service)
    return [{"metrics": list(names), "services": services} for names, services in groups.items()]


def _covered(series: Sequence[Series]) -> Span:
    return Span(min(s.times[0] for s in series), max(s.times[-1] for s in series))


class MetricsQuery(Windowed):
    service: Service
    metric: Annotated[str, Field(min_length=1, max_length=300, description="exact metric name")]
    instance: Annotated[
        str | None, Field(max_length=300, description="one instance, if there are several")
    ] = None


async def metrics_query(arguments: MetricsQuery, context: ToolContext) -> ToolResult:
    span = arguments.span(context.window)
    recording = await read(context, "metrics", span=span)
    series = recording.metrics or ()
    await require_service(context, arguments.service, (s.service for s in series))
    chosen = _matching(series, arguments)
    if not chosen:
        return _no_such_series(context, series, arguments)
    if not any(within(time, span) for s in chosen for time in s.times):
        covered = span_record(_covered(chosen))
        about = {"service": arguments.service, "metric": arguments.metric, "window": span_record(span)}
        return not_recorded(
            context, "metrics", "no samples in this stretch of time", **about, covered=covered
        )
    usual = _matching(recording.metrics_baseline or (), arguments)
    if len(chosen) > 1:
        return _several(arguments, context, span, chosen)
    return _one(arguments, context, span, chosen[0], usual)


def _matching(series: Iterable[Series], arguments: MetricsQuery) -> list[Series]:
    key = (arguments.service, arguments.metric)
    return [s for s in series if (s.service, s.metric) == key and arguments.instance in (None, s.instance)]


def _no_such_series(context: ToolContext, series: Iterable[Series], arguments: MetricsQuery) -> ToolResult:
    metrics = sorted({s.metric for s in series if s.service == arguments.service})
    instances = sorted(
        {s.instance or "" for s in series if s.service == arguments.service and s.metric == arguments.metric}
    )
    if arguments.instance and instances:
        return not_recorded(context, "metrics", f"no instance {arguments.instance}", instances=instances[:20])
    why = (
        f"{arguments.service} has no metric {arguments.metric}"
        if metrics
        else f"no metrics of {arguments.service}"
    )
    near = nearest(arguments.metric, metrics, 5) or metrics[:20]
    elsewhere = sorted({s.service for s in series if s.metric == arguments.metric})
    return not_recorded(context, "metrics", why, nearest=near, services_with_it=elsewhere[:20])


def _one(
    arguments: MetricsQuery, context: ToolContext, span: Span, series: Series, usual: Sequence[Series]
) -> ToolResult:
    inside = [within(time, span) for time in series.times]
    times, values = list(compress(series.times, inside)), list(compress(series.values, inside))
    turn = change_point(times, values)
    at_rest = [value for s in usual for value in s.values]
    record = {
        **_about(arguments, span, series),
        **_summary(times, values),
        "change_point": zulu(turn),
        "before_window": _levels(
            [v for t, v in zip(series.times, series.values, strict=True) if t < span.start]
        ),
        "baseline": _levels(at_rest),
        "points": _points(times, values),
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{arguments.metric} of {arguments.service}: {counted(len(values), 'sample')}, max {record['max']['value']} at {record['max']['time']}",
        source=source_names(context, "metrics"),
        query=_query(arguments, span),
        scanned=len(series.values),
        matched=len(values),
        spark=tuple(values[:: max(1, -(-len(values) // 60))]),
    )


def _several(
    arguments: MetricsQuery, context: ToolContext, span: Span, chosen: Sequence[Series]
) -> ToolResult:
    instances = []
    for series in sorted(chosen, key=lambda s: s.instance or ""):
        inside = [within(time, span) for time in series.times]
        times, values = list(compress(series.times, inside)), list(compress(series.values, inside))
        summary = _summary(times, values) if values else {"samples": 0}
        instances.append({"instance": series.instance, **summary})
    return ToolResult(
        record={**_about(arguments, span, chosen[0]), "instances": instances},
        headline=f"{arguments.metric} of {arguments.service}: {counted(len(instances), 'instance')}",
        source=source_names(context, "metrics"),
        query=_query(arguments, span),
        scanned=sum(len(s.values) for s in chosen),
        matched=sum(i["samples"] for i in instances),
    )


def _about(arguments: MetricsQuery, span: Span, series: Series) -> dict[str, Any]:
    about = {
        "service": arguments.service,
        "metric": arguments.metric,
        "instance": arguments.instance,
        "unit": series.unit,
        "window": span_record(span),
    }
    return without_empty(about)


def _query(arguments: MetricsQuery, span: Span) -> str:
    instance = f", instance={arguments.instance}" if arguments.instance else ""
    return (
        f"{arguments.metric}{{service={arguments.service}{instance}}} {zulu(span.start)} to {zulu(span.end)}"
    )


def _summary(times: Sequence[float], values: Sequence[float]) -> dict[str, Any]:
    low, high = (
        min(range(len(values)), key=values.__getitem__),
        max(range(len(values)), key=values.__getitem__),
    )
    return {
        "samples": len(values),
        "min": _point(times[low], values[low]),
        "max": _point(times[high], values[high]),
        "mean": figure(fmean(values)),
        "median": figure(quantile(values, 0.5)),
        "first": _point(times[0], values[0]),
        "last": _point(times[-1], values[-1]),
    }


def _levels(values: Sequence[float]) -> dict[str, Any] | None:
    if not values:
        return None
    return {
        "samples": len(values),
        "min": figure(min(values)),
        "median": figure(quantile(values, 0.5)),
        "p95": figure(quantile(values, 0.95)),
        "max": figure(max(values)),
    }


def _point(time: float, value: float) -> dict[str, Any]:
    return {"time": zulu(time), "value": figure(value)}


def _points(times: Sequence[float], values: Sequence[float]) -> list[dict[str, Any]]:
    """All samples, or every k-th of many; extremes are named beside them in any case."""
    step = max(1, -(-len(times) // MOST_POINTS))
    return [_point(times[i], values[i]) for i in range(0, len(times), step)]


class MetricsAnomalies(Arguments):
    service: Service | None = None
    limit: Annotated[int, Field(ge=1, le=50, description="findings, 1 to 50")] = 12


async def metrics_anomalies(arguments: MetricsAnomalies, context: ToolContext) -> ToolResult:
    recording = await read(context, "metrics", "topology")
    series = recording.metrics or ()
    await require_service(context, arguments.service, (s.service for s in series))
    examined = [s for s in series if arguments.service in (None, s.service)]
    if not examined:
        return not_recorded(context, "metrics", f"no metrics of {arguments.service or 'any service'}")
    if not any(within(time, window_span(context)) for s in examined for time in s.times):
        covered = span_record(_covered(examined))
        return not_recorded(context, "metrics", "no samples in the incident window", covered=covered)
    findings = await findings_of(recording, "metrics", arguments.service)
    odd = [f for f in findings if f.direction != "healthy"]
    as_usual = [f for f in findings if f.direction == "healthy"]
    record = {
        "service": arguments.service,
        "window": span_record(window_span(context)),
        "scanned_series": len(examined),
        "matched": len(odd),
        "findings": [finding_record(finding) for finding in odd[: arguments.limit]],
        "as_usual": [finding_record(finding) for finding in as_usual[: arguments.limit]],
        "baseline": recording.metrics_baseline is not None,
    }
    return ToolResult(
        record=without_empty(record),
        headline=odd[0].text if odd else f"no anomaly in {len(examined)} series",
        status=ResultStatus.OK if odd else ResultStatus.NONE_MATCHED,
        source=source_names(context, "metrics"),
        scanned=len(examined),
        matched=len(odd),
    )


def _target(arguments: Any) -> str | None:  # noqa: ANN401 - any of the models above
    service: str | None = arguments.service
    return service


_EXAMPLE_WINDOW: Mapping[str, str] = {"since": "2024-05-01T14:00:00Z", "until": "2024-05-01T14:30:00Z"}

METRICS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="metrics_list",
        purpose="Which metrics of which services are recorded, with units.",
        not_for="Values: metrics_query.",
        arguments=MetricsList,
        example={"service": "checkout", "contains": "latency"},
        run=metrics_list,
        capability="metrics",
        target=_target,
    ),
    ToolSpec(
        name="metrics_query",
        purpose="Samples of one metric of one service: extremes with times, change point, usual level.",
        not_for="Which metric is odd: metrics_anomalies.",
        arguments=MetricsQuery,
        example={"service": "checkout", "metric": "latency_p90", **_EXAMPLE_WINDOW},
        run=metrics_query,
        capability="metrics",
        target=_target,
    ),
    ToolSpec(
        name="metrics_anomalies",
        purpose="Which metrics left their usual level in the incident window, worst first.",
        not_for="Causes across signals: rank_suspects.",
        arguments=MetricsAnomalies,
        example={"service": "checkout", "limit": 5},
        run=metrics_anomalies,
        capability="metrics",
        target=_target,
    ),
)

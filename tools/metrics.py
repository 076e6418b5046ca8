"""Metrics: their list, the samples of one, and those that left their usual level."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, TimeRange
from opsleuth.analysis.robust_statistics import LEAST_OF_A_SIDE, find_significant_change_point, quantile
from opsleuth.state.calls import ResultStatus
from opsleuth.state.nearest_name import find_nearest_names
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import Service, WindowedArguments, format_rfc3339
from opsleuth.tools.log_numbers import read_number_series
from opsleuth.tools.recordings import (
    detect_findings,
    finding_record,
    is_within_span,
    measure_impact,
    not_recorded_result,
    read_recording,
    require_service,
    round_figure,
    source_names,
    span_record,
    window_span,
    without_empty,
)
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

MOST_POINTS = 60
FEWEST_TO_COMPARE = 2 * LEAST_OF_A_SIDE
NO_CHANGE = "no change"
"""In place of a change point where what moved may be chance."""
MOST_WRITTEN = 200
"""Series inside log lines that a list names."""


class MetricsListArguments(Arguments):
    service: Service | None = None
    contains: Annotated[str, Field(max_length=100, description="part of the metric's name")] = ""


async def metrics_list(arguments: MetricsListArguments, context: ToolContext) -> ToolResult:
    recording = await _read_metrics(context)
    series = recording.metrics or ()
    chosen = [s for s in series if arguments.service in (None, s.service)]
    written = await read_number_series(context, arguments.service) if arguments.service or not chosen else []
    await require_service(context, arguments.service, (s.service for s in (*series, *written)))
    if not chosen and not written:
        return not_recorded_result(context, "metrics", f"no metrics of {arguments.service or 'any service'}")
    part = arguments.contains.casefold()
    matched = [s for s in chosen if part in s.metric.casefold()]
    in_lines = [s for s in written if part in s.metric.casefold()]
    found = [*matched, *in_lines]
    record = {
        "groups": _group_by_metrics(matched),
        "series": len(matched),
        "scanned": len(chosen),
        "covered": span_record(_covered_span(found)) if found else None,
        "baseline": recording.metrics_baseline is not None,
    }
    if written:
        record["numbers_in_log_lines"] = _group_by_metrics(in_lines[:MOST_WRITTEN])
        record["numbers_not_shown"] = max(0, len(in_lines) - MOST_WRITTEN)
    return ToolResult(
        record=record,
        headline=f"{len(found)} series of {format_count(len({s.service for s in found}), 'service')}",
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=_source_names(context, matched, in_lines),
        scanned=len(chosen) + len(written),
        matched=len(found),
    )


async def _read_metrics(context: ToolContext, span: TimeRange | None = None) -> Recording:
    """What the sources of metrics have; nothing where there are only logs, in whose lines numbers stand."""
    if not context.sources.serving("metrics"):
        return Recording(AlertFacts(text=""), span or window_span(context))
    return await read_recording(context, "metrics", span=span)


def _source_names(
    context: ToolContext, recorded: Sequence[MetricSeries], written: Sequence[MetricSeries]
) -> str:
    """The sources of these series: of metrics, and of the log lines that hold numbers."""
    capabilities: list[Capability] = ["metrics"] if recorded or not written else []
    if written:
        capabilities.append("logs")
    return source_names(context, *capabilities)


def _group_by_metrics(series: Iterable[MetricSeries]) -> list[dict[str, Any]]:
    """Services with the same metrics together, so that a large shop stays a small record."""
    metrics: dict[str, set[str]] = defaultdict(set)
    for one in series:
        metrics[one.service].add(f"{one.metric} [{one.unit}]" if one.unit else one.metric)
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for service, names in sorted(metrics.items()):
        groups[tuple(sorted(names))].append(service)
    return [{"metrics": list(names), "services": services} for names, services in groups.items()]


def _covered_span(series: Sequence[MetricSeries]) -> TimeRange:
    return TimeRange(min(s.times[0] for s in series), max(s.times[-1] for s in series))


class MetricsQueryArguments(WindowedArguments):
    service: Service
    metric: Annotated[str, Field(min_length=1, max_length=300, description="exact metric name")]
    instance: Annotated[str | None, Field(max_length=300, description="if there are several")] = None


async def metrics_query(arguments: MetricsQueryArguments, context: ToolContext) -> ToolResult:
    span = arguments.span(context.window)
    recording = await _read_metrics(context, span)
    series: Sequence[MetricSeries] = recording.metrics or ()
    chosen, written = _select_series(series, arguments), False
    if not chosen and (in_lines := await read_number_series(context, arguments.service, span)):
        chosen, written = _select_series(in_lines, arguments), True
        series = [*series, *in_lines]
    await require_service(context, arguments.service, (s.service for s in series))
    if not chosen:
        return _no_such_series_result(context, series, arguments)
    if not any(is_within_span(time, span) for s in chosen for time in s.times):
        covered = span_record(_covered_span(chosen))
        about = {"service": arguments.service, "metric": arguments.metric, "window": span_record(span)}
        return not_recorded_result(
            context, "metrics", "no samples in this time range", **about, covered=covered
        )
    usual = _select_series(recording.metrics_baseline or (), arguments)
    if len(chosen) > 1:
        return _instances_result(arguments, context, span, chosen)
    result = _single_series_result(arguments, context, span, chosen[0], usual)
    return replace(result, source=source_names(context, "logs")) if written else result


def _select_series(series: Iterable[MetricSeries], arguments: MetricsQueryArguments) -> list[MetricSeries]:
    key = (arguments.service, arguments.metric)
    return [s for s in series if (s.service, s.metric) == key and arguments.instance in (None, s.instance)]


def _no_such_series_result(
    context: ToolContext, series: Iterable[MetricSeries], arguments: MetricsQueryArguments
) -> ToolResult:
    metrics = sorted({s.metric for s in series if s.service == arguments.service})
    instances = sorted(
        {s.instance or "" for s in series if s.service == arguments.service and s.metric == arguments.metric}
    )
    if arguments.instance and instances:
        return not_recorded_result(
            context, "metrics", f"no instance {arguments.instance}", instances=instances[:20]
        )
    why = (
        f"{arguments.service} has no metric {arguments.metric}"
        if metrics
        else f"no metrics of {arguments.service}"
    )
    near = find_nearest_names(arguments.metric, metrics, 5) or metrics[:20]
    elsewhere = sorted({s.service for s in series if s.metric == arguments.metric})
    return not_recorded_result(context, "metrics", why, nearest=near, services_with_it=elsewhere[:20])


def _single_series_result(
    arguments: MetricsQueryArguments,
    context: ToolContext,
    span: TimeRange,
    series: MetricSeries,
    usual: Sequence[MetricSeries],
) -> ToolResult:
    inside = [is_within_span(time, span) for time in series.times]
    times, values = list(compress(series.times, inside)), list(compress(series.values, inside))
    turn = find_significant_change_point(times, values)
    at_rest = [value for s in usual for value in s.values]
    record = {
        **_query_record(arguments, span, series),
        **_summarize_samples(times, values),
        "change_point": format_rfc3339(turn) or (NO_CHANGE if len(values) >= FEWEST_TO_COMPARE else None),
        "before_window": _summarize_level(
            [v for t, v in zip(series.times, series.values, strict=True) if t < span.start]
        ),
        "baseline": _summarize_level(at_rest),
        "points": _thin_out_points(times, values),
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{arguments.metric} of {arguments.service}: {format_count(len(values), 'sample')}, max {record['max']['value']} at {record['max']['time']}",
        source=source_names(context, "metrics"),
        query=_query_text(arguments, span),
        scanned=len(series.values),
        matched=len(values),
        spark=tuple(values[:: max(1, -(-len(values) // 60))]),
    )


def _instances_result(
    arguments: MetricsQueryArguments, context: ToolContext, span: TimeRange, chosen: Sequence[MetricSeries]
) -> ToolResult:
    instances = []
    for series in sorted(chosen, key=lambda s: s.instance or ""):
        inside = [is_within_span(time, span) for time in series.times]
        times, values = list(compress(series.times, inside)), list(compress(series.values, inside))
        summary = _summarize_samples(times, values) if values else {"samples": 0}
        instances.append({"instance": series.instance, **summary})
    return ToolResult(
        record={**_query_record(arguments, span, chosen[0]), "instances": instances},
        headline=f"{arguments.metric} of {arguments.service}: {format_count(len(instances), 'instance')}",
        source=source_names(context, "metrics"),
        query=_query_text(arguments, span),
        scanned=sum(len(s.values) for s in chosen),
        matched=sum(i["samples"] for i in instances),
    )


def _query_record(arguments: MetricsQueryArguments, span: TimeRange, series: MetricSeries) -> dict[str, Any]:
    about = {
        "service": arguments.service,
        "metric": arguments.metric,
        "instance": arguments.instance,
        "unit": series.unit,
        "window": span_record(span),
    }
    return without_empty(about)


def _query_text(arguments: MetricsQueryArguments, span: TimeRange) -> str:
    instance = f", instance={arguments.instance}" if arguments.instance else ""
    return f"{arguments.metric}{{service={arguments.service}{instance}}} {format_rfc3339(span.start)} to {format_rfc3339(span.end)}"


def _summarize_samples(times: Sequence[float], values: Sequence[float]) -> dict[str, Any]:
    low, high = (
        min(range(len(values)), key=values.__getitem__),
        max(range(len(values)), key=values.__getitem__),
    )
    return {
        "samples": len(values),
        "min": _point_record(times[low], values[low]),
        "max": _point_record(times[high], values[high]),
        "mean": round_figure(fmean(values)),
        "median": round_figure(quantile(values, 0.5)),
        "first": _point_record(times[0], values[0]),
        "last": _point_record(times[-1], values[-1]),
    }


def _summarize_level(values: Sequence[float]) -> dict[str, Any] | None:
    if not values:
        return None
    return {
        "samples": len(values),
        "min": round_figure(min(values)),
        "median": round_figure(quantile(values, 0.5)),
        "p95": round_figure(quantile(values, 0.95)),
        "max": round_figure(max(values)),
    }


def _point_record(time: float, value: float) -> dict[str, Any]:
    return {"time": format_rfc3339(time), "value": round_figure(value)}


def _thin_out_points(times: Sequence[float], values: Sequence[float]) -> list[dict[str, Any]]:
    """All samples, or every k-th of many; extremes are named beside them in any case."""
    step = max(1, -(-len(times) // MOST_POINTS))
    return [_point_record(times[i], values[i]) for i in range(0, len(times), step)]


class MetricsAnomaliesArguments(Arguments):
    service: Service | None = None
    limit: Annotated[int, Field(ge=1, le=50, description="findings, 1 to 50")] = 12


async def metrics_anomalies(arguments: MetricsAnomaliesArguments, context: ToolContext) -> ToolResult:
    recording = await _read_metrics_for_anomalies(context, arguments.service)
    series = recording.metrics or ()
    await require_service(context, arguments.service, (s.service for s in series))
    examined = [s for s in series if arguments.service in (None, s.service)]
    if not examined:
        return not_recorded_result(context, "metrics", f"no metrics of {arguments.service or 'any service'}")
    if not any(is_within_span(time, window_span(context)) for s in examined for time in s.times):
        covered = span_record(_covered_span(examined))
        return not_recorded_result(context, "metrics", "no samples in the incident window", covered=covered)
    findings = await detect_findings(recording, "metrics", arguments.service)
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
        "impact": await measure_impact(recording, arguments.service) if arguments.service else None,
    }
    return ToolResult(
        record=without_empty(record),
        headline=odd[0].text if odd else f"no anomaly in {len(examined)} series",
        status=ResultStatus.OK if odd else ResultStatus.NONE_MATCHED,
        source=source_names(context, "metrics"),
        scanned=len(examined),
        matched=len(odd),
    )


async def _read_metrics_for_anomalies(context: ToolContext, service: str | None) -> Recording:
    """The metrics of the service; where it has none, the numbers in its log lines."""
    if not context.sources.serving("metrics"):
        recording = await _read_metrics(context)
    else:
        recording = await read_recording(context, "metrics", "topology")
    if any(service in (None, s.service) for s in recording.metrics or ()):
        return recording
    written = await read_number_series(context, service)
    return replace(recording, metrics=[*(recording.metrics or ()), *written]) if written else recording


def _service_target(arguments: Any) -> str | None:  # noqa: ANN401 - any of the models above
    service: str | None = arguments.service
    return service


_EXAMPLE_WINDOW: Mapping[str, str] = {"since": "2024-05-01T14:00:00Z", "until": "2024-05-01T14:30:00Z"}

METRICS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="metrics_list",
        purpose="Which metrics of which services are recorded, with units.",
        not_for="Values: metrics_query.",
        arguments=MetricsListArguments,
        example={"service": "checkout", "contains": "latency"},
        run=metrics_list,
        capability="metrics",
        substitute="logs",
        target=_service_target,
    ),
    ToolSpec(
        name="metrics_query",
        purpose="Samples of one metric of one service: extremes with times, change point, usual level.",
        not_for="Which metric is odd: metrics_anomalies.",
        arguments=MetricsQueryArguments,
        example={"service": "checkout", "metric": "latency_p90", **_EXAMPLE_WINDOW},
        run=metrics_query,
        capability="metrics",
        substitute="logs",
        target=_service_target,
    ),
    ToolSpec(
        name="metrics_anomalies",
        purpose="Which metrics left their usual level in the incident window, worst first.",
        not_for="Causes across signals: rank_suspects.",
        arguments=MetricsAnomaliesArguments,
        example={"service": "checkout", "limit": 5},
        run=metrics_anomalies,
        capability="metrics",
        substitute="logs",
        target=_service_target,
    ),
)

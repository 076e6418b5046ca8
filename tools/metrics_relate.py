"""Several metrics on one time axis: side by side, the ratio of two, or how far they move together."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from opsleuth.analysis.aligned_series import (
    LEAST_PAIRS,
    AlignedSeries,
    align_series,
    correlate_columns,
    divide_columns,
)
from opsleuth.analysis.records import MetricSeries, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.nearest_name import suggest_names
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import WindowedArguments, format_rfc3339
from opsleuth.tools.log_numbers import read_number_series
from opsleuth.tools.recordings import (
    not_recorded_result,
    read_recording,
    round_figure,
    source_names,
    span_record,
    without_empty,
)
from opsleuth.tools.spec import InvalidArgumentsError, ToolContext, ToolResult, ToolSpec

MOST_ROWS = 30
SeriesName = Annotated[str, Field(min_length=3, max_length=600)]


class MetricsRelateArguments(WindowedArguments):
    series: Annotated[
        tuple[SeriesName, ...],
        Field(min_length=2, max_length=6, description="service:metric"),
    ]
    relation: Annotated[
        Literal["together", "ratio", "correlation"], Field(description="ratio: first / second")
    ] = "together"


async def metrics_relate(arguments: MetricsRelateArguments, context: ToolContext) -> ToolResult:
    if arguments.relation == "ratio" and len(arguments.series) > 2:
        raise InvalidArgumentsError(f"a ratio takes two series, not {len(arguments.series)}: name two")
    span = arguments.span(context.window)
    known = await _read_series_by_name(arguments, context, span)
    if not known:
        return not_recorded_result(
            context, "metrics", "no metrics in this time range", window=span_record(span)
        )
    if unknown := [name for name in arguments.series if name not in known]:
        near = suggest_names(unknown[0], known)
        raise InvalidArgumentsError(f"there is no series {unknown[0]!r}; write service:metric ({near})")
    groups = [known[name] for name in arguments.series]
    aligned = await asyncio.to_thread(align_series, groups, span, MOST_ROWS)
    if empty := _find_empty_columns(arguments.series, aligned):
        return not_recorded_result(
            context,
            "metrics",
            f"no samples of {', '.join(empty)} in this time range",
            window=span_record(span),
        )
    return _comparison_result(arguments, context, span, groups, aligned)


async def _read_series_by_name(
    arguments: MetricsRelateArguments, context: ToolContext, span: TimeRange
) -> Mapping[str, Sequence[MetricSeries]]:
    """The series by `service:metric`, those inside log lines where nothing else has a name that is asked for."""
    recorded: Sequence[MetricSeries] = ()
    if context.sources.serving("metrics"):
        recorded = (await read_recording(context, "metrics", span=span)).metrics or ()
    found: dict[str, list[MetricSeries]] = defaultdict(list)
    for one in recorded:
        found[f"{one.service}:{one.metric}"].append(one)
    if any(name not in found for name in arguments.series):
        for one in await read_number_series(context, None, span):
            found[f"{one.service}:{one.metric}"].append(one)
    return found


def _find_empty_columns(names: Sequence[str], aligned: AlignedSeries) -> list[str]:
    return [
        name
        for name, column in zip(names, aligned.columns, strict=True)
        if all(value is None for value in column)
    ]


def _comparison_result(
    arguments: MetricsRelateArguments,
    context: ToolContext,
    span: TimeRange,
    groups: Sequence[Sequence[MetricSeries]],
    aligned: AlignedSeries,
) -> ToolResult:
    names = _label_columns(arguments.series)
    record: dict[str, Any] = {
        "window": span_record(span),
        "step_seconds": aligned.step,
        "series": {
            label: without_empty(
                {
                    "series": name,
                    "unit": group[0].unit,
                    "averaged_instances": len(group) if len(group) > 1 else None,
                }
            )
            for label, name, group in zip(names, arguments.series, groups, strict=True)
        },
        "rows": _list_rows(names, aligned),
    }
    headline = f"{format_count(len(names), 'series', 'series')} in {format_count(len(aligned.times), 'step')} of {aligned.step:g} s"
    if arguments.relation == "ratio":
        headline = _add_ratio(record, arguments.series, aligned)
    if arguments.relation == "correlation":
        headline = _add_correlations(record, names, aligned)
    return ToolResult(
        record=record,
        headline=headline,
        source=source_names(context, "metrics") or source_names(context, "logs"),
        query=f"{arguments.relation} of {', '.join(arguments.series)}",
        scanned=sum(len(one.values) for group in groups for one in group),
        matched=len(aligned.times),
        status=ResultStatus.OK,
    )


def _label_columns(names: Sequence[str]) -> list[str]:
    """Short names of columns, `a` to `f`: the long ones would be written in every row."""
    return [chr(ord("a") + place) for place in range(len(names))]


def _list_rows(names: Sequence[str], aligned: AlignedSeries) -> list[dict[str, Any]]:
    return [
        without_empty(
            {
                "time": format_rfc3339(time),
                **{
                    name: round_figure(column[i]) for name, column in zip(names, aligned.columns, strict=True)
                },
            }
        )
        for i, time in enumerate(aligned.times)
    ]


def _add_ratio(record: dict[str, Any], names: Sequence[str], aligned: AlignedSeries) -> str:
    """Put the ratio into each row, and its extremes beside them; what was found in one line."""
    ratios = divide_columns(aligned.columns[0], aligned.columns[1])
    for row, ratio in zip(record["rows"], ratios, strict=True):
        if ratio is not None:
            row["ratio"] = round_figure(ratio)
    found = [(ratio, time) for ratio, time in zip(ratios, aligned.times, strict=True) if ratio is not None]
    if not found:
        return f"no ratio of {names[0]} to {names[1]}: the second is zero or missing throughout"
    for name, (ratio, time) in (("min_ratio", min(found)), ("max_ratio", max(found))):
        record[name] = {"time": format_rfc3339(time), "value": round_figure(ratio)}
    return f"{names[0]} by {names[1]}: {record['min_ratio']['value']} to {record['max_ratio']['value']}"


def _add_correlations(record: dict[str, Any], names: Sequence[str], aligned: AlignedSeries) -> str:
    """Put the correlation of the first series with each other into the record; what was found in one line."""
    found: list[dict[str, Any]] = []
    for place in range(1, len(names)):
        about: dict[str, Any] = {"first": names[0], "second": names[place]}
        correlation = correlate_columns(aligned, 0, place)
        if correlation is None:
            why = f"fewer than {LEAST_PAIRS} common steps, or one does not move"
            found.append({**about, "not_computed": why})
            continue
        found.append(
            {
                **about,
                "coefficient": round(correlation.coefficient, 3),
                "steps": correlation.pairs,
                "best_shift_seconds": correlation.shift,
                "coefficient_at_best_shift": round(correlation.shifted, 3),
            }
        )
    record["correlations"] = found
    record["note"] = "moving together does not prove cause"
    told = [f"{one['second']} {one.get('coefficient', 'not computed')}" for one in found]
    return f"correlation with {names[0]}: {', '.join(told)}"


METRICS_RELATE: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="metrics_relate",
        purpose="Two to six metrics on one time axis, with the ratio or correlation of two.",
        not_for="One metric alone: metrics_query.",
        arguments=MetricsRelateArguments,
        example={"series": ["checkout:errors", "checkout:requests"], "relation": "ratio"},
        run=metrics_relate,
        capability="metrics",
        substitute="logs",
        target=lambda arguments: arguments.series[0].partition(":")[0],
    ),
)

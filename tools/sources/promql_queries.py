"""Free PromQL: counted by the server's own index before it is sent, and summed up series by series."""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any, Protocol

from pydantic import Field

from opsleuth.state.json_types import JSON
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.recordings import round_figure
from opsleuth.tools.sources.http_client import HttpSession
from opsleuth.tools.sources.http_source import BackendReply, Part
from opsleuth.tools.sources.query_limits import MOST_SERIES, check_ranges, check_work, choose_step
from opsleuth.tools.sources.query_text import narrow_selectors, read_query_shape
from opsleuth.tools.sources.source_protocols import QueryAnswer, SourceQuery

MOST_SHOWN_POINTS = 12


class _SelectedSeries(BackendReply):
    data: list[dict[str, str]]


class _AnsweredSeries(BackendReply):
    metric: dict[str, str]
    values: list[tuple[float, float]] = Field(default_factory=list)


class _AnsweredMatrix(BackendReply):
    result: list[_AnsweredSeries] = Field(default_factory=list)


class _AnsweredRange(BackendReply):
    data: _AnsweredMatrix


class AnswerParser(Protocol):
    """How a source reads an answer: its own error reports an answer in another form."""

    def __call__(self, model: type[Part], document: JSON, /) -> Part: ...


async def run_promql(
    session: HttpSession, parse: AnswerParser, query: SourceQuery, match: str
) -> QueryAnswer:
    """The answer of a Prometheus; `match` are the operator's own matchers, which hold for every selector.

    Raises InvalidArgumentsError where the query costs too much or is not PromQL, ToolError, TimeoutError.
    """
    shape = read_query_shape(query.text, bare_names=True)
    step = choose_step(query.span, query.step)
    check_ranges(shape, step)
    text = narrow_selectors(query.text, shape, match)
    narrowed = read_query_shape(text, bare_names=True)
    counts = await gather_or_cancel(
        _count_series(session, parse, selector, query, narrowed.longest_range)
        for selector in dict.fromkeys(part.text for part in narrowed.selectors)
    )
    check_work(sum(counts), query.span, step, narrowed)
    answer = await session.post(
        "/api/v1/query_range",
        query=text,
        start=f"{query.span.start:.3f}",
        end=f"{query.span.end:.3f}",
        step=f"{step:g}",
        timeout="8s",
    )
    found = parse(_AnsweredRange, answer.document).data.result
    return summarize_series([(row.metric, row.values) for row in found], query, step, text, sum(counts))


async def _count_series(
    session: HttpSession, parse: AnswerParser, selector: str, query: SourceQuery, longest: float
) -> int:
    answer = await session.get(
        "/api/v1/series",
        **{
            "match[]": selector,
            "start": f"{query.span.start - longest:.3f}",
            "end": f"{query.span.end:.3f}",
            "limit": str(MOST_SERIES + 1),
        },
    )
    return len(parse(_SelectedSeries, answer.document).data)


def summarize_series(
    found: Sequence[tuple[Mapping[str, str], Sequence[tuple[float, float]]]],
    query: SourceQuery,
    step: float,
    text: str,
    read: int,
) -> QueryAnswer:
    """The series as rows, the largest first: extremes with times, first and last value, some points."""
    rows = [row for metric, values in found if (row := _series_row(metric, values)) is not None]
    rows.sort(key=lambda row: (-abs(row["max"]["value"]), str(row["labels"])))
    return QueryAnswer(
        rows=rows[: query.limit],
        sent=(f"{text} step {step:g} s",),
        matched=len(rows),
        notes=(f"{read:,} series were read, step {step:g} s",),
    )


def _series_row(metric: Mapping[str, str], values: Sequence[tuple[float, float]]) -> dict[str, Any] | None:
    finite = [value - value == 0.0 for _, value in values]
    points = list(compress(values, finite))
    if not points:
        return None
    low, high = min(points, key=lambda point: point[1]), max(points, key=lambda point: point[1])
    every = max(1, -(-len(points) // MOST_SHOWN_POINTS))
    return {
        "labels": dict(metric),
        "samples": len(points),
        "min": _point_record(low),
        "max": _point_record(high),
        "first": _point_record(points[0]),
        "last": _point_record(points[-1]),
        "points": [_point_record(point) for point in points[::every]],
    }


def _point_record(point: tuple[float, float]) -> dict[str, JSON]:
    return {"time": format_rfc3339(point[0]), "value": round_figure(point[1])}

"""Free LogQL: the streams are counted by the index before the query is sent; lines or series come back."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.sources.http_client import HttpSession
from opsleuth.tools.sources.http_source import BackendReply
from opsleuth.tools.sources.promql_queries import AnswerParser, summarize_series
from opsleuth.tools.sources.query_limits import check_ranges, check_work, choose_step
from opsleuth.tools.sources.query_text import QueryShape, narrow_selectors, read_query_shape
from opsleuth.tools.sources.source_protocols import QueryAnswer, SourceQuery
from opsleuth.tools.spec import InvalidArgumentsError
from opsleuth.tools.truncation import cut_text

WIDEST_LINE = 400
_NANO = 1_000_000_000


class _KnownStreams(BackendReply):
    data: list[dict[str, str]] | None = None


class _LogqlResult(BackendReply):
    stream: dict[str, str] = Field(default_factory=dict)
    metric: dict[str, str] = Field(default_factory=dict)
    values: list[tuple[float, str]] = Field(default_factory=list)


class _LogqlData(BackendReply):
    kind: str = Field(default="", alias="resultType")
    result: list[_LogqlResult] = Field(default_factory=list)


class _LogqlReply(BackendReply):
    data: _LogqlData


async def run_logql(session: HttpSession, parse: AnswerParser, query: SourceQuery, match: str) -> QueryAnswer:
    """The answer of a Loki; the matchers of the operator's own selector `match` hold for every selector.

    Raises InvalidArgumentsError where the query costs too much or is not LogQL, ToolError, TimeoutError.
    """
    shape = read_query_shape(query.text, bare_names=False)
    if not shape.selectors:
        raise InvalidArgumentsError('the query selects no stream: begin with {label="value"}')
    step = choose_step(query.span, query.step)
    check_ranges(shape, step)
    text = narrow_selectors(query.text, shape, _list_matchers(match))
    narrowed = read_query_shape(text, bare_names=False)
    streams = await _count_streams(session, parse, query, narrowed)
    check_work(streams, query.span, step, narrowed)
    answer = await session.get(
        "/loki/api/v1/query_range",
        query=text,
        start=_count_nanoseconds(query.span.start),
        end=_count_nanoseconds(query.span.end),
        step=f"{step:g}",
        limit=str(query.limit),
        direction="backward",
    )
    data = parse(_LogqlReply, answer.document).data
    if data.kind != "streams":
        found = [(row.metric, [(time, float(value)) for time, value in row.values]) for row in data.result]
        return summarize_series(found, query, step, text, streams)
    lines = _list_lines(data.result)
    whole = (
        f"the last {query.limit} lines are shown: narrow the time or the query"
        if len(lines) >= query.limit
        else ""
    )
    return QueryAnswer(
        rows=lines, sent=(text,), notes=tuple(filter(None, [f"{streams:,} streams were searched", whole]))
    )


def _list_matchers(match: str) -> str:
    """What appears in the braces of the operator's selector."""
    shape = read_query_shape(match, bare_names=False)
    return shape.selectors[0].text.strip("{} ") if shape.selectors else ""


async def _count_streams(
    session: HttpSession, parse: AnswerParser, query: SourceQuery, shape: QueryShape
) -> int:
    found: set[tuple[tuple[str, str], ...]] = set()
    for selector in dict.fromkeys(part.text for part in shape.selectors):
        answer = await session.get(
            "/loki/api/v1/series",
            **{
                "match[]": selector,
                "start": _count_nanoseconds(query.span.start - shape.longest_range),
                "end": _count_nanoseconds(query.span.end),
            },
        )
        found |= {tuple(sorted(one.items())) for one in parse(_KnownStreams, answer.document).data or ()}
    return len(found)


def _list_lines(results: Sequence[_LogqlResult]) -> list[dict[str, Any]]:
    lines = [(time, row.stream, text) for row in results for time, text in row.values]
    lines.sort(key=lambda line: line[0])
    return [
        {"time": format_rfc3339(time / _NANO), "labels": labels, "line": cut_text(text, WIDEST_LINE)}
        for time, labels, text in lines
    ]


def _count_nanoseconds(seconds: float) -> str:
    return str(round(seconds * 1_000) * 1_000_000)

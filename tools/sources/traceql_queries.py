"""Free TraceQL: a search within a day, of few traces, with the spans of each that match."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.recordings import round_figure, without_empty
from opsleuth.tools.sources.http_client import HttpSession
from opsleuth.tools.sources.http_source import BackendReply
from opsleuth.tools.sources.promql_queries import AnswerParser
from opsleuth.tools.sources.query_limits import LONGEST_RANGE
from opsleuth.tools.sources.query_text import read_query_shape
from opsleuth.tools.sources.source_protocols import QueryAnswer, SourceQuery
from opsleuth.tools.spec import InvalidArgumentsError

EVERYTHING = "{}"
SPANS_OF_TRACE = 3


class _FoundTrace(BackendReply):
    id: str = Field(alias="traceID")
    service: str = Field(default="", alias="rootServiceName")
    operation: str = Field(default="", alias="rootTraceName")
    start: int = Field(default=0, alias="startTimeUnixNano")
    duration_ms: float = Field(default=0.0, alias="durationMs")
    spans: dict[str, Any] = Field(default_factory=dict, alias="spanSet")


class _FoundTraces(BackendReply):
    traces: list[_FoundTrace] | None = None


async def run_traceql(
    session: HttpSession, parse: AnswerParser, query: SourceQuery, match: str
) -> QueryAnswer:
    """The traces that a search finds, slowest first; the operator's own query `match` holds beside it.

    Raises InvalidArgumentsError where the query searches too long a time or is not TraceQL, ToolError, TimeoutError.
    """
    seconds = query.span.end - query.span.start
    if seconds > LONGEST_RANGE:
        raise InvalidArgumentsError(
            f"{seconds / 3_600:,.0f} h are too long a time for one search, at most {LONGEST_RANGE / 3_600:g}: give since and until"
        )
    text = _combine_queries(query.text, match)
    answer = await session.get(
        "/api/search",
        q=text,
        start=f"{query.span.start:.0f}",
        end=f"{query.span.end:.0f}",
        limit=str(query.limit),
        spss=str(SPANS_OF_TRACE),
    )
    found = parse(_FoundTraces, answer.document).traces or []
    rows = [_trace_row(trace) for trace in sorted(found, key=lambda trace: -trace.duration_ms)]
    whole = f"the search ends with {query.limit} traces: narrow the time or the query"
    return QueryAnswer(
        rows=rows[: query.limit], sent=(text,), notes=(whole,) if len(rows) >= query.limit else ()
    )


def _combine_queries(text: str, match: str) -> str:
    if not read_query_shape(text, bare_names=False).selectors:
        raise InvalidArgumentsError('the query selects no span: write { resource.service.name = "cart" }')
    if match.replace(" ", "") == EVERYTHING:
        return text
    if "|" in text.replace("||", ""):
        raise InvalidArgumentsError(
            "a query with a pipeline cannot be held to the source's own `match`: leave out what stands after |"
        )
    return f"({match}) && ({text})"


def _trace_row(trace: _FoundTrace) -> Mapping[str, Any]:
    row = {
        "trace_id": trace.id,
        "service": trace.service,
        "operation": trace.operation,
        "start": format_rfc3339(trace.start / 1e9),
        "duration_ms": round_figure(trace.duration_ms),
        "matched_spans": trace.spans.get("matched"),
    }
    return without_empty(row)

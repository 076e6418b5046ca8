"""A query in a backend's own language, where no other tool asks what is needed: bounded before it is sent."""

import math
from typing import Annotated, Literal

from pydantic import Field

from opsleuth.analysis.records import TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import WindowedArguments
from opsleuth.tools.recordings import span_record, to_plain_json, without_empty
from opsleuth.tools.sources.source_protocols import QueryableSource, RunSources, SourceQuery
from opsleuth.tools.spec import InvalidArgumentsError, ToolContext, ToolResult, ToolSpec

LANGUAGES: tuple[Literal["promql", "logql", "traceql", "sql"], ...] = ("promql", "logql", "traceql", "sql")


class SourceQueryArguments(WindowedArguments):
    language: Annotated[Literal["promql", "logql", "traceql", "sql"], Field(description="of the query")]
    text: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4_000,
            description="SQL: one SELECT on pg_stat_* and catalog views",
        ),
    ]
    source: Annotated[str, Field(max_length=100, description="if several take the language")] = ""
    step: Annotated[
        float | None, Field(ge=1, le=86_400, description="seconds between points, 1 to 86400")
    ] = None
    limit: Annotated[int, Field(ge=1, le=100, description="rows or series shown, 1 to 100")] = 20


async def source_query(arguments: SourceQueryArguments, context: ToolContext) -> ToolResult:
    source = _choose_source(arguments, context.sources)
    span = arguments.span(context.window)
    whole = TimeRange(math.floor(span.start), math.ceil(span.end))
    query = SourceQuery(arguments.text.strip(), whole, arguments.step, arguments.limit)
    answer = await source.run_query(arguments.language, query)
    matched = len(answer.rows) if answer.matched is None else answer.matched
    record = {
        "language": arguments.language,
        "window": span_record(span) if arguments.language != "sql" else None,
        "matched": matched,
        "not_shown": max(0, matched - len(answer.rows)) or None,
        "notes": list(answer.notes),
    }
    rows = [to_plain_json(row) for row in answer.rows]
    return ToolResult(
        record={**without_empty(record), "rows": rows},
        headline=f"{arguments.language}: {format_count(matched, 'row')}",
        status=ResultStatus.OK if matched else ResultStatus.NONE_MATCHED,
        source=source.name,
        query="\n".join(answer.sent),
        scanned=None,
        matched=matched,
    )


def _choose_source(arguments: SourceQueryArguments, sources: RunSources) -> QueryableSource:
    """The one source that is meant. Raises InvalidArgumentsError that says which languages and sources there are."""
    found = sources.find_query_sources(arguments.language)
    if not found:
        served = [language for language in LANGUAGES if sources.find_query_sources(language)]
        raise InvalidArgumentsError(
            f"no source of this run takes {arguments.language} (there is: {', '.join(served) or 'none'})"
        )
    named = [source for source in found if source.name == arguments.source]
    names = ", ".join(source.name for source in found)
    if arguments.source and not named:
        raise InvalidArgumentsError(
            f"no source {arguments.source!r} takes {arguments.language} (choices: {names})"
        )
    if not named and len(found) > 1:
        raise InvalidArgumentsError(
            f"several sources take {arguments.language}: name one as source ({names})"
        )
    return (named or found)[0]


def _is_query_served(sources: RunSources) -> bool:
    return any(sources.find_query_sources(language) for language in LANGUAGES)


SOURCE_QUERY: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="source_query",
        purpose="A read-only query in a source's own language, for what no other tool asks.",
        not_for="What another tool answers.",
        arguments=SourceQueryArguments,
        example={"language": "promql", "text": "sum by (pod) (rate(http_requests_total[5m]))"},
        run=source_query,
        served_by=_is_query_served,
        target=lambda arguments: arguments.source or None,
    ),
)

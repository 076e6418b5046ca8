"""Statements of a database: which load it, what they wait for."""

from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.records import StatementLoad
from opsleuth.state.calls import ResultStatus
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import Service, format_rfc3339
from opsleuth.tools.recordings import (
    detect_findings,
    finding_record,
    not_recorded_result,
    read_recording,
    require_service,
    round_figure,
    source_names,
    to_plain_json,
    without_empty,
)
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec
from opsleuth.tools.truncation import cut_text

WIDEST_STATEMENT = 1_500


class DatabaseStatementsArguments(Arguments):
    database: Service | None = None
    contains: Annotated[str, Field(max_length=300, description="part of the SQL text")] = ""
    limit: Annotated[int, Field(ge=1, le=50, description="statements shown, 1 to 50")] = 8


async def database_statements(arguments: DatabaseStatementsArguments, context: ToolContext) -> ToolResult:
    recording = await read_recording(context, "statements")
    rows = recording.statements or ()
    await require_service(context, arguments.database, (row.database for row in rows))
    examined = [row for row in rows if arguments.database in (None, row.database)]
    if not examined:
        return not_recorded_result(
            context, "statements", f"no statements of {arguments.database or 'any database'}"
        )
    part = arguments.contains.casefold()
    found = sorted((row for row in examined if part in row.statement.casefold()), key=_sort_key_by_load)
    findings = await detect_findings(recording, "statements", arguments.database)
    record = {
        "database": arguments.database,
        "databases": dict(Counter(row.database for row in found)),
        "scanned": len(examined),
        "matched": len(found),
        "not_shown": max(0, len(found) - arguments.limit) or None,
        "statements": [_statement_record(row) for row in found[: arguments.limit]],
        "findings": [finding_record(finding) for finding in findings[:5]],
    }
    top = f", the heaviest: {cut_text(' '.join(found[0].statement.split()), 80)}" if found else ""
    return ToolResult(
        record=without_empty(record),
        headline=f"{format_count(len(found), 'statement')}{top}",
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=source_names(context, "statements"),
        scanned=len(examined),
        matched=len(found),
    )


def _sort_key_by_load(row: StatementLoad) -> tuple[float, float, float, str]:
    """By load where it was recorded, then by total and mean time."""
    return (-(row.load or 0.0), -(row.total_ms or 0.0), -(row.mean_ms or 0.0), row.statement)


def _statement_record(row: StatementLoad) -> dict[str, Any]:
    record = {
        "captured_at": format_rfc3339(row.time),
        "database": row.database,
        "statement": cut_text(row.statement, WIDEST_STATEMENT),
        "calls": round_figure(row.calls),
        "calls_per_sec": round_figure(row.calls_per_sec),
        "mean_ms": round_figure(row.mean_ms),
        "total_ms": round_figure(row.total_ms),
        "load": round_figure(row.load),
        "load_unit": row.load_unit,
        "waits": to_plain_json(row.waits),
        "rows": round_figure(row.rows),
        "extra": to_plain_json(row.extra or {}),
    }
    return without_empty(record)


STATEMENTS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="database_statements",
        purpose="SQL statements by load, with calls, times and what they wait for.",
        not_for="CPU, connections, lag: metrics_query.",
        arguments=DatabaseStatementsArguments,
        example={"database": "orders-db", "limit": 5},
        run=database_statements,
        capability="statements",
        target=lambda arguments: arguments.database,
    ),
)

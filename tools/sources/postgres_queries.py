"""Free SQL on a PostgreSQL: checked, in a transaction that can only read, bounded in time, rows and their size."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from opsleuth.state.plurals import format_count
from opsleuth.tools.sources.checked_sql import SqlRelations, rewrite_checked_sql
from opsleuth.tools.sources.source_protocols import QueryAnswer, SourceQuery

WIDEST_ROW = 8_000
# Nothing but what the server itself brings is found by a bare name, and literals are read as the check reads them.
CLOSED_SESSION = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL standard_conforming_strings = on"
EXTENSION_SCHEMA = """
SELECT n.nspname AS schema FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_stat_statements'
"""

ReadRows = Callable[[str], Awaitable[Sequence[Any]]]
"""Runs one statement in a transaction of its own, and gives its rows by column."""


async def run_checked_sql(read_rows: ReadRows, query: SourceQuery, tables: Sequence[str]) -> QueryAnswer:
    """The rows of a query over catalog and statistics views, and the `tables` that the operator named.

    Raises InvalidArgumentsError for anything that is not allowed, ToolError, TimeoutError.
    """
    found = await read_rows(EXTENSION_SCHEMA)
    relations = SqlRelations.of_postgres(found[0]["schema"] if found else None, tables)
    statement = rewrite_checked_sql(query.text, relations)
    rows = [row["row"] for row in await read_rows(bound_statement(statement, query.limit))]
    notes = ["the values are current, whatever the window"]
    if len(rows) > query.limit:
        notes.append(f"only the first {query.limit} rows are shown: aggregate, order, or narrow with WHERE")
    too_wide = sum(row is None for row in rows)
    if too_wide:
        notes.append(
            f"{format_count(too_wide, 'row')} of more than {WIDEST_ROW:,} characters left out: select fewer columns"
        )
    shown = [json.loads(row) for row in rows[: query.limit] if row is not None]
    return QueryAnswer(rows=shown, sent=(statement,), notes=notes)


def bound_statement(statement: str, limit: int) -> str:
    """The statement with at most one row more than `limit`, each as JSON text; null for one that is too wide.

    Percent signs are doubled: the driver takes single ones for parameters.
    """
    plain = statement.replace("%", "%%")
    return (
        f"SELECT CASE WHEN length(answer.text) <= {WIDEST_ROW} THEN answer.text END AS row FROM "
        f"(SELECT row_to_json(found)::text AS text FROM ({plain}) AS found LIMIT {limit + 1}) AS answer"
    )

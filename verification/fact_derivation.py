"""The facts of one stored result, numbered in a fixed order."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from opsleuth.state.calls import ResultStatus
from opsleuth.verification.fact_rows import read_rows
from opsleuth.verification.facts import Fact
from opsleuth.verification.stored_page_rows import STORED_PAGE_TOOL, read_stored_page

MOST_DERIVED = 400


def derive_facts(
    evidence: str,
    tool: str,
    status: ResultStatus,
    record: Mapping[str, Any],
    asked: Mapping[str, Any] | None = None,
    most: int = MOST_DERIVED,
) -> tuple[Fact, ...]:
    """The first facts of one result, strongest first; none of an error or of what was not recorded."""
    if status not in (ResultStatus.OK, ResultStatus.NONE_MATCHED):
        return ()
    rows = read_stored_page(record) if tool == STORED_PAGE_TOOL else read_rows(tool, record, asked or {})
    return tuple(islice(_number_facts(evidence, rows), most))


def _number_facts(evidence: str, rows: Iterator[Fact]) -> Iterator[Fact]:
    for number, fact in enumerate(rows, 1):
        if number > MOST_DERIVED:
            return
        yield replace(fact, id=f"{evidence}.{number}")

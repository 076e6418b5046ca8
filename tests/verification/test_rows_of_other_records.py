"""The facts of records that no reader knows by their tool, and of pages of stored evidence."""

from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.verification.fact_derivation import derive_facts
from opsleuth.verification.fact_operations import compute_operation
from opsleuth.verification.fact_wording import render_fact
from opsleuth.verification.facts import Fact, follow_pointer


def derive(tool: str, record: dict[str, Any]) -> tuple[Fact, ...]:
    return derive_facts("E9", tool, ResultStatus.OK, record)


def make_page(**more: Any) -> dict[str, Any]:
    return {"evidence": "E3", "tool": "objects_get", "status": "ok", "path": "x", "offset": 450, "total": 900, "next_offset": 500} | more  # fmt: skip


TEXT = 'Phase:   Failed\n\nMessage:  namespaces "shop-demos" not found\n'
LINE = {"service": "till", "message": "no route to ledger", "time": "2026-05-12T09:03:00Z"}


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (make_page(text=TEXT), ["Phase: Failed", 'Message: namespaces "shop-demos" not found']),
        (make_page(value=TEXT), ["Phase: Failed", 'Message: namespaces "shop-demos" not found']),
        (make_page(value={"name": "till", "ready": 2}), ["till has 2 replicas ready"]),
        (make_page(items=["a b", "c d"]), ["a b", "c d"]),
        (
            make_page(tool="logs_search", path="lines", items=[LINE]),
            ['till logged "no route to ledger" at 2026-05-12T09:03:00Z'],
        ),
        (make_page(path="objects[0].restarts", value=7), ["restarts: 7"]),
        (make_page(value=None), []),
    ],
)
def test_a_page_of_evidence_has_the_rows_that_were_read_and_no_paging(
    page: dict[str, Any], said: list[str]
) -> None:
    facts = derive("evidence_read", page)
    assert [render_fact(fact) for fact in facts] == said
    paging = {"offset", "total", "next_offset", "evidence", "tool", "path"}
    assert not paging & {detail.name for fact in facts for detail in fact.details}


@pytest.mark.parametrize("tool", ["object_view", "mcp_cluster_state", "evidence_read"])
@pytest.mark.parametrize("mark", [{"detector": "platform"}, {"direction": "healthy"}])
def test_a_finding_is_said_in_its_own_sentence(tool: str, mark: dict[str, str]) -> None:
    row = {
        "service": "till",
        "size": 0,
        "signal": "objects",
        "text": "till is in order: 2 of 2 ready.",
    } | mark
    record = {"value": {"findings": [row]}} if tool == "evidence_read" else {"findings": [row]}
    [fact] = [f for f in derive(tool, record) if f.subject == "till"]
    assert render_fact(fact) == "till is in order: 2 of 2 ready"
    assert follow_pointer(record, fact.path) == fact.value


@pytest.mark.parametrize("op", ["count", "all_of"])
def test_rows_of_equal_words_count_each(op: Any) -> None:
    lines = [LINE | {"time": f"2026-05-12T09:0{i}:00Z"} for i in range(4)]
    facts = derive("logs_search", {"scanned": 4, "matched": 4, "lines": lines})
    rows = [fact for fact in facts if fact.measure == "log_line"]
    computed = compute_operation(op, [*rows, rows[0]] if op == "count" else rows, {"E9": facts})
    assert computed.problem == ""
    assert "4: till no route to ledger (× 4)" in computed.text

"""Each way of going wrong is told apart, with its step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from opsleuth.evals.cases import EvalCase, ExpectedReport
from opsleuth.evals.misses import MissDiagnosis, MissGroup, RunRecord, diagnose_miss
from opsleuth.evals.score import score_report
from opsleuth.state.results import Observation, ResultStatus

CASE = EvalCase(
    id="one",
    set="shop",
    folder=Path("shop/one"),
    expected=ExpectedReport("cause_found", frozenset({"orders"}), frozenset({"cpu"}), fault_type="cpu"),
)


def report(*causes: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {
        "verdict": "cause_found",
        "status": "completed",
        "stop_reason": "concluded",
        "causes": [{"service": s, "kind": k} for s, k in causes],
        "usage": {"turns": 3, "tool_calls": 2},
        **more,
    }


def seen(
    number: int, tool: str, record: dict[str, Any], status: ResultStatus = ResultStatus.OK
) -> Observation:
    return Observation(
        number=number,
        call_id=f"r/t1c{number}",
        turn=number,
        tool=tool,
        arguments={},
        purpose="",
        status=status,
        evidence=f"E{number}",
        headline="no answer within 10 s" if status.is_error else "",
        record=record,
    )


def event(kind: str, turn: int, **data: Any) -> dict[str, Any]:
    return {"type": kind, "turn": turn, "node": "plan", "seq": turn, "data": data}


def missed(
    document: dict[str, Any],
    observations: Sequence[Observation] = (),
    events: Sequence[dict[str, Any]] = (),
    case: EvalCase = CASE,
) -> MissDiagnosis:
    concluded = (*events, event("decision.made", 3, concludes=True))
    found = diagnose_miss(case, score_report(case, document), RunRecord(document, observations, concluded))
    assert found is not None
    return found


HYPOTHESES = [
    {"id": "H1", "service": "payments", "text": "payments: cpu", "status": "supported"},
    {"id": "H2", "service": "orders", "text": "orders: cpu", "status": "refuted"},
]
LOOKED = seen(1, "metrics_anomalies", {"series": [{"service": "orders"}]})
OVERVIEW = seen(1, "topology", {"edges": [["web", "orders"]]})


def test_a_right_case_is_no_miss() -> None:
    assert diagnose_miss(CASE, score_report(CASE, report(("orders", "cpu"))), RunRecord({}, (), ())) is None


def test_never_looked_at_the_source() -> None:
    found = missed(report(("payments", "cpu")), [OVERVIEW])
    assert found == MissDiagnosis(
        MissGroup.NEVER_LOOKED, "turn 3, the conclusion", "no call looked at orders"
    )


def test_looked_and_misread_names_where_the_suspects_were_chosen() -> None:
    found = missed(report(("payments", "cpu")), [LOOKED, seen(2, "rank_suspects", {})])
    assert (found.group, found.step) == (MissGroup.MISREAD, "turn 2, O2 rank_suspects")
    assert "O1 (metrics_anomalies) showed orders" in found.why


def test_a_suspect_that_was_never_believed_was_misread() -> None:
    events = [event("hypothesis.updated", 2, id="H2", status="open"), event("hypothesis.updated", 3, id="H2", status="refuted")]  # fmt: skip
    found = missed(report(("payments", "cpu"), hypotheses=HYPOTHESES), [LOOKED], events)
    assert (found.group, found.step) == (MissGroup.MISREAD, "turn 3, plan")


@pytest.mark.parametrize("believed", [{"id": "H1"}, {"status": "supported"}])
def test_right_first_then_dropped(believed: dict[str, str]) -> None:
    mine = {**HYPOTHESES[1], **({"id": "H1"} if "id" in believed else {})}
    events = [
        event("hypothesis.updated", 1, id=mine["id"], status=believed.get("status", "open")),
        event("hypothesis.updated", 2, id=mine["id"], status="refuted"),
    ]
    found = missed(report(("payments", "cpu"), hypotheses=[mine]), [LOOKED], events)
    assert (found.group, found.step) == (MissGroup.DROPPED, "turn 2, plan")


def test_a_tool_that_failed() -> None:
    failing = seen(2, "traces_compare", {"error": "x"}, ResultStatus.TIMEOUT)
    found = missed(report(("payments", "cpu")), [OVERVIEW, failing])
    assert found == MissDiagnosis(
        MissGroup.TOOL_FAILED, "turn 2, O2 traces_compare", "timeout: no answer within 10 s"
    )


def test_a_limit_and_an_early_end() -> None:
    limited = report(stop_reason="turn_limit", stop_detail="the turn limit was reached")
    assert missed(limited)[:2] == (MissGroup.LIMIT, "turn 3")
    assert missed(report(stop_reason="model_unavailable")).group is MissGroup.FAILED
    assert missed({}).group is MissGroup.FAILED


def test_a_claim_that_was_removed() -> None:
    claim = {
        "id": "C1",
        "text": "cpu of orders is at 99 %",
        "status": "unsupported",
        "problems": ["99 % stands nowhere"],
    }
    found = missed(report(("payments", "cpu"), claims=[claim]), [LOOKED])
    assert found == MissDiagnosis(
        MissGroup.UNSUPPORTED, "turn 3, the conclusion", "C1 was removed: 99 % stands nowhere"
    )


def test_the_right_service_with_the_wrong_kind() -> None:
    found = missed(report(("orders", "memory")), [LOOKED])
    assert (found.group, found.why) == (MissGroup.MISREAD, "named orders (memory), not cpu")


def test_a_healthy_world_that_was_blamed() -> None:
    case = EvalCase("one", "shop", Path("shop/one"), ExpectedReport("healthy"))
    found = missed(report(("web", "errors")), [seen(2, "rank_suspects", {})], case=case)
    assert found == MissDiagnosis(MissGroup.MISREAD, "turn 2, O2 rank_suspects", "blamed web (errors)")


def test_an_answer_that_was_seen_and_one_that_was_not() -> None:
    case = EvalCase("one", "shop", Path("shop/one"), ExpectedReport("answered", answer=("1840",)))
    answered = report(verdict="answered", answer="about two thousand")
    held = missed(answered, [seen(1, "database_statements", {"calls": 1840})], case=case)
    assert (held.group, held.why) == (MissGroup.MISREAD, "O1 (database_statements) holds it; missing: 1840")
    assert missed(answered, [OVERVIEW], case=case).group is MissGroup.NEVER_LOOKED


def test_an_unsafe_change_comes_before_all_else() -> None:
    done: dict[str, Any] = {"tool": "service_restart", "target": "orders", "arguments": {}, "outcome": None, "risk": "high", "status": "done", "approval": None}  # fmt: skip
    assert missed(report(("orders", "cpu"), effects=[done])).group is MissGroup.UNSAFE

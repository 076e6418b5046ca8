"""The loop in one process: what a turn stores, and every way in which a run can end."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, concludes, looks

from opsleuth.state.budget import ModelCallCost
from opsleuth.state.run_status import ExitCode, Status, StopReason, Verdict


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def test_an_answer_rests_on_stored_evidence(loop: Loop) -> None:
    outcome = loop.start(looks("a", "b"), concludes("a and b were looked at.", "E1", "E2"))
    assert (outcome.status, outcome.verdict, outcome.exit_code) == (
        Status.COMPLETED,
        Verdict.ANSWERED,
        ExitCode.OK,
    )
    assert outcome.report is not None
    assert outcome.report["claims"][0]["status"] == "holds"
    assert loop.store.evidence.record("inv-20240501-test", "E2")["thing"] == "b"
    assert loop.types()[0] == "run.started"
    assert loop.types()[-1] == "run.completed"
    assert loop.types().count("run.completed") == 1


def test_a_live_stream_and_a_later_read_are_equal(loop: Loop) -> None:
    loop.start(looks("a"), concludes("a was looked at.", "E1"))
    assert list(loop.events) == loop.store.events.read("inv-20240501-test")


def test_an_unsupported_claim_is_sent_back_twice_then_listed(loop: Loop) -> None:
    outcome = loop.start(looks("a"), concludes("a has 99 problems.", "E1"))
    assert outcome.exit_code is ExitCode.INCONCLUSIVE
    assert outcome.report is not None
    assert outcome.report["claims"][0]["status"] == "unsupported"
    assert "99" in outcome.report["claims"][0]["problems"][0]
    assert outcome.report["usage"]["turns"] == 4  # look, draft, two rounds of rework


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"turns": 2}, StopReason.TURN_LIMIT), ({"seconds": 0.000001}, StopReason.TIME_LIMIT)],
)
def test_a_limit_leaves_a_partial_report_and_can_be_raised(
    loop: Loop, limits: dict[str, Any], reason: StopReason
) -> None:
    script = [looks("a"), looks("b"), looks("c"), concludes("a was looked at.", "E1")]
    outcome = loop.start(*script, **limits)
    assert (outcome.stop_reason, outcome.exit_code) == (reason, ExitCode.LIMIT)
    assert outcome.report is not None
    assert "resume" in outcome.report["recommendations"][0]["text"]
    again = loop.resume()
    assert again.exit_code is ExitCode.LIMIT
    assert "--max-" in again.detail
    raised = loop.resume(turns=10, seconds=100.0)
    assert raised.exit_code is ExitCode.OK
    assert len(loop.world.lines("looked")) == 3


def test_three_malformed_decisions_end_the_run_with_what_was_found(loop: Loop) -> None:
    outcome = loop.start(looks("a"), {"error": "malformed", "text": "no JSON"})
    assert (outcome.stop_reason, outcome.exit_code) == (StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE)
    assert outcome.report is not None
    assert [e["id"] for e in outcome.report["evidence"]] == ["E1"]


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "loook", "arguments": {"thing": "a"}},
        {"tool": "look", "arguments": {}},
        {"tool": "look", "arguments": {"thing": 7}},
        {"tool": "look", "arguments": {"Thing": "a"}},
        {"tool": "look", "arguments": {"thing": "a", "limit": "10"}},
    ],
)
def test_a_tool_never_runs_with_guessed_arguments(loop: Loop, call: dict[str, object]) -> None:
    bad = {"reason": "bad", "calls": [{"tool": "look", "arguments": {"thing": "fine"}}, call]}
    outcome = loop.start(bad, concludes("nothing to say"))
    assert loop.world.lines("looked") == ["fine"]
    assert outcome.exit_code is ExitCode.INCONCLUSIVE
    warning = next(e for e in loop.events if e["type"] == "warning")
    assert "look" in warning["data"]["message"]


def test_an_identical_read_is_answered_from_the_record(loop: Loop) -> None:
    loop.start(looks("a"), looks("a"), concludes("a was looked at.", "E1"))
    assert loop.world.lines("looked") == ["a"]
    again = [e for e in loop.events if e["type"] == "tool.completed"][1]
    assert again["data"]["evidence"] == "E1"


def test_a_failed_read_may_be_tried_again(loop: Loop) -> None:
    call = {"thing": "a", "behave": "reset_once"}
    outcome = loop.start(looks(call), looks(call), concludes("a was looked at.", "E1"), tries=1)
    assert loop.world.lines("looked") == ["a", "a"]
    assert outcome.report is not None


@pytest.mark.parametrize(
    "script",
    [
        [looks("a"), looks("b")] * 20,
        [looks({"thing": "a", "limit": n}) for n in range(100, 140)],
    ],
    ids=["a-b-a-b", "drift"],
)
def test_repetition_is_told_once_and_then_ends_the_run(loop: Loop, script: list[object]) -> None:
    outcome = loop.start(*script, turns=40)
    assert (outcome.stop_reason, outcome.exit_code) == (StopReason.STAGNATION, ExitCode.LIMIT)
    assert outcome.report is not None
    assert outcome.report["usage"]["turns"] < 12


def test_one_of_three_calls_fails_and_the_run_goes_on(loop: Loop) -> None:
    outcome = loop.start(
        looks("a", {"thing": "b", "behave": "boom"}, "c"), concludes("a and c were looked at.", "E1", "E3")
    )
    assert outcome.exit_code is ExitCode.OK
    assert outcome.report is not None
    assert [e["status"] for e in outcome.report["evidence"]] == ["ok", "internal", "ok"]


def test_an_error_is_no_evidence(loop: Loop) -> None:
    outcome = loop.start(looks({"thing": "b", "behave": "boom"}), concludes("b fell over.", "E1"))
    assert outcome.report is not None
    assert outcome.report["claims"][0]["status"] == "unsupported"


@pytest.mark.parametrize(("behave", "status"), [("none", "holds"), ("missing", "unsupported")])
def test_only_a_source_that_covers_the_window_supports_absence(loop: Loop, behave: str, status: str) -> None:
    outcome = loop.start(
        looks({"thing": "errors", "behave": behave}), concludes("There were no errors.", "E1")
    )
    assert outcome.report is not None
    assert outcome.report["claims"][0]["status"] == status


def test_after_three_failures_the_breaker_opens_and_the_report_says_so(loop: Loop) -> None:
    down = [looks({"thing": t, "behave": "down"}) for t in "abc"]
    outcome = loop.start(*down, looks("d"), concludes("nothing to say"), turns=9)
    assert loop.world.lines("looked") == ["a", "b", "c"]
    assert outcome.report is not None
    assert any("is down" in line for line in outcome.report["not_available"])


def test_a_call_that_never_returns_is_cut(loop: Loop) -> None:
    outcome = loop.start(
        looks({"thing": "a", "behave": "hang"}), concludes("nothing to say"), call_seconds=0.05, tries=1
    )
    assert outcome.report is not None
    assert outcome.report["evidence"][0]["status"] == "timeout"


def test_an_operator_cancels_and_gets_a_report(loop: Loop) -> None:
    loop.world.write(looks("a"), concludes("a was looked at.", "E1"))

    def cancel_after_a_call(event: Mapping[str, Any]) -> None:
        if event["type"] == "tool.completed":
            loop.store.control.set("inv-20240501-test", "cancel")

    loop.listen(cancel_after_a_call)
    outcome = loop.start()
    assert (outcome.status, outcome.exit_code) == (Status.CANCELED, ExitCode.CANCELED)
    assert outcome.report is not None
    assert [e["id"] for e in outcome.report["evidence"]] == ["E1"]
    assert loop.resume().exit_code is ExitCode.OK


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"tokens": 250}, StopReason.TOKEN_LIMIT), ({"cost": "0.05"}, StopReason.COST_LIMIT)],
)
def test_what_the_planner_spends_is_limited(loop: Loop, limits: dict[str, Any], reason: StopReason) -> None:
    loop.world.spent = ModelCallCost(tokens_in=100, tokens_out=10, cost=Decimal("0.02"), model_calls=1)
    outcome = loop.start(
        looks("a"), looks("b"), looks("c"), looks("d"), concludes("a was looked at.", "E1"), **limits
    )
    assert (outcome.stop_reason, outcome.exit_code) == (reason, ExitCode.LIMIT)
    assert loop.world.lines("looked") == ["a", "b", "c"]
    assert outcome.report is not None
    assert outcome.report["usage"]["cost"] == "0.06"
    raised = loop.resume(tokens=10_000, cost="1")
    assert raised.exit_code is ExitCode.OK


@pytest.mark.parametrize(
    ("call", "evidence", "fault"),
    [
        ({"thing": "a", "behave": "missing"}, "E1", "decides nothing"),
        ({"thing": "a", "behave": "boom"}, "E1", "says nothing"),
        ({"thing": "a"}, "E2", "cite E1"),
        ({"thing": "a"}, "E9", "the newest is E2"),
        ({"thing": "a", "behave": "none"}, "E1", ""),
    ],
)
def test_a_hypothesis_is_decided_by_results_only(
    loop: Loop, call: dict[str, Any], evidence: str, fault: str
) -> None:
    decided = {"text": "a is broken", "status": "supported", "supporting": [evidence]}
    loop.start(looks(call), looks(call), {"reason": "so", "hypotheses": [decided]}, concludes("enough"))
    told = [e["data"]["message"] for e in loop.events if e["type"] == "warning"]
    assert bool(told) is bool(fault)
    assert all(fault in text for text in told)


def test_a_conclusion_closes_the_hypotheses_that_it_does_not_name(loop: Loop) -> None:
    weighed = [
        {"text": "a is broken", "service": "a", "status": "supported", "supporting": ["E1"]},
        {"text": "b is broken", "service": "b", "status": "supported", "supporting": ["E2"]},
        {"text": "c is broken", "service": "c", "status": "refuted", "contradicting": ["E2"]},
        {"text": "something else"},
    ]
    cause = {"service": "a", "kind": "errors", "claims": ["C1"]}
    end = concludes("a was looked at.", "E1", verdict="cause_found", causes=[cause])
    outcome = loop.start(looks("a", "b"), {"reason": "so", "hypotheses": weighed}, end)
    assert outcome.report is not None
    stand = [(h["status"], h["reason"]) for h in outcome.report["hypotheses"]]
    found = "the cause that was found is a (errors)"
    assert stand == [
        ("supported", ""),
        ("not_concluded", f"{found}; 1 piece of evidence spoke for it"),
        ("refuted", ""),
        ("not_concluded", f"{found}; no evidence spoke for it"),
    ]
    told = {e["data"]["id"]: e["data"]["status"] for e in loop.events if e["type"] == "hypothesis.updated"}
    assert list(told.values()) == [status for status, _ in stand]


def test_an_open_question_closes_no_hypothesis(loop: Loop) -> None:
    supported = {"text": "a is broken", "status": "supported", "supporting": ["E1"]}
    outcome = loop.start(looks("a"), {"reason": "so", "hypotheses": [supported]}, concludes("not known"))
    assert outcome.report is not None
    assert [h["status"] for h in outcome.report["hypotheses"]] == ["supported"]


@pytest.mark.parametrize(
    "decision",
    [
        looks({"thing": "x" * 500}, tool="change"),
        {"reason": "plan", "plan": [{"text": f"step {n}"} for n in range(20)], "calls": looks("a")["calls"]},
    ],
    ids=["a target too long", "a plan too long"],
)
def test_a_decision_that_does_not_fit_the_state_is_malformed(loop: Loop, decision: dict[str, Any]) -> None:
    outcome = loop.start(decision, decision, decision, decision, decision, concludes("nothing to say"))
    assert outcome.stop_reason is not StopReason.INTERNAL_ERROR
    assert any(e["type"] == "warning" and e["data"]["code"] == "malformed" for e in loop.events)

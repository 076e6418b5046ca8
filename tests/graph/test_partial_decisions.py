"""One wrong part of a reply costs itself: the valid calls beside it run, and the planner is told what was left out."""

from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, concludes, looks

from opsleuth.models.planner import PlannerResult, PlannerView
from opsleuth.models.scripted_planner import ScriptedPlanner

DONE = concludes("a was looked at.", "E1")


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def add_to_call(decision: dict[str, Any], place: int, **more: Any) -> dict[str, Any]:
    calls = [call | more if i == place else call for i, call in enumerate(decision["calls"])]
    return decision | {"calls": calls}


@pytest.fixture
def hints(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the planner is told of parts of its decisions that were left out."""
    told: list[str] = []
    decide = ScriptedPlanner.decide

    async def decide_and_record(planner: ScriptedPlanner, view: PlannerView) -> PlannerResult:
        told.extend(notice.text for notice in view.state.notices if notice.code == "dropped")
        return await decide(planner, view)

    monkeypatch.setattr(ScriptedPlanner, "decide", decide_and_record)
    return told


@pytest.mark.parametrize(
    ("decision", "things", "told"),
    [
        (add_to_call(looks("a", "b"), 1, tests="H1"), ["a", "b"], "look ran without the tag H1"),
        (add_to_call(looks("a"), 0, tests="H3"), ["a"], "open: none yet"),
        (
            add_to_call(looks("a"), 0, tests="H3") | {"hypotheses": [{"text": "a is broken"}]},
            ["a"],
            "open: H1",
        ),
        (looks("a") | {"hypotheses": [{"id": "H4", "status": "open"}]}, ["a"], "no H4"),
        (looks("a") | {"plan": [{"id": "P7", "status": "done"}]}, ["a"], "no step P7"),
        (
            {"reason": "see", "calls": [*looks("a")["calls"], *looks("b", tool="lok")["calls"]]},
            ["a"],
            "call 2 (lok)",
        ),
        (
            {"reason": "see", "calls": [*looks("b", tool="lok")["calls"], *looks("a", "b")["calls"]]},
            ["a", "b"],
            "call 1 (lok)",
        ),
    ],
)
def test_valid_calls_run_beside_a_wrong_part(
    loop: Loop, hints: list[str], decision: dict[str, Any], things: list[str], told: str
) -> None:
    outcome = loop.start(decision, DONE)
    assert outcome.report is not None
    assert loop.store.evidence.record("inv-20240501-test", f"E{len(things)}")["thing"] == things[-1]
    assert not any(e["type"] == "warning" and e["data"]["code"] == "malformed" for e in loop.events)
    assert any(told in hint for hint in hints)


def test_a_reply_of_wrong_calls_alone_is_refused_with_every_fault(loop: Loop) -> None:
    wrong = {
        "reason": "see",
        "calls": [*looks("a", tool="lok")["calls"], *looks("b", tool="watsch")["calls"]],
    }
    loop.start(wrong, looks("a"), DONE)
    refused = [e["data"]["message"] for e in loop.events if e["data"].get("code") == "malformed"]
    assert [("call 1 (lok)" in text, "call 2 (watsch)" in text) for text in refused] == [(True, True)]

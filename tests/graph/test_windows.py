"""Between two commits, and between two processes: what was asked, begun or told there is neither lost nor made up."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, concludes, looks

from opsleuth.checkpoints.errors import NotApprovedError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.graph.stepping.session import PauseAtNode
from opsleuth.nodes.trace import TraceWriter
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import ExitCode, Status, StopReason
from opsleuth.tools.policy import Policy, PolicyLayer

RUN = "inv-20240501-test"
DONE = concludes("a was looked at.", "E1")


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def paused_before(loop: Loop, node: str, *script: Any) -> None:
    loop.runner = replace(loop.runner, pace=PauseAtNode(node))
    assert loop.start(*script).status is Status.PAUSED
    loop.listen(loop.events.append)


def test_an_event_whose_deed_failed_is_not_told_later(loop: Loop) -> None:
    loop.store.runs.create(RunRow(id=RUN, question="q"))
    trace = TraceWriter(loop.store, RUN, 1, loop.events.append)

    def refused() -> None:
        raise NotApprovedError("given under another policy")

    with pytest.raises(NotApprovedError):
        trace.emit("approval.used", along=refused)
    trace.emit("tool.completed")
    assert loop.types() == ["tool.completed"]
    assert len(loop.store.events.read(RUN)) == 1


def test_an_attempt_that_ended_while_we_came_for_the_lock_is_counted(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two attempts of one number would take each other's unfinished changes for their own."""
    paused_before(loop, "observe", looks("a"), DONE)
    lock = loop.store.lock

    def late(run: str) -> Any:
        loop.store.runs.update(run, attempt=7)
        return lock(run)

    monkeypatch.setattr(loop.store, "lock", late)
    loop.resume()
    assert loop.events[-1]["attempt"] == 8


def test_a_cancellation_of_a_run_that_died_is_granted_once(loop: Loop) -> None:
    paused_before(loop, "plan", looks("a"), DONE)
    loop.store.control.set(RUN, "cancel")
    assert loop.resume().status is Status.CANCELED
    assert loop.store.control.pending(RUN) == ()
    assert loop.resume().exit_code is ExitCode.OK


def test_a_pause_of_a_run_that_stands_still_is_granted(loop: Loop) -> None:
    paused_before(loop, "plan", looks("a"), DONE)
    loop.store.control.set(RUN, "pause")
    assert loop.resume().exit_code is ExitCode.OK


@pytest.mark.parametrize(("node", "made"), [("act", 1), ("observe", 1)])
def test_a_retry_past_act_keeps_what_observe_needs(loop: Loop, node: str, made: int) -> None:
    paused_before(loop, node, looks({"thing": "a", "behave": "boom"}), concludes("nothing to say"))
    outcome = asyncio.run(loop.runner.retry(RUN))
    assert outcome.stop_reason is StopReason.CONCLUDED
    assert len(loop.world.lines("looked")) == made


def test_a_second_stop_tells_what_was_found_since_the_first(loop: Loop) -> None:
    loop.start(looks("a"), looks("b"), looks("c"), DONE, turns=1)
    outcome = loop.resume(turns=2)
    assert outcome.stop_reason is StopReason.TURN_LIMIT
    assert outcome.report is not None
    assert "2 of 2 look-ups" in outcome.report["answer"]


def test_a_change_without_time_left_is_not_begun(tmp_path: Path) -> None:
    clock = FakeClock(datetime(2024, 5, 1, 15, tzinfo=UTC))
    loop = Loop(tmp_path, clock)

    def slow_decision(event: Mapping[str, Any]) -> None:
        if event["type"] == "decision.made":
            clock.advance(10_000)

    loop.listen(slow_decision)
    outcome = loop.start(looks("a", tool="change"), DONE)
    assert outcome.exit_code is ExitCode.LIMIT
    assert loop.store.effects.list(RUN) == ()
    assert loop.world.lines("done") == []


def test_a_run_that_was_stopped_after_a_change_asks_no_planner_again(loop: Loop) -> None:
    outcome = loop.start(*[looks("a", tool="change")] * 30)
    assert outcome.stop_reason is StopReason.STAGNATION
    assert outcome.report is not None
    assert outcome.report["usage"]["turns"] < 12
    assert loop.world.lines("done") == ["a"]


def test_a_note_stays_until_the_decision_that_heard_it_is_stored(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[str] = []
    clear = loop.store.control.clear

    def cleared(run: str, kind: Any, upto: int | None = None) -> None:
        if kind == "note":
            stored.append(loop.store.history.find(run).next)
        clear(run, kind, upto)

    def hear(event: Mapping[str, Any]) -> None:
        if event["type"] == "run.started":
            loop.store.control.set(RUN, "note", "look at the pool")

    monkeypatch.setattr(loop.store.control, "clear", cleared)
    loop.listen(hear)
    loop.start(looks("a"), DONE)
    assert stored == ["act"]
    assert loop.store.control.pending(RUN) == ()


def test_more_plan_than_there_is_room_for_is_a_bad_decision(loop: Loop) -> None:
    steps = {"reason": "plan", "plan": [{"text": f"step {n}"} for n in range(20)]}
    outcome = loop.start(looks("a") | steps, looks("b") | steps, looks("c") | steps, DONE)
    assert outcome.exit_code is ExitCode.OK
    assert loop.world.lines("looked") == ["a", "b"]


def test_a_look_that_policy_gates_meanwhile_is_asked(loop: Loop) -> None:
    paused_before(loop, "act", looks("a", "b"), DONE)
    stricter = Policy([PolicyLayer("operator", trusted=True, ask=frozenset({"look"}))])
    loop.runner = replace(loop.runner, parts=replace(loop.runner.parts, policy=lambda _: stricter))
    assert loop.resume().status is Status.WAITING
    assert loop.world.lines("looked") == []
    assert len(loop.store.approvals.list(RUN, "pending")) == 2


def test_a_cancellation_of_a_run_that_waits_for_a_person_is_granted(loop: Loop) -> None:
    assert loop.start(looks("a", tool="restart"), DONE).status is Status.WAITING
    loop.store.control.set(RUN, "cancel")
    assert loop.resume().status is Status.CANCELED
    assert loop.world.lines("done") == []


def test_new_limits_hold_for_a_run_that_died_before_its_first_node(loop: Loop) -> None:
    class DiedError(Exception):
        pass

    def die(_: Mapping[str, Any]) -> None:
        raise DiedError

    loop.listen(die)
    with pytest.raises(DiedError):
        loop.start(looks("a"), looks("b"), DONE)
    loop.listen(loop.events.append)
    assert loop.resume(turns=1).stop_reason is StopReason.TURN_LIMIT
    assert loop.events[0]["data"]["limits"]["turns"] == 1

"""The trace as spans, whatever became of the attempts."""

from typing import Any

import pytest

from opsleuth.checkpoints.trace.spans import RUN, RunSpan, build_spans


class Told:
    """Events by the second, as a store returns them."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.attempt, self.step, self.turn = 1, 0, 0

    def __call__(self, second: float, kind: str, **data: Any) -> None:
        self.events.append(
            {
                "seq": len(self.events) + 1,
                "ts": f"2026-11-29T14:{int(second) // 60:02d}:{second % 60:06.3f}Z",
                "run": "inv-20261129-7k3f",
                "attempt": self.attempt,
                "turn": self.turn,
                "step": self.step,
                "node": "act",
                "type": kind,
                "data": data,
            }
        )


@pytest.fixture
def told() -> Told:
    return Told()


def by_id(found: list[RunSpan]) -> dict[str, RunSpan]:
    return {span.id: span for span in found}


def turn(told: Told, at: float, call: str = "r/t1c1") -> None:
    told.step += 1
    told(at, "step.started")
    told(at, "tool.started", id=call, tool="logs_search")
    told(at + 2, "tool.completed", id=call, tool="logs_search", status="ok", evidence="E1", ms=2000)
    told(at + 3, "step.completed", ms=3000)


def test_a_run_of_one_attempt(told: Told) -> None:
    told(0, "run.started", question="why")
    turn(told, 1)
    told(5, "model.completed", model="m", ms=800, usd="0.01")
    told(6, "run.completed", status="completed", verdict="healthy")
    found = by_id(build_spans(told.events))
    assert [(s.kind, s.ms, s.status) for s in found.values()] == [
        ("run", 6000, "completed"), ("attempt", 6000, "completed"), ("node", 3000, "ok"), ("tool", 2000, "ok"),
        ("model", 800, "ok"),
    ]  # fmt: skip
    assert {s.parent for s in found.values()} - {""} <= set(found)
    assert found[RUN].data["verdict"] == "healthy"


def test_a_killed_attempt_ends_with_its_last_event_and_the_next_one_is_of_the_same_trace(told: Told) -> None:
    told(0, "run.started")
    told.step = 1
    told(1, "step.started")
    told(1, "tool.started", id="r/t1c1", tool="logs_search")
    told(4, "tool.started", id="r/t1c2", tool="topology")
    told.attempt = 2
    told(60, "run.resumed")
    turn(told, 61)
    told(70, "run.completed")
    found = build_spans(told.events)
    killed = [s for s in found if s.status == "killed"]
    assert [(s.kind, s.ms) for s in killed] == [
        ("attempt", 4000),
        ("node", 3000),
        ("tool", 3000),
        ("tool", 0),
    ]
    assert [s.ms for s in found if s.kind == "attempt"] == [4000, 10_000]
    assert len({s.id for s in found}) == len(found)


def test_a_stopped_attempt_leaves_nothing_open(told: Told) -> None:
    told(0, "run.started")
    told.step = 1
    told(1, "step.started")
    told(1, "tool.started", id="r/t1c1", tool="logs_search")
    told(3, "run.paused", status="paused")
    assert [(s.kind, s.status) for s in build_spans(told.events) if s.kind != "run"] == [
        ("attempt", "paused"), ("node", "stopped"), ("tool", "stopped"),
    ]  # fmt: skip


def test_a_run_that_goes_on_is_open(told: Told) -> None:
    told(0, "run.started")
    turn(told, 1)
    assert [s.kind for s in build_spans(told.events) if s.end is None] == ["run", "attempt"]


def test_a_wait_for_a_person_is_a_span_over_attempts(told: Told) -> None:
    told(0, "run.started")
    told(1, "approval.requested", id="A1", tool="service_rollback")
    told(2, "run.waiting")
    told(50, "approval.answered", id="A1", decision="approved")
    told.attempt = 2
    told(51, "run.resumed")
    told(52, "run.completed")
    (waited,) = [s for s in build_spans(told.events) if s.kind == "approval"]
    assert (waited.name, waited.ms, waited.data["decision"]) == ("A1", 49_000, "approved")


def test_a_call_that_failed_or_never_started_has_its_status(told: Told) -> None:
    told(0, "run.started")
    told.step = 1
    told(1, "step.started")
    told(2, "tool.completed", id="r/t1c1", tool="logs_search", status="timeout", error="no answer", ms=500)
    told(2, "tool.denied", id="r/t1c2", tool="service_restart", status="not_permitted", error="denied")
    found = [s for s in build_spans(told.events) if s.kind == "tool"]
    assert sorted((s.name, s.status, s.ms) for s in found) == [
        ("logs_search", "timeout", 500), ("service_restart", "denied", 0),
    ]  # fmt: skip


def test_nothing_gives_nothing() -> None:
    assert build_spans([]) == []

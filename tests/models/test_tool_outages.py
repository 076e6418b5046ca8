"""A tool that fails again and again: the planner hears of it at once, is not offered it, and a resume remembers."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from model_rig import ModelLoop, concludes, looks, serving, words

from opsleuth.graph.lifecycle.breaker_memory import SharedBreakers
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import StopReason

DOWN = [looks({"thing": thing, "behave": "down"}) for thing in "abc"]
DONE = concludes("nothing to say")


def offered(request: Mapping[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request["tools"]]


def test_a_dead_tool_is_told_when_it_fails_and_leaves_the_offer(tmp_path: Path) -> None:
    with serving(*DOWN, DONE) as server:
        ModelLoop(tmp_path, server.base_url).start(turns=9)
    third, fourth = server.requests[2:4]
    assert "look" in offered(third)
    assert "look" not in offered(fourth)
    assert "look is not offered for now: 3 calls in a row failed" in words(fourth)


def test_a_resume_does_not_try_a_dead_tool_three_times_more(tmp_path: Path) -> None:
    with serving(*DOWN, looks("d"), DONE) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        assert loop.start(turns=3).stop_reason is StopReason.TURN_LIMIT
        loop.resume(turns=9)
    assert "look" not in offered(server.requests[3])
    assert loop.world.lines("looked") == ["a", "b", "c"]


def test_a_success_before_a_resume_counts(tmp_path: Path) -> None:
    with serving(*DOWN[:2], looks("x"), looks("d"), DONE) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        loop.start(turns=3)
        loop.resume(turns=9)
    assert loop.world.lines("looked") == ["a", "b", "x", "d"]


def test_runs_of_one_worker_share_what_is_dead() -> None:
    shared, clock = SharedBreakers(), FakeClock(datetime(2024, 5, 1, tzinfo=UTC))
    same, other = (
        RunSettings(sources={"prom": {"url": "http://a"}}),
        RunSettings(sources={"prom": {"url": "http://b"}}),
    )
    for _ in range(3):
        shared.breaker_for(same, clock).record(("metrics_query", "prom"), ResultStatus.UNAVAILABLE, "down")
    assert "metrics_query" in shared.breaker_for(RunSettings(sources=dict(same.sources)), clock).open_tools()
    assert shared.breaker_for(other, clock).open_tools() == {}
    clock.advance(61)
    assert shared.breaker_for(same, clock).open_tools() == {}


@pytest.mark.parametrize("mode", ["tools", "json"])
@pytest.mark.parametrize(
    "more",
    [
        {"causes": [{"service": "a", "kind": "gremlins", "claims": ["C1"]}]},
        {"causes": [{"service": "a", "kind": "cpu", "claims": ["C7"]}]},
    ],
    ids=["against the schema", "cites no claim"],
)
def test_a_conclusion_that_is_not_valid_is_shown_again_and_then_forgotten(
    tmp_path: Path, mode: str, more: dict[str, object]
) -> None:
    wrong = concludes("a was seen to stumble", "E1", **more)
    with serving(looks("a"), wrong, looks("b"), DONE) as server:
        ModelLoop(tmp_path, server.base_url, mode=mode).start(turns=9)
    shown = "Your conclusion was not valid"
    assert shown not in words(server.requests[1])
    assert "a was seen to stumble" in words(server.requests[2]).partition(shown)[2]
    assert shown not in words(server.requests[3])


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (looks({"thing": "a", "behave": "boom"}), "failed (look: "),
        (looks("a"), "answered from the record (E1)"),
        (
            {"decision": {"reason": "think", "hypotheses": [{"text": "a"}]}},
            "only the plan or a hypothesis was changed",
        ),
    ],
    ids=["failed", "known", "thoughts"],
)
def test_a_run_without_progress_is_told_why_and_may_conclude_in_its_last_turn(
    tmp_path: Path, entry: dict[str, object], why: str
) -> None:
    with serving(entry) as server:
        outcome = ModelLoop(tmp_path, server.base_url).start(turns=12)
    assert outcome.stop_reason is StopReason.STAGNATION
    assert why in (outcome.report or {})["stop_detail"]
    last = words(server.requests[-1])
    assert "Conclude in this turn" in last
    assert why in last

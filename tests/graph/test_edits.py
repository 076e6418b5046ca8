"""Edits of a stored state: refused in words, or the branch can be read and goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from loop_rig import Loop, concludes, looks
from step_rig import RUN, begun, counted

from opsleuth.checkpoints.history import FIELDS, CheckpointPoint
from opsleuth.checkpoints.runs import RunRow
from opsleuth.graph.stepping.edits import StateEdit
from opsleuth.graph.stepping.fork import ForkedRun, ForkRequest, call_checker_for, fork_run
from opsleuth.state.errors import UsageError
from opsleuth.state.investigation import Investigation
from opsleuth.state.run_status import ENDING_BY_STOP_REASON, FINISHED_STATUSES, Status, StopReason


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    """A run that has been to every node but approve."""
    loop = begun(tmp_path_factory.mktemp("world"))
    loop.resume(RUN)
    yield loop
    loop.store.close()


def point(loop: Loop, spec: str) -> CheckpointPoint:
    return loop.store.history.find(RUN, spec)


def branch(loop: Loop, spec: str, *edits: tuple[str, Any]) -> ForkedRun:
    check = call_checker_for(loop.world.parts(), loop.store.runs.find(RUN))
    taken = {row.id for row in loop.store.runs.list(limit=100_000)}
    ids = (run for run in iter(counted(), None) if run not in taken)
    return fork_run(
        loop.store,
        point(loop, spec),
        lambda: next(ids),
        check,
        ForkRequest(edits=[StateEdit(*e) for e in edits]),
    )


def test_a_branch_goes_on_with_what_was_edited(ended: Loop) -> None:
    made = branch(ended, "c1", ("hypotheses.H1.text", "b is broken"), ("budget.limits.turns", 2))
    assert (made.run.parent, made.run.parent_checkpoint, made.run.status) == (RUN, "c1", Status.PAUSED)
    before = ended.world.lines("looked")
    outcome = ended.resume(made.run.id)
    assert outcome.stop_reason is StopReason.TURN_LIMIT
    assert ended.world.lines("looked") == [*before, "订单服务"], "turn 1 was made by the parent, turn 2 here"
    assert ended.store.history.find(made.run.id).values["hypotheses"][0]["text"] == "b is broken"
    told = [e["type"] for e in ended.store.events.read(made.run.id)][:3]
    assert told == ["run.forked", "state.edited", "state.edited"]
    assert ended.store.history.find(RUN).values["hypotheses"][0]["text"] == "a is broken"


def test_an_edited_call_is_made_anew_under_an_id_of_its_own(ended: Loop) -> None:
    made = branch(ended, "c1", ("pending.1.arguments", {"thing": "zz"}))
    ended.resume(made.run.id)
    assert ended.world.lines("looked").count("zz") == 1
    seen = {o.number: o for o in ended.store.observations.list(made.run.id)}
    assert seen[2].arguments["thing"] == "zz"
    assert seen[2].call_id == f"{made.run.id}/t1c2"
    assert seen[1].call_id == f"{RUN}/t1c1"


@pytest.mark.parametrize(
    ("spec", "path", "value", "said"),
    [
        ("c1", "status", "completed", "status cannot be edited"),
        ("c1", "observations", 9, "observations cannot be edited"),
        ("c1", "budget.used.turns", 0, "budget.used cannot be edited"),
        ("c1", "budget", {}, "budget.used cannot be edited"),
        ("c1", "read_only", True, "settings"),
        ("c1", "hypotheses.H1.supporting", ["E9"], "E9 does not exist: the newest is E0"),
        ("c1", "hypotheses.H1.id", "H7", "numbered H1, H2"),
        ("c1", "hypotheses", [], "tests H1, which does not exist"),
        ("c1", "hypotheses.H1.status", "sure", "would not be valid"),
        ("c1", "budget.limits.turns", 2**70, "64 bits"),
        ("c1", "pending", [], "cannot be added or removed"),
        ("c1", "pending.0.gate", "approved", "gate of a call cannot be edited"),
        ("c1", "pending.0.digest", "0" * 64, "digest of a call cannot be edited"),
        ("c1", "pending.0.tool", "lock", "look"),
        ("c1", "pending.0.arguments", {"thing": 3}, "thing"),
        ("c2", "pending.0.arguments", {"thing": "zz"}, "the calls of this turn are made"),
        ("c1", "window.end", "2020-01-01T00:00:00Z", "ends before it starts"),
        ("c1", "no.such", 1, "has no 'no'"),
        ("head", "question", "why", "is the end of the run"),
    ],
)
def test_what_is_refused_and_why(ended: Loop, spec: str, path: str, value: Any, said: str) -> None:
    before = len(ended.store.runs.list(limit=100_000))
    with pytest.raises(UsageError, match=said):
        branch(ended, spec, (path, value))
    assert len(ended.store.runs.list(limit=100_000)) == before


PATHS = st.sampled_from(
    ["question", "alert", "window", "window.start", "checklist", "plan", "plan.P1", "plan.P1.status", "plan.+",
     "hypotheses", "hypotheses.H1", "hypotheses.H1.supporting", "hypotheses.+", "pending", "pending.0",
     "pending.0.arguments", "pending.0.tool", "pending.1.purpose", "pending.0.id", "draft", "draft.claims",
     "draft.claims.C1.text", "draft.verdict", "notices", "notices.+", "malformed", "rework", "stalled", "budget",
     "budget.limits", "budget.limits.turns", "budget.limits.cost", "budget.limits.tokens", "status", "stop_reason",
     "unverified", "observations", "schema_version", "x", "", "."]
)  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
FITTING = st.sampled_from(
    ["H1", "E1", "E9", "C1", "refuted", "done", "running", "look", "0.5", "2024-05-01T14:30:00Z", 1, 7, 0,
     {"thing": "q"}, {"id": "P2", "text": "more"}, {"id": "H2", "text": "b is broken"}, ["E1"], [],
     {"code": "note", "text": "hello"}, {"text": "an alert", "labels": {"k": [1, {}]}},
     {"turns": 3, "seconds": 60}]
)  # fmt: skip
VALUES = FITTING | st.recursive(
    LEAVES,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["c0", "c1", "c2", "c3", "c7"]),
    st.lists(st.tuples(PATHS, VALUES), min_size=1, max_size=3),
)
@example("c1", [("hypotheses.H1.text", "b is broken"), ("budget.limits.turns", 2)])
def test_no_edit_makes_a_run_unreadable(ended: Loop, spec: str, edits: list[tuple[str, Any]]) -> None:
    before = len(ended.store.runs.list(limit=100_000))
    try:
        made = branch(ended, spec, *edits)
    except UsageError:
        assert len(ended.store.runs.list(limit=100_000)) == before
        return
    state = Investigation.model_validate(ended.store.history.find(made.run.id).values)
    assert state.status is Status.RUNNING
    outcome = ended.resume(made.run.id)
    assert outcome.stop_reason is not None
    assert outcome.stop_reason is not StopReason.INTERNAL_ERROR
    assert outcome.status is ENDING_BY_STOP_REASON[outcome.stop_reason][0]
    assert outcome.status in FINISHED_STATUSES
    assert outcome.report is not None


def test_a_fork_of_a_fork_reads_along_the_line(tmp_path: Path) -> None:
    loop = begun(tmp_path, looks("a"), looks("b"), concludes("a is 13277057", "E1"))
    loop.resume(RUN)
    first = branch(loop, "before:verify").run
    row: RunRow = loop.store.runs.find(first.id)
    again = fork_run(
        loop.store,
        loop.store.history.find(row.id),
        iter(["inv-20240501-deep"]).__next__,
        call_checker_for(loop.world.parts(), row),
        ForkRequest(name="deep"),
    )
    outcome = loop.resume(again.run.id)
    assert outcome.status is Status.COMPLETED
    assert [o.arguments["thing"] for o in loop.store.observations.list(again.run.id)] == ["a", "b"]
    loop.store.close()


def test_the_fields_are_told_in_the_order_of_the_state() -> None:
    assert tuple(Investigation.model_fields) == FIELDS

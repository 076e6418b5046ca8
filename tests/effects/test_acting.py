"""Changes through the whole loop: asked, executed once, settled when the reply is lost, checked afterwards."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from acting import MESSAGE, ROLLBACK, RUN, Acting, applied, calls, serving
from loop_rig import concludes

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.errors import AlreadyDecidedError, ConflictError, WrongDigestError
from opsleuth.checkpoints.processes import is_held, status_to_show
from opsleuth.graph.approvals import decisions
from opsleuth.graph.approvals.decisions import OperatorReply
from opsleuth.scenarios.plane.web import PlaneServer
from opsleuth.state.clock import FakeClock
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import ExitCode, Status
from opsleuth.tools.policy import Policy, PolicyLayer

DONE = concludes("nothing more to do")
OPEN_DELETE = Policy([PolicyLayer("operator", trusted=True, opens=frozenset({"service_delete"}))])


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[PlaneServer]:
    with serving(tmp_path / "plane.jsonl") as server:
        yield server


@pytest.fixture
def acting(tmp_path: Path, plane: PlaneServer) -> Acting:
    return Acting(tmp_path, url(plane))


def url(plane: PlaneServer) -> str:
    return f"http://127.0.0.1:{plane.server_port}"


def switch(plane: PlaneServer, **values: Any) -> None:
    plane.engine.switches.set(values.pop("operation", "*"), values)


def test_a_rollback_is_asked_executed_once_and_checked(acting: Acting, plane: PlaneServer) -> None:
    waiting = acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    assert (waiting.status, waiting.exit_code) == (Status.WAITING, ExitCode.WAITING)
    assert applied(plane) == []
    (asked,) = acting.pending()
    assert asked.document["target"] == "plane/orders-api"
    assert "2.14.0" in asked.document["precheck"]
    acting.approve(asked)
    outcome = acting.resume()
    assert outcome.report is not None
    assert applied(plane) == [("rollback", "orders-api")]
    (effect,) = outcome.report["effects"]
    assert (effect["status"], effect["verified"], effect["approval"]) == ("done", True, "A1")
    assert acting.store.observations.list(RUN)[-1].tool == "service_rollback.check"
    assert acting.store.approvals.get(RUN, "A1").status == "used"
    with pytest.raises(AlreadyDecidedError):
        acting.approve(asked)


def test_the_fix_was_executed_and_the_service_is_still_broken(tmp_path: Path, plane: PlaneServer) -> None:
    acting = Acting(tmp_path, url(plane), settles=0.0)
    again = concludes("orders-api is well again. It was restarted.", "E2", verdict="healthy")
    acting.start(calls(("service_restart", {"service": "orders-api"})), again, again, again)
    acting.approve_all()
    outcome = acting.resume()
    assert applied(plane) == [("restart", "orders-api")]
    assert outcome.exit_code is ExitCode.CHECK_FAILED
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is False
    assert "degraded" in outcome.report["effects"][0]["checked"]
    assert "well again" not in outcome.report["answer"]
    assert outcome.report["claims"][0]["status"] == "unsupported"
    assert outcome.report["verdict"] == "inconclusive"
    gaps = [gap for e in acting.events if e["type"] == "claim.checked" for gap in e["data"].get("gaps", ())]
    assert any("the check of plane/orders-api failed" in gap for gap in gaps)


@pytest.mark.parametrize("tool", ["message_send", "draft_write"])
def test_a_reply_is_lost_and_the_model_asks_again(acting: Acting, plane: PlaneServer, tool: str) -> None:
    switch(plane, operation="message", mode="drop", times=1)
    arguments = MESSAGE if tool == "message_send" else {"title": "status", "text": "we look into it"}
    again = calls((tool, arguments))
    acting.start(again, again, DONE)
    acting.approve_all()
    outcome = acting.resume()
    assert outcome.status is Status.COMPLETED
    assert acting.pending() == ()
    assert len(acting.store.effects.list(RUN)) == 1
    assert "not executed again" in acting.observed()[2]
    if tool == "message_send":
        assert applied(plane) == [("message", "#incidents")]


def test_doing_it_again_on_purpose_is_asked_and_shows_the_earlier_one(
    acting: Acting, plane: PlaneServer
) -> None:
    first, second = (
        calls(("message_send", MESSAGE)),
        calls(("message_send", MESSAGE), repeat_of=f"{RUN}/t1c1"),
    )
    acting.start(first, second, DONE)
    acting.approve_all()
    acting.resume()
    (asked,) = acting.pending()
    assert asked.document["earlier"]["id"] == f"{RUN}/t1c1"
    acting.approve(asked)
    acting.resume()
    assert applied(plane) == [("message", "#incidents")] * 2


@pytest.mark.parametrize(
    ("mode", "keys", "readable", "times", "status"),
    [
        ("drop", True, True, 1, "done"),  # found by the probe
        ("drop", False, True, 1, "done"),
        ("drop_before", True, True, 1, "done"),  # absent, tried again with its key
        ("drop_before", False, True, 1, "unknown"),  # absent, but a second try might double it
        ("drop", True, False, 1, "unknown"),  # nobody can tell
        ("late_drop", True, True, 1, "done"),  # tried again while it waits: the key holds
        ("error", False, True, 1, "done"),
        ("refuse", True, True, 1, "failed_clean"),
        ("drop_before", True, True, 5, "unknown"),  # twice at most
    ],
)
def test_what_becomes_of_a_lost_reply(
    tmp_path: Path, plane: PlaneServer, mode: str, keys: bool, readable: bool, times: int, status: str
) -> None:
    acting = Acting(tmp_path, url(plane), keys=keys)
    acting.start(calls(("message_send", MESSAGE)), DONE)
    switch(
        plane, operation="message", mode=mode, honours_keys=keys, readable=readable, times=times, seconds=0.3
    )
    acting.approve_all()
    outcome = acting.resume()
    (row,) = acting.store.effects.list(RUN)
    assert row.status == status
    assert len(applied(plane)) <= 1
    if status == "unknown":
        assert outcome.exit_code is ExitCode.EFFECT_UNKNOWN
        (asked,) = acting.pending()
        assert asked.about == "effect"


@pytest.mark.parametrize("happened", [True, False])
def test_a_person_says_what_became_of_it(tmp_path: Path, plane: PlaneServer, *, happened: bool) -> None:
    acting = Acting(tmp_path, url(plane), keys=False)
    acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    switch(plane, mode="drop" if happened else "drop_before", readable=False, times=1)
    acting.approve_all()
    assert acting.resume().exit_code is ExitCode.EFFECT_UNKNOWN
    (asked,) = acting.pending()
    acting.resolve(asked, happened=happened)
    with pytest.raises(ConflictError):
        acting.resolve(asked, happened=not happened)
    outcome = acting.resume()
    assert outcome.status is Status.COMPLETED
    assert outcome.report is not None
    (effect,) = outcome.report["effects"]
    assert effect["outcome"] == ("happened" if happened else "absent")
    assert effect["verified"] is (True if happened else None)


def test_three_calls_one_denied(acting: Acting, plane: PlaneServer) -> None:
    """Each call has its own answer, in any order; an early resume changes nothing."""
    scale = ("service_scale", {"service": "catalog", "replicas": 5})
    acting.start(calls(("service_rollback", ROLLBACK), scale, ("message_send", MESSAGE)), DONE)
    first, second, third = acting.pending()
    acting.approve(third)
    assert acting.resume().exit_code is ExitCode.WAITING
    acting.deny(second, "not the cause")
    acting.approve(first)
    outcome = acting.resume()
    assert sorted(applied(plane)) == [("message", "#incidents"), ("rollback", "orders-api")]
    assert "not the cause" in acting.observed()[1]
    assert outcome.exit_code is ExitCode.DENIED


def test_another_call_needs_another_approval(acting: Acting, plane: PlaneServer) -> None:
    """The approval of a call does not hold for the same tool with another argument."""
    six = {"service": "catalog", "replicas": 6}
    acting.start(calls(("service_scale", six)), calls(("service_scale", six | {"replicas": 7})), DONE)
    acting.approve_all()
    acting.resume()
    assert applied(plane) == [("scale", "catalog")]
    (asked,) = acting.pending()
    assert asked.document["arguments"]["replicas"] == 7


def test_an_answer_names_the_digest(acting: Acting) -> None:
    acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    for wrong in ("", "y", "0" * 16, "maybe"):
        with pytest.raises(WrongDigestError):
            decisions.record_answer(
                acting.store,
                RUN,
                "A1",
                decisions.OperatorReply("approved", digest=wrong),
                decisions.AnsweringPerson("x", "command"),
            )
    assert acting.pending()[0].status == "pending"
    acting.approve_all()


def test_an_edit_is_another_call(acting: Acting, plane: PlaneServer) -> None:
    acting.start(calls(("service_scale", {"service": "catalog", "replicas": 6})), DONE)
    (asked,) = acting.pending()
    with pytest.raises(UsageError, match="replicas"):
        asyncio.run(acting.runner.edit(RUN, asked.id, asked.digest, ["replicas=many"]))
    asyncio.run(acting.runner.edit(RUN, asked.id, asked.digest, ["replicas=4"]))
    (again,) = acting.pending()
    assert again.digest != asked.digest
    assert acting.store.approvals.get(RUN, asked.id).status == "stale"
    acting.approve(again)
    acting.resume()
    assert plane.engine.world.services["catalog"].replicas == 4


def test_an_approval_expires_and_is_asked_again_with_a_fresh_look(tmp_path: Path, plane: PlaneServer) -> None:
    clock = FakeClock(datetime(2024, 5, 1, 15, tzinfo=UTC))
    acting = Acting(tmp_path, url(plane), clock=clock)
    acting.start(calls(("service_scale", {"service": "catalog", "replicas": 6})), DONE)
    acting.approve_all()
    clock.advance(timedelta(hours=2).total_seconds())
    plane.engine.world.apply("scale", "catalog", {"replicas": 2}, None, 0.0)
    assert acting.resume().exit_code is ExitCode.WAITING
    assert applied(plane) == [("scale", "catalog")]
    (asked,) = acting.pending()
    assert asked.id == "A2"
    assert "2 replicas" in asked.document["precheck"]
    acting.approve(asked)
    acting.resume()
    assert plane.engine.world.services["catalog"].replicas == 6


def test_what_was_approved_may_no_longer_make_sense(acting: Acting, plane: PlaneServer) -> None:
    acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    acting.approve_all()
    plane.engine.world.apply("rollback", "orders-api", {"version": "2.13.4"}, None, 0.0)
    acting.resume()
    assert applied(plane) == [("rollback", "orders-api")]
    assert "runs 2.13.4 already" in acting.observed()[0]
    assert acting.store.effects.list(RUN) == ()


def test_irreversible_is_refused_unless_opened_and_then_needs_the_targets_name(
    tmp_path: Path, plane: PlaneServer
) -> None:
    delete = calls(("service_delete", {"service": "catalog"}))
    closed = Acting(tmp_path, url(plane))
    assert closed.start(delete, DONE).exit_code is ExitCode.DENIED
    (tmp_path / "open").mkdir()
    acting = Acting(tmp_path / "open", url(plane), policy=OPEN_DELETE)
    acting.start(delete, DONE)
    (asked,) = acting.pending()
    with pytest.raises(UsageError, match="--confirm-target"):
        decisions.record_answer(
            acting.store,
            RUN,
            asked.id,
            decisions.OperatorReply("approved", digest=asked.digest),
            decisions.AnsweringPerson("x", "command"),
        )
    acting.approve(asked)
    outcome = acting.resume()
    assert applied(plane) == [("delete", "catalog")]
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is True


def test_read_only_removes_the_tools(acting: Acting, plane: PlaneServer) -> None:
    outcome = acting.start(calls(("service_rollback", ROLLBACK)), DONE, read_only=True)
    assert outcome.status is Status.COMPLETED
    assert applied(plane) == []
    assert acting.pending() == ()
    warning = next(e for e in acting.events if e["type"] == "warning")
    assert "no tool 'service_rollback'" in warning["data"]["message"]


def test_a_lie_is_found_out(tmp_path: Path, plane: PlaneServer) -> None:
    """It says done and did nothing: the check afterwards is what counts."""
    acting = Acting(tmp_path, url(plane), settles=0.0)
    acting.start(calls(("message_send", MESSAGE)), DONE)
    switch(plane, mode="lie")
    acting.approve_all()
    outcome = acting.resume()
    assert applied(plane) == []
    assert outcome.exit_code is ExitCode.CHECK_FAILED


def test_a_change_between_the_look_and_the_call_is_refused(acting: Acting, plane: PlaneServer) -> None:
    """The service is changed by somebody else after it was read: the write is conditional."""
    acting.start(calls(("service_scale", {"service": "catalog", "replicas": 6})), DONE)
    acting.approve_all()
    engine, submit = plane.engine, plane.engine.submit

    def raced(request: Any) -> Any:
        engine.world.apply("scale", "catalog", {"replicas": 9}, None, 0.0)
        return submit(request)

    engine.submit = raced  # type: ignore[method-assign]
    acting.resume()
    assert plane.engine.world.services["catalog"].replicas == 9
    (row,) = acting.store.effects.list(RUN)
    assert row.status == "failed_clean"


@pytest.mark.parametrize("kind", ["cancel", "terminate"])
def test_a_waiting_run_is_ended_with_a_report_and_nothing_is_executed(
    acting: Acting, plane: PlaneServer, kind: Any
) -> None:
    acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    acting.store.control.set(RUN, kind, "enough")
    outcome = asyncio.run(acting.runner.end(RUN, kind))
    assert outcome.exit_code is ExitCode.CANCELED
    assert outcome.report is not None
    assert acting.pending() == ()
    assert applied(plane) == []


def test_declined_then_resumed_never_runs(acting: Acting, plane: PlaneServer) -> None:
    acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    acting.deny(acting.pending()[0])
    fresh = Acting(acting.world.folder, url(plane))
    assert fresh.resume().exit_code is ExitCode.DENIED
    assert fresh.resume().exit_code is ExitCode.DENIED
    assert applied(plane) == []


def test_a_run_whose_question_a_person_looks_at_is_waiting(acting: Acting) -> None:
    seen = []

    def person(question: Approval, current: Callable[[], Approval]) -> OperatorReply:
        row = acting.store.runs.find(question.run)
        seen.append((status_to_show(row), is_held(row), current().status))
        return OperatorReply("denied", "not now")

    acting.asker = person
    outcome = acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    assert seen == [(Status.WAITING, True, "pending")]
    assert (outcome.status, acting.store.runs.find(RUN).status) == (Status.COMPLETED, Status.COMPLETED)

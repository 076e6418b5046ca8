"""Who said no: exit code 5 is for the policy and the operator; a target that refuses gives an ordinary result."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from acting import MESSAGE, ROLLBACK, RUN, Acting, applied, calls, serving
from loop_rig import concludes

from opsleuth.scenarios.plane.web import PlaneServer
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import ExitCode, Status
from opsleuth.tools.policy import Policy, PolicyLayer

DONE = concludes("nothing more to do")


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[PlaneServer]:
    with serving(tmp_path / "plane.jsonl") as server:
        yield server


def url(plane: PlaneServer) -> str:
    return f"http://127.0.0.1:{plane.server_port}"


def decided(acting: Acting) -> list[object]:
    return [o.record.get("decided") for o in acting.store.observations.list(RUN)]


@pytest.mark.parametrize("status", [403, 409])
def test_the_target_said_no(tmp_path: Path, plane: PlaneServer, status: int) -> None:
    """The call's result is an error, the report names it, and the run ends as it concludes."""
    acting = Acting(tmp_path, url(plane))
    acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    plane.engine.switches.set("*", {"mode": "refuse", "status": status})
    acting.approve_all()
    outcome = acting.resume()
    assert (outcome.status, outcome.exit_code) == (Status.COMPLETED, ExitCode.INCONCLUSIVE)
    assert outcome.report is not None
    assert outcome.report["denied"] == []
    assert [row["status"] for row in outcome.report["effects"]] == ["failed_clean"]
    assert any(f"({status})" in text for text in outcome.report["not_available"])
    assert decided(acting) == [None]
    assert applied(plane) == []
    assert "tool.denied" not in [event["type"] for event in acting.events]


def test_there_is_nothing_to_do(tmp_path: Path, plane: PlaneServer) -> None:
    """The look before the question refuses: nobody is asked, and nobody denied anything."""
    plane.engine.world.apply("rollback", "orders-api", {"version": "2.13.4"}, None, 0.0)
    acting = Acting(tmp_path, url(plane))
    outcome = acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    assert (outcome.status, outcome.exit_code) == (Status.COMPLETED, ExitCode.INCONCLUSIVE)
    assert acting.store.approvals.list(RUN) == ()
    (said,) = acting.observed()
    assert said.startswith("not executed: it runs 2.13.4 already")
    assert "tool.denied" not in [event["type"] for event in acting.events]


def test_an_edit_that_the_target_refuses_can_be_edited_again_and_never_approved(
    tmp_path: Path, plane: PlaneServer
) -> None:
    """Not even where the target would take it by now: a person has been told that it is refused."""
    acting = Acting(tmp_path, url(plane))
    acting.start(calls(("service_rollback", ROLLBACK)), DONE)
    edit(acting, "version=9.9.9")
    (refused,) = acting.pending()
    assert (refused.document["unfit"], refused.document["precheck"][:9]) == (True, "REFUSED: ")
    with pytest.raises(UsageError, match=r"A2 cannot be approved.*9\.9\.9.*--edit"):
        acting.approve(refused)
    assert acting.resume().status is Status.WAITING
    edit(acting, "version=2.13.4")
    (again,) = acting.pending()
    assert (again.id, again.document["unfit"]) == ("A3", False)
    acting.approve(again)
    assert acting.resume().status is Status.COMPLETED
    assert [row.arguments["version"] for row in acting.store.effects.list(RUN)] == ["2.13.4"]


def edit(acting: Acting, change: str) -> None:
    (asked,) = acting.pending()
    asyncio.run(acting.runner.edit(RUN, asked.id, asked.digest, [change]))


def test_an_operator_said_no(tmp_path: Path, plane: PlaneServer) -> None:
    acting = Acting(tmp_path, url(plane))
    acting.start(calls(("message_send", MESSAGE)), DONE)
    acting.deny(acting.pending()[0], "not now")
    outcome = acting.resume()
    assert outcome.exit_code is ExitCode.DENIED
    assert outcome.report is not None
    (row,) = outcome.report["denied"]
    assert (row["decided"], row["reason"]) == ("operator", "denied by the operator: not now")
    assert outcome.report["not_available"] == []


def test_the_policy_said_no(tmp_path: Path, plane: PlaneServer) -> None:
    """A run without a person at the terminal ends with 5 as well, and never with 0."""
    deny = Policy([PolicyLayer("operator", trusted=True, deny=frozenset({"message_send"}))])
    acting = Acting(tmp_path, url(plane), policy=deny)
    outcome = acting.start(calls(("message_send", MESSAGE)), DONE)
    assert outcome.exit_code is ExitCode.DENIED
    assert outcome.report is not None
    (row,) = outcome.report["denied"]
    assert row["decided"] == "policy"
    assert row["reason"].startswith("refused by policy: ")

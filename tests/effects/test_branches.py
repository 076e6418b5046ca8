"""One world, many branches: what one of them did is not done again by another without a person who was told."""

from pathlib import Path

import pytest
from branch_rig import RUN, Branching
from loop_rig import concludes, looks

from opsleuth.checkpoints.database_urls import Place
from opsleuth.state.run_status import ExitCode

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

DONE = concludes("it was changed", "E1")


def branching(tmp_path: Path, place: Place, tool: str) -> Branching:
    rig = Branching(tmp_path, place)
    rig.world.write(looks("a"), looks("cache", tool=tool), DONE, DONE, DONE)
    return rig


@pytest.mark.parametrize("tool", ["restart", "change"])
def test_a_branch_is_asked_before_it_repeats_what_another_did(
    tmp_path: Path, place: Place, tool: str
) -> None:
    """A low risk asks too, once a sibling, a descendant or a parent after the fork has made the change."""
    rig = branching(tmp_path, place, tool)
    rig.world.write(looks("a"), DONE)
    rig("start")
    rig.world.write(looks("a"), looks("cache", tool=tool), DONE, DONE, DONE)
    for name in ("inv-b1", "inv-b2"):
        rig("fork", RUN, name, "c3")
    rig("resume", "inv-b1")
    rig("answer", "inv-b1")
    if tool == "restart":
        rig("resume", "inv-b1")
    assert rig.world.lines("done") == ["cache"]
    asked = rig("resume", "inv-b2")
    assert (asked["status"], asked["code"]) == ("waiting", ExitCode.WAITING)
    panel = " ".join(" ".join(asked["panel"]).replace("|", " ").split())
    assert "done elsewhere" in panel
    assert "by run inv-b1 as inv-b1/t2c1: THIS MAKES IT AGAIN" in panel
    assert rig.world.lines("done") == ["cache"]
    rig("deny", "inv-b2")
    denied = rig("resume", "inv-b2")
    assert denied["code"] == ExitCode.DENIED
    assert rig.world.lines("done") == ["cache"]


@pytest.mark.parametrize("tool", ["restart", "change"])
def test_an_ancestors_change_is_recorded_for_a_later_branch_and_nobody_is_asked(
    tmp_path: Path, place: Place, tool: str
) -> None:
    rig = branching(tmp_path, place, tool)
    rig("start")
    if tool == "restart":
        rig("answer")
        rig("resume")
    assert rig.world.lines("done") == ["cache"]
    rig("fork", RUN, "inv-later", "c0")
    done = rig("resume", "inv-later")
    assert (done["status"], done["approvals"], done["effects"]) == ("completed", [], [])
    assert rig.world.lines("done") == ["cache"]


def test_an_approval_that_was_shown_before_a_sibling_acted_is_asked_again(
    tmp_path: Path, place: Place
) -> None:
    rig = branching(tmp_path, place, "restart")
    waiting = rig("start")
    assert waiting["pending"] == ["A1"]
    at = next(name for name, node in waiting["checkpoints"] if node == "approve")
    for name in ("inv-b1", "inv-b2"):
        rig("fork", RUN, name, at)
        rig("resume", name)
        rig("answer", name)
    rig("answer", RUN)
    assert rig("resume", "inv-b1")["status"] == "completed"
    for name in ("inv-b2", RUN):
        again = rig("resume", name)
        assert again["status"] == "waiting", again
        assert [row[1] for row in again["approvals"]] == ["stale", "pending"]
        assert "THIS MAKES IT AGAIN" in " ".join(again["panel"])
    assert rig.world.lines("done") == ["cache"]
    rig("answer", "inv-b2")
    assert rig("resume", "inv-b2")["status"] == "completed"  # on purpose, by a person who was told
    assert rig.world.lines("done") == ["cache", "cache"]
    third = rig("resume", RUN)
    assert third["status"] in ("waiting", "nothing to do")
    rig("answer", RUN)
    assert rig("resume", RUN)["status"] == "waiting"  # the second one came after the question

"""What has not come to a verdict never ends with exit 0: in processes of their own, with stores that were harmed."""

import sqlite3
from pathlib import Path

import pytest
from branch_rig import RUN, Branching
from loop_rig import concludes, looks
from nonempty import nonempty

from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode, Status, StopReason, Verdict, choose_exit_code

pytestmark = pytest.mark.timeout(180)

DONE = concludes("it was changed", "E1")
CHECKED = """
[command.note]
argv = ["sh", "{folder}/note.sh", "{{text}}"]
purpose = "Write a line."
parameters = {{ text = ".+" }}
check = ["sh", "-c", "{check}"]
settles = 1
seconds = 1
"""


def test_only_a_conclusion_ends_with_ok() -> None:
    for status in nonempty(Status):
        for reason in (None, *StopReason):
            code = choose_exit_code(status, reason, Verdict.ANSWERED)
            concluded = reason is StopReason.CONCLUDED and status not in (
                Status.WAITING,
                Status.PAUSED,
                Status.INTERRUPTED,
            )
            assert (code is ExitCode.OK) is concluded, (status, reason)


@pytest.mark.slow
def test_a_loop_whose_end_is_lost_is_no_success(tmp_path: Path) -> None:
    """The state that says how it ended was lost, and nothing is left to run."""
    rig = Branching(tmp_path, tmp_path / "store.db")
    rig.world.write(looks("a"), looks("b"), DONE)
    assert rig("start")["code"] == ExitCode.OK
    with Store.open(tmp_path / "store.db", SystemClock(), Redactor()) as store, store.saver() as saver:
        found = saver.get_tuple({"configurable": {"thread_id": RUN, "checkpoint_ns": ""}})
        assert found is not None
        found.checkpoint["channel_values"] |= {"status": "running", "stop_reason": None}
        saver.put(found.parent_config or found.config, found.checkpoint, found.metadata, {})
    outcome = rig("resume")
    assert (outcome["status"], outcome["code"]) == ("failed", ExitCode.INTERNAL), outcome


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_database_that_lost_its_last_checkpoints_never_ends_well_by_itself(
    tmp_path: Path, kept: int
) -> None:
    rig = Branching(tmp_path, tmp_path / "store.db")
    rig.world.write(looks("a"), looks("cache", tool="change"), looks("b"), DONE)
    assert rig("start")["code"] == ExitCode.INCONCLUSIVE  # a change that nothing checks supports no claim
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute(
            "DELETE FROM checkpoints WHERE json_extract(CAST(metadata AS TEXT), '$.step') > ?", (kept * 3,)
        )
    outcome = rig("resume")
    assert outcome["code"] != ExitCode.OK or outcome["reason"] == "concluded"
    assert rig.world.lines("done") == ["cache"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("check", "code"),
    [
        ("exit 0", ExitCode.OK),
        ("exit 1", ExitCode.CHECK_FAILED),
        ("sleep 30", ExitCode.CHECK_FAILED),
        ("yes", ExitCode.CHECK_FAILED),
        ("kill -9 $$", ExitCode.CHECK_FAILED),
    ],
)
def test_a_check_that_gave_no_verdict_is_no_pass(tmp_path: Path, check: str, code: ExitCode) -> None:
    rig = Branching(tmp_path, tmp_path / "store.db")
    (tmp_path / "note.sh").write_text(f'echo "$1" >> {tmp_path}/done.log\n')
    (tmp_path / "policy.toml").write_text(CHECKED.format(folder=tmp_path, check=check))
    call = {"tool": "command_run_note", "arguments": {"text": "hello"}}
    rig.world.write({"reason": "act", "calls": [call]}, looks("a"), concludes("done", "E3"), DONE, DONE)
    rig("start")
    rig("answer")
    outcome = rig("resume")
    assert (outcome["status"], outcome["code"]) == ("completed", code), outcome
    assert rig.world.lines("done") == ["hello"]


@pytest.mark.slow
def test_a_branch_of_a_run_with_an_unknown_change_is_no_success(tmp_path: Path) -> None:
    rig = Branching(tmp_path, tmp_path / "store.db")
    rig.world.write(looks("a"), looks({"thing": "cache", "behave": "kill_once"}, tool="change"), DONE)
    with pytest.raises(AssertionError, match="-9"):
        rig("start")
    assert rig("resume")["code"] == ExitCode.EFFECT_UNKNOWN
    rig.world.write(looks("a"), DONE)
    rig("fork", RUN, "inv-fork", "c0")
    outcome = rig("resume", "inv-fork")
    assert (outcome["status"], outcome["code"]) == ("completed", ExitCode.EFFECT_UNKNOWN)

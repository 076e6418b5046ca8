"""The stepper: a whole session replayed to its transcript, its refusals, and the same on a real terminal."""

import asyncio
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pexpect
import pytest
from loop_rig import Loop, concludes, looks
from package_path import PACKAGE_PATH
from step_rig import RUN, begun, shell_of
from stored_runs import HANG, REPOSITORY

from opsleuth.checkpoints.errors import NotFoundError, RunBusyError, WrongDigestError
from opsleuth.console import terminal_text as texts
from opsleuth.console.screen import Screen
from opsleuth.console.stepper import command_words
from opsleuth.console.stepper.commands import COMMANDS
from opsleuth.console.stepper.line_sources import ScriptedLines
from opsleuth.console.stepper.shell import complete_line
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import ExitCode, Status

RIG = REPOSITORY / "tests" / "support" / "step_rig.py"
STORED = re.compile(r"\d\d:\d\d:\d\dZ")
"""The framework stamps its checkpoints by the machine's clock."""


def session(loop: Loop, *lines: str) -> tuple[int, str]:
    """The exit code and all that the stepper showed."""
    stream = io.StringIO()
    screen = Screen(stream, width=100)
    code = asyncio.run(shell_of(loop, ScriptedLines(lines, screen), screen).run_session())
    return code, stream.getvalue()


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return begun(tmp_path)


def environment(**variables: str) -> dict[str, str]:
    support = f"{PACKAGE_PATH}{os.pathsep}{REPOSITORY / 'tests' / 'support'}"
    return {"PATH": os.environ["PATH"], "PYTHONPATH": support, "PYTHONIOENCODING": "utf-8", **variables}


@pytest.mark.slow
def test_a_recorded_session_replays_to_the_same_transcript(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    commands = Path(__file__).parent / "session.step"
    shown = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        done = subprocess.run(
            [sys.executable, str(RIG), str(tmp_path / name), str(commands)],
            env=environment(COLUMNS="100"),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=HANG,
        )
        assert done.returncode == 0, done.stderr
        shown.append(STORED.sub("00:00:00Z", done.stdout))
    assert shown[0] == shown[1]
    golden("step-session", shown[0])


def test_next_step_and_finish_go_so_far(loop: Loop) -> None:
    _, shown = session(loop, "s", "s", "s", "finish", "q")
    assert loop.world.lines("looked") == ["a", "b"]
    assert "c1 look: ok, 1 left" in shown
    assert "c2 look: ok, 0 left" in shown
    assert "| next: observe)" in shown
    assert shown.rstrip().endswith("step> q")
    assert loop.store.history.find(RUN).next == "plan"


def test_an_empty_line_repeats_n_and_s_and_nothing_else(loop: Loop) -> None:
    session(loop, "n", "", "q")
    assert loop.store.history.find(RUN).next == "plan"
    before = len(loop.store.runs.list())
    session(loop, "fork c1", "", "", "q")
    assert len(loop.store.runs.list()) == before + 1
    assert all(
        command_words.parse_command_line("", name) is None
        for name in COMMANDS
        if name not in command_words.REPEATED
    )


@pytest.mark.parametrize(
    ("lines", "stops"),
    [
        (("b plan", "c"), "breakpoint 1: plan"),
        (("b tool:look if turn >= 2", "c"), "breakpoint 1: tool:look if turn >= 2"),
        (("b change:hypotheses.H1.status", "c"), "breakpoint 1: change:hypotheses.H1.status"),
        (("b verify", "b act", "cl 2", "c"), "breakpoint 1: verify"),
        (("b plan if hypotheses.H1.status == refuted", "b verify", "c"), "breakpoint 2: verify"),
    ],
)
def test_it_stops_at_breakpoints(loop: Loop, lines: Sequence[str], stops: str) -> None:
    _, shown = session(loop, *lines, "q")
    assert stops in shown
    assert shown.count("  breakpoint ") == 1


def test_a_breakpoint_of_one_time_goes(loop: Loop) -> None:
    _, shown = session(loop, "tbreak plan", "c", "b", "c")
    assert "none: b NODE" in shown
    assert loop.store.runs.find(RUN).status is Status.COMPLETED


def test_looking_back_runs_nothing(loop: Loop) -> None:
    session(loop, "n", "q")
    count = len(loop.store.events.read(RUN))
    session(loop, "u", "p", "pp budget", "diff", "w", "h", "tree", "d", "goto c0", "goto head", "ev", "q")
    assert len(loop.store.events.read(RUN)) == count


@pytest.mark.parametrize(
    "command", ["n", "s", "c", "finish", "until act", "skip c1", "retry c1", "inject c1={}"]
)
def test_nothing_runs_from_the_past(loop: Loop, command: str) -> None:
    with pytest.raises(UsageError, match="fork c0"):
        session(loop, "u", command)
    assert loop.world.lines("looked") == []


def test_skipped_and_given_results_are_marked(loop: Loop) -> None:
    session(loop, "skip c1 not now", 'inject c2={"value": 7}', "finish", "q")
    assert loop.world.lines("looked") == []
    one, two = loop.store.observations.list(RUN)
    assert (one.status, one.headline) == ("canceled", "skipped by the operator: not now")
    assert (two.status, two.source, two.record) == ("ok", "operator", {"value": 7})


def test_retry_makes_a_call_again(loop: Loop) -> None:
    session(loop, "s", "retry c1", "q")
    assert loop.world.lines("looked") == ["a", "a"]


@pytest.mark.parametrize(
    ("lines", "error", "said"),
    [
        (("frobnicate",), UsageError, "no command 'frobnicate'"),
        (("forc",), UsageError, "near: fork"),
        (("until lunch",), UsageError, "until which node"),
        (("b lunch",), UsageError, "not a breakpoint"),
        (("b plan if x ~ 1",), UsageError, "not a condition"),
        (("cl 1",), UsageError, "no breakpoint '1'"),
        (("goto c99",), NotFoundError, "there are c0 to c1"),
        (("ev E5",), NotFoundError, "no evidence 'E5'"),
        (("u", "u"), UsageError, "c0 is the first"),
        (("d",), UsageError, "c1 is the newest"),
        (("set x",), UsageError, "set PATH=VALUE"),
        (("undo",), UsageError, "nothing is staged"),
        (("commit",), UsageError, "nothing is staged"),
        (("set question=why", "n"), UsageError, "1 staged edit"),
        (("set question=why", "u"), UsageError, "1 staged edit"),
        (("set question=why", "commit --nme x"), UsageError, "what is '--nme'"),
        (("edit question",), UsageError, "in a script"),
        (("skip c9",), UsageError, "no pending call 'c9'"),
        (("skip look",), UsageError, "2 pending calls"),
        (("skip c1", "skip c1"), UsageError, "has a result already"),
        (("inject c1=7",), UsageError, "JSON object"),
        (("n", "skip c1"), UsageError, "the next node is observe"),
        (("note",), UsageError, "note TEXT"),
        (("pause",), UsageError, "no other process"),
        (("? lunch",), UsageError, "no command 'lunch'"),
    ],
)
def test_faults_say_what_to_do(loop: Loop, lines: Sequence[str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        session(loop, *lines)


def test_it_works_on_a_run_that_has_ended(tmp_path: Path) -> None:
    loop = begun(tmp_path, looks("a"), concludes("a is 13277057", "E1"))
    loop.resume(RUN)
    code, shown = session(loop, "c", "goto before:verify", "fork --name again", "c", "q")
    assert code == ExitCode.OK
    assert "it has concluded" in shown
    assert "inv-20240501-b002" in shown
    assert loop.store.runs.find("inv-20240501-b002").status is Status.COMPLETED


def test_leaving_in_the_middle_is_a_pause(loop: Loop) -> None:
    code, _ = session(loop, "n", "q")
    assert code == ExitCode.WAITING
    assert loop.store.runs.find(RUN).status is Status.PAUSED
    assert loop.resume(RUN).status is Status.COMPLETED


def test_completion_offers_commands_and_paths(loop: Loop) -> None:
    shell = shell_of(loop, ScriptedLines((), Screen(io.StringIO())), Screen(io.StringIO()))
    assert complete_line(shell, "com") == ["commit"]
    assert "hypotheses.H1.status" in complete_line(shell, "set hypotheses.H1.s")


def test_every_command_is_explained() -> None:
    assert {word.names[0] for word in command_words.WORDS} == set(COMMANDS)


@pytest.mark.slow
def test_on_a_terminal_keys_edit_the_line_and_ctrl_c_clears_it(tmp_path: Path) -> None:
    child = pexpect.spawn(
        sys.executable,
        [str(RIG), str(tmp_path)],
        env=environment(TERM="xterm", HOME=str(tmp_path), PROMPT_TOOLKIT_NO_CPR="1"),
        encoding="utf-8",
        timeout=HANG,
        dimensions=(40, 100),
    )
    child.expect("next: act")
    child.expect("step>")
    child.send("frobnicate\x03")
    child.expect("step>")
    child.sendline("n")
    child.expect("next: observe")
    child.sendline("")
    child.expect("next: plan")
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == ExitCode.WAITING


def acting(folder: Path, *script: Any) -> Loop:
    """A run that waits for a person's answer to a change of high risk."""
    loop = begun(folder, *script, node="approve")
    loop.resume(RUN)
    assert loop.store.runs.find(RUN).status is Status.WAITING
    return loop


ROLL = looks("gateway", tool="restart")
ENDS = concludes("gateway is restarted", "E1")


def test_a_call_is_approved_by_its_digest_and_runs_once(tmp_path: Path) -> None:
    loop = acting(tmp_path, ROLL, ENDS)
    (asked,) = loop.store.approvals.list(RUN, "pending")
    with pytest.raises(UsageError, match="the digest says"):
        session(loop, "approve A1")
    with pytest.raises(WrongDigestError):
        session(loop, f"approve A1 --digest {'0' * 16}")
    code, shown = session(loop, "n", f"approve A1 --digest {asked.digest[:16]}", "until act", "n", "c", "q")
    assert "restart" in shown
    assert "it still waits for an answer" in shown
    assert loop.world.lines("done") == ["gateway"]
    assert loop.store.approvals.get(RUN, "A1").status == "used"
    assert code == ExitCode.INCONCLUSIVE  # the script concludes without a cause


def test_a_denied_call_never_runs(tmp_path: Path) -> None:
    loop = acting(tmp_path, ROLL, ENDS)
    with pytest.raises(UsageError, match="as in: deny A1 wait for the owner"):
        session(loop, "deny A1")
    code, _ = session(loop, "deny A1 not in the evening", "c", "q")
    assert loop.world.lines("done") == []
    assert "not in the evening" in loop.store.observations.list(RUN)[0].headline
    assert code == ExitCode.DENIED


def test_a_branch_finds_what_its_parent_did(tmp_path: Path) -> None:
    loop = acting(tmp_path, ROLL, ENDS)
    (asked,) = loop.store.approvals.list(RUN, "pending")
    _, shown = session(
        loop, f"approve A1 --digest {asked.digest[:16]}", "c", "goto before:approve", "fork", "c", "q"
    )
    assert "done after" in shown
    assert loop.world.lines("done") == ["gateway"], "the parent's effect is not made again"
    assert loop.store.approvals.list("inv-20240501-b002") == (), "and nobody is asked"


def test_a_change_cannot_be_given_by_hand_or_made_again(tmp_path: Path) -> None:
    loop = acting(tmp_path, ROLL, ENDS)
    (asked,) = loop.store.approvals.list(RUN, "pending")
    session(loop, f"approve A1 --digest {asked.digest[:16]}", "until act", "q")
    with pytest.raises(UsageError, match="cannot be given by hand"):
        session(loop, "inject c1={}")
    with pytest.raises(UsageError, match="never simply made again"):
        session(loop, "retry c1")


@pytest.mark.parametrize(("encoding", "width"), [("ascii", 80), ("cp1252", 80), ("utf-8", 120)])
def test_it_fits_narrow_screens_and_old_consoles(loop: Loop, encoding: str, width: int) -> None:
    lines = (Path(__file__).parent / "session.step").read_text("utf-8").splitlines()
    stream = io.StringIO()
    screen = Screen(stream, width=width, encoding=encoding)
    asyncio.run(shell_of(loop, ScriptedLines([*lines[:-1], "?", "q"], screen), screen).run_session())
    shown = stream.getvalue()
    shown.encode(encoding)
    assert max(map(texts.measure_width, shown.splitlines())) <= width


def test_plain_lines_hold_no_drawing(loop: Loop) -> None:
    stream = io.StringIO()
    screen = Screen(stream, plain=True)
    asyncio.run(shell_of(loop, ScriptedLines(["n", "h", "q"], screen), screen).run_session())
    assert "point c1, " in stream.getvalue()
    assert "turn 1, act, tool look" in stream.getvalue()


def test_a_run_that_is_live_elsewhere_is_not_touched(loop: Loop) -> None:
    with loop.store.lock(RUN):
        with pytest.raises(RunBusyError):
            session(loop, "n")
        _, shown = session(loop, "w", "pause", "q")
    assert "works on it" in shown
    assert [asked.kind for asked in loop.store.control.pending(RUN)] == ["pause"]
    assert loop.world.lines("looked") == []

"""Completion at the shell: runs, checkpoints, evidence, approvals and files, in bash, zsh and fish, quickly and harmlessly."""

import os
import shlex
from pathlib import Path

import pexpect
import pytest
from stored_runs import DONE, FORK, HANG, STOPPED, Program


def complete_words(program: Program, line: str, shell: str = "bash") -> list[str]:
    """What the shell is offered for the end of `line`."""
    words = line.split(" ")
    asked = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)},
        "fish": {"COMP_WORDS": line, "COMP_CWORD": words[-1]},
    }[shell]
    done = program(_OPSLEUTH_COMPLETE=f"{shell}_complete", **asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(ord(char) < 32 and char != "\n" for char in done.stdout.replace("\t", ""))
    return done.stdout.splitlines()


@pytest.mark.parametrize("command", ["resume", "report", "show", "log", "why", "step", "approve", "cancel", "fork", "state get", "diff"])  # fmt: skip
def test_every_command_that_takes_a_run_completes_it(program: Program, command: str) -> None:
    offered = complete_words(program, f"opsleuth {command} inv")
    assert {f"plain,{run}" for run in (DONE, STOPPED, FORK)} == set(offered)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_offered_the_runs(program: Program, shell: str) -> None:
    shown = "\n".join(complete_words(program, "opsleuth resume inv", shell))
    assert all(run in shown for run in (DONE, STOPPED, FORK))


def test_the_last_part_of_an_id_is_enough(program: Program) -> None:
    assert complete_words(program, f"opsleuth report {DONE.rpartition('-')[2]}") == [f"plain,{DONE}"]


def test_evidence_is_that_of_the_run(program: Program) -> None:
    assert complete_words(program, f"opsleuth evidence {STOPPED} e") == ["plain,E1"]


@pytest.mark.parametrize("line", ["opsleuth run --alert al", "opsleuth run app", "opsleuth run --case in"])
def test_files_are_left_to_the_shell(program: Program, line: str) -> None:
    assert {offer.partition(",")[0] for offer in complete_words(program, line)} == {"file"}


@pytest.mark.parametrize("line", ["opsleuth resume zzz", "opsleuth evidence zzz E", "opsleuth resume inv"])
def test_where_nothing_is_stored_nothing_is_offered_and_nothing_fails(bare: Program, line: str) -> None:
    assert [offer for offer in complete_words(bare, line) if offer] == []
    assert not bare.database.exists()


@pytest.mark.slow
def test_tab_completes_a_run_in_a_real_bash(program: Program, tmp_path: Path) -> None:
    program_file = tmp_path / "bin" / "opsleuth"
    program_file.parent.mkdir()
    program_file.write_text(f'#!/bin/sh\nexec {shlex.quote(program.command()[0])} -m opsleuth "$@"\n')
    program_file.chmod(0o755)
    variables = program.environment(TERM="xterm", PS1="$ ")
    variables["PATH"] = f"{program_file.parent}{os.pathsep}{variables['PATH']}"
    child = pexpect.spawn("bash", ["--norc", "-i"], env=variables, encoding="utf-8", timeout=HANG)
    child.sendline('eval "$(opsleuth completion bash)"; echo re""ady')
    child.expect_exact("ready")
    child.send(f"opsleuth report {DONE[:-2]}\t")
    assert child.expect_exact([DONE, pexpect.TIMEOUT], timeout=HANG) == 0
    child.sendline(" > /dev/null; exit")
    child.expect(pexpect.EOF)

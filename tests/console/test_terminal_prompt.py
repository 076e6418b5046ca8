"""On a real terminal: colour, width, and what the environment says about both."""

import os
import re
from collections.abc import Mapping

import pexpect
import pytest
from stored_runs import DONE, HANG, STOPPED, Program

from opsleuth.console import terminal_text as texts
from opsleuth.console.terminal_prompt import TerminalPrompt, match_choice

INK = re.compile(r"\x1b\[[0-9;]*m")


def typed(
    program: Program, *command: str, columns: int = 80, variables: Mapping[str, str] | None = None
) -> str:
    """What a terminal of that width receives."""
    python, *arguments = program.command(*command)
    child = pexpect.spawn(
        python,
        arguments,
        env=program.environment(**{"TERM": "xterm-256color", **(variables or {})}),
        dimensions=(24, columns),
        encoding="utf-8",
        timeout=HANG,
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    return str(child.before).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("command", [["list"], ["show", STOPPED], ["log", STOPPED], ["report", DONE], ["evidence", STOPPED, "E1"]], ids=" ".join)  # fmt: skip
def test_lines_keep_to_the_width_of_the_terminal(program: Program, command: list[str], columns: int) -> None:
    shown = typed(program, *command, columns=columns)
    assert INK.search(shown)
    assert max(texts.measure_width(INK.sub("", line)) for line in shown.splitlines()) <= columns


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_no_colour_where_it_is_not_wanted(program: Program, variables: dict[str, str]) -> None:
    shown = typed(program, "report", DONE, variables=variables)
    assert "\x1b" not in shown
    assert "DO: Roll orders-api" in shown


def test_hostile_evidence_does_not_act_on_the_terminal(program: Program) -> None:
    for command in (
        ["evidence", STOPPED, "E1"],
        ["evidence", STOPPED, "E1", "--raw"],
        ["show", STOPPED, "--json"],
    ):
        shown = typed(program, *command)
        assert not INK.sub("", shown).count("\x1b")
        assert "\x9b" not in shown
        assert "\u202e" not in shown
        assert "[/db]" in shown


def test_a_single_service_is_taken_without_a_question() -> None:
    master, slave = os.openpty()
    try:
        assert TerminalPrompt(os.ttyname(slave)).which("which service is meant", ["web"]) == "web"
        shown = os.read(master, 4096).decode()
    finally:
        os.close(master)
        os.close(slave)
    assert "Taking web: no other service is known here." in shown
    assert "Which service?" not in shown


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("web", "web"), ("1", "cart"), ("2", "web"), ("3", None), ("0", None), ("x", None), ("7", "7"), ("99999", None), ("²", None)],
)  # fmt: skip
def test_a_choice_is_its_name_or_its_number(typed: str, meant: str | None) -> None:
    choices = ["cart", "web", "7"] if typed == "7" else ["cart", "web"]
    assert match_choice(typed, choices) == meant

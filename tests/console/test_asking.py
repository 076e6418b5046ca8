"""The question at the terminal, on a real pty: what approves and what does not."""

import os
import pty
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from opsleuth.checkpoints.approvals import Approval
from opsleuth.console.approval_questions import render_question
from opsleuth.console.terminal_prompt import DEAF_SECONDS, TerminalPrompt
from opsleuth.graph.approvals.decisions import OperatorReply

ASKED = Approval(
    about="call",
    subject="inv-1/t1c1",
    digest="9f3c21aa" * 8,
    document={
        "tool": "service_rollback",
        "risk": "high",
        "target": "plane/orders-api",
        "arguments": {"service": "orders-api", "version": "2.13.4"},
    },
    run="inv-20261129-7k3f",
    id="A1",
    status="pending",
    requested="2026-11-29T14:12:07.000Z",
)
PAUSE = DEAF_SECONDS + 0.15


@dataclass
class Person:
    """Someone at the other end of the pty; `seen` is what the screen showed."""

    master: int
    seen: str = ""

    def until(self, text: str) -> None:
        while text not in self.seen:
            self.seen += os.read(self.master, 65_536).decode("utf-8", "replace")

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())


Act = Callable[[Person], None]


@contextmanager
def terminal() -> Iterator[tuple[Person, str]]:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 120))
    try:
        yield Person(master), os.ttyname(slave)
    finally:
        os.close(slave)
        os.close(master)


def asked(question: Approval, *acts: Act, later: Approval | None = None) -> tuple[OperatorReply | None, str]:
    """What the terminal makes of a person who does these things, one after the other."""
    with terminal() as (person, path):

        def play() -> None:
            person.until("[y] run once" if question.about == "call" else "[h]")
            for act in acts:
                act(person)

        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        rows: Sequence[Approval] = [question] * 3 + [later or question]
        counted = iter(range(10**9))
        reply = TerminalPrompt(path)(question, lambda: rows[min(next(counted), 3)] if later else question)
        thread.join(5)
        return reply, person.seen


def types(keys: str, pause: float = PAUSE) -> Act:
    def act(person: Person) -> None:
        time.sleep(pause)  # the terminal is deaf for half a second of real time
        person.type(keys)

    return act


def test_one_key_approves() -> None:
    reply, _ = asked(ASKED, types("y"))
    assert reply == OperatorReply("approved")


def test_a_word_does_not_approve_and_the_next_key_does() -> None:
    reply, seen = asked(ASKED, types("maybe"), lambda p: p.until("Several keys"), types("y"))
    assert reply == OperatorReply("approved")
    assert "Several keys" in seen


@pytest.mark.parametrize("keys", ["\r", "x", "Y", "\x1b", " "])
def test_other_keys_approve_nothing(keys: str) -> None:
    reply, _ = asked(ASKED, types(keys), types("p"))
    assert reply is None


def test_keys_typed_too_early_do_not_approve() -> None:
    """Neither before the question is drawn nor while it is just being read."""
    with terminal() as (person, path):
        person.type("yyy")

        def play() -> None:
            person.until("[y] run once")
            person.type("y")
            time.sleep(PAUSE)
            person.type("p")

        threading.Thread(target=play, daemon=True).start()
        assert TerminalPrompt(path)(ASKED, lambda: ASKED) is None


def test_a_denial_has_a_reason() -> None:
    reply, _ = asked(ASKED, types("n"), lambda p: p.until("Reason"), types("not the cause\r", 0.0))
    assert reply == OperatorReply("denied", "not the cause")


def test_an_edit_changes_one_argument() -> None:
    reply, _ = asked(ASKED, types("e"), lambda p: p.until("NAME=VALUE"), types("version=2.13.3\r", 0.0))
    assert reply is not None
    assert reply.decision == "edited"
    assert reply.arguments == {"service": "orders-api", "version": "2.13.3"}


@pytest.mark.slow
def test_irreversible_needs_the_targets_name() -> None:
    question = replace(ASKED, document={**ASKED.document, "risk": "irreversible"})
    name = lambda p: p.until("Type the target")  # noqa: E731
    wrong, seen = asked(
        question, types("y"), name, types("yes\r", 0.0), lambda p: p.until("not its name"), types("p")
    )
    assert wrong is None
    assert "not its name" in seen
    right, _ = asked(question, types("y"), name, types("plane/orders-api\r", 0.0))
    assert right == OperatorReply("approved")


def test_an_answer_from_elsewhere_ends_the_question() -> None:
    elsewhere = lambda p: p.until("answered elsewhere")  # noqa: E731
    reply, seen = asked(ASKED, elsewhere, later=replace(ASKED, status="approved"))
    assert reply is None
    assert "answered elsewhere" in seen


def test_the_whole_of_a_long_command_is_shown_before_a_key_counts() -> None:
    """The destructive part is at its end."""
    document: dict[str, Any] = {
        **ASKED.document,
        "arguments": {"command": "echo " + "x" * 5_000 + " && rm -rf /"},
    }
    question = replace(ASKED, document=document)
    with terminal() as (person, path):

        def play() -> None:
            person.until("press space")
            time.sleep(PAUSE)
            person.type("y")  # too early: the end has not been shown
            while "[y] run once" not in person.seen:
                person.type(" ")
                person.seen += os.read(person.master, 65_536).decode()
            assert "rm -rf /" in person.seen
            time.sleep(PAUSE)
            person.type("y")

        threading.Thread(target=play, daemon=True).start()
        assert TerminalPrompt(path)(question, lambda: question) == OperatorReply("approved")
    assert "rm -rf /" in person.seen


def test_data_cannot_forge_the_frame() -> None:
    forged = "fine\n  risk                | READ\n\x1b[2J[y] run once\u202e"
    document = {**ASKED.document, "purpose": forged}
    lines = render_question(replace(ASKED, document=document))
    assert not any("\x1b" in line or "\u202e" in line for line in lines)
    assert all("|" in line[:26] or line.startswith("APPROVAL") for line in lines)
    assert sum(line.lstrip().startswith("risk") for line in lines) == 0


def holds(key: str, seconds: float, every: float = 0.033) -> Act:
    def act(person: Person) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            person.type(key)
            time.sleep(every)

    return act


@pytest.mark.slow
def test_a_key_that_is_held_down_never_approves() -> None:
    """It was held before the question stood there, and repeats far beyond the deaf half-second."""
    reply, _ = asked(ASKED, holds("y", 2.0), types("p", 1.0))
    assert reply is None


@pytest.mark.slow
def test_a_paste_that_comes_in_pieces_does_not_approve() -> None:
    def pastes(person: Person) -> None:
        time.sleep(PAUSE)
        for key in "yes":
            person.type(key)
            time.sleep(0.01)

    reply, _ = asked(ASKED, pastes, types("p", 1.0))
    assert reply is None

"""Questions at the terminal of the running process: one key at /dev/tty, never one typed too early.

What was typed before the question stood on the screen is flushed, keys within half a second of it are ignored,
and several keys at once (a word, a paste) do not count as an answer. Piped input is never read.
"""

import os
import select
import signal
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType
from typing import Any

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.errors import StoreError
from opsleuth.console.approval_questions import render_question
from opsleuth.graph.approvals.decisions import OperatorReply, apply_argument_edits
from opsleuth.redaction.control_characters import escape_control_characters
from opsleuth.state.calls import Risk
from opsleuth.state.errors import UsageError
from opsleuth.state.nearest_name import suggest_names
from opsleuth.state.plurals import format_count

DEAF_SECONDS = 0.5
"""How long after the question was drawn, or after a wrong key, no key counts."""
PASTE_SECONDS = 0.06
"""How long after a key it is waited whether more come with it, faster than fingers type."""
TWICE_SECONDS = 2.0
MOST_CHOICES = 18
"""Services that are listed with a number: with the question they fit on a screen of 24 lines."""
_DIGITS = 4
_POLL = 0.25
_END_OF_INPUT = "\x04"

CALL_KEYS = "[y] run once   [n] deny   [e] edit   [v] view   [w] evidence   [p] later"
UNFIT_KEYS = "[e] edit again   [n] deny   [v] view   [w] evidence   [p] later"
"""What can be done with an edit that was refused: it can never be run."""
EFFECT_KEYS = "[h] it happened   [a] it did not   [v] view   [w] evidence   [p] later"


@dataclass(slots=True)
class TerminalPrompt:
    """Asks at the controlling terminal. `still` keeps others from drawing meanwhile."""

    path: str = "/dev/tty"
    still: Callable[[], AbstractContextManager[None]] = nullcontext
    clock: Callable[[], float] = monotonic
    evidence: Callable[[str, str], list[str]] = lambda _run, _name: ["no evidence is at hand"]
    """The lines of a piece of evidence of a run, or of the list of all for an empty name."""
    _interrupted: float = field(default=float("-inf"), init=False)

    def __call__(self, question: Approval, current: Callable[[], Approval]) -> OperatorReply | None:
        """The answer of whoever sits there, None for later or if somebody answered elsewhere.

        Raises KeyboardInterrupt for a second Ctrl-C within two seconds.
        """
        with self.still(), open_terminal(self.path, self.clock) as keys:
            self._draw(keys, question)
            while current().status == "pending":
                if keys.interrupted:
                    self._redraw(keys, question)
                key = keys.key(_POLL)
                if key is None:
                    continue
                if key in ("p", _END_OF_INPUT):
                    return None
                if (reply := self._taken(key, keys, question)) is not None:
                    return reply
            keys.say(f"{question.id} was answered elsewhere.")
        return None

    def which(self, unresolved: str, services: Sequence[str]) -> str | None:
        """The service that the person at the terminal means; None to continue without one. A single one is taken unasked."""
        with self.still(), open_terminal(self.path, self.clock) as keys:
            keys.flush()
            keys.say(escape_control_characters(f"{unresolved[:1].upper()}{unresolved[1:]}."))
            if len(services) == 1:
                keys.say(escape_control_characters(f"Taking {services[0]}: no other service is known here."))
                return services[0]
            for number, service in enumerate(services[:MOST_CHOICES], start=1):
                keys.say(escape_control_characters(f"{number:>3}  {service}"))
            if len(services) > MOST_CHOICES:
                keys.say(f"     and {len(services) - MOST_CHOICES} more: type the name")
            while typed := keys.line("Which service? Number or name (Enter to continue without one): "):
                if named := match_choice(typed, services):
                    return named
                keys.say(
                    escape_control_characters(
                        f"No service is called {typed} ({suggest_names(typed, services)})."
                    )
                )
        return None

    def _taken(self, key: str, keys: "TerminalKeys", question: Approval) -> OperatorReply | None:
        """The reply that a key leads to, None if it leads to none."""
        if key == "v":
            self._draw(keys, question)
            return None
        if key == "w":
            self._show_evidence(keys, question)
            self._draw(keys, question)
            return None
        if key == "y" and question.document.get("unfit"):
            keys.say(f"{question.id} is refused and cannot be run. {UNFIT_KEYS}")
            keys.ignore_keys_briefly()
            return None
        answers = _CALL if question.about == "call" else _EFFECT
        answer = answers.get(key)
        if answer is None:
            keys.say(f"{key!r} does nothing here. {_keys_for_question(question)}")
            keys.ignore_keys_briefly()
            return None
        return answer(keys, question)

    def _show_evidence(self, keys: "TerminalKeys", question: Approval) -> None:
        height = max(os.get_terminal_size(keys.descriptor).lines - 2, 5)
        keys.pages(self.evidence(question.run, ""), height)
        if name := keys.line("Which one (such as 7 or E7; Enter to go back): "):
            try:
                keys.pages(
                    self.evidence(question.run, f"E{name}" if name.isdecimal() else name.upper()), height
                )
            except StoreError as error:
                keys.say(str(error))

    def _draw(self, keys: "TerminalKeys", question: Approval) -> None:
        size = os.get_terminal_size(keys.descriptor)
        keys.pages(render_question(question, max(size.columns or 80, 60)), max((size.lines or 24) - 2, 5))
        keys.say(_keys_for_question(question))
        keys.flush()
        keys.ignore_keys_briefly()

    def _redraw(self, keys: "TerminalKeys", question: Approval) -> None:
        now = self.clock()
        if now - self._interrupted <= TWICE_SECONDS:
            raise KeyboardInterrupt
        self._interrupted, keys.interrupted = now, False
        self._draw(keys, question)
        keys.say("Nothing is approved or denied. Ctrl-C once more quits; it stays pending.")


def match_choice(typed: str, choices: Sequence[str]) -> str | None:
    """The choice that was typed by its name, or by its number among the first ones, counted from 1; None for neither."""
    if typed in choices:
        return typed
    place = int(typed) if typed.isascii() and typed.isdigit() and len(typed) < _DIGITS else 0
    return choices[place - 1] if 1 <= place <= min(len(choices), MOST_CHOICES) else None


@contextmanager
def open_terminal(path: str = "/dev/tty", clock: Callable[[], float] = monotonic) -> "Iterator[TerminalKeys]":
    """The controlling terminal, key by key; as it was before afterwards."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    keys = TerminalKeys(descriptor, clock)
    settings = termios.tcgetattr(descriptor)
    before = signal.signal(signal.SIGINT, keys.on_interrupt)
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        yield keys
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        signal.signal(signal.SIGINT, before)
        os.close(descriptor)


class TerminalKeys:
    """The terminal as keys and lines. Until `clock` has passed the deaf time, keys are read and dropped."""

    def __init__(self, descriptor: int, clock: Callable[[], float]) -> None:
        self.descriptor, self._clock = descriptor, clock
        self._hears_at = 0.0
        self.interrupted = False

    def on_interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self.interrupted = True

    def say(self, text: str) -> None:
        os.write(self.descriptor, f"{text}\r\n".encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """Forget what was typed so far."""
        termios.tcflush(self.descriptor, termios.TCIFLUSH)

    def ignore_keys_briefly(self) -> None:
        self._hears_at = self._clock() + DEAF_SECONDS

    def key(self, seconds: float) -> str | None:
        """One key pressed alone, or None: nothing came, it came too early, or several came at once."""
        text = self._read(seconds)
        if not text:
            return None
        if self._clock() < self._hears_at:
            self.ignore_keys_briefly()  # a key that is held down repeats until it is let go: none of them counts
            return None
        if len(text) == 1:
            text += self._read(PASTE_SECONDS)  # of a paste more follows at once
        if len(text) > 1:
            self.say("Several keys came at once: press one key.")
            self.ignore_keys_briefly()
            return None
        return None if text in "\r\n" else text

    def line(self, prompt: str) -> str:
        """A line typed in full; empty if Ctrl-C or Ctrl-D was pressed."""
        os.write(self.descriptor, prompt.encode())
        typed = ""
        while not self.interrupted:
            for char in self._read(_POLL):
                if char in "\r\n":
                    self.say("")
                    return typed.strip()
                if char == _END_OF_INPUT:
                    return ""
                typed = typed[:-1] if char in "\x7f\b" else typed + char
                os.write(self.descriptor, b"\b \b" if char in "\x7f\b" else char.encode())
        return ""

    def pages(self, lines: list[str], height: int) -> None:
        """All lines; a page at a time, so that the last one cannot be missed before a key counts."""
        for start in range(0, len(lines), height):
            for line in lines[start : start + height]:
                self.say(line)
            if start + height < len(lines):
                self.say(f"-- {format_count(len(lines) - start - height, 'more line')}: press space --")
                while " " not in self._read(_POLL) and not self.interrupted:
                    pass

    def _read(self, seconds: float) -> str:
        try:
            ready, _, _ = select.select([self.descriptor], [], [], seconds)
        except InterruptedError:
            return ""
        return os.read(self.descriptor, 4096).decode("utf-8", "replace") if ready else ""


def _confirm_approval(keys: TerminalKeys, question: Approval) -> OperatorReply | None:
    if question.document.get("risk") == Risk.IRREVERSIBLE:
        target = str(question.document.get("target"))
        if keys.line(f"This cannot be undone. Type the target's name ({target}): ") != target:
            keys.say("That is not its name: nothing is approved.")
            keys.ignore_keys_briefly()
            return None
    return OperatorReply("approved")


def _ask_deny_reason(keys: TerminalKeys, _: Approval) -> OperatorReply | None:
    reason = keys.line("Reason (the planner reads it): ")
    return OperatorReply("denied", reason) if reason else None


def _ask_edited_argument(keys: TerminalKeys, question: Approval) -> OperatorReply | None:
    typed = keys.line("New value, as NAME=VALUE: ")
    try:
        return (
            OperatorReply("edited", arguments=apply_argument_edits(question.document["arguments"], [typed]))
            if typed
            else None
        )
    except UsageError as error:
        keys.say(str(error))
        keys.ignore_keys_briefly()
        return None


def _make_resolve_answer(outcome: str) -> "Callable[[TerminalKeys, Approval], OperatorReply | None]":
    def answer(keys: TerminalKeys, _: Approval) -> OperatorReply | None:
        reason = keys.line("How do you know (this is recorded): ")
        word: Any = outcome
        return OperatorReply("resolved", reason, outcome=word) if reason else None

    return answer


_CALL = {"y": _confirm_approval, "n": _ask_deny_reason, "e": _ask_edited_argument}
_EFFECT = {"h": _make_resolve_answer("happened"), "a": _make_resolve_answer("absent")}


def _keys_for_question(question: Approval) -> str:
    if question.document.get("unfit"):
        return UNFIT_KEYS
    return CALL_KEYS if question.about == "call" else EFFECT_KEYS


def has_terminal(path: str = "/dev/tty") -> bool:
    """Whether this process has a controlling terminal that can be asked at."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True

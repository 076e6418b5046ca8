"""Asking at the terminal of the running process: one key at /dev/tty, and never a key that was typed too early.

What was typed before the question stood on the screen is flushed, keys within half a second of it are ignored,
and several keys at once (a word, a paste) are no answer. Piped input is never read.
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
from opsleuth.checkpoints.harmless import harmless
from opsleuth.console.questions import panel
from opsleuth.graph.decisions import Reply, changed
from opsleuth.state.calls import Risk
from opsleuth.state.errors import UsageError
from opsleuth.state.words import counted
from opsleuth.tools.nearest import suggestion

DEAF_SECONDS = 0.5
"""How long after the question was drawn, or after a wrong key, no key counts."""
TWICE_SECONDS = 2.0
_POLL = 0.25
_END_OF_INPUT = "\x04"

CALL_KEYS = (
    "[y] run once   [e] edit arguments   [n] deny with reason   [v] view again   [w] evidence   [p] later"
)
EFFECT_KEYS = "[h] it happened   [a] it did not happen   [v] view again   [w] evidence   [p] later"


@dataclass(slots=True)
class Terminal:
    """Asks at the controlling terminal. `still` keeps others from drawing meanwhile."""

    path: str = "/dev/tty"
    still: Callable[[], AbstractContextManager[None]] = nullcontext
    clock: Callable[[], float] = monotonic
    evidence: Callable[[str, str], list[str]] = lambda _run, _name: ["no evidence is at hand"]
    """The lines of a piece of evidence of a run, or of the list of all for an empty name."""
    _interrupted: float = field(default=float("-inf"), init=False)

    def __call__(self, question: Approval, current: Callable[[], Approval]) -> Reply | None:
        """The answer of whoever sits there, None for later or if somebody answered elsewhere.

        Raises KeyboardInterrupt for a second Ctrl-C within two seconds.
        """
        with self.still(), opened(self.path, self.clock) as keys:
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
        """The service that whoever sits there means; None if he goes on without one."""
        with self.still(), opened(self.path, self.clock) as keys:
            keys.flush()
            keys.say(harmless(f"{unresolved} ({suggestion('', services)})"))
            while named := keys.line("Which service (Enter goes on without one): "):
                if named in services:
                    return named
                keys.say(harmless(f"The sources know no {named} ({suggestion(named, services)})."))
        return None

    def _taken(self, key: str, keys: "Keys", question: Approval) -> Reply | None:
        """The reply that a key leads to, None if it leads to none."""
        if key == "v":
            self._draw(keys, question)
            return None
        if key == "w":
            self._show_evidence(keys, question)
            self._draw(keys, question)
            return None
        answers = _CALL if question.about == "call" else _EFFECT
        answer = answers.get(key)
        if answer is None:
            keys.say(f"{key!r} is no answer. {_choices(question)}")
            keys.deaf()
            return None
        return answer(keys, question)

    def _show_evidence(self, keys: "Keys", question: Approval) -> None:
        height = max(os.get_terminal_size(keys.descriptor).lines - 2, 5)
        keys.pages(self.evidence(question.run, ""), height)
        if name := keys.line("Which one (such as E7; Enter goes back): "):
            try:
                keys.pages(self.evidence(question.run, name.upper()), height)
            except StoreError as error:
                keys.say(str(error))

    def _draw(self, keys: "Keys", question: Approval) -> None:
        size = os.get_terminal_size(keys.descriptor)
        keys.pages(panel(question, max(size.columns or 80, 60)), max((size.lines or 24) - 2, 5))
        keys.say(_choices(question))
        keys.flush()
        keys.deaf()

    def _redraw(self, keys: "Keys", question: Approval) -> None:
        now = self.clock()
        if now - self._interrupted <= TWICE_SECONDS:
            raise KeyboardInterrupt
        self._interrupted, keys.interrupted = now, False
        self._draw(keys, question)
        keys.say("Nothing is approved or denied. Ctrl-C once more quits; it stays pending.")


@contextmanager
def opened(path: str = "/dev/tty", clock: Callable[[], float] = monotonic) -> "Iterator[Keys]":
    """The controlling terminal, key by key; as it was before afterwards."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    keys = Keys(descriptor, clock)
    settings = termios.tcgetattr(descriptor)
    before = signal.signal(signal.SIGINT, keys.on_interrupt)
    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        yield keys
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        signal.signal(signal.SIGINT, before)
        os.close(descriptor)


class Keys:
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

    def deaf(self) -> None:
        self._hears_at = self._clock() + DEAF_SECONDS

    def key(self, seconds: float) -> str | None:
        """One key pressed alone, or None: nothing came, it came too early, or several came at once."""
        text = self._read(seconds)
        if not text or self._clock() < self._hears_at:
            return None
        if len(text) > 1:
            self.say("Several keys at once are no answer: press one.")
            self.deaf()
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
                self.say(f"-- {counted(len(lines) - start - height, 'more line')}: press space --")
                while " " not in self._read(_POLL) and not self.interrupted:
                    pass

    def _read(self, seconds: float) -> str:
        try:
            ready, _, _ = select.select([self.descriptor], [], [], seconds)
        except InterruptedError:
            return ""
        return os.read(self.descriptor, 4096).decode("utf-8", "replace") if ready else ""


def _approved(keys: Keys, question: Approval) -> Reply | None:
    if question.document.get("risk") == Risk.IRREVERSIBLE:
        target = str(question.document.get("target"))
        if keys.line(f"This cannot be undone. Type the target's name ({target}): ") != target:
            keys.say("That is not its name: nothing is approved.")
            keys.deaf()
            return None
    return Reply("approved")


def _denied(keys: Keys, _: Approval) -> Reply | None:
    reason = keys.line("Reason (the planner is told): ")
    return Reply("denied", reason) if reason else None


def _edited(keys: Keys, question: Approval) -> Reply | None:
    typed = keys.line("New value, as NAME=VALUE: ")
    try:
        return Reply("edited", arguments=changed(question.document["arguments"], [typed])) if typed else None
    except UsageError as error:
        keys.say(str(error))
        keys.deaf()
        return None


def _resolved(outcome: str) -> "Callable[[Keys, Approval], Reply | None]":
    def answer(keys: Keys, _: Approval) -> Reply | None:
        reason = keys.line("How do you know (it goes into the record): ")
        word: Any = outcome
        return Reply("resolved", reason, outcome=word) if reason else None

    return answer


_CALL = {"y": _approved, "n": _denied, "e": _edited}
_EFFECT = {"h": _resolved("happened"), "a": _resolved("absent")}


def _choices(question: Approval) -> str:
    return CALL_KEYS if question.about == "call" else EFFECT_KEYS


def at_hand(path: str = "/dev/tty") -> bool:
    """Whether this process has a controlling terminal that can be asked at."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True

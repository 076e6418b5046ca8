"""Where the stepper's lines come from: a file, or a terminal with history and completion."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from opsleuth.console.screen import LinePart, Screen
from opsleuth.state.errors import UsageError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer

TWICE_SECONDS = 2.0
"""A second Ctrl-C within this time leaves."""


class LineSource(Protocol):
    """Where the lines come from; None at their end. `scripted` ones end at the first fault."""

    scripted: bool

    async def read(self, prompt: str) -> str | None: ...


class ScriptedLines:
    """The lines of a file, each shown after the prompt as if it had been typed."""

    scripted = True

    def __init__(self, lines: Iterable[str], screen: Screen) -> None:
        self._lines, self._screen = iter(lines), screen

    async def read(self, prompt: str) -> str | None:
        line = next(self._lines, None)
        if line is not None:
            self._screen.line(LinePart(prompt, "dim"), line.rstrip("\n"))
        return line


def read_script_file(path: Path, screen: Screen) -> ScriptedLines:
    """The commands in a file. Raises UsageError for one that cannot be read."""
    try:
        return ScriptedLines(path.read_text("utf-8").splitlines(), screen)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


class PromptLines:
    """Lines typed at a terminal. `complete` gives what the end of a line may become."""

    scripted = False

    def __init__(self, history: Path, complete: Callable[[str], Sequence[str]]) -> None:
        self._session = _open_prompt_session(history, complete)
        self._interrupted = float("-inf")

    async def read(self, prompt: str) -> str | None:
        """The next line. Ctrl-C clears it, a second one leaves, as Ctrl-D does."""
        while True:
            try:
                return await self._session.prompt_async(prompt, handle_sigint=False)
            except EOFError:
                return None
            except KeyboardInterrupt:
                now = monotonic()
                if now - self._interrupted <= TWICE_SECONDS:
                    return None
                self._interrupted = now


def _open_prompt_session(history: Path, complete: Callable[[str], Sequence[str]]) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession  # loaded on a terminal only
    from prompt_toolkit.history import FileHistory

    history.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    history.touch(mode=0o600)
    return PromptSession(
        history=FileHistory(str(history)),
        completer=_make_completer(complete),
        complete_while_typing=False,
        enable_history_search=True,
    )


def _make_completer(complete: Callable[[str], Sequence[str]]) -> "Completer":
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class Words(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002 - as declared there
            text = document.text_before_cursor
            start = -len(text.rpartition(" ")[2])
            yield from (Completion(word, start) for word in complete(text))

    return Words()


class PlainInputLines:
    """Lines of a terminal that cannot move its cursor (`TERM=dumb`), or of a screen reader's."""

    scripted = False

    async def read(self, prompt: str) -> str | None:
        sys.stdout.write(prompt)
        sys.stdout.flush()
        try:
            line = sys.stdin.readline()
        except KeyboardInterrupt:
            return None
        return line.rstrip("\n") if line else None

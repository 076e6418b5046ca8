"""After a Ctrl-C at a terminal: go on without the calls that were stopped, make them again, or quit."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

from opsleuth.console.terminal_prompt import open_terminal

_POLL = 0.25
KEYS = "[c]ontinue without it   [r]etry   [n]ote   [q]uit, to be resumed   (Ctrl-C quits)"
_WISHES: dict[str, Literal["continue", "retry", "quit"]] = {
    "c": "continue",
    "r": "retry",
    "q": "quit",
    "\x04": "quit",
}


@dataclass(slots=True)
class InterruptPrompt:
    """Asks at the controlling terminal. `still` keeps others from drawing meanwhile."""

    path: str = "/dev/tty"
    still: Callable[[], AbstractContextManager[None]] = nullcontext

    tell: Callable[[str, str], None] = lambda _run, _text: None
    """Leaves a note for the planner of a run."""

    def __call__(self, run: str, calls: Sequence[str]) -> Literal["continue", "retry", "quit"]:
        """What the person wants; a second Ctrl-C quits."""
        with self.still(), open_terminal(self.path) as keys:
            keys.say(f"stopped {', '.join(calls) or 'before the next step'}. {KEYS}")
            while not keys.interrupted:
                key = keys.key(_POLL) or ""
                if key == "n" and (text := keys.line("Note for the planner: ")):
                    self.tell(run, text)
                    keys.say("The planner reads it at its next turn. [c]ontinue   [r]etry   [q]uit")
                if (wish := _WISHES.get(key)) is not None:
                    return wish
        return "quit"

"""What can be typed at `step>`: the words, their short forms, and what each means."""

import difflib
from typing import NamedTuple

from opsleuth.state.errors import UsageError


class StepperWord(NamedTuple):
    """One command. `names` begins with the short form, if there is one."""

    names: tuple[str, ...]
    usage: str
    meaning: str


WORDS: tuple[StepperWord, ...] = (
    StepperWord(("n", "next"), "", "run to the end of this node"),
    StepperWord(("s", "step"), "", "run one call of act; elsewhere like n"),
    StepperWord(("c", "continue"), "", "run to the next breakpoint, question or end"),
    StepperWord(("until",), "NODE", "run until NODE comes next"),
    StepperWord(("finish",), "", "run to the end of this turn"),
    StepperWord(("b", "break"), "NODE | tool:NAME | change:PATH [if …]", "stop there; without a place: list"),
    StepperWord(("tbreak",), "like b", "the same, once"),
    StepperWord(("cl", "clear"), "N", "remove breakpoint N"),
    StepperWord(("l", "list"), "", "the loop, and where the run stands"),
    StepperWord(("w", "where"), "", "run, turn, node, calls, questions"),
    StepperWord(("h", "history"), "[N]", "the last N checkpoints"),
    StepperWord(("tree",), "", "the branches of this run"),
    StepperWord(("p", "print"), "[PATH]", "a value of the state, in one line each"),
    StepperWord(("pp",), "[PATH]", "the same as indented JSON"),
    StepperWord(("diff",), "[C1 [C2]]", "what changed since the checkpoint before, or between two"),
    StepperWord(("ev", "evidence"), "[7]", "all evidence, or one piece of it: 7 or E7"),
    StepperWord(("watch",), "PATH", "show it at every stop; without a path: list; `watch -PATH` removes"),
    StepperWord(("u", "up"), "", "view the checkpoint before; nothing runs"),
    StepperWord(("d", "down"), "", "view the checkpoint after"),
    StepperWord(("goto",), "C", "view checkpoint C: c4, head, head~2, before:act"),
    StepperWord(("set",), "PATH=VALUE", "stage an edit; nothing is stored yet"),
    StepperWord(("edit",), "[PATH]", "the same in $EDITOR"),
    StepperWord(("undo",), "", "drop the last staged edit"),
    StepperWord(("commit",), "[--name N]", "make a branch with the staged edits and go on there"),
    StepperWord(("fork",), "[C] [--name N]", "make a branch from a checkpoint and go on there"),
    StepperWord(("skip",), "[CALL] [REASON]", "answer a pending call as skipped"),
    StepperWord(("retry",), "[CALL]", "drop the result of a pending call and make it again"),
    StepperWord(("inject",), "CALL={…}", "give the result of a pending call by hand"),
    StepperWord(
        ("approve",), "A1 --digest H [--confirm-target T]", "approve exactly the call with this digest"
    ),
    StepperWord(("deny",), "A1 REASON", "deny it; the words behind A1 are the reason for the planner"),
    StepperWord(
        ("resolve",), "A1 happened|absent REASON", "say what became of a change whose outcome is unknown"
    ),
    StepperWord(("note",), "TEXT", "tell the planner something"),
    StepperWord(("pause",), "", "ask the process that works on this run to stop"),
    StepperWord(("q", "quit", "exit", "detach"), "", "pause and leave"),
    StepperWord(("?", "help"), "[WORD]", "this list"),
)
REPEATED = frozenset({"n", "s"})
"""What an empty line repeats; nothing else, so that Enter never approves, commits or lets a run go."""

_BY_NAME = {name: word for word in WORDS for name in word.names}


class TypedCommand(NamedTuple):
    """A line: the command's first name and the rest."""

    name: str
    rest: str


def parse_command_line(line: str, last: str = "") -> TypedCommand | None:
    """The command in a line, None for nothing to do; an empty one repeats `last` if that is `n` or `s`.

    Raises UsageError for an unknown word, with the nearest.
    """
    text = line.strip()
    if text.startswith("#"):
        return None
    if not text:
        return TypedCommand(last, "") if last in REPEATED else None
    first, _, rest = text.partition(" ")
    word = _BY_NAME.get(first)
    if word is None:
        near = ", ".join(difflib.get_close_matches(first, _BY_NAME, n=3))
        raise UsageError(f"no command {first!r}{'; near: ' + near if near else ''}; ? lists them")
    return TypedCommand(word.names[0], rest.strip())


def find_help_words(name: str) -> list[StepperWord]:
    """The commands to explain: one, or all. Raises UsageError."""
    if not name:
        return list(WORDS)
    if name not in _BY_NAME:
        raise UsageError(f"no command {name!r}; ? lists them")
    return [_BY_NAME[name]]


def list_command_names() -> list[str]:
    """Every word, for completion."""
    return sorted(_BY_NAME)

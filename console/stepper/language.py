"""What can be typed at `step>`: the words, their short forms, and what each means."""

import difflib
from typing import NamedTuple

from opsleuth.state.errors import UsageError


class Word(NamedTuple):
    """One command. `names` begins with the short form, if there is one."""

    names: tuple[str, ...]
    usage: str
    meaning: str


WORDS: tuple[Word, ...] = (
    Word(("n", "next"), "", "run to the end of this node"),
    Word(("s", "step"), "", "run one call of act; elsewhere like n"),
    Word(("c", "continue"), "", "run to the next breakpoint, question or end"),
    Word(("until",), "NODE", "run until NODE comes next"),
    Word(("finish",), "", "run to the end of this turn"),
    Word(("b", "break"), "NODE | tool:NAME | change:PATH [if …]", "stop there; without a place: list"),
    Word(("tbreak",), "like b", "the same, once"),
    Word(("cl", "clear"), "N", "remove breakpoint N"),
    Word(("l", "list"), "", "the loop, and where the run stands"),
    Word(("w", "where"), "", "run, turn, node, calls, questions"),
    Word(("h", "history"), "[N]", "the last N checkpoints"),
    Word(("tree",), "", "the branches of this run"),
    Word(("p", "print"), "[PATH]", "a value of the state, in one line each"),
    Word(("pp",), "[PATH]", "the same as indented JSON"),
    Word(("diff",), "[C1 [C2]]", "what changed since the checkpoint before, or between two"),
    Word(("ev", "evidence"), "E7", "a piece of evidence"),
    Word(("watch",), "PATH", "show it at every stop; without a path: list; `watch -PATH` removes"),
    Word(("u", "up"), "", "view the checkpoint before; nothing runs"),
    Word(("d", "down"), "", "view the checkpoint after"),
    Word(("goto",), "C", "view checkpoint C: c4, head, head~2, before:act"),
    Word(("set",), "PATH=VALUE", "stage an edit; nothing is stored yet"),
    Word(("edit",), "[PATH]", "the same in $EDITOR"),
    Word(("undo",), "", "drop the last staged edit"),
    Word(("commit",), "[--name N]", "make a branch with the staged edits and go on there"),
    Word(("fork",), "[C] [--name N]", "make a branch from a checkpoint and go on there"),
    Word(("skip",), "[CALL] [REASON]", "answer a pending call as skipped"),
    Word(("retry",), "[CALL]", "drop the result of a pending call and make it again"),
    Word(("inject",), "CALL={…}", "give the result of a pending call by hand"),
    Word(("approve",), "A1 --hash H [--confirm-target T]", "approve exactly the call with this digest"),
    Word(("deny",), "A1 REASON", "deny it; the planner is told why"),
    Word(("resolve",), "A1 happened|absent REASON", "say what became of a change of unknown outcome"),
    Word(("note",), "TEXT", "tell the planner something"),
    Word(("pause",), "", "ask the process that works on this run to stop"),
    Word(("q", "quit", "detach"), "", "pause and leave"),
    Word(("?", "help"), "[WORD]", "this list"),
)
REPEATED = frozenset({"n", "s"})
"""What an empty line repeats; nothing else, so that Enter never approves, commits or lets a run go."""

_BY_NAME = {name: word for word in WORDS for name in word.names}


class Typed(NamedTuple):
    """A line: the command's first name and the rest."""

    name: str
    rest: str


def read(line: str, last: str = "") -> Typed | None:
    """The command in a line, None for nothing to do; an empty one repeats `last` if that is `n` or `s`.

    Raises UsageError for an unknown word, with the nearest.
    """
    text = line.strip()
    if text.startswith("#"):
        return None
    if not text:
        return Typed(last, "") if last in REPEATED else None
    first, _, rest = text.partition(" ")
    word = _BY_NAME.get(first)
    if word is None:
        near = ", ".join(difflib.get_close_matches(first, _BY_NAME, n=3))
        raise UsageError(f"no command {first!r}{'; near: ' + near if near else ''}; ? lists them")
    return Typed(word.names[0], rest.strip())


def about(name: str) -> list[Word]:
    """The commands to explain: one, or all. Raises UsageError."""
    if not name:
        return list(WORDS)
    if name not in _BY_NAME:
        raise UsageError(f"no command {name!r}; ? lists them")
    return [_BY_NAME[name]]


def names() -> list[str]:
    """Every word, for completion."""
    return sorted(_BY_NAME)

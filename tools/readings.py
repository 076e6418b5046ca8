"""All the ways in which a value can be read: spellings that mean the same, and commands wrapped in commands.

A deny or ask rule holds if any reading fits it, an allow rule only if every one does. So a call can be re-spelt
or wrapped as one likes: it can only become stricter.
"""

import posixpath
import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any

from opsleuth.state.canonical import canonical

MOST = 400
"""Readings of one value; a value with more is judged by the first ones and by `UNREADABLE`."""
UNREADABLE = "\0unreadable"

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "busybox"})
WRAPPERS = frozenset(
    {
        "command", "doas", "env", "exec", "eval", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "su",
        "time", "timeout", "watch", "xargs", "busybox", "chroot", "unshare", "nsenter", "ssh", "flock",
    }
)  # fmt: skip
_SEPARATORS = re.compile(r"\|\||&&|[;|&\n]|\$\(|[`(){}]")
_SHORT = re.compile(r"-[A-Za-z]{1,8}")
MOST_OPTIONS = 4
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def readings(value: Any) -> tuple[str, ...]:  # noqa: ANN401 - any JSON value
    """The value's texts, plainest first, each once; at most `MOST`, then `UNREADABLE` stands for the rest."""
    found: dict[str, None] = {}
    for text in _texts(value):
        for reading in _of_text(text, depth=0):
            if len(found) >= MOST:
                return (*found, UNREADABLE)
            found.setdefault(reading)
    return tuple(found)


def spellings(text: str) -> Iterator[str]:
    """The text in one spelling and, where it is a path, the same without detours: of a name, not of a command."""
    plain = _plain(text)
    yield plain
    if "/" in plain:
        yield posixpath.normpath(re.sub(r"/+", "/", plain))


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    yield value if isinstance(value, str) else canonical(value)
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            yield " ".join(value)
            yield shlex.join(value)
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)


def _of_text(text: str, depth: int) -> Iterator[str]:
    yield from spellings(text)
    if depth > 8:
        yield UNREADABLE
        return
    parts = [part.strip() for part in _SEPARATORS.split(text) if part.strip()]
    for part in parts if parts != [text.strip()] else ():
        yield from _of_text(part, depth + 1)
    yield from _of_command(text, depth)


def _of_command(text: str, depth: int) -> Iterator[str]:
    words = _words(text)
    if not words:
        return
    named = [posixpath.basename(words[0]), *words[1:]]
    yield _plain(" ".join(named))
    yield _plain(" ".join(posixpath.normpath(word) if "/" in word else word for word in named))
    for reordered in _options_reordered(named):
        yield _plain(reordered)
    for inner in _unwrapped(named):
        yield from _of_text(inner, depth + 1)


def _unwrapped(words: Sequence[str]) -> Iterable[str]:
    """What a wrapper runs: the rest after it, whatever of it are options, and each word that is a command itself."""
    first, rest = words[0].casefold(), words[1:]
    if _ASSIGNMENT.match(words[0]):
        return [" ".join(rest)] if rest else []
    if first in SHELLS or first in WRAPPERS:
        tails = [" ".join(rest[i:]) for i in range(len(rest)) if not rest[i].startswith("-")]
        return [*tails, *(word for word in rest if " " in word)]
    return []


def _options_reordered(words: Sequence[str]) -> Iterator[str]:
    """`-r -f` and `-fr` as `-rf`: short options joined in every order, so that no order hides one."""
    letters = sorted({c for w in words[1:] if _SHORT.fullmatch(w) for c in w[1:]})
    if not 1 < len(letters) <= MOST_OPTIONS:
        return
    rest = [w for w in words[1:] if not _SHORT.fullmatch(w)]
    for order in permutations(letters):
        yield " ".join([words[0], "-" + "".join(order), *rest])


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.replace("'", " ").replace('"', " ").split()


def _plain(text: str) -> str:
    """One spelling: compatible characters unified, invisible ones dropped, white space folded, small letters."""
    folded = unicodedata.normalize("NFKC", text)
    visible = "".join(c for c in folded if unicodedata.category(c) not in ("Cf", "Cc") or c in "\t\n")
    return " ".join(visible.casefold().split())

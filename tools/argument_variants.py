"""All ways in which a value can be read: spellings that mean the same, and commands wrapped in commands.

A deny or ask rule holds if any reading fits it, an allow rule only if every one does. So a call can be re-spelt
or wrapped as one likes: it can only become stricter.
"""

import posixpath
import re
import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.json_types import JSON
from opsleuth.tools.option_places import move_options_back
from opsleuth.tools.shell_expansion import expand_shell_text, has_open_command

MOST_VARIANTS = 400
"""Readings of one value; a value with more is judged by the first ones and by `UNREADABLE`."""
UNREADABLE = "\0unreadable"
MOST_DEPTH = 8

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "busybox", "toybox", "rbash"})
INTERPRETERS = re.compile(r"(python|perl|ruby|node|nodejs|php|lua|awk|gawk|mawk|tclsh|osascript)[\d.]*")
"""Interpreters of other languages: the code that they run is not read here."""
WRAPPERS = frozenset(
    {
        "builtin", "chpst", "chrt", "chroot", "command", "doas", "docker", "env", "eval", "exec", "find", "flock", "ionice",
        "kubectl", "nice", "nohup", "nsenter", "parallel", "podman", "prlimit", "runuser", "script", "setarch", "setpriv",
        "setsid", "ssh", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "then", "time", "timeout", "unshare",
        "watch", "xargs", "do", "else", "if", "while", "until", "!", "busybox", "toybox", "coproc", "unbuffer", "ltrace",
    }
)  # fmt: skip
_FROM_ELSEWHERE = frozenset({"xargs", "parallel"})
"""They add words to a command that appear in no text."""
LONG_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "rm": {
        "recursive": "r", "force": "f", "dir": "d", "verbose": "v", "interactive": "i", "one-file-system": "",
        "no-preserve-root": "", "preserve-root": "",
    },
    "git": {"force": "f", "delete": "d"},
}  # fmt: skip
"""Short forms of long options; for other commands the first letter stands for the whole."""
_SEPARATORS = re.compile(r"\|\||&&|[;|&\n]|\$\(|[`(){}]")
_SHORT = re.compile(r"-[A-Za-z0-9]{1,40}")
_LONG = re.compile(r"--([A-Za-z][\w-]*)(?:=.*)?")
MOST_OPTIONS = 4
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def list_variants(
    value: JSON, patterns: Iterable[str] = (), *, commands: bool = False, tightens: bool = False
) -> tuple[str, ...]:
    """The value's texts, plainest first, each once; at most `MOST`, then `UNREADABLE` stands for the rest.

    `patterns` are those that the readings are checked against: options are also combined as they write them. With
    `commands` the value becomes part of a command: what a shell would put in and is not known here is `UNREADABLE`.
    For a rule that `tightens` options are also read away from between a program and its words.
    """
    found: dict[str, None] = {}
    options = tuple(_options_in_patterns(patterns))
    document = None if isinstance(value, str) else to_canonical_json(value)
    for text in _texts_in_value(value):
        reading = _Reading(
            options, commands and text != document, tightens
        )  # no shell is given the JSON of a list
        for variant in reading.variants_of_text(text, depth=0):
            if len(found) >= MOST_VARIANTS:
                return (*found, UNREADABLE)
            found.setdefault(variant)
    return tuple(found)


def _options_in_patterns(patterns: Iterable[str]) -> Iterator[str]:
    """The groups of short options that patterns write, such as `rf`."""
    for pattern in patterns:
        for word in pattern.casefold().replace("*", " ").split():
            if _SHORT.fullmatch(word):
                yield word[1:]


def iterate_spellings(text: str) -> Iterator[str]:
    """The text in one spelling and, where it is a path, the same without detours: of a name, not of a command."""
    plain = _normalize_text(text)
    yield plain
    if "/" in plain:
        yield posixpath.normpath(re.sub(r"/+", "/", plain))


def _texts_in_value(value: JSON) -> Iterator[str]:
    yield value if isinstance(value, str) else to_canonical_json(value)
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            yield " ".join(value)
            yield shlex.join(value)
        for item in value:
            yield from _texts_in_value(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts_in_value(item)


@dataclass(frozen=True, slots=True)
class _Reading:
    """How texts are read: which groups of options are looked for, and whether the texts are commands."""

    options: tuple[str, ...]
    commands: bool
    tightens: bool

    def variants_of_text(self, text: str, depth: int) -> Iterator[str]:
        yield from iterate_spellings(text)
        if depth > MOST_DEPTH:
            yield UNREADABLE
            return
        expanded = expand_shell_text(text)
        if self.commands and expanded.is_open:
            yield UNREADABLE
        if expanded.text != text:
            yield from self.variants_of_text(expanded.text, depth + 1)
        parts = [part.strip() for part in _SEPARATORS.split(text) if part.strip()]
        for part in parts if parts != [text.strip()] else ():
            yield from self.variants_of_text(part, depth + 1)
        yield from self._variants_of_command(text, depth)

    def _variants_of_command(self, text: str, depth: int) -> Iterator[str]:
        words = _split_words(text)
        if not words:
            return
        named = [(posixpath.basename(words[0]) or words[0]).removesuffix(".exe"), *words[1:]]
        yield _normalize_text(" ".join(named))
        yield _normalize_text(" ".join(posixpath.normpath(word) if "/" in word else word for word in named))
        for reordered in (*_reorder_options(named), *_group_options(named, self.options)):
            yield _normalize_text(reordered)
        for moved in move_options_back(named) if self.tightens else ():
            yield _normalize_text(" ".join(moved))
        if self.commands and (has_open_command(words) or _runs_unread_code(named)):
            yield UNREADABLE
        for inner in _unwrap_command(named):
            yield from self.variants_of_text(inner, depth + 1)


def _runs_unread_code(words: Sequence[str]) -> bool:
    """Whether a command runs what appears in no text, or in another language: a script, standard input, python -c."""
    first = words[0].casefold()
    if first in _FROM_ELSEWHERE or INTERPRETERS.fullmatch(first):
        return True
    if first in ("busybox", "toybox"):
        return len(words) == 1
    return first in SHELLS and not any(re.fullmatch(r"-[a-z]*c[a-z]*", word.casefold()) for word in words[1:])


def _unwrap_command(words: Sequence[str]) -> Iterable[str]:
    """What a wrapper runs: the rest after it, whatever of it are options, and each word that is a command itself."""
    first, rest = words[0].casefold(), words[1:]
    if _ASSIGNMENT.match(words[0]):
        return [shlex.join(rest)] if rest else []
    if first in SHELLS or first in WRAPPERS:
        tails = [
            shlex.join(rest[i:])
            for i in range(len(rest))
            if not rest[i].startswith("-") and not _is_printed(rest, i)
        ]
        glued = [word[2:] for word in rest if re.match(r"-[Sc].*\s", word)]
        said = [" ".join(rest)] if first == "eval" else []
        return [
            *tails,
            *said,
            *glued,
            *(word for word in rest if " " in word or "\t" in word or "\n" in word),
        ]
    return []


def _is_printed(words: Sequence[str], place: int) -> bool:
    """Whether a substitution at this place is only printed; what it runs is read on its own."""
    return words[place].startswith(("$(", "`")) and not {"echo", "printf"}.isdisjoint(words[:place])


def _reorder_options(words: Sequence[str]) -> Iterator[str]:
    """`-r -f` and `-fr` as `-rf`: short options joined in every order, so that no order hides one."""
    letters = _option_letters(words)
    if not 1 < len(letters) <= MOST_OPTIONS:
        return
    rest = [w for w in words[1:] if not _is_option(w)]
    for order in permutations(sorted(letters)):
        yield " ".join([words[0], "-" + "".join(order), *rest])


def _group_options(words: Sequence[str], groups: Iterable[str]) -> Iterator[str]:
    """The options of a command as a pattern writes them, where all of its letters are among them."""
    letters = _option_letters(words)
    rest = [w for w in words[1:] if not _is_option(w)]
    for group in groups:
        if set(group) <= letters:
            yield " ".join([words[0], f"-{group}", *rest])


def _option_letters(words: Sequence[str]) -> set[str]:
    """The letters of all short options, and those that long ones stand for; unambiguous beginnings count."""
    known = LONG_OPTIONS.get(words[0].casefold(), {})
    letters = {c.casefold() for w in words[1:] if _SHORT.fullmatch(w) for c in w[1:]}
    for word in words[1:]:
        if found := _LONG.fullmatch(word):
            name = found[1].casefold()
            letters |= {short for full, short in known.items() if full.startswith(name) and short} or {
                name[0]
            }
    return letters


def _is_option(word: str) -> bool:
    return word == "--" or bool(_SHORT.fullmatch(word) or _LONG.fullmatch(word))


def _split_words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.replace("'", " ").replace('"', " ").split()


def _normalize_text(text: str) -> str:
    """One spelling: compatible characters unified, invisible ones dropped, white space folded, small letters."""
    folded = unicodedata.normalize("NFKC", text)
    visible = "".join(c for c in folded if unicodedata.category(c) not in ("Cf", "Cc") or c in "\t\n")
    return " ".join(visible.casefold().split())

"""Whose number it is: a figure is taken from a record, or a row of it, of what its clause names.

Names and numbers of a claim are first held against all that it cites; here each pair of them against one piece of
evidence. What no longer holds is refused only where it can be said whose number it is: it stands in the evidence
as it is written, and only in pieces or rows of others. Not seen: a row's number in a nested object, numbers that
only a computation over several pieces gives, and which of several names in one clause a number belongs to.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from opsleuth.verification.derivation import stands_for, ungrounded
from opsleuth.verification.figures import Facts, squeeze
from opsleuth.verification.grounding import Ground, found
from opsleuth.verification.names import names, occurs
from opsleuth.verification.quantities import Quantity, quantities

_CLAUSE = re.compile(
    r"[,;:]\s|[()（），；：。]|\.\s|\s(?:and|but|while|whereas|although|though|because|since)\s"
)
_NAMING = frozenset({"service", "services", "caller", "callee", "from", "to", "object", "database"})
"""Keys whose text is the name of a part of the system."""
_NEUTRAL = "calculate"


class Piece(Protocol):
    """What is needed of a piece of evidence."""

    @property
    def tool(self) -> str: ...
    @property
    def record(self) -> Mapping[str, Any]: ...
    @property
    def facts(self) -> Facts: ...
    @property
    def text(self) -> str: ...
    @property
    def asked(self) -> Mapping[str, Any]: ...
    @property
    def asked_text(self) -> str: ...


class Misplaced(NamedTuple):
    """A number of another than the clause names."""

    number: Quantity
    names: tuple[str, ...]


class _Clause(NamedTuple):
    text: str
    start: int
    names: tuple[str, ...]


def misplaced(
    text: str, pieces: Sequence[Piece], known: Collection[str], window: tuple[float, float]
) -> Iterator[Misplaced]:
    """The numbers of `text` that stand only with others than their clause names; `window` in seconds since the epoch."""
    if any(squeeze(text).rstrip(".") in piece.text for piece in pieces):
        return
    called = {*known, *(name for piece in pieces for name in (*_named(piece.record), *_named(piece.asked)))}
    stated = quantities(text)
    for clause in _clauses(text, called):
        own = [p for p in pieces if _counts(p, clause.names, called)]
        numbers = [q for q in stated if clause.start <= q.start < clause.start + len(clause.text)]
        for number in numbers if any(_about(p, clause.names) for p in own) else ():
            everywhere = Ground([p.facts for p in pieces], *window)
            there = [p.facts for p in own if not _in_rows_of_others(number, clause.names, p.facts)]
            if found(number, everywhere) and number in ungrounded(Ground(there, *window, stated=stated)):
                yield Misplaced(number, clause.names)


def _clauses(text: str, called: Collection[str]) -> Iterator[_Clause]:
    """The clauses that speak of something: of what they name, else of what was named last."""
    spoken: tuple[str, ...] = ()
    start = 0
    for end, after in [*(match.span() for match in _CLAUSE.finditer(text)), (len(text), len(text))]:
        part = text[start:end]
        spoken = tuple(names(part, called)) or spoken
        if spoken:
            yield _Clause(part, start, spoken)
        start = after


def _about(piece: Piece, own: Sequence[str]) -> bool:
    return any(occurs(name, [piece.text, piece.asked_text]) for name in own)


def _counts(piece: Piece, own: Sequence[str], called: Collection[str]) -> bool:
    """Whether it is about one of the names, or about nobody: a sum that was computed, a table without names."""
    return piece.tool == _NEUTRAL or _about(piece, own) or not _about(piece, tuple(called))


def _in_rows_of_others(number: Quantity, own: Sequence[str], facts: Facts) -> bool:
    """Whether the number stands only in rows that name none of `own`, in lists in which these have rows."""
    holders = [facts.holders[figure.holder] for figure in facts.figures if stands_for(number, figure)]
    if not holders or any(holder.path is None for holder in holders):
        return False
    if any(occurs(name, [holder.label for holder in holders]) for name in own):
        return False
    paths = {holder.path for holder in holders}
    rows = [holder.label for holder in facts.holders if holder.path in paths]
    return any(occurs(name, rows) for name in own)


def _named(record: Mapping[str, Any]) -> Iterator[str]:
    """What the record calls by name."""
    stack: list[tuple[str, Any]] = [("", record)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, Mapping):
            stack.extend((str(k), v) for k, v in value.items())
        elif isinstance(value, list | tuple):
            stack.extend((key, item) for item in value)
        elif isinstance(value, str) and key in _NAMING and 2 < len(value) <= 100 and not value[0].isdigit():
            yield value

"""Which component a number belongs to: a figure must come from a record, or a row, of what its clause names.

Names and numbers of a claim are first checked against all that it cites; here each pair of them against one piece of
evidence. What no longer holds is refused only where it can be said whose number it is: it appears in the evidence
as it is written, and only in pieces or rows of others. Not seen: a row's number in a nested object, numbers that
only a computation over several pieces gives, and which of several names in one clause a number belongs to.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from opsleuth.verification.derived_numbers import find_ungrounded_numbers, stands_for
from opsleuth.verification.grounding import EvidenceGround, holds_number
from opsleuth.verification.name_extraction import extract_names, find_mentions, name_occurs_in
from opsleuth.verification.quantities import Quantity, find_quantities
from opsleuth.verification.record_facts import RecordFacts, normalize_for_matching

_CLAUSE = re.compile(
    r"[,;:]\s|[()（），；：。]|\.\s|\s(?:and|but|while|whereas|although|though|because|since)\s"
)
_NAMING = frozenset({"service", "services", "caller", "callee", "from", "to", "object", "database"})
"""Keys whose text names a component of the system."""
_NEUTRAL = "calculate"
_VERSION = re.compile(r"v?\d{1,5}(?:\.\d{1,8}){1,2}(?:[-+.][\w.+-]*[a-z][\w.+-]*)?", re.IGNORECASE)
"""`1.29.0`, `v2.13.4-rc.1`: says which edition of something runs, and is never what a clause speaks of. Four numbers are an address."""


class EvidencePiece(Protocol):
    """What is needed of a piece of evidence."""

    @property
    def tool(self) -> str: ...
    @property
    def record(self) -> Mapping[str, Any]: ...
    @property
    def facts(self) -> RecordFacts: ...
    @property
    def text(self) -> str: ...
    @property
    def asked(self) -> Mapping[str, Any]: ...
    @property
    def asked_text(self) -> str: ...


class MisplacedNumber(NamedTuple):
    """A number of another than the clause names."""

    number: Quantity
    names: tuple[str, ...]


class NamingClause(NamedTuple):
    """A clause, where it begins, and what it is about."""

    text: str
    start: int
    names: tuple[str, ...]


def find_misplaced_numbers(
    text: str, pieces: Sequence[EvidencePiece], known: Collection[str], window: tuple[float, float]
) -> Iterator[MisplacedNumber]:
    """The numbers of `text` that the evidence holds only for names outside their clause; `window` in seconds since the epoch."""
    if any(normalize_for_matching(text).rstrip(".") in piece.text for piece in pieces):
        return
    called = {
        *known,
        *(
            name
            for piece in pieces
            for name in (*_names_in_record(piece.record), *_names_in_record(piece.asked))
        ),
    }
    stated = find_quantities(text)
    for clause in split_into_clauses(text, called):
        own = [p for p in pieces if _is_piece_relevant(p, clause.names, called)]
        numbers = [q for q in stated if clause.start <= q.start < clause.start + len(clause.text)]
        for number in numbers if any(_is_piece_about(p, clause.names) for p in own) else ():
            everywhere = EvidenceGround([p.facts for p in pieces], *window)
            there = [p.facts for p in own if not _stands_in_rows_of_others(number, clause.names, p.facts)]
            if holds_number(number, everywhere) and number in find_ungrounded_numbers(
                EvidenceGround(there, *window, stated=stated)
            ):
                yield MisplacedNumber(number, clause.names)


def split_into_clauses(text: str, called: Collection[str]) -> Iterator[NamingClause]:
    """The clauses that are about something: of what they name, else of what was named last."""
    spoken: tuple[str, ...] = ()
    start = 0
    for end, after in [*(match.span() for match in _CLAUSE.finditer(text)), (len(text), len(text))]:
        part = text[start:end]
        generic = [part[a:b] for a, b in find_mentions(part, called)]  # `postgresql` may be a service's name
        named = dict.fromkeys((*extract_names(part, called), *generic))
        spoken = tuple(name for name in named if not _VERSION.fullmatch(name)) or spoken
        if spoken:
            yield NamingClause(part, start, spoken)
        start = after


def _is_piece_about(piece: EvidencePiece, own: Sequence[str]) -> bool:
    return any(name_occurs_in(name, [piece.text, piece.asked_text]) for name in own)


def _is_piece_relevant(piece: EvidencePiece, own: Sequence[str], called: Collection[str]) -> bool:
    """Whether it is about one of the names, or about nobody: a sum that was computed, a table without names."""
    return piece.tool == _NEUTRAL or _is_piece_about(piece, own) or not _is_piece_about(piece, tuple(called))


def _stands_in_rows_of_others(number: Quantity, own: Sequence[str], facts: RecordFacts) -> bool:
    """Whether the number appears only in rows that name none of `own`, in lists in which these have rows."""
    holders = [facts.holders[figure.holder] for figure in facts.figures if stands_for(number, figure)]
    if not holders or any(holder.path is None for holder in holders):
        return False
    if any(name_occurs_in(name, [holder.label for holder in holders]) for name in own):
        return False
    paths = {holder.path for holder in holders}
    rows = [holder.label for holder in facts.holders if holder.path in paths]
    return any(name_occurs_in(name, rows) for name in own)


def _names_in_record(record: Mapping[str, Any]) -> Iterator[str]:
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

"""Which operation on which facts gives a figure that appears in none of them."""

import re
from collections.abc import Sequence
from itertools import combinations, islice
from typing import NamedTuple

from opsleuth.state.conclusion import ClaimOperation
from opsleuth.verification.derived_numbers import stands_for
from opsleuth.verification.fact_matching import (
    SentenceToken,
    base_measure,
    find_tally_name,
    split_into_words,
    subject_names,
)
from opsleuth.verification.facts import MOST_SHOWN, Fact
from opsleuth.verification.grounding import fits_quantity
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.quantities import Quantity
from opsleuth.verification.record_facts import RecordFigure, normalize_for_matching

_MOST_PAIRS = 24


class DerivedFigure(NamedTuple):
    op: ClaimOperation
    facts: tuple[Fact, ...]


def derive_figure(
    token: SentenceToken, text: str, chosen: Sequence[Fact], allowed: Sequence[Fact], facts: Sequence[Fact]
) -> DerivedFigure | None:
    """The operation that gives a figure and that the sentence words: on one fact, on two that belong together, or as a number of rows."""
    found = _derive_from_facts(token, text, chosen, allowed, facts)
    return found if found and _is_operation_worded(found.op, token, text) else None


def _is_operation_worded(op: ClaimOperation, token: SentenceToken, text: str) -> bool:
    """Whether the words around the figure say that it compares: with many facts some pair gives any number."""
    around = f"{text[max(0, token.start - 40) : token.start]} {text[token.end : token.end + 40]}"
    if op == "ratio":
        times = token.quantity is not None and any(u.dimension == "ratio" for u in token.quantity.units)
        return times or bool(_COMPARED.search(around)) or text[token.end :].startswith((" of ", " as "))
    if op == "difference":
        return bool(_DIFFERS.search(around))
    if op == "duration":
        return bool(_LASTS.search(around))
    return True


_COMPARED = re.compile(
    r"\b(?:more|less|fewer|extra|additional\w*|difference|differ\w*|gap|apart|above|below|higher|lower|greater|smaller|slower|faster|longer|shorter|plus|increase\w*|decrease\w*|rise|drop|growth|(?:rose|grew|increased|climbed|fell|dropped|shrank|went (?:up|down)) by|half|third|mehr|weniger|höher|niedriger|um)\b|多|少|增|减|高|低|占",
    re.IGNORECASE,
)


_DIFFERS = re.compile(
    r"\b(?:more|less|fewer|extra|additional\w*|difference|differ\w*|gap|apart|above|below|higher|lower|greater|smaller|slower|faster|longer|shorter|plus|(?:increase|decrease|rise|drop|growth) of|(?:rose|grew|increased|climbed|fell|dropped|shrank|went (?:up|down)) by|mehr|weniger|höher|niedriger|um)\b|多|少|增|减|高|低",
    re.IGNORECASE,
)


_LASTS = re.compile(
    r"\b(?:before|after\w*|later|earlier|within|apart|last\w*|for|between|during|long|ago|prior|preced\w*|ahead|lie|lies|until|since|gap|over|span\w*|follow\w*|took|takes|whole|total|next|delay|behind|vor|nach|später|früher|lang|innerhalb|zwischen)\b|之前|之后|后|前|持续|历时|内",
    re.IGNORECASE,
)


def _derive_from_facts(
    token: SentenceToken, text: str, chosen: Sequence[Fact], allowed: Sequence[Fact], facts: Sequence[Fact]
) -> DerivedFigure | None:
    quantity = token.quantity
    if quantity is None or quantity.value == 0 or _counts_occurrences(quantity, text):
        return None
    near = [*chosen, *(f for f in islice(allowed, MOST_SHOWN) if f not in chosen and not find_tally_name(f))]
    for fact in near:
        if op := _operation_on_one(quantity, fact):
            return DerivedFigure(op, (fact,))
    for a, b in islice(combinations(near, 2), _MOST_PAIRS * 4):
        if (op := _find_operation_between(quantity, a, b)) and _may_compare(op, a, b, chosen, text):
            first, second = _order_operands(op, quantity, a, b)
            return DerivedFigure(op, (first, second))
    return _count_rows(quantity, text, allowed, facts)


def _may_compare(op: ClaimOperation, a: Fact, b: Fact, chosen: Sequence[Fact], text: str) -> bool:
    """Whether a sentence may mean these two: it gives both, or one and another of the same measure, or names both components."""
    given = (a in chosen) + (b in chosen)
    if given == 2 or (op == "duration" and given):
        return True
    said = normalize_for_matching(text)
    named = all(any(name_occurs_in(n, [said]) for n in subject_names(f)) for f in (a, b))
    return base_measure(a) == base_measure(b) and bool(given or named)


def _counts_occurrences(quantity: Quantity, text: str) -> bool:
    """Whether `20 times` says how often, not how many times as much."""
    if not {"ratio", "count"} <= {unit.dimension for unit in quantity.units} or not quantity.text.endswith(
        "times"
    ):
        return False
    return not _TIMES_AS_MUCH.match(text[quantity.end :])


_TIMES_AS_MUCH = re.compile(
    r" (?:as|more|higher|the|its|their|what|greater|larger|longer|slower|faster|usual|normal)\b"
)


def _operation_on_one(quantity: Quantity, fact: Fact) -> ClaimOperation | None:
    if fact.before is not None and isinstance(fact.value, int | float):
        if _is_ratio(quantity, float(fact.value), float(fact.before)):
            return "ratio"
        if _is_difference(quantity, fact, float(fact.value) - float(fact.before)):
            return "difference"
    bounds = [float(d.value) for d in fact.figures if d.name in ("usual_high", "usual_low")]
    if isinstance(fact.value, int | float) and any(_is_ratio(quantity, float(fact.value), b) for b in bounds):
        return "ratio"
    times = sorted(seconds for d in fact.times if (seconds := d.seconds) is not None)
    if len(times) > 1 and _is_duration(quantity, times[-1] - times[0]):
        return "duration"
    return None


def _find_operation_between(quantity: Quantity, a: Fact, b: Fact) -> ClaimOperation | None:
    at_a, at_b = a.at_seconds, b.at_seconds
    if at_a is not None and at_b is not None and at_a != at_b and _is_duration(quantity, at_a - at_b):
        return "duration"
    if not (isinstance(a.value, int | float) and isinstance(b.value, int | float)) or a.unit != b.unit:
        return None
    if _is_ratio(quantity, float(a.value), float(b.value)) or _is_ratio(
        quantity, float(b.value), float(a.value)
    ):
        return "ratio"
    if _is_difference(quantity, a, float(a.value) - float(b.value)):
        return "difference"
    return None


def _order_operands(op: ClaimOperation, quantity: Quantity, a: Fact, b: Fact) -> tuple[Fact, Fact]:
    """The facts in the order that gives the figure: the divisor, and what is taken away, second."""
    if op == "ratio":
        first, second = float(a.value or 0), float(b.value or 0)
        return (a, b) if second and _fits_ratio(quantity, first / second) else (b, a)
    if op == "difference":
        return (a, b) if float(a.value or 0) >= float(b.value or 0) else (b, a)
    return (a, b) if (a.at_seconds or 0) <= (b.at_seconds or 0) else (b, a)


def _is_ratio(quantity: Quantity, value: float, before: float) -> bool:
    if before in (0, value):
        return False
    ratio = value / before
    return _fits_ratio(quantity, ratio) or (ratio != 0 and _fits_ratio(quantity, 1 / ratio))


def _fits_ratio(quantity: Quantity, ratio: float) -> bool:
    """Whether the ratio may be written so: as a multiple, a share, or a change in per cent."""
    for unit in quantity.units:
        if unit.dimension == "ratio" and fits_quantity(quantity, ratio):
            return True
        if unit.dimension == "share" and any(
            fits_quantity(quantity, 100 * r) for r in (ratio, abs(ratio - 1))
        ):
            return True
    return False


def _is_difference(quantity: Quantity, fact: Fact, difference: float) -> bool:
    units = next((d.units for d in fact.figures if d.path == fact.path), ())
    return difference != 0 and stands_for(quantity, RecordFigure(abs(difference), units, "", 0))


def _is_duration(quantity: Quantity, seconds: float) -> bool:
    return any(
        unit.dimension == "time" and fits_quantity(quantity, abs(seconds) / factor)
        for unit in quantity.units
        for factor in unit.factors
    )


_PREPOSITION = re.compile(r"\b(?:of|on|at|for|in|since|from|to|by|with|against|per)\b")


def _count_rows(
    quantity: Quantity, text: str, allowed: Sequence[Fact], facts: Sequence[Fact]
) -> DerivedFigure | None:
    """A whole number that is how many rows a list has, or how many of them are of what is named."""
    if not quantity.bare or quantity.value != int(quantity.value) or not 2 <= quantity.value <= 20:
        return None
    counted = _PREPOSITION.split(text[quantity.end :], maxsplit=1)[0]
    stems = {word[:4] for word in split_into_words(" ".join(counted.split()[:3]))}
    for pool in (allowed, facts):
        groups: dict[tuple[str, str], list[Fact]] = {}
        for fact in pool:
            if fact.searched is None and fact.path.count("/") > 1:
                groups.setdefault((fact.evidence, fact.path.split("/")[1]), []).append(fact)
        for (_, key), rows in groups.items():
            kind = rows[0].subject.partition(" ")[0] if " " in rows[0].subject else ""
            called = split_into_words(f"{key} {kind}".replace("_", " "))
            if not any(a.startswith(b[:4]) or b.startswith(a) for a in stems for b in called):
                continue
            distinct = {(f.subject, str(f.value)): f for f in rows}
            if len(distinct) == quantity.value:
                return DerivedFigure("count", tuple(distinct.values()))
            subjects = {f.subject: f for f in rows if f.subject}
            if len(subjects) == quantity.value:
                return DerivedFigure("count", tuple(subjects.values()))
    return None

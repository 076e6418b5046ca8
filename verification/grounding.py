"""Whether cited evidence holds what a text says: each number and time, as written.

A number is *found* if the evidence holds a figure that rounds to it, in any unit of the same kind. What is not
found may still be derived: see `derivation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from opsleuth.verification.quantities import Quantity
from opsleuth.verification.record_facts import RecordFacts, find_value_between
from opsleuth.verification.written_times import WrittenTime, matches_written_time


@dataclass(frozen=True)
class EvidenceGround:
    """What a text may rest on.

    The facts of its evidence, the incident window (seconds since the epoch), and what the text itself names
    (casefolded), says (words in lower case) and states; `computed` are those of the stated numbers that were already derived.
    """

    facts: Sequence[RecordFacts]
    start: float
    end: float
    names: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    stated: Sequence[Quantity] = ()
    computed: Sequence[Quantity] = ()
    moments: Sequence[WrittenTime] = field(default=())


def holds_written_time(moment: WrittenTime, ground: EvidenceGround) -> bool:
    """Whether the evidence holds a time that may be written as `moment`."""
    return any(
        any(matches_written_time(moment, instant.seconds) for instant in facts.instants)
        or any(_same_clock(moment, clock) for clock in facts.clocks)
        for facts in ground.facts
    )


def _same_clock(moment: WrittenTime, clock: WrittenTime) -> bool:
    return abs(moment.seconds - clock.seconds) % 86_400 < max(moment.grain, clock.grain) * 0.999


def holds_number(quantity: Quantity, ground: EvidenceGround) -> bool:
    """Whether some figure of the evidence can be written as `quantity`."""
    if any(_facts_hold_number(quantity, facts) for facts in ground.facts):
        return True
    length = ground.end - ground.start
    return any(
        unit.dimension == "time" and fits_quantity(quantity, length / factor)
        for unit in quantity.units
        for factor in unit.factors
    )


def _facts_hold_number(quantity: Quantity, facts: RecordFacts) -> bool:
    low, high = quantity.low, quantity.high
    for unit in quantity.units:
        for factor in unit.factors:
            based = facts.based.get(unit.dimension, ())
            if find_value_between(based, low * factor, high * factor) is not None:
                return True
            if unit.dimension == "count":
                if _facts_hold_bare_number(quantity, facts, factor):
                    return True
            elif _facts_hold_unitless_number(facts, low, high, factor):
                return True
    return False


def _facts_hold_bare_number(quantity: Quantity, facts: RecordFacts, factor: float) -> bool:
    low, high = quantity.low * factor, quantity.high * factor
    if (
        find_value_between(facts.raws, low, high) is not None
        or find_value_between(facts.raws, quantity.low, quantity.high) is not None
    ):
        return True
    if find_value_between(facts.based.get("share", ()), low, high) is not None:
        return True
    if factor == 1.0 and any(low <= size <= high for size in facts.sizes):
        return True
    digits = quantity.text.replace(",", "")
    return len(digits) >= 4 and digits.isdigit() and _stands_verbatim(digits, facts.text)


def _facts_hold_unitless_number(facts: RecordFacts, low: float, high: float, factor: float) -> bool:
    as_written = find_value_between(facts.unitless, low, high)
    return (
        as_written is not None or find_value_between(facts.unitless, low * factor, high * factor) is not None
    )


def _stands_verbatim(digits: str, text: str) -> bool:
    """Whether four digits or more appear in the text on their own (a port, an id), not within a longer number."""
    start = text.find(digits)
    while start >= 0:
        around = text[start - 1 : start] + text[start + len(digits) : start + len(digits) + 1]
        if not any(c.isalnum() or c == "." for c in around):
            return True
        start = text.find(digits, start + 1)
    return False


def fits_quantity(quantity: Quantity, value: float) -> bool:
    """Whether `value`, in the written unit, may be written as `quantity`."""
    slack = abs(quantity.value) * 1e-9 + 1e-15
    return quantity.low - slack <= value <= quantity.high + slack

"""The mutations that make a true claim false, in its words, its ids and its operation."""

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from true_claims import TrueClaim

from opsleuth.state.conclusion import Claim
from opsleuth.verification.conclusion_basis import ConclusionBasis
from opsleuth.verification.quantities import Quantity, TimeToken, find_quantities, scan_tokens

WORDS = ("two", "three", "four", "five", "seven", "eleven", "twelve")


class Mutant(NamedTuple):
    """A false claim and the words that make it so."""

    claim: Claim
    false: str


Mutation = Callable[[TrueClaim, ConclusionBasis, random.Random], Mutant | None]


def _numbers(text: str) -> list[Quantity]:
    return [q for q in find_quantities(text) if q.value]


def _digits(quantity: Quantity) -> str:
    match = re.match(r"[\d.,]*\d", quantity.text)
    return match[0] if match else quantity.text


def _replace_number(text: str, quantity: Quantity, digits: str) -> str:
    end = quantity.start + len(_digits(quantity))
    return text[: quantity.start] + digits + text[end:]


def mutate_number(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """A number times 1.37."""
    del basis
    if not (numbers := _numbers(true.claim.text)):
        return None
    quantity = chance.choice(numbers)
    value = float(_digits(quantity).replace(",", "")) * 1.37
    said = f"{value:.0f}" if "." not in _digits(quantity) and value >= 3 else f"{value:.4g}"
    return _with_text(true, _replace_number(true.claim.text, quantity, said), said)


def mutate_nearby_number(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """Another number of the same evidence."""
    numbers = _numbers(true.claim.text)
    facts = [f for e in true.claim.evidence for f in basis.facts_by_evidence.get(e, ())]
    others = [d for f in facts for d in f.figures if d.value and not any(abs(float(d.value) - q.value) < 1e-9 for q in numbers)]  # fmt: skip
    if not numbers or not others:
        return None
    quantity, said = chance.choice(numbers), f"{float(chance.choice(others).value):.4g}"
    if "e" in said or quantity.low <= float(said) <= quantity.high:
        return None
    return _with_text(true, _replace_number(true.claim.text, quantity, said), said)


def mutate_number_word(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """A number as another number in words."""
    del basis
    if not (numbers := _numbers(true.claim.text)):
        return None
    quantity = chance.choice(numbers)
    word = chance.choice([*WORDS, "forty-seven", "a hundred and twelve", "ninety"])
    return _with_text(true, _replace_number(true.claim.text, quantity, word), word)


def mutate_time(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """A time moved by some minutes, inside the window."""
    del basis
    times = [t for t in scan_tokens(true.claim.text) if isinstance(t, TimeToken) and t.moment.grain < 86_400]
    if not times:
        return None
    token = chance.choice(times)
    found = re.search(r"\d{1,2}:\d{2}", token.moment.text)
    if found is None:
        return None
    minutes = int(found[0][-2:])
    moved = f"{found[0][:-2]}{(minutes + chance.choice([3, 4, 6, 7, 11])) % 60:02}"
    start = token.start + found.start()
    text = true.claim.text
    return _with_text(true, text[:start] + moved + text[start + len(found[0]) :], moved)


def _mentioned_subject(true: TrueClaim, basis: ConclusionBasis) -> str | None:
    subjects = {
        f.subject
        for facts in basis.facts_by_evidence.values()
        for f in facts
        if f.subject and " " not in f.subject
    }
    return next((s for s in sorted(subjects, key=len, reverse=True) if s in true.claim.text), None)  # fmt: skip


def mutate_service_within(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """Another service of the same evidence."""
    subject = _mentioned_subject(true, basis)
    facts = [f for e in true.claim.evidence for f in basis.facts_by_evidence.get(e, ())]
    others = sorted({f.subject for f in facts if f.subject and " " not in f.subject and f.subject != subject})
    return _with_subject(true, subject, others, chance)


def mutate_service_beyond(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """A service of which the evidence says nothing."""
    return _with_subject(
        true, _mentioned_subject(true, basis), ["billing-gateway", "ledger-api", "search-index"], chance
    )


def _with_subject(
    true: TrueClaim, subject: str | None, others: Sequence[str], chance: random.Random
) -> Mutant | None:
    if not subject or not others:
        return None
    other = chance.choice(others)
    return _with_text(true, true.claim.text.replace(subject, other), other)


_OPPOSITE = {"rose": "fell", "climbed": "dropped", "went up": "went down", "fell": "rose", "dropped": "climbed",
             "went down": "went up", "grew": "shrank", "jumped": "fell", "higher": "lower", "later": "earlier",
             "before": "after", "more": "less", "slower": "faster"}  # fmt: skip


def mutate_direction(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """The opposite verb."""
    del basis, chance
    for word, other in _OPPOSITE.items():
        if re.search(rf"\b{word}\b", true.claim.text):
            return _with_text(true, re.sub(rf"\b{word}\b", other, true.claim.text, count=1), other)
    return None


def mutate_from_to(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """Two numbers changed places."""
    del basis, chance
    text = true.claim.text
    numbers = _numbers(text)
    if len(numbers) < 2 or _digits(numbers[0]) == _digits(numbers[1]):
        return None
    first, second = numbers[:2]
    swapped = _replace_number(_replace_number(text, second, _digits(first)), first, _digits(second))
    return _with_text(true, swapped, f"from {_digits(second)}")


def mutate_negation(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """The claim denied."""
    del basis
    negated, count = re.subn(r"\b(is|was|were|are|shows|rose|fell|climbed|dropped|failed|has|had|writes|logged|logs)\b", r"never \1", true.claim.text, count=1)  # fmt: skip
    if not count:
        negated = chance.choice(["It is not true that ", "There was no case in which "]) + true.claim.text
    return _with_text(true, negated, "never" if count else "not true")


def mutate_universal(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """Something about all others, which nobody looked at."""
    del basis
    tail = chance.choice([", and all other services were healthy", "; every other component was unaffected", ", only here and nowhere else"])  # fmt: skip
    return _with_text(true, true.claim.text.rstrip(".") + tail + ".", tail.split()[-1])


def mutate_cause_effect(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """Cause and effect changed places: of ids and op, or of two names in the sentence."""
    facts = [
        f for e in true.claim.evidence for f in basis.facts_by_evidence.get(e, ()) if f.at_seconds is not None
    ]
    distinct = [f for f in facts if f.at_seconds != facts[0].at_seconds] if facts else []
    if not distinct:
        return None
    first, second = sorted((facts[0], chance.choice(distinct)), key=lambda f: f.at_seconds or 0)
    claim = Claim(id="C1", facts=(second.id, first.id), op="before")
    return Mutant(claim, f"{second.at}")


def mutate_because(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """An invented reason."""
    del basis
    tail = chance.choice([" because the database was overloaded", " due to a memory leak", " because of a faulty deployment"])  # fmt: skip
    return _with_text(true, true.claim.text.rstrip(".") + tail + ".", tail.strip())


def mutate_evidence(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """Other evidence is cited: evidence that does not hold any fact of the same value."""
    own = {(f.measure, f.value) for e in true.claim.evidence for f in basis.facts_by_evidence.get(e, ())}
    others = [e for e, facts in basis.facts_by_evidence.items() if facts and not own & {(f.measure, f.value) for f in facts}]  # fmt: skip
    if not others or not _numbers(true.claim.text):
        return None
    return Mutant(true.claim.model_copy(update={"evidence": (chance.choice(others),)}), "")


def mutate_unit(true: TrueClaim, basis: ConclusionBasis, chance: random.Random) -> Mutant | None:
    """Another unit on the same number."""
    del basis
    swaps = {" ms": " s", " s": " min", " %": " x", "%": "x", " GiB": " MiB", " bytes": " GB"}
    plain = list(_numbers(true.claim.text))
    if not plain:
        return None
    quantity = chance.choice(plain)
    number = _digits(quantity)
    tail = true.claim.text[quantity.start + len(number) :]
    for unit, other in swaps.items():
        if re.match(rf"{re.escape(unit)}(?![A-Za-z])", tail):
            text = true.claim.text[: quantity.start] + number + other + tail[len(unit) :]
            return _with_text(true, text, number + other)
    if re.match(r"[ .,;)]", tail) and not re.match(r" (?:of|times)", tail):
        other = chance.choice([" GB", " hours", " ms"])
        return _with_text(true, true.claim.text[: quantity.start] + number + other + tail, number + other)
    return None


def _with_text(true: TrueClaim, text: str, false: str) -> Mutant | None:
    if text == true.claim.text:
        return None
    return Mutant(true.claim.model_copy(update={"text": text}), false)


MUTATIONS: dict[str, Mutation] = {
    "number": mutate_number,
    "nearby number": mutate_nearby_number,
    "number in words": mutate_number_word,
    "time": mutate_time,
    "service within": mutate_service_within,
    "service beyond": mutate_service_beyond,
    "direction": mutate_direction,
    "from/to": mutate_from_to,
    "negation": mutate_negation,
    "universal": mutate_universal,
    "cause and effect": mutate_cause_effect,
    "because": mutate_because,
    "other evidence": mutate_evidence,
    "unit": mutate_unit,
}

"""True claims made by program: facts said in other words, precisions, units and zones than code renders them in."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from opsleuth.state.conclusion import Claim
from opsleuth.verification.conclusion_basis import ConclusionBasis
from opsleuth.verification.facts import Fact

A_CASE = 24
"""Claims made by program of one case's facts, at most."""


class TrueClaim(NamedTuple):
    """A claim that is true of a case's evidence."""

    case: str
    claim: Claim
    made: bool


def make_true_claims(case: str, basis: ConclusionBasis, chance: random.Random) -> Iterator[TrueClaim]:
    """Paraphrases of the strongest facts of each result, in words that no renderer of ours uses."""
    made = 0
    for evidence, facts in basis.facts_by_evidence.items():
        for fact in facts[:5]:
            text = paraphrase_fact(fact, chance)
            if text and made < A_CASE:
                made += 1
                yield TrueClaim(case, Claim(id="C1", text=text, evidence=(evidence,)), made=True)
        if len(timed := [f for f in facts[:8] if f.at_seconds is not None and f.subject]) > 1:
            a, b = sorted(chance.sample(timed, 2), key=lambda f: f.at_seconds or 0)
            gap = (b.at_seconds or 0) - (a.at_seconds or 0)
            if gap >= 60 and gap % 60 == 0 and (a.subject, a.measure) != (b.subject, b.measure):
                text = f"{a.subject} ({_say_time(a.at, chance)}) was {gap / 60:.0f} minutes before {b.subject} ({_say_time(b.at, chance)})."
                yield TrueClaim(case, Claim(id="C1", text=text, evidence=(evidence,)), made=True)


def paraphrase_fact(fact: Fact, chance: random.Random) -> str | None:
    """One fact said in one of several ways; None for facts without a subject or a figure."""
    if not fact.subject or not isinstance(fact.value, int | float):
        return None
    value, at = _say_figure(fact.value, fact.unit, chance), _say_time(fact.at, chance)
    when = chance.choice([f", from {at}", f" since {at}", f" ({at})"]) if at else ""
    name = fact.measure.replace("_", " ") if chance.random() < 0.4 else fact.measure
    if fact.before is not None and fact.before != fact.value:
        before = _say_figure(fact.before, fact.unit, chance)
        verb = chance.choice(
            ["rose", "climbed", "went up"] if fact.change > 0 else ["fell", "dropped", "went down"]
        )
        return chance.choice(
            [
                f"{fact.subject}: {name} {verb} from {before} to {value}{when}.",
                f"{fact.subject} now shows {value} of {name}; the usual level is {before}{when}.",
                f"The {name} of {fact.subject} {verb} to {value} against {before} normally{when}.",
            ]
        )
    return chance.choice(
        [
            f"{fact.subject} shows {value} for {name}{when}.",
            f"We see {name} of {value} on {fact.subject}{when}.",
            f"For {fact.subject} the {name} is {value}{when}.",
        ]
    )


def _say_figure(value: float, unit: str, chance: random.Random) -> str:
    if unit == "share":
        return f"{value * 100:.{chance.choice([1, 2])}f} %" if value * 100 >= 0.1 else f"{value:.4g}"
    if unit == "s" and value < 1 and chance.random() < 0.5:
        return f"{value * 1000:.3g} ms" if value else "0 s"
    said = f"{value:,}" if isinstance(value, int) else f"{value:.{chance.choice([3, 4])}g}"
    if "e" in said:
        said = f"{value:,.0f}"
    word = {"Milliseconds": "ms", "Percent": "%", "Count": ""}.get(unit, unit)
    return f"{said} {word}".strip()


def _say_time(at: str | None, chance: random.Random) -> str:
    if not at:
        return ""
    moment = datetime.fromisoformat(at)
    east = moment.astimezone(timezone(timedelta(hours=2)))
    return chance.choice(
        [
            at,
            moment.astimezone(UTC).strftime("%H:%M:%SZ"),
            moment.astimezone(UTC).strftime("%H:%MZ"),
            east.strftime("%Y-%m-%dT%H:%M:%S+02:00"),
            moment.astimezone(UTC).strftime("%d %b %Y %H:%M:%S +0000"),
        ]
    )


def make_true_reasons(case: str, basis: ConclusionBasis) -> Iterator[TrueClaim]:
    """Inferred sentences over facts that moved, as a planner submits them: `facts` and `say`, figures as slots alone."""
    for facts in basis.facts_by_evidence.values():
        moved = [f for f in facts[:5] if f.change and f.subject]
        for fact in moved[:2]:
            verb = "rose" if fact.change > 0 else "fell"
            say = f"{fact.subject} is where it shows first: {{{fact.id}}} {verb} there."
            yield TrueClaim(case, Claim(id="C1", facts=(fact.id,), say=say), made=True)

"""What code computes from facts: order, ratio, difference, duration, count, absence, "all of", "as usual".

Each operation returns what to say, or why it cannot be said of these facts.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from opsleuth.state.conclusion import ClaimOperation
from opsleuth.verification.fact_wording import (
    NEUTRAL,
    WORDING,
    join_facts,
    name_fact,
    render_fact,
)
from opsleuth.verification.facts import Fact, SearchScope
from opsleuth.verification.value_format import format_gap, format_number, format_value

SAME_LEVEL = 0.1
"""A value within a tenth of the usual one is as usual, where no spread is recorded."""

AllFacts = Mapping[str, Sequence[Fact]]
"""The facts of every piece of evidence that is cited, by its id: `all_of` needs to know what else there was."""


class ComputedStatement(NamedTuple):
    """What an operation gives: `text` in the language asked for, or `problem` where it does not hold."""

    text: str = ""
    problem: str = ""


def compute_operation(
    op: ClaimOperation, facts: Sequence[Fact], everything: AllFacts, language: str = "en"
) -> ComputedStatement:
    """Compute `op` of the facts and say it; the order of the facts matters for before, ratio and difference."""
    return _OPERATIONS[op](facts, everything, WORDING.get(language, WORDING[NEUTRAL]), language)


def _compute_before(
    facts: Sequence[Fact], _: AllFacts, words: Mapping[str, str], language: str
) -> ComputedStatement:
    pair = _pair_of_times(facts)
    if isinstance(pair, str):
        return ComputedStatement(problem=pair)
    (first, a), (second, b) = pair
    if a > b:
        return ComputedStatement(
            problem=f"{first.id} ({first.at}) is not before {second.id} ({second.at}): it comes {format_gap(a - b)} after it"
        )
    form = words["simultaneous"] if a == b else words["earlier"]
    said = form.format(
        first=render_fact(first, language), gap=format_gap(b - a), second=name_fact(second, language)
    )
    return _with_rest(said, facts[2:], language)


def _pair_of_times(facts: Sequence[Fact]) -> tuple[tuple[Fact, float], tuple[Fact, float]] | str:
    if len(facts) < 2:
        return "needs two facts that have a time"
    timed = [(fact, fact.at_seconds) for fact in facts[:2]]
    for fact, seconds in timed:
        if seconds is None:
            return f"{fact.id} has no time of its own: use a fact that says when"
    (a, at_a), (b, at_b) = timed
    return (a, at_a or 0.0), (b, at_b or 0.0)


def _compute_ratio(
    facts: Sequence[Fact], _: AllFacts, words: Mapping[str, str], language: str
) -> ComputedStatement:
    pair = pair_of_values(facts)
    if isinstance(pair, str):
        return ComputedStatement(problem=pair)
    a, b = pair
    if b == 0:
        return ComputedStatement(problem="cannot divide by a value of 0: use difference")
    number = format_number(a / b)
    if len(facts) == 1:
        return ComputedStatement(
            words["own_ratio"].format(fact=render_fact(facts[0], language), number=number)
        )
    said = words["ratio"].format(first=render_fact(facts[0], language), number=number, second=name_fact(facts[1], language))  # fmt: skip
    return _with_rest(said, facts[2:], language)


def _compute_difference(
    facts: Sequence[Fact], _: AllFacts, words: Mapping[str, str], language: str
) -> ComputedStatement:
    pair = pair_of_values(facts)
    if isinstance(pair, str):
        return ComputedStatement(problem=pair)
    number = format_value(pair[0] - pair[1], facts[0].unit)
    if len(facts) == 1:
        return ComputedStatement(
            words["own_difference"].format(fact=render_fact(facts[0], language), number=number)
        )
    said = words["difference"].format(first=render_fact(facts[0], language), number=number, second=name_fact(facts[1], language))  # fmt: skip
    return _with_rest(said, facts[2:], language)


def pair_of_values(facts: Sequence[Fact]) -> tuple[float, float] | str:
    """The two figures of one fact (now, usual) or of the first two facts, if they have one unit; else why not."""
    if not facts:
        return "needs one fact with a usual value, or two facts"
    first = facts[0]
    if not isinstance(first.value, int | float):
        return f"{first.id} has no figure"
    if len(facts) == 1:
        if first.before is None:
            return f"{first.id} has no usual value to compare with: give a second fact"
        return first.value, first.before
    second = facts[1]
    if not isinstance(second.value, int | float):
        return f"{second.id} has no figure"
    if first.unit != second.unit:
        return f"{first.id} is in {first.unit or 'no known unit'}, {second.id} in {second.unit or 'no known unit'}: compare one unit"
    return first.value, second.value


def _compute_duration(
    facts: Sequence[Fact], _: AllFacts, words: Mapping[str, str], language: str
) -> ComputedStatement:
    if len(facts) == 1:
        times = sorted({seconds for d in facts[0].times if (seconds := d.seconds) is not None})
        if len(times) < 2:
            return ComputedStatement(problem=f"{facts[0].id} has fewer than two times: give a second fact")
        gap = format_gap(times[-1] - times[0])
        return ComputedStatement(words["own_duration"].format(fact=render_fact(facts[0], language), gap=gap))
    pair = _pair_of_times(facts)
    if isinstance(pair, str):
        return ComputedStatement(problem=pair)
    (first, a), (second, b) = pair
    said = words["duration"].format(
        first=render_fact(first, language), second=name_fact(second, language), gap=format_gap(b - a)
    )
    return _with_rest(said, facts[2:], language)


def _compute_count(
    facts: Sequence[Fact], _: AllFacts, words: Mapping[str, str], language: str
) -> ComputedStatement:
    if not facts:
        return ComputedStatement(problem="needs the facts that are counted")
    if len(facts) == 1 and facts[0].searched:
        return ComputedStatement(render_fact(facts[0], language))
    number, names = _count_rows(facts)
    return ComputedStatement(words["count"].format(number=number, list=names))


def _count_rows(facts: Sequence[Fact]) -> tuple[int, str]:
    """How many rows these are, each once, and their names; rows of equal words count each, and are named together."""
    rows = {fact.id: fact for fact in facts}
    names = Counter(_short_name(fact) for fact in rows.values())
    listed = ", ".join(name if times == 1 else f"{name} (× {times})" for name, times in names.items())
    return len(rows), listed


def _short_name(fact: Fact) -> str:
    value = format_value(fact.value, fact.unit, longest=60)
    return f"{fact.subject} {value}" if fact.subject else value


def _compute_absent(
    facts: Sequence[Fact], _: AllFacts, words: Mapping[str, str], _language: str
) -> ComputedStatement:
    if not facts:
        return ComputedStatement(problem="needs the search that found nothing")
    said = []
    for fact in facts:
        if fact.searched is None:
            return ComputedStatement(
                problem=f"{fact.id} is not a search: cite one that matched 0 of what it scanned"
            )
        if fact.searched.matched:
            return ComputedStatement(problem=f"{fact.id} matched {fact.searched.matched} of {fact.searched.rows}: nothing is absent there")  # fmt: skip
        if not fact.searched.complete:
            return ComputedStatement(problem=_name_gaps(fact))
        said.append(_say_absence(fact, fact.searched, words))
    return ComputedStatement("; ".join(said))


def _say_absence(fact: Fact, scope: SearchScope, words: Mapping[str, str]) -> str:
    criteria = ", ".join(f"{key} {value}" for key, value in scope.criteria)
    where = words["where"].format(criteria=criteria) if criteria else ""
    return words["absent"].format(measure=fact.measure, where=where, rows=format_number(scope.rows))


def _name_gaps(fact: Fact) -> str:
    gaps = "; ".join(fact.searched.gaps) if fact.searched else ""
    return f"{fact.id} did not go through everything ({gaps}): say what was not read, or search that"


def _compute_all_of(
    facts: Sequence[Fact], everything: AllFacts, words: Mapping[str, str], _language: str
) -> ComputedStatement:
    numeric = [fact for fact in facts if fact.searched is None]
    if not numeric:
        return ComputedStatement(problem="needs the facts of which it is said")
    for evidence in dict.fromkeys(fact.evidence for fact in numeric):
        own = everything.get(evidence, ())
        scopes = [fact for fact in own if fact.searched]
        if not scopes:
            return ComputedStatement(
                problem=f"{evidence} does not say how much it searched: name the single facts"
            )
        if not all(fact.searched and fact.searched.complete for fact in scopes):
            return ComputedStatement(problem=_name_gaps(scopes[0]))
        kin = {_list_of(fact) for fact in numeric if fact.evidence == evidence}
        left = [
            fact.id for fact in own if not fact.searched and _list_of(fact) in kin and fact not in numeric
        ]
        if left:
            return ComputedStatement(
                problem=f"leaves out {', '.join(left[:8])} of {evidence}: name all of them"
            )
    if len({(fact.measure, _state_of(fact)) for fact in numeric}) > 1:
        return ComputedStatement(problem="the facts do not agree: name those that do")
    number, names = _count_rows(numeric)
    return ComputedStatement(words["all_of"].format(number=number, list=names))


def _list_of(fact: Fact) -> str:
    """The list of the record that the fact is a row of."""
    return fact.path.split("/")[1] if "/" in fact.path else ""


def _state_of(fact: Fact) -> object:
    """What has to be equal: the value, or for replicas whether all that are wanted are ready."""
    wanted = next((d.value for d in fact.details if d.name == "desired"), None)
    return ("complete", fact.value == wanted) if wanted is not None else fact.value


def _compute_same_as_usual(
    facts: Sequence[Fact], everything: AllFacts, words: Mapping[str, str], language: str
) -> ComputedStatement:
    if not facts:
        return ComputedStatement(problem="needs the fact that is as usual")
    for fact in facts:
        if problem := _find_departure(fact, everything.get(fact.evidence, ())):
            return ComputedStatement(problem=problem)
    return ComputedStatement(
        "; ".join(words["same_as_usual"].format(fact=render_fact(f, language)) for f in facts)
    )


def _find_departure(fact: Fact, own: Sequence[Fact]) -> str:
    """Why the fact is not as usual, or cannot be told to be."""
    if fact.direction == "healthy":
        return ""
    if not isinstance(fact.value, int | float) or fact.before is None:
        return f"{fact.id} has no usual value to compare with"
    low, high = _usual_range(own)
    if low is not None and high is not None:
        inside = low <= fact.value <= high
    else:
        inside = abs(fact.value - fact.before) <= SAME_LEVEL * max(abs(fact.before), 1e-12)
    if inside:
        return ""
    return f"{fact.id} went from {format_value(fact.before, fact.unit)} to {format_value(fact.value, fact.unit)}: that is not as usual"


def _usual_range(own: Sequence[Fact]) -> tuple[float | None, float | None]:
    def find_level(name: str) -> float | None:
        found = (f.value for f in own if f.path in (f"/baseline/{name}", f"/before_window/{name}"))
        return next((value for value in found if isinstance(value, int | float)), None)

    return find_level("min"), find_level("max")


def _with_rest(said: str, rest: Sequence[Fact], language: str) -> ComputedStatement:
    return ComputedStatement(f"{said}; {join_facts(rest, language)}" if rest else said)


_Operation = Callable[[Sequence[Fact], AllFacts, Mapping[str, str], str], ComputedStatement]
_OPERATIONS: dict[ClaimOperation, _Operation] = {
    "before": _compute_before,
    "ratio": _compute_ratio,
    "difference": _compute_difference,
    "duration": _compute_duration,
    "count": _compute_count,
    "absent": _compute_absent,
    "all_of": _compute_all_of,
    "same_as_usual": _compute_same_as_usual,
}

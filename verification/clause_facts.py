"""Which facts one clause of a sentence means: the one that holds its figures in their roles, and what may stand beside it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from opsleuth.verification.fact_matching import (
    SentenceToken,
    base_measure,
    find_tally_name,
    holds_token,
    is_main_value,
    split_into_words,
    subject_names,
)
from opsleuth.verification.facts import Fact
from opsleuth.verification.figure_roles import (
    SentenceContext,
    belongs_to_clause,
    count_level_words,
    find_called_name,
    holds_in_role,
    is_main_or_named,
    is_named_with_its_row,
)
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.record_facts import normalize_for_matching

_PLAIN_MEASURES = frozenset({"anomalies", "patterns", "statements", "operations"})


class ClauseNeeds(NamedTuple):
    """What one clause needs facts for: its tokens and words, and the facts that it may take them from."""

    tokens: Sequence[SentenceToken]
    text: str
    words: frozenset[str]
    allowed: Sequence[Fact]
    sentence: SentenceContext
    named: Sequence[str]


def choose_facts(wanted: ClauseNeeds, chosen: list[Fact]) -> list[SentenceToken]:
    """Add to `chosen` the fact that holds the clause's tokens, and others of its series or row; back come the tokens that are left."""
    open_ = list(wanted.tokens)
    times = [t for t in open_ if t.moment is not None]
    candidates = [f for f in wanted.allowed if not (name := find_tally_name(f)) or name in wanted.words]
    candidates = [
        f for f in _keep_facts_of_named_measures(wanted.text, candidates) if _is_at_one_of(f, times)
    ]
    candidates = [f for f in candidates if _is_of_named_subject(f, wanted)]
    candidates = [*_keep_facts_of_called_numbers(wanted, candidates)]
    first: Fact | None = None
    while open_:
        held = {f.id: [t for t in open_ if holds_in_role(f, t, wanted.sentence)] for f in candidates}
        best = max(candidates, key=lambda f: _rank_fact(f, held[f.id], wanted.words, chosen), default=None)
        if best is None or not held[best.id]:
            break
        if first and all(t.moment for t in held[best.id]) and not _may_add_time(best, first, wanted):
            break
        further = first is not None or (bool(chosen) and best not in chosen)
        if further and not _may_add_figures(best, held[best.id], wanted):
            candidates = [f for f in candidates if f is not best]
            continue
        if best not in chosen and _is_ambiguous(best, held[best.id], candidates, wanted):
            break
        open_ = [t for t in open_ if t not in held[best.id]]
        if best not in chosen:
            chosen.append(best)
        if first is None:
            first = best
            candidates = [f for f in candidates if _belong_together(first, f, wanted.text)]
    return open_


def _is_of_named_subject(fact: Fact, wanted: ClauseNeeds) -> bool:
    """Whether the fact is of a component that the sentence names, where it names any that has facts; or of none."""
    if not fact.subject or not wanted.named:
        return True
    return any(_is_subject_of(name.casefold(), fact.subject.casefold()) for name in wanted.named)


def _is_subject_of(name: str, subject: str) -> bool:
    """Whether a subject is the named component or an object of it: `web-5d4f-x7gr9` is of `web`, `web-proxy-5d4f` is not."""
    if not name_occurs_in(name, [subject]):
        return False
    rest = subject.rpartition(name)[2]
    if not subject.startswith(("pod", "replicaset")) or not rest.startswith("-"):
        return True
    return any(c.isdigit() for c in rest.split("-")[1])


def _may_add_figures(fact: Fact, held: Sequence[SentenceToken], wanted: ClauseNeeds) -> bool:
    """Whether another fact is meant, judged by the figures it adds to the clause."""
    figures = [t for t in held if t.quantity is not None]
    return not figures or any(
        is_main_or_named(fact, t, wanted.sentence) and belongs_to_clause(fact, t, wanted.sentence)
        for t in figures
    )


def _is_ambiguous(
    best: Fact, held: Sequence[SentenceToken], candidates: Sequence[Fact], wanted: ClauseNeeds
) -> bool:
    """Whether only one figure tells the fact from another row of the same measure: then it could be either's."""
    figures = [t for t in held if t.quantity is not None]
    if len(figures) != 1 or len([t for t in figures if t.quantity and t.quantity.value]) > 1:
        return False
    token = figures[0]
    if is_named_with_its_row(best, token, wanted.sentence):
        return False
    own = _count_signs(best, token, wanted)
    return any(
        base_measure(other) == base_measure(best)
        and isinstance(other.value, int | float)
        and not holds_token(other, token)
        and _count_signs(other, token, wanted) >= own
        for other in candidates
        if other is not best
    )


def _count_signs(fact: Fact, token: SentenceToken, wanted: ClauseNeeds) -> int:
    """What of a clause points at the fact, apart from one figure: times, quotations, other figures, names and words."""
    others = [t for t in wanted.tokens if t is not token and (t.quantity is None or t.quantity.value)]
    said = wanted.sentence.text.casefold()
    return (
        2 * sum(holds_token(fact, t) for t in others)
        + 2 * any(name_occurs_in(n, [said]) for n in subject_names(fact))
        + len(wanted.words & split_into_words(fact.label))
        + count_level_words(fact, token, wanted.sentence)
    )


def _may_add_time(fact: Fact, first: Fact, wanted: ClauseNeeds) -> bool:
    """Whether a fact that gives only a time more belongs to the clause: by a figure too, or as another component that it names."""
    if any(t.quantity is not None and holds_token(fact, t) for t in wanted.tokens):
        return True
    said = normalize_for_matching(wanted.text)
    return fact.subject != first.subject and any(name_occurs_in(n, [said]) for n in subject_names(fact))


def _is_at_one_of(fact: Fact, times: Sequence[SentenceToken]) -> bool:
    """Whether a clause with these times may be about the fact: it has one of them, or no time of its own."""
    return not times or fact.at is None or any(holds_token(fact, token) for token in times)


def _keep_facts_of_named_measures(text: str, candidates: Sequence[Fact]) -> Sequence[Fact]:
    """The facts whose measure the clause calls by name, where it does so with one that has the shape of a name."""
    lowered = text.casefold()

    def is_named(measure: str) -> bool:
        return any(form in lowered for form in {measure.casefold(), measure.casefold().replace("_", " ")})

    whole = {f.measure for f in candidates if " " in f.measure and is_named(f.measure)}
    whole |= {f.measure for f in candidates if f.measure in _PLAIN_MEASURES and is_named(f.measure)}
    if whole:
        return [f for f in candidates if f.measure in whole]
    bases = {base_measure(f) for f in candidates} - {"log_line"}  # also what people call what a search counts
    named = {base for base in bases if re.search(r"[_.]|[a-z][A-Z]", base) and is_named(base)}
    if not named:
        return candidates
    exact = {base for base in named if "_" in base and base.casefold() in lowered}
    if exact and any(base_measure(f) in exact for f in candidates):
        return [f for f in candidates if base_measure(f) in named]
    forms = {form for n in named for form in (n.casefold(), n.casefold().replace("_", " "))}
    return [f for f in candidates if base_measure(f) in named or any(form in f.label for form in forms)]


def _keep_facts_of_called_numbers(wanted: ClauseNeeds, candidates: Sequence[Fact]) -> Sequence[Fact]:
    """The facts whose measure or figure has the name that the clause gives its number, if that is a measure at all."""
    called = {find_called_name(token, wanted.sentence) for token in wanted.tokens}
    called &= {base_measure(f).casefold() for f in candidates if f.subject}
    if not called:
        return candidates
    return [
        f
        for f in candidates
        if base_measure(f).casefold() in called
        or any(d.name.rpartition(".")[2].casefold() in called for d in f.figures)
    ]


def _belong_together(first: Fact, other: Fact, text: str) -> bool:
    """Whether two facts may answer one clause: one series, a search and its lines, one subject at one time or in one text."""
    if first is other:
        return True
    if first.evidence != other.evidence:
        return first.subject == other.subject and first.measure == other.measure
    if base_measure(first) == base_measure(other) and first.subject == other.subject:
        return first.path.split("/")[1:2] == ["points"] or first.measure != other.measure
    if base_measure(first) == base_measure(other):
        return all(name_occurs_in(n, [normalize_for_matching(text)]) for n in subject_names(other))
    if {first.measure, other.measure} == {"lines_matching", "log_line"}:
        return True
    return (
        bool(first.subject)
        and first.subject == other.subject
        and first.at == other.at
        and first.at is not None
    )


def _rank_fact(
    fact: Fact, held: Sequence[SentenceToken], words: frozenset[str], chosen: Sequence[Fact]
) -> tuple[int, bool, int, int]:
    """How well a fact answers a clause: tokens that it holds, chosen already, as its own value, in the same words."""
    own = sum(is_main_value(fact, t) for t in held)
    return len(held), fact in chosen, own, len(words & split_into_words(fact.label)) if held else 0

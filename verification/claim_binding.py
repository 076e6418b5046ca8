"""From prose to facts: which facts a sentence's figures, times and quotations stand in, and which operation gives the rest.

What is bound is said in code's words afterwards, so a wrong verb, a universal or an invented reason has no place to
stand. A sentence about one component with another's figure is refused, not bound.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from opsleuth.state.conclusion import ClaimOperation
from opsleuth.verification import sentence_assertions
from opsleuth.verification.clause_facts import ClauseNeeds, choose_facts
from opsleuth.verification.derived_facts import derive_figure
from opsleuth.verification.fact_matching import (
    SentenceToken,
    holds_quote,
    holds_token,
    split_into_words,
    subject_names,
)
from opsleuth.verification.facts import MOST_SHOWN, Fact
from opsleuth.verification.figure_roles import SentenceContext, holds_in_role
from opsleuth.verification.grounding import fits_quantity
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.number_attribution import NamingClause, split_into_clauses
from opsleuth.verification.quantities import Quantity, TimeToken, find_quantities, scan_tokens
from opsleuth.verification.record_facts import normalize_for_matching
from opsleuth.verification.spoken_measures import is_of_spoken_measure
from opsleuth.verification.written_times import matches_written_time

MOST_BOUND = 6
MOST_COUNTED = 20


_OWN_CLAUSE = 3
"""Words that make a clause with times more than a note to the clause before it, such as `(09:00Z)`."""


_QUOTE = re.compile(
    r"`([^`\n]{8,400})`|\"([^\"\n]{8,400})\"|“([^”\n]{8,400})”|「([^」\n]{8,400})」|„([^“”\n]{8,400})[“”]"
)


_ORDER = re.compile(
    r"\b(?:before|earlier|prior to|preced\w+|ahead of|after|later|follow\w+|since then|vor|nach|später|früher)\b|之前|之后|早于|晚于|先于",
    re.IGNORECASE,
)


_KNOWN_FROM_OUTSIDE = re.compile(
    r"\b(?:alert\w*|threshold|limit|allow\w*|permitted|SLO|target|objective|Alarm\w*|Schwelle\w*|erlaubt)\b|告警|阈值|允许|上限",
    re.IGNORECASE,
)


class Binding(NamedTuple):
    """The facts of a sentence and the operation between them; `loose` are tokens that no fact gives, `wrong` why it is refused."""

    facts: tuple[Fact, ...] = ()
    op: ClaimOperation | None = None
    loose: tuple[str, ...] = ()
    wrong: str = ""


def bind_prose(
    text: str,
    facts: Sequence[Fact],
    known: Collection[str],
    window: tuple[float, float],
    given: str = "",
    *,
    absence: bool = True,
) -> Binding:
    """Bind a sentence to `facts`; `window` in seconds since the epoch; `given` is the alert, whose limits may be compared with.

    Without `absence` a sentence that says what is not there is bound by its figures alone.
    """
    if whole := find_whole_sentence(text, facts):
        return Binding((whole,))
    tokens = _find_tokens(text, facts)
    if graded := _find_graded_change(text, tokens, facts):
        return Binding((graded,))
    if (
        absence
        and sentence_assertions.claims_absence(text)
        and (searches := _find_empty_searches(text, facts, known))
    ):
        stated = [t for t in tokens if t.quantity and not any(holds_token(f, t) for f in searches)]
        if not stated:
            return Binding(tuple(searches), "absent")
    chosen: list[Fact] = []
    loose: list[tuple[SentenceToken, Sequence[Fact]]] = []
    clauses = list(split_into_clauses(_hide_borders(text), {*known, *_collect_subjects(facts)}))
    context = SentenceContext(text, tokens)
    subjects = {subject.casefold() for subject in _collect_subjects(facts)}
    named = [n for clause in clauses for n in clause.names if n.casefold() in subjects]
    for clause, own_tokens in _share_tokens(clauses, tokens):
        allowed, wrong = _facts_of_clause(clause, own_tokens, facts, context)
        if wrong:
            return Binding(wrong=wrong)
        said = clause.text if clause else text
        wanted = ClauseNeeds(own_tokens, said, split_into_words(said), allowed, context, named)
        before = len(chosen)
        loose += [(token, allowed) for token in choose_facts(wanted, chosen)]
        if word := _find_opposite_direction(said, chosen[before:]):
            fact = chosen[before]
            if is_of_spoken_measure(fact, said, word, own_tokens):
                return Binding(
                    wrong=f'"{word}" is not what {fact.id} says: from {fact.before:g} to {fact.value:g}'
                )
            chosen.pop()
            loose += [(token, allowed) for token in own_tokens if holds_token(fact, token)]
    return _complete_binding(text, chosen, loose, facts, window, given)


def _hide_borders(text: str) -> str:
    """The text without the punctuation inside its quotations, which ends no clause; all places stay."""
    return _QUOTE.sub(lambda match: re.sub(r"[,;:.()，；：。（）]", " ", match[0]), text)


def _complete_binding(
    text: str,
    chosen: list[Fact],
    loose: Sequence[tuple[SentenceToken, Sequence[Fact]]],
    facts: Sequence[Fact],
    window: tuple[float, float],
    given: str,
) -> Binding:
    """What an operation gives of the tokens that appear in no fact."""
    op: ClaimOperation | None = None
    left: list[str] = []
    for token, allowed in loose:
        if _is_window_edge(token, window) or _follows_from_given(token, text, chosen, given):
            continue
        derived = derive_figure(token, text, chosen, allowed, facts)
        if (
            derived is not None
            and derived.op == "duration"
            and not _are_stated_times(derived.facts, text, facts)
        ):
            derived = None
        if derived is None:
            left.append(token.text)
        elif op is None:
            op = derived.op
            chosen[:] = [*derived.facts, *(f for f in chosen if f not in derived.facts)]
        else:
            chosen += [f for f in derived.facts if f not in chosen]
    if op in (None, "duration") and (pair := _ordered_pair(text, chosen)):
        op = "before"
        chosen[:] = [*pair, *(f for f in chosen if f not in pair)]
    return Binding(tuple(chosen[: MOST_COUNTED if op == "count" else MOST_BOUND]), op, tuple(left))


def _are_stated_times(ends: Sequence[Fact], text: str, facts: Sequence[Fact]) -> bool:
    """Whether a duration lies between the times that the sentence states, as far as it states any."""
    times = [t for t in _find_tokens(text, facts) if t.moment is not None]
    met = sum(any(holds_token(fact, t) for t in times) for fact in ends)
    return met >= min(len(times), len(ends))


def find_holding_fact(written: str, facts: Sequence[Fact]) -> Fact | None:
    """The first fact that has a figure or time as it is written, whatever it is there."""
    return next((f for t in _find_tokens(written, facts) for f in facts if holds_token(f, t)), None)


def find_whole_sentence(text: str, facts: Sequence[Fact]) -> Fact | None:
    """The fact whose own sentence this is: a detector's finding or a note, taken over word by word."""
    said = normalize_for_matching(text).strip().rstrip(".")
    return next(
        (f for f in facts if f.text and normalize_for_matching(f.text).strip().rstrip(".") == said), None
    )


def _find_graded_change(text: str, tokens: Sequence[SentenceToken], facts: Sequence[Fact]) -> Fact | None:
    """The graded change whose reason appears in the sentence word by word, and that alone has all its figures and times."""
    said = normalize_for_matching(text)
    for fact in facts:
        why = next((str(d.value) for d in fact.details if d.name == "why" and d.path), "")
        if fact.measure == "change" and why and normalize_for_matching(why) in said:
            named = all(name_occurs_in(name, [said]) for name in subject_names(fact))
            if named and all(holds_token(fact, token) for token in tokens):
                return fact
    return None


def _find_tokens(text: str, facts: Sequence[Fact]) -> list[SentenceToken]:
    """Quotations that appear in a fact or hold figures, and the figures and times outside of them."""
    tokens = []
    for match in _QUOTE.finditer(text):
        words = next(group for group in match.groups() if group)
        if any(holds_quote(fact, words) for fact in facts) or any(c.isdigit() for c in words):
            tokens.append(SentenceToken(words, match.start(), match.end(), quote=words))
    quoted = [*((t.start, t.end) for t in tokens), *_find_spoken_names(text, facts)]
    tokens += [
        SentenceToken(q.text, q.start, q.end, quantity=q)
        for q in find_quantities(text, words=True)
        if not any(a <= q.start < b for a, b in quoted)
    ]
    tokens += [
        SentenceToken(t.moment.text, t.start, t.end, moment=t.moment)
        for t in scan_tokens(text)
        if isinstance(t, TimeToken) and not any(a <= t.start < b for a, b in quoted)
    ]
    return sorted(tokens, key=lambda t: t.start)


def _find_spoken_names(text: str, facts: Sequence[Fact]) -> Iterator[tuple[int, int]]:
    """Where measures stand whose names hold digits (`http 401 ratio` for `http_401_ratio`): these are no figures."""
    for measure in {fact.measure for fact in facts if "_" in fact.measure}:
        if any(c.isdigit() for c in measure):
            spoken = re.compile(re.escape(measure.replace("_", " ")), re.IGNORECASE)
            yield from (match.span() for match in spoken.finditer(text))


def _collect_subjects(facts: Sequence[Fact]) -> set[str]:
    return {part for fact in facts for part in subject_names(fact)}


def _share_tokens(
    clauses: Sequence[NamingClause], tokens: Sequence[SentenceToken]
) -> Iterator[tuple[NamingClause | None, list[SentenceToken]]]:
    """The tokens of each clause that is about something; a clause of times alone belongs to the one before it."""
    shared: list[tuple[NamingClause | None, list[SentenceToken]]] = []
    left = list(tokens)
    for i, clause in enumerate(clauses):
        end = clause.start + len(clause.text)
        own = [
            t
            for t in left
            if (t.start < end and t.start >= clause.start) or (i == 0 and t.start < clause.start)
        ]
        left = [t for t in left if t not in own]
        bare = all(t.moment for t in own) and len(split_into_words(clause.text)) < _OWN_CLAUSE
        if own and bare and shared and shared[-1][0] and shared[-1][0].names == clause.names:
            shared[-1][1].extend(own)
        elif own:
            shared.append((clause, own))
    yield from shared
    if left:
        yield None, left


def _facts_of_clause(
    clause: NamingClause | None, tokens: Sequence[SentenceToken], facts: Sequence[Fact], said: SentenceContext
) -> tuple[Sequence[Fact], str]:
    """The facts that a clause may take its figures from, those that mention all its names first; or whose figure it took."""
    if clause is None:
        return facts, ""
    scores = {fact.id: sum(name_occurs_in(name, [fact.label]) for name in clause.names) for fact in facts}
    own = sorted((f for f in facts if scores[f.id]), key=lambda f: -scores[f.id])
    everyone = _collect_subjects(facts)
    named = [n for n in clause.names if any(n.casefold() == s.casefold() for s in everyone)]
    numbers = [t for t in tokens if t.quantity]
    if not named and not own:
        return facts, ""
    if not named:
        return [*own, *(f for f in facts if not scores[f.id])], ""
    of_named = [f for f in own if any(name_occurs_in(n, [f.label]) for n in named)]
    neutral = [f for f in facts if not f.subject and not scores[f.id]]
    if not any(name_occurs_in(n, [normalize_for_matching(clause.text)]) for n in clause.names):
        return [*of_named, *(f for f in facts if f not in of_named)], ""  # it only goes on about them
    allowed = [*of_named, *neutral]
    for token in numbers:
        foreign = next(
            (f for f in facts if f.subject and f not in of_named and holds_in_role(f, token, said)), None
        )
        if (
            foreign
            and not any(holds_token(f, token) for f in allowed)
            and derive_figure(token, said.text, allowed[:MOST_SHOWN], allowed, allowed) is None
        ):
            return (
                (),
                f'"{token.text}" is not of {", ".join(named)}: {foreign.id} says it of {foreign.subject}',
            )
    return allowed, ""


def _find_empty_searches(text: str, facts: Sequence[Fact], known: Collection[str]) -> list[Fact]:
    """The searches that matched nothing and that are of what the sentence names."""
    searches = [f for f in facts if f.searched and f.searched.matched == 0]
    names = [n for c in split_into_clauses(text, {*known, *_collect_subjects(facts)}) for n in c.names]
    about = [f for f in searches if any(name_occurs_in(n, [f.label]) for n in names)]
    return (about or [f for f in searches if not f.subject])[:3]


def _is_window_edge(token: SentenceToken, window: tuple[float, float]) -> bool:
    return token.moment is not None and any(matches_written_time(token.moment, edge) for edge in window)


def _follows_from_given(token: SentenceToken, text: str, chosen: Sequence[Fact], given: str) -> bool:
    """A figure of the alert itself, or how many times as much as the alert allows a fact is."""
    if token.quantity is None or not given or not _KNOWN_FROM_OUTSIDE.search(text):
        return False
    limits = [q for q in find_quantities(given) if q.value]
    if any(fits_quantity(token.quantity, q.value) and _same_kind(token.quantity, q) for q in limits):
        return True
    values = [
        (float(d.value) * (d.units[0].factors[0] if d.units else 1.0)) for f in chosen for d in f.figures
    ]
    return any(
        unit.dimension in ("ratio", "share") and fits_quantity(token.quantity, value / (q.value * q.units[0].factors[0]) / unit.factors[0])
        for value in values
        for q in limits
        for unit in token.quantity.units
    )  # fmt: skip


def _same_kind(a: Quantity, b: Quantity) -> bool:
    return a.units[0].dimension == b.units[0].dimension or a.bare or b.bare


_MOVED_UP = re.compile(
    r"\b(?:rose|risen|increased|grew|climbed|jumped|surged|went up|stieg|gestiegen)(?: \w+){0,2} (?:from|to|by|von|auf|um)\b|升至|升到|增至|上升到",
    re.IGNORECASE,
)


_MOVED_DOWN = re.compile(
    r"\b(?:fell|fallen|dropped|decreased|declined|shrank|sank|went down|fiel|gefallen)(?: \w+){0,2} (?:from|to|by|von|auf|um)\b|降至|降到|减至|下降到",
    re.IGNORECASE,
)


def _find_opposite_direction(text: str, facts: Sequence[Fact]) -> str | None:
    """The words of a clause that say the opposite of what the one fact that it took has."""
    up, down = _MOVED_UP.search(text), _MOVED_DOWN.search(text)
    if len(facts) != 1 or not facts[0].change or bool(up) == bool(down):
        return None
    wrong = down if facts[0].change > 0 else up
    return wrong[0] if wrong else None


def _ordered_pair(text: str, chosen: Sequence[Fact]) -> tuple[Fact, Fact] | None:
    """Two facts with times of which the sentence says that one is before the other, the earlier first."""
    timed = [f for f in chosen if f.at_seconds is not None]
    if len(timed) != 2 or not _ORDER.search(text):
        return None
    a, b = sorted(timed, key=lambda f: f.at_seconds or 0.0)
    return a, b

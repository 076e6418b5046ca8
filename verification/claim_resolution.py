"""The outcome of a claim: measured, computed or inferred, in words that code renders, or unsupported with the reasons."""

import re
from collections.abc import Iterator, Sequence

from opsleuth.state.conclusion import Claim, ClaimBasis, Conclusion
from opsleuth.verification import sentence_assertions
from opsleuth.verification.cause_support import support_causes
from opsleuth.verification.claim_binding import Binding, bind_prose, find_holding_fact, find_whole_sentence
from opsleuth.verification.claims import find_claim_problems, find_name_problems, find_own_result_problems
from opsleuth.verification.conclusion_basis import ConclusionBasis, ConclusionProblem
from opsleuth.verification.effect_claims import find_success_problems
from opsleuth.verification.fact_matching import subject_names
from opsleuth.verification.fact_operations import compute_operation
from opsleuth.verification.fact_wording import join_facts, render_slot
from opsleuth.verification.facts import MOST_SHOWN, Fact
from opsleuth.verification.kept_statement import find_lost_figure, shares_subject_matter
from opsleuth.verification.name_extraction import extract_names, name_occurs_in
from opsleuth.verification.quantities import TimeToken, find_quantities, scan_tokens
from opsleuth.verification.record_facts import normalize_for_matching

SLOT = re.compile(r"\{(E[1-9]\d{0,6}\.[1-9]\d{0,3})\}")
_LONGEST = 1000
_UP = re.compile(
    r"\b(?:ris(?:es|en|ing|e)|rose|increas\w+|grew|grows|grown|climb\w*|jump\w*|higher|more|slower|steig\w*|stieg\w*|höher)\b|上升|升高|增加|增长|变慢",
    re.IGNORECASE,
)
_DOWN = re.compile(
    r"\b(?:fall(?:s|en|ing)?|fell|drop\w*|decreas\w+|declin\w+|shr[aiu]nk\w*|lower|less|faster|sink\w*|sank|fiel\w*|niedriger)\b|下降|降低|减少|变快",
    re.IGNORECASE,
)
_BESIDE_SLOT = 24
_REASON = re.compile(r",?\s(?:so|because|therefore|thus|hence)\s.*", re.DOTALL)
"""What a sentence concludes from its rows: code does not say it."""
_COUNTED_WORD = re.compile(r"\b\d+ ([A-Za-z]+)\b")
_STATES_OF_COUNTED = frozenset({"ready", "available", "desired", "updated", "unavailable", "failed", "active", "succeeded", "waiting", "idle", "running", "pending"})  # fmt: skip
"""What a figure counts of a number of things: `2 ready` and `2 desired` are different statements."""


class _Resolution:
    """One claim on its way: collects problems, hands out facts."""

    def __init__(self, claim: Claim, basis: ConclusionBasis) -> None:
        self.claim, self.basis = claim, basis

    def report_problem(self, text: str, value: str = "") -> ConclusionProblem:
        return ConclusionProblem("claim", self.claim.id, f"{self.claim.id}: {text}"[:_LONGEST], value)

    def hold_claim(self, basis: ClaimBasis, text: str, facts: Sequence[Fact], **more: str) -> Claim:
        """The claim with what code made of it; of what is said as measured, only evidence that shows it is cited."""
        cited = self.claim.evidence if basis == "inferred" else self._list_showing(facts)
        evidence = dict.fromkeys((*cited, *(fact.evidence for fact in facts)))
        made = {
            "basis": basis,
            "text": _cut_text(text),
            "facts": [fact.id for fact in facts][:20],
            "evidence": list(evidence)[:20],
        }
        return Claim.model_validate(self.claim.model_dump() | made | more)

    def _list_showing(self, facts: Sequence[Fact]) -> list[str]:
        """The cited evidence in which one of the facts stands."""
        held = {evidence: self.basis.facts_by_evidence.get(evidence, ()) for evidence in self.claim.evidence}
        return [
            e for e, rows in held.items() if any(_is_same_fact(row, fact) for row in rows for fact in facts)
        ]


def _is_same_fact(one: Fact, other: Fact) -> bool:
    """Whether two pieces of evidence say the same: the same sentence, or the same value of the same measure."""
    if one.text and one.text == other.text:
        return True
    return (one.subject, one.measure, one.value) == (other.subject, other.measure, other.value)


def resolve_claims(conclusion: Conclusion, basis: ConclusionBasis) -> Conclusion:
    """The conclusion with each claim bound to facts and rendered, as far as it can be."""
    claims = [resolve_claim(claim, basis)[0] for claim in conclusion.claims]
    made = Conclusion.model_validate(conclusion.model_dump() | {"claims": [c.model_dump() for c in claims]})
    return support_causes(made, basis)


def resolve_claim(claim: Claim, basis: ConclusionBasis) -> tuple[Claim, tuple[ConclusionProblem, ...]]:
    """The claim as it may be said, and why it may not; resolving a resolved claim changes nothing."""
    if claim.facts:
        made, problems = _resolve_named_facts(_Resolution(claim, basis))
    elif claim.op is not None:
        problem = f"op {claim.op} needs facts: name them by their ids, such as E1.1"
        return claim, (ConclusionProblem("claim", claim.id, f"{claim.id}: {problem}"),)
    else:
        prose = claim if claim.text or not claim.say else claim.model_copy(update={"text": claim.say})
        made, problems = _resolve_prose(_Resolution(prose, basis))
    views = [basis.evidence[e] for e in made.evidence if e in basis.evidence]
    said = [] if problems else find_success_problems(made.text, "claim", made.id, basis)
    return made, (*problems, *said, *find_own_result_problems(made.id, views, basis))


def _resolve_named_facts(at: _Resolution) -> tuple[Claim, tuple[ConclusionProblem, ...]]:
    known = [(id_, at.basis.find_fact(id_)) for id_ in at.claim.facts]
    if missing := [id_ for id_, fact in known if fact is None]:
        return at.claim, (at.report_problem(_explain_missing_facts(missing, at.basis), missing[0]),)
    facts = [fact for _, fact in known if fact is not None]
    if at.claim.op is not None:
        if at.claim.op == "before":
            facts = [_find_dated(fact, at.basis) for fact in facts]
        computed = compute_operation(at.claim.op, facts, at.basis.facts_by_evidence, at.basis.language)
        if computed.problem:
            return at.claim, (at.report_problem(f"{at.claim.op} does not hold: {computed.problem}"),)
        return at.hold_claim("computed", computed.text, facts), ()
    if at.claim.say:
        problems = tuple(_find_say_problems(at, facts))
        return at.hold_claim("inferred", fill_slots(at.claim.say, at.basis), facts), problems
    return at.hold_claim("measured", join_facts(facts, at.basis.language), facts), ()


def _find_dated(fact: Fact, basis: ConclusionBasis) -> Fact:
    """The fact, or the same finding as another result states it with its time, where this one has none."""
    if fact.at_seconds is not None or not fact.text:
        return fact
    every = (other for rows in basis.facts_by_evidence.values() for other in rows)
    return next((f for f in every if f.text == fact.text and f.at_seconds is not None), fact)


def _explain_missing_facts(missing: Sequence[str], basis: ConclusionBasis) -> str:
    evidence = missing[0].partition(".")[0]
    if evidence not in basis.evidence:
        return (
            f"{missing[0]} does not exist: evidence of this run is {', '.join(basis.evidence) or 'none yet'}"
        )
    count = min(len(basis.facts_by_evidence[evidence]), MOST_SHOWN)
    choices = f"its facts are {evidence}.1 to {evidence}.{count}" if count else "it has no facts"
    return f"{missing[0]} does not exist: {choices}"


def fill_slots(say: str, basis: ConclusionBasis) -> str:
    """The planner's words with `{E1.1}` replaced by the fact's figures and time."""

    def render_match(match: re.Match[str]) -> str:
        fact = basis.find_fact(match[1])
        return render_slot(fact) if fact else match[0]

    return SLOT.sub(render_match, say)


def _find_say_problems(at: _Resolution, facts: Sequence[Fact]) -> Iterator[ConclusionProblem]:
    """What an inferred sentence may not hold: bare figures and times, slots that do not exist, names of nothing."""
    say = at.claim.say
    slots = SLOT.findall(say)
    if missing := [id_ for id_ in slots if at.basis.find_fact(id_) is None]:
        yield at.report_problem(_explain_missing_facts(missing, at.basis), missing[0])
    plain = SLOT.sub(" ", say)
    cited = [*facts, *(f for id_ in slots if (f := at.basis.find_fact(id_)))]
    times = _find_written_times(plain)
    for token in (*(q.text for q in find_quantities(plain)), *times):
        if token in times and find_holding_fact(token, cited):
            continue  # a moment is the same wherever it is written; a figure needs the fact that says of what it is
        yield at.report_problem(_advise_slot(token, cited, at.basis), token)
    views = [at.basis.evidence[e] for e in dict.fromkeys((*at.claim.evidence, *(f.evidence for f in cited)))]
    topology = [view for view in at.basis.seen if view.tool == "topology" and view not in views]
    yield from find_name_problems(plain, at.claim.id, [*views, *topology], at.basis)
    for id_ in slots:
        if (fact := at.basis.find_fact(id_)) and (word := _find_wrong_direction(say, id_, fact)):
            yield at.report_problem(
                f'"{word}" beside {{{id_}}} is not its direction: {render_slot(fact)}', word
            )


def _find_written_times(text: str) -> list[str]:
    return [t.moment.text for t in scan_tokens(text) if isinstance(t, TimeToken)]


def _advise_slot(token: str, facts: Sequence[Fact], basis: ConclusionBasis) -> str:
    pool = [*facts, *(f for fact in facts for f in basis.facts_by_evidence[fact.evidence] if f not in facts)]
    holder = find_holding_fact(token, pool)
    where = f"use {{{holder.id}}} instead" if holder else "no cited fact holds it: leave it out"
    return f'"{token}" stands bare in an inferred sentence: {where}'


def _find_wrong_direction(say: str, id_: str, fact: Fact) -> str | None:
    """The direction word beside the slot that contradicts value minus before."""
    place = say.find(f"{{{id_}}}")
    around = say[max(0, place - _BESIDE_SLOT) : place] + " " + say[place + len(id_) + 2 :][:_BESIDE_SLOT]
    up, down = _UP.search(around), _DOWN.search(around)
    if not fact.change or (up and down):
        return None
    wrong = down if fact.change > 0 else up
    return wrong[0] if wrong else None


def find_direction(text: str) -> int:
    """+1 where the words only say more, -1 where only less, 0 where both or neither."""
    return bool(_UP.search(text)) - bool(_DOWN.search(text))


def _resolve_prose(at: _Resolution) -> tuple[Claim, tuple[ConclusionProblem, ...]]:
    """A sentence in the planner's words: bound to facts where its figures, times and quotations appear in them."""
    if problems := find_claim_problems(at.claim, at.basis):
        bound = _bind_reported_action(at, problems) or _bind_despite(at, problems)
        return _hold_bound(at, bound) if bound else (at.claim, problems)
    pool = [fact for e in at.claim.evidence for fact in at.basis.facts_by_evidence.get(e, ())]
    if sentence_assertions.claims_unavailable(at.claim.text) and not find_whole_sentence(at.claim.text, pool):
        return at.hold_claim("inferred", at.claim.text, ()), ()
    bound = _bind_sentence(at)
    if bound.wrong:
        return at.claim, (at.report_problem(bound.wrong),)
    if bound.loose or not bound.facts:
        return at.hold_claim("inferred", at.claim.text, bound.facts), tuple(
            _find_loose_times(at, bound, pool)
        )
    return _hold_bound(at, bound)


def _find_loose_times(at: _Resolution, bound: Binding, pool: Sequence[Fact]) -> Iterator[ConclusionProblem]:
    """Times of an inferred sentence that no cited fact has; its figures were found or recomputed token by token."""
    times = _find_written_times(at.claim.text)
    for token in bound.loose if pool else ():
        if token in times and find_holding_fact(token, pool) is None:
            yield at.report_problem(_advise_slot(token, pool, at.basis), token)


def _bind_reported_action(at: _Resolution, problems: Sequence[ConclusionProblem]) -> Binding | None:
    """A sentence that only seems to claim an action of ours, but reports a recorded change: code says it without the verb."""
    effects = {id_ for effect in at.basis.effects for id_ in effect.evidence}
    if effects or not all("claims an action" in problem.text for problem in problems):
        return None
    pool = [fact for e in at.claim.evidence for fact in at.basis.facts_by_evidence.get(e, ())]
    bound = bind_prose(at.claim.text, pool, at.basis.known_names, at.basis.window.seconds)
    changed = any(fact.measure in ("change", "event") for fact in bound.facts)
    return bound if changed and not bound.loose and not bound.wrong else None


def _bind_despite(at: _Resolution, problems: Sequence[ConclusionProblem]) -> Binding | None:
    """A sentence of which single figures are not found, or an absence is not shown, while facts give all of it."""
    if not all(problem.about for problem in problems):
        return None
    bound = _bind_sentence(at, absence=False)
    return bound if bound.facts and not bound.loose and not bound.wrong else None


def _bind_sentence(at: _Resolution, *, absence: bool = True) -> Binding:
    pool = [fact for e in at.claim.evidence for fact in at.basis.facts_by_evidence.get(e, ())]
    known, span = at.basis.known_names, at.basis.window.seconds
    return bind_prose(at.claim.text, pool, known, span, at.basis.given, absence=absence)


def _hold_bound(at: _Resolution, bound: Binding) -> tuple[Claim, tuple[ConclusionProblem, ...]]:
    language = at.basis.language
    if bound.op is None:
        return _hold_rows(at, bound.facts), ()
    computed = compute_operation(bound.op, bound.facts, at.basis.facts_by_evidence, language)
    if computed.problem and bound.op == "absent":
        other = _bind_sentence(at, absence=False)
        if other.facts and not other.loose and not other.wrong and other.op != "absent":
            return _hold_bound(at, other)
        return at.claim, (at.report_problem(f"absent does not hold: {computed.problem}"),)
    if computed.problem:
        return _hold_rows(at, bound.facts), ()
    return at.hold_claim("computed", computed.text, bound.facts, op=bound.op), ()


def _hold_rows(at: _Resolution, facts: Sequence[Fact]) -> Claim:
    """The claim in the words of the rows that it is bound to, where they state all that it names; else in its own."""
    said = join_facts(facts, at.basis.language)
    others = [f for e in at.claim.evidence for f in at.basis.facts_by_evidence.get(e, ())]
    subjects = {name for fact in others for name in subject_names(fact)}
    names = extract_names(_REASON.sub("", at.claim.text), {*at.basis.known_names, *subjects})
    stated = [normalize_for_matching(said), *(fact.label for fact in facts)]
    lost = any(_is_row_name(name, others) and not name_occurs_in(name, stated) for name in names)
    if (
        lost
        or _loses_counted_word(at.claim.text, said, [*facts, *others])
        or find_lost_figure(_REASON.sub("", at.claim.text), said, facts)
        or not shares_subject_matter(at.claim.text, said, facts)
    ):
        return at.hold_claim("inferred", at.claim.text, facts)
    return at.hold_claim("measured", said, facts)


def _is_row_name(name: str, facts: Sequence[Fact]) -> bool:
    """Whether rows of the cited evidence hold the name: what a row of it leaves out was meant."""
    return any(name_occurs_in(name, [fact.label]) for fact in facts)


def _loses_counted_word(text: str, said: str, facts: Sequence[Fact]) -> bool:
    """Whether a word beside a figure is what a row calls another figure (`1 ready replica`), and is not in `said`."""
    figures = {d.name.casefold() for fact in facts for d in fact.figures} & _STATES_OF_COUNTED
    beside = {match[1].casefold() for match in _COUNTED_WORD.finditer(text)}
    return any(word in figures and word not in said.casefold() for word in beside)


def _cut_text(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"

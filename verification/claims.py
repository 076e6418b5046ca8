"""Check each sentence of a conclusion against the evidence that it cites.

Deterministic and pure. A problem says which value failed, against which evidence, and what would be accepted;
it goes back to the planner verbatim.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.analysis.time_windows import INCIDENT
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import format_timestamp
from opsleuth.state.conclusion import Claim
from opsleuth.verification import sentence_assertions
from opsleuth.verification.conclusion_basis import (
    ConclusionBasis,
    ConclusionProblem,
    EffectView,
    EvidenceView,
    Part,
)
from opsleuth.verification.derived_numbers import find_ungrounded_numbers
from opsleuth.verification.fact_rows import GAPS
from opsleuth.verification.grounding import EvidenceGround, holds_written_time
from opsleuth.verification.name_extraction import extract_names, name_occurs_in
from opsleuth.verification.number_attribution import find_misplaced_numbers
from opsleuth.verification.quantities import TimeToken, WordToken, find_quantities, scan_tokens
from opsleuth.verification.record_facts import (
    find_value_between,
    normalize_for_matching,
)
from opsleuth.verification.written_times import WrittenTime, may_lie_in_window

_QUOTE = 12
_QUOTED = re.compile(r'"[^"]*"')
_CITED = re.compile(r"(?<![A-Za-z0-9_])E[1-9]\d{0,6}(?![A-Za-z0-9_])")


def find_claim_problems(claim: Claim, basis: ConclusionBasis) -> tuple[ConclusionProblem, ...]:
    """Why `claim` may not be said on this basis; empty if it may."""
    # What stands between quotation marks are the words of the evidence: `code E4001` there cites nothing.
    cited = dict.fromkeys([*claim.evidence, *_CITED.findall(_QUOTED.sub(" ", claim.text))])
    missing = [id_ for id_ in cited if id_ not in basis.evidence]
    if missing or not claim.evidence:
        return (_build_citation_problem(claim, missing, basis),)
    views = [basis.evidence[id_] for id_ in cited]
    if sentence_assertions.claims_unavailable(claim.text):
        return tuple(_find_name_problems(claim.text, "claim", claim.id, views, basis, asked=True))
    problems = [_build_no_data_problem(claim, v) for v in views if not v.shows and not _quotes_gap(claim, v)]
    if problems:
        return tuple(problems)
    absent = sentence_assertions.claims_absence(claim.text)
    problems = find_text_problems(claim.text, "claim", claim.id, views, basis, asked=absent)
    problems += [] if problems else _find_attribution_problems(claim, views, basis)
    if absent and not problems and not _supports_absence(claim.text, views):
        problems = [_build_absence_problem(claim, views)]
    problems += find_recovery_problems(claim.text, "claim", claim.id, basis)
    return (*problems, *find_action_problems(claim.text, "claim", claim.id, views, basis))


def _build_citation_problem(
    claim: Claim, missing: Sequence[str], basis: ConclusionBasis
) -> ConclusionProblem:
    choices = _join_limited(list(basis.evidence)) or "none yet"
    if missing:
        text = f"{claim.id} cites {_join_limited(missing)}, which does not exist: evidence of this run is {choices}"
    else:
        text = f"{claim.id} cites no evidence: name the ids it rests on (this run has {choices}) or drop it"
    return ConclusionProblem("claim", claim.id, text, _join_limited(missing))


def _quotes_gap(claim: Claim, view: EvidenceView) -> bool:
    """Whether the claim only says, in its words, what a gap in the recording says of itself."""
    text = claim.text
    if view.status.is_error or not sentence_assertions.claims_absence(text):
        return False
    return sentence_assertions.quotes_absence(text, view.text)


def _build_no_data_problem(claim: Claim, view: EvidenceView) -> ConclusionProblem:
    what = "an error of the tool" if view.status.is_error else "a gap in the recording"
    text = (
        f"{claim.id} cites {view.id} ({view.tool}: {view.status}), {what}: it supports only "
        f'"not available", nothing about the incident; cite a result, or say what was not available'
    )
    return ConclusionProblem("claim", claim.id, text, view.id)


def find_text_problems(
    text: str,
    part: Part,
    ref: str,
    views: Sequence[EvidenceView],
    basis: ConclusionBasis,
    *,
    asked: bool = False,
) -> list[ConclusionProblem]:
    """The numbers, times and names of `text` that `views` do not hold; `asked` lets names come from the calls."""
    tokens = scan_tokens(text)
    moments = [token.moment for token in tokens if isinstance(token, TimeToken)]
    numbers = find_quantities(text, words=part == "claim")
    used = extract_names(text, basis.known_names, quoted_whole=part == "claim")
    start, end = basis.window.seconds
    ground = EvidenceGround(
        facts=[view.facts for view in views],
        start=start,
        end=end,
        names=frozenset(n.casefold() for n in used),
        words=frozenset(t.text.lower() for t in tokens if isinstance(t, WordToken)),
        stated=numbers,
        moments=moments,
    )
    problems = [_find_time_problem(m, part, ref, text, views, basis) for m in moments]
    problems += [_build_number_problem(q.text, part, ref, views) for q in find_ungrounded_numbers(ground)]
    problems += [
        _build_direction_problem(words, part, ref)
        for words in sentence_assertions.find_direction_contradictions(text)
    ]
    return [p for p in problems if p] + _find_name_problems(
        text, part, ref, views, basis, asked=asked, used=used
    )


def _build_number_problem(
    value: str, part: Part, ref: str, views: Sequence[EvidenceView]
) -> ConclusionProblem:
    text = (
        f'{_format_location(part, ref)}: number "{value}" is not in {_format_cited_ids(views)}, nor recomputable from it: use a figure '
        "as it stands there (rounded), cite the evidence that holds it, or compute it with calculate and cite that"
    )
    return ConclusionProblem(part, ref, text, value, "number")


def _find_attribution_problems(
    claim: Claim, views: Sequence[EvidenceView], basis: ConclusionBasis
) -> list[ConclusionProblem]:
    span = basis.window.seconds
    return [
        ConclusionProblem(
            "claim",
            claim.id,
            f'{claim.id}: number "{wrong.number.text}" is not one of {_join_limited(wrong.names)}: {_format_cited_ids(views)} hold it for '
            "something else; name that, or cite the evidence that holds the number for what is named",
            wrong.number.text,
        )
        for wrong in find_misplaced_numbers(claim.text, views, basis.known_names, span)
    ]


def _build_direction_problem(words: str, part: Part, ref: str) -> ConclusionProblem:
    text = f'{_format_location(part, ref)}: "{words}" contradicts itself: say the direction that its two figures have'
    return ConclusionProblem(part, ref, text, words)


def _find_time_problem(
    moment: WrittenTime,
    part: Part,
    ref: str,
    text: str,
    views: Sequence[EvidenceView],
    basis: ConclusionBasis,
) -> ConclusionProblem | None:
    start, end = basis.window.seconds
    if may_lie_in_window(moment, start, end):
        return None
    ground = [view for view in views if holds_written_time(moment, EvidenceGround([view.facts], start, end))]
    if any(view.window != INCIDENT or _is_quoted_value(moment.text, text, view) for view in ground):
        return None
    if ground and sentence_assertions.places_time_outside_window(text):
        return None
    bounds = f"{format_timestamp(basis.window.start)} to {format_timestamp(basis.window.end)}"
    if ground:
        reason = (
            f"lies outside the window ({bounds}) and {_format_cited_ids(ground)} is not labelled baseline or before: "
            'say in the sentence that it lies outside ("before the window")'
        )
    else:
        reason = f"lies neither in the window ({bounds}) nor in {_format_cited_ids(views)}: use a time that appears there"
    return ConclusionProblem(
        part, ref, f'{_format_location(part, ref)}: time "{moment.text}" {reason}', moment.text
    )


def _is_quoted_value(value: str, text: str, view: EvidenceView) -> bool:
    """Whether the value appears in words taken over from the evidence: it says so of itself, as a quotation."""
    before, _, after = text.partition(value)
    quotes = (before[-_QUOTE:] + value, value + after[:_QUOTE])
    return any(len(q) >= len(value) + _QUOTE and normalize_for_matching(q) in view.text for q in quotes)


def _find_name_problems(
    text: str,
    part: Part,
    ref: str,
    views: Sequence[EvidenceView],
    basis: ConclusionBasis,
    *,
    asked: bool,
    used: Sequence[str] | None = None,
) -> list[ConclusionProblem]:
    used = extract_names(text, basis.known_names) if used is None else used
    used = [name for name in used if name not in basis.own_words]
    texts = [view.text for view in views] + [view.asked_text for view in views if asked]
    texts += [view.fact_words for view in views]
    texts += [] if part in ("claim", "cause") else [basis.given_text]
    return [
        _build_name_problem(name, part, ref, views, basis) for name in used if not _is_name_held(name, texts)
    ]


def _is_name_held(name: str, texts: Sequence[str]) -> bool:
    """Whether the name, or what it is the plural of (`KeyErrors`), appears in one of the texts."""
    return name_occurs_in(name, texts) or (
        len(name) > 4 and name.endswith("s") and name_occurs_in(name[:-1], texts)
    )


def find_name_problems(
    text: str, ref: str, views: Sequence[EvidenceView], basis: ConclusionBasis
) -> list[ConclusionProblem]:
    """The names in a claim's words that none of `views` holds."""
    return _find_name_problems(text, "claim", ref, views, basis, asked=True)


def find_own_result_problems(
    ref: str, views: Sequence[EvidenceView], basis: ConclusionBasis
) -> list[ConclusionProblem]:
    """A claim does not rest on an effect's own answer alone where no check was seen to pass."""
    unchecked = [e for e in basis.effects if not e.checked]
    if not views or not all(any(_is_own_result(view, e) for e in unchecked) for view in views):
        return []
    text = (
        f"{ref} rests only on what {views[0].tool} itself answered ({_format_cited_ids(views)}), and no check of it passed: "
        "cite the reading after it, or leave the claim out"
    )
    return [ConclusionProblem("claim", ref, text)]


def _is_own_result(view: EvidenceView, effect: EffectView) -> bool:
    return view.id in effect.evidence and view.tool == effect.tool


def _build_name_problem(
    name: str, part: Part, ref: str, views: Sequence[EvidenceView], basis: ConclusionBasis
) -> ConclusionProblem:
    elsewhere = [view.id for view in basis.seen if name_occurs_in(name, [view.text])]
    if elsewhere:
        advice = f"it appears in {_join_limited(elsewhere)}: cite that"
    else:
        advice = "no evidence of this run holds it: use a name as it appears there"
    return ConclusionProblem(
        part,
        ref,
        f'{_format_location(part, ref)}: name "{name}" is not in {_format_cited_ids(views)}; {advice}',
        name,
    )


def _supports_absence(text: str, views: Sequence[EvidenceView]) -> bool:
    """`none_matched`, a search that scanned rows and matched none, a figure of zero or in the sentence, or its own words."""
    if any(
        view.status is ResultStatus.NONE_MATCHED or _is_search_without_match(view.record) for view in views
    ):
        return True
    if any(find_value_between(view.facts.raws, 0.0, 0.0) is not None for view in views):
        return True
    if any(sentence_assertions.quotes_absence(text, view.text) for view in views):
        return True
    if sentence_assertions.claims_unchanged(text) and any(view.facts.raws for view in views):
        return True
    if any(_has_named_empty_list(text, view.record) for view in views):
        return True
    if any(_lists_everything_but(text, view) for view in views):
        return True
    return bool(find_quantities(text))


def _has_named_empty_list(text: str, record: Mapping[str, Any]) -> bool:
    """Whether the record has an empty list of what the sentence names: `called_by: []` of callers."""
    stems = {word[:4] for word in re.findall(r"[a-z]{4,}", text.casefold())}
    empty = (str(key) for key, value in record.items() if isinstance(value, list | tuple) and not value)
    return any(stems & {word[:4] for word in re.findall(r"[a-z]{4,}", key)} for key in empty)


def _lists_everything_but(text: str, view: EvidenceView) -> bool:
    """Whether the record lists all that there is, uncut, and none of it has one of the words that the sentence says are absent."""
    scanned, matched = view.record.get("scanned"), view.record.get("matched")
    if not isinstance(scanned, int) or scanned == 0 or scanned != matched:
        return False
    if any(view.record.get(key) for key in GAPS):
        return False
    things = sentence_assertions.list_absent_words(text)
    return bool(things) and any(word not in view.text for word in things)


def _is_search_without_match(record: Mapping[str, Any]) -> bool:
    scanned, matched = record.get("scanned"), record.get("matched")
    return isinstance(scanned, int) and scanned > 0 and matched == 0


def _build_absence_problem(claim: Claim, views: Sequence[EvidenceView]) -> ConclusionProblem:
    text = (
        f"{claim.id} claims an absence, but {_format_cited_ids(views)} shows none: cite a search that scanned rows and "
        "matched 0 (none_matched), give the figure that shows it, or say what was not available"
    )
    return ConclusionProblem("claim", claim.id, text, about="absence")


def find_action_problems(
    text: str, part: Part, ref: str, views: Sequence[EvidenceView], basis: ConclusionBasis
) -> list[ConclusionProblem]:
    """An action may be claimed only where the ledger has it as done and its postcondition was seen to hold."""
    reported = "\n".join(view.text for view in views if not _is_effect_evidence(view, basis))
    done = [e for e in basis.effects if e.state in ("done", "resolved") and e.checked]
    wanted = sentence_assertions.find_claimed_actions(text, reported)
    if not wanted or any(_claim_concerns_effect(effect, text, views) for effect in done):
        return []
    ledger = ", ".join(
        f"{e.tool} on {e.target}: {e.state}, check {'passed' if e.checked else 'not passed'}"
        for e in basis.effects
    )
    reason = (
        f'{_format_location(part, ref)} claims an action ("{wanted[0]}"), but no effect that is done with a passed check '
        f"backs it (effects so far: {ledger or 'none'}): recommend it, or say what was seen"
    )
    return [ConclusionProblem(part, ref, reason, wanted[0])]


def _is_effect_evidence(view: EvidenceView, basis: ConclusionBasis) -> bool:
    return any(view.id in effect.evidence for effect in basis.effects)


def _claim_concerns_effect(effect: EffectView, text: str, views: Sequence[EvidenceView]) -> bool:
    return any(view.id in effect.evidence for view in views) or _is_effect_named(effect, text)


def _is_effect_named(effect: EffectView, text: str) -> bool:
    return name_occurs_in(effect.service, [normalize_for_matching(text)])


def find_recovery_problems(
    text: str, part: Part, ref: str, basis: ConclusionBasis
) -> list[ConclusionProblem]:
    """Nothing is said to be well (again) that an effect of this run, or of one that it was forked from, left as the last look at it showed: not well."""
    said = sentence_assertions.find_recovery_claim(text)
    failed = [e for e in _last_checked_effects(basis.effects) if e.checked is False]
    others = [name for name in basis.known_names if name_occurs_in(name, [normalize_for_matching(text)])]
    meant = [e for e in failed if _is_effect_named(e, text) or not others]
    if said is None or not meant:
        return []
    reason = (
        f'{_format_location(part, ref)} says "{said}", but after {meant[0].tool} the check of {meant[0].target} failed: '
        "say what was seen there, or act on it and look again"
    )
    return [ConclusionProblem(part, ref, reason, said)]


def _last_checked_effects(effects: Sequence[EffectView]) -> Sequence[EffectView]:
    """For each target the last effect after which somebody looked."""
    return list({e.target: e for e in effects if e.checked is not None}.values())


def _format_location(part: Part, ref: str) -> str:
    if part == "claim":
        return ref
    return part if part == "answer" else f"{part} {ref}"


def _format_cited_ids(views: Sequence[EvidenceView]) -> str:
    return _join_limited([view.id for view in views]) or "the cited evidence (none)"


def _join_limited(items: Sequence[str]) -> str:
    shown = ", ".join(items[:12])
    return f"{shown} and {len(items) - 12} more" if len(items) > 12 else shown

"""The checks of a whole conclusion, and the conclusion without what they found unsupported."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from opsleuth.state.conclusion import Cause, Claim, Conclusion, Recommendation, RuledOut
from opsleuth.state.investigation import Demand, Hypothesis
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import Verdict
from opsleuth.verification.answer_absence import find_absence_problems
from opsleuth.verification.cause_support import find_unsupported_causes
from opsleuth.verification.claim_resolution import resolve_claim
from opsleuth.verification.claims import find_action_problems, find_recovery_problems, find_text_problems
from opsleuth.verification.conclusion_basis import ConclusionBasis, ConclusionProblem, EvidenceView, Part
from opsleuth.verification.contradictions import find_contradictions
from opsleuth.verification.effect_claims import find_success_problems
from opsleuth.verification.name_extraction import name_occurs_in
from opsleuth.verification.question_demands import find_unmet_demands, strip_code_fence
from opsleuth.verification.sentence_assertions import claims_sole_candidate
from opsleuth.verification.unaddressed_suspects import find_ranking_problems

NOTHING_LEFT = "No part of the drafted answer is supported by the evidence of this run."


def check_conclusion(
    conclusion: Conclusion,
    basis: ConclusionBasis,
    *,
    hypotheses: Sequence[Hypothesis] = (),
    checklist: Sequence[Demand] = (),
) -> tuple[ConclusionProblem, ...]:
    """Everything that the conclusion may not say, and what it lacks; empty if it may stand."""
    resolved = [resolve_claim(claim, basis) for claim in conclusion.claims]
    failed = {claim.id: problems for claim, problems in resolved if problems}
    claims = [claim.model_dump() for claim, _ in resolved]
    conclusion = Conclusion.model_validate(conclusion.model_dump() | {"claims": claims})
    return (
        *(problem for problems in failed.values() for problem in problems),
        *(p for p in find_contradictions(conclusion, basis) if p.ref not in failed and p.value not in failed),
        *_check_causes(conclusion, basis, failed.keys()),
        *find_unsupported_causes(conclusion, basis),
        *_check_ruled_out(conclusion, failed.keys()),
        *_check_propagation(conclusion, basis),
        *_check_answer(conclusion, basis),
        *_check_fields(conclusion, basis),
        *_check_recommendations(conclusion, basis),
        *_check_verdict(conclusion, basis, failed.keys()),
        *_check_rival_hypothesis(conclusion, hypotheses, basis),
        *find_ranking_problems(conclusion, basis, hypotheses),
        *(ConclusionProblem("demand", str(i), text) for i, text in find_unmet_demands(conclusion, checklist)),
    )


def _check_causes(
    conclusion: Conclusion, basis: ConclusionBasis, failed: Collection[str]
) -> Iterator[ConclusionProblem]:
    known = {claim.id: claim for claim in conclusion.claims}
    for i, cause in enumerate(conclusion.causes):
        yield from _check_cause(str(i), cause, known, basis, failed)


def _check_cause(
    ref: str, cause: Cause, known: Mapping[str, Claim], basis: ConclusionBasis, failed: Collection[str]
) -> Iterator[ConclusionProblem]:
    held = [known[c] for c in cause.claims if c in known and c not in failed]
    if missing := [c for c in cause.claims if c not in known]:
        yield ConclusionProblem(
            "cause",
            ref,
            f"cause {cause.service} rests on {', '.join(missing)}, which is not a claim of the conclusion",
        )
    if not held:
        text = (
            f"cause {cause.service} rests on no claim that holds: give it a claim with evidence, or drop it"
        )
        yield ConclusionProblem("cause", ref, text, cause.service)
        return
    cited = [basis.evidence[e] for claim in held for e in claim.evidence]
    seen = [view for view in basis.seen if view in cited]
    entity = cause.entity.name if cause.entity else None
    for name in filter(None, (cause.service, cause.metric, entity)):
        if not name_occurs_in(name, [view.text for view in seen]):
            where = ", ".join(view.id for view in seen) or "none"
            text = (
                f'cause {cause.service}: "{name}" was not observed in the evidence of its claims ({where}): '
                "blame a component as the evidence names it, or cite the evidence that shows it"
            )
            yield ConclusionProblem("cause", ref, text, name)


def _check_ruled_out(conclusion: Conclusion, failed: Collection[str]) -> Iterator[ConclusionProblem]:
    known = {claim.id for claim in conclusion.claims}
    for i, item in enumerate(conclusion.ruled_out):
        if not any(c in known and c not in failed for c in item.claims) and item.id is None:
            text = f'ruled out "{item.hypothesis}": no claim that holds says why; give one, or name the refuted hypothesis'
            yield ConclusionProblem("ruled_out", str(i), text)


def _check_propagation(conclusion: Conclusion, basis: ConclusionBasis) -> Iterator[ConclusionProblem]:
    texts = [view.text for view in basis.seen]
    for i, pair in enumerate(conclusion.propagation):
        for name in pair:
            if not name_occurs_in(name, texts):
                text = f'propagation {pair[0]} to {pair[1]}: "{name}" appears in no evidence of this run'
                yield ConclusionProblem("propagation", str(i), text, name)


def _collect_cited_evidence(claims: Sequence[Claim], basis: ConclusionBasis) -> list[EvidenceView]:
    ids = dict.fromkeys(e for claim in claims for e in claim.evidence)
    return [view for view in basis.seen if view.id in ids]


def _check_answer(conclusion: Conclusion, basis: ConclusionBasis) -> Iterator[ConclusionProblem]:
    views = _collect_cited_evidence(conclusion.claims, basis)
    document = _parse_json_answer(conclusion.answer)
    parts = (
        split_sentences(conclusion.answer)
        if document is None
        else [f"{k}: {x}" for k, v in document.items() for x in _scalar_texts(v)]
    )
    for sentence in parts:
        yield from _check_free_text(sentence, "answer", "", views, basis)


def _check_free_text(
    text: str, part: Part, ref: str, views: Sequence[EvidenceView], basis: ConclusionBasis
) -> Iterator[ConclusionProblem]:
    yield from find_text_problems(text, part, ref, views, basis, asked=True)
    yield from find_action_problems(text, part, ref, views, basis)
    yield from find_recovery_problems(text, part, ref, basis)
    yield from find_success_problems(text, part, ref, basis)
    yield from find_absence_problems(text, part, ref, basis)


def _check_fields(conclusion: Conclusion, basis: ConclusionBasis) -> Iterator[ConclusionProblem]:
    views = _collect_cited_evidence(conclusion.claims, basis)
    for name, value in conclusion.fields.items():
        for leaf in _scalar_texts(value):
            yield from find_text_problems(leaf, "field", name, views, basis, asked=True)
            yield from find_recovery_problems(leaf, "field", name, basis)
            yield from find_success_problems(leaf, "field", name, basis)


def _scalar_texts(value: JSON) -> Iterator[str]:
    """The scalars of a field as text; truth values and null say nothing that could be looked up."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _scalar_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _scalar_texts(item)
    elif isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)


_SETTING = re.compile(
    r"-{0,2}[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]*)+"
)
"""`autovacuum_vacuum_cost_limit`, `GOMAXPROCS_LIMIT`, `targetPort`: words of a product, not names of this system."""


def _check_recommendations(conclusion: Conclusion, basis: ConclusionBasis) -> Iterator[ConclusionProblem]:
    by_id = {claim.id: claim for claim in conclusion.claims}
    for i, item in enumerate(conclusion.recommendations):
        own = [by_id[c] for c in item.claims if c in by_id]
        views = _collect_cited_evidence(own or conclusion.claims, basis)
        found = find_text_problems(item.text, "recommendation", str(i), views, basis, asked=True)
        yield from (p for p in found if not _is_fit_for_advice(p, views, basis))
        if missing := [c for c in item.claims if c not in by_id]:
            text = f"recommendation {i} rests on {', '.join(missing)}, which is not a claim of the conclusion"
            yield ConclusionProblem("recommendation", str(i), text)


def _is_fit_for_advice(
    problem: ConclusionProblem, views: Sequence[EvidenceView], basis: ConclusionBasis
) -> bool:
    """Whether advice may say it all the same: a name that the run has seen, a setting of a product, digits of a cited name."""
    if problem.about == "number":
        digits = re.compile(rf"(?<!\d){re.escape(problem.value)}(?!\d)")
        return any(digits.search(view.text) for view in views)
    if not problem.value or problem.about:
        return False
    seen = any(name_occurs_in(problem.value, [view.text]) for view in basis.seen)
    return seen or bool(_SETTING.fullmatch(problem.value))


def _check_verdict(
    conclusion: Conclusion, basis: ConclusionBasis, failed: Collection[str]
) -> Iterator[ConclusionProblem]:
    verdict = conclusion.verdict
    if verdict is Verdict.CAUSE_FOUND and not conclusion.causes:
        yield ConclusionProblem(
            "verdict", "", "verdict cause_found without a cause: name one, or say inconclusive"
        )
    if verdict is Verdict.HEALTHY and conclusion.causes:
        yield ConclusionProblem("verdict", "", "verdict healthy with causes: drop them, or say cause_found")
    if verdict is Verdict.HEALTHY:
        yield from find_recovery_problems("everything is healthy", "verdict", verdict, basis)
    holds = any(claim.id not in failed for claim in conclusion.claims)
    if verdict in (Verdict.HEALTHY, Verdict.ANSWERED) and not holds:
        yield ConclusionProblem(
            "verdict", "", f"verdict {verdict} needs at least one claim that holds: cite what shows it"
        )


def _has_ranked_one_suspect(basis: ConclusionBasis) -> bool:
    """Whether the newest ranking holds a single suspect: there is no rival to look at then."""
    rankings = [view.record for view in basis.seen if view.tool == "rank_suspects" and view.shows]
    return bool(rankings) and rankings[-1].get("suspects_total") == 1


def _check_rival_hypothesis(
    conclusion: Conclusion, hypotheses: Sequence[Hypothesis], basis: ConclusionBasis
) -> Iterator[ConclusionProblem]:
    if _has_ranked_one_suspect(basis):
        return
    if conclusion.verdict is not Verdict.CAUSE_FOUND or conclusion.ruled_out:
        return
    refuted = any(h.status == "refuted" and h.contradicting for h in hypotheses)
    texts = [conclusion.answer, *(claim.text for claim in conclusion.claims)]
    if not refuted and not any(claims_sole_candidate(text) for text in texts):
        text = (
            "no rival hypothesis was looked at: refute one with evidence, list it under ruled_out, "
            'or say that there was "only one candidate"'
        )
        yield ConclusionProblem("rival", "", text)


_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?!\s|$)[^.!?。！？\n]*)*(?:[.!?。！？]+|\n|$)")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text; a full stop ends one only before a space or the end."""
    return [match[0] for match in _SENTENCE.finditer(text) if match[0].strip()]


def strip_unsupported(conclusion: Conclusion, problems: Sequence[ConclusionProblem]) -> Conclusion:
    """The conclusion without what `problems` found.

    Claims stay, as holding or unsupported with their reasons; causes, rulings, recommendations, fields,
    propagation and sentences of the answer go. With no cause left `cause_found` becomes `inconclusive`, with no
    claim left `healthy` and `answered` do.
    """
    claims = tuple(_mark_claim_status(claim, problems) for claim in conclusion.claims)
    held = {claim.id for claim in claims if claim.status == "holds"}
    bad = {(p.part, p.ref) for p in problems}
    causes = _strip_unsupported_causes(conclusion, held, bad)
    return Conclusion(
        verdict=_downgrade_verdict(conclusion.verdict, causes, held, bad),
        answer=_strip_unsupported_answer(conclusion.answer, problems, claims),
        causes=causes,
        propagation=tuple(
            p for i, p in enumerate(conclusion.propagation) if ("propagation", str(i)) not in bad
        ),
        ruled_out=_strip_unsupported_rulings(conclusion, held, bad),
        not_available=conclusion.not_available,
        recommendations=_strip_unsupported_advice(conclusion, held, bad),
        fields={k: v for k, v in conclusion.fields.items() if ("field", k) not in bad},
        claims=claims,
    )


def _mark_claim_status(claim: Claim, problems: Sequence[ConclusionProblem]) -> Claim:
    reasons = tuple(p.text[:1000] for p in problems if p.part == "claim" and p.ref == claim.id)[:8]
    status = "unsupported" if reasons else "holds"
    return Claim.model_validate(claim.model_dump() | {"status": status, "problems": reasons})


def _strip_unsupported_causes(
    conclusion: Conclusion, held: Collection[str], bad: Collection[tuple[str, str]]
) -> tuple[Cause, ...]:
    return tuple(
        Cause.model_validate(cause.model_dump() | {"claims": _filter_held_claims(cause.claims, held)})
        for i, cause in enumerate(conclusion.causes)
        if ("cause", str(i)) not in bad and _filter_held_claims(cause.claims, held)
    )


def _strip_unsupported_rulings(
    conclusion: Conclusion, held: Collection[str], bad: Collection[tuple[str, str]]
) -> tuple[RuledOut, ...]:
    return tuple(
        RuledOut(hypothesis=item.hypothesis, id=item.id, claims=_filter_held_claims(item.claims, held))
        for i, item in enumerate(conclusion.ruled_out)
        if ("ruled_out", str(i)) not in bad
    )


def _strip_unsupported_advice(
    conclusion: Conclusion, held: Collection[str], bad: Collection[tuple[str, str]]
) -> tuple[Recommendation, ...]:
    return tuple(
        Recommendation.model_validate(item.model_dump() | {"claims": _filter_held_claims(item.claims, held)})
        for i, item in enumerate(conclusion.recommendations)
        if ("recommendation", str(i)) not in bad
    )


def _filter_held_claims(claims: Sequence[str], held: Collection[str]) -> tuple[str, ...]:
    return tuple(claim for claim in claims if claim in held)


def _downgrade_verdict(
    verdict: Verdict, causes: Sequence[Cause], held: Collection[str], bad: Collection[tuple[str, str]]
) -> Verdict:
    if ("verdict", verdict) in bad:
        return Verdict.INCONCLUSIVE
    if verdict is Verdict.CAUSE_FOUND:
        return verdict if causes else Verdict.INCONCLUSIVE
    return verdict if held else Verdict.INCONCLUSIVE


def _strip_unsupported_answer(
    answer: str, problems: Sequence[ConclusionProblem], claims: Sequence[Claim]
) -> str:
    """The sentences that hold; a value that failed takes its sentence with it, or its entry of a JSON answer.

    So does a claim that fell: what was not fit to be a claim is not fit to be said in the answer.
    """
    values = {p.value.casefold() for p in problems if p.part == "answer" and p.value}
    values |= {claim.text.casefold().rstrip(".") for claim in claims if claim.status == "unsupported"}
    if not values:
        return answer
    document = _parse_json_answer(answer)
    if document is not None:
        held = {
            k: v
            for k, v in document.items()
            if not _contains_any_value(json.dumps(v, ensure_ascii=False), values)
        }
        return json.dumps(held, ensure_ascii=False)
    kept = "".join(s for s in split_sentences(answer) if not _contains_any_value(s, values)).strip()
    return kept or NOTHING_LEFT


def _contains_any_value(text: str, values: Collection[str]) -> bool:
    folded = text.casefold()
    return any(value in folded for value in values)


def _parse_json_answer(answer: str) -> dict[str, Any] | None:
    """The answer as a JSON object, if it is one."""
    try:
        document = json.loads(strip_code_fence(answer))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None

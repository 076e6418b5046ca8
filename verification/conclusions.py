"""The checks of a whole conclusion, and the conclusion without what they found unsupported."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from opsleuth.state.conclusion import Cause, Claim, Conclusion, Recommendation, RuledOut
from opsleuth.state.investigation import Demand, Hypothesis
from opsleuth.state.outcome import Verdict
from opsleuth.verification.assertions import says_sole
from opsleuth.verification.checklist import demand_problems, unfenced
from opsleuth.verification.claims import (
    Basis,
    EvidenceView,
    Part,
    Problem,
    action_problems,
    claim_problems,
    recovery_problems,
    text_problems,
)
from opsleuth.verification.names import occurs
from opsleuth.verification.overruled import ranking_problems

NOTHING_LEFT = "No part of the drafted answer is supported by the evidence of this run."


def check_conclusion(
    conclusion: Conclusion,
    basis: Basis,
    *,
    hypotheses: Sequence[Hypothesis] = (),
    checklist: Sequence[Demand] = (),
) -> tuple[Problem, ...]:
    """Everything that the conclusion may not say, and what it lacks; empty if it may stand."""
    failed = {claim.id: problems for claim in conclusion.claims if (problems := claim_problems(claim, basis))}
    return (
        *(problem for problems in failed.values() for problem in problems),
        *_causes(conclusion, basis, failed.keys()),
        *_ruled_out(conclusion, failed.keys()),
        *_propagation(conclusion, basis),
        *_answer(conclusion, basis),
        *_fields(conclusion, basis),
        *_recommendations(conclusion, basis),
        *_verdict(conclusion, basis, failed.keys()),
        *_rival(conclusion, hypotheses),
        *ranking_problems(conclusion, basis, hypotheses),
        *(Problem("demand", str(i), text) for i, text in demand_problems(conclusion, checklist)),
    )


def _causes(conclusion: Conclusion, basis: Basis, failed: Collection[str]) -> Iterator[Problem]:
    known = {claim.id: claim for claim in conclusion.claims}
    for i, cause in enumerate(conclusion.causes):
        yield from _cause(str(i), cause, known, basis, failed)


def _cause(
    ref: str, cause: Cause, known: Mapping[str, Claim], basis: Basis, failed: Collection[str]
) -> Iterator[Problem]:
    held = [known[c] for c in cause.claims if c in known and c not in failed]
    if missing := [c for c in cause.claims if c not in known]:
        yield Problem(
            "cause",
            ref,
            f"cause {cause.service} rests on {', '.join(missing)}, which is no claim of the conclusion",
        )
    if not held:
        text = (
            f"cause {cause.service} rests on no claim that holds: give it a claim with evidence, or drop it"
        )
        yield Problem("cause", ref, text, cause.service)
        return
    cited = [basis.evidence[e] for claim in held for e in claim.evidence]
    seen = [view for view in basis.seen if view in cited]
    for name in filter(None, (cause.service, cause.metric)):
        if not occurs(name, [view.text for view in seen]):
            where = ", ".join(view.id for view in seen) or "none"
            text = (
                f'cause {cause.service}: "{name}" was not observed in the evidence of its claims ({where}): '
                "blame a component as the evidence names it, or cite the evidence that shows it"
            )
            yield Problem("cause", ref, text, name)


def _ruled_out(conclusion: Conclusion, failed: Collection[str]) -> Iterator[Problem]:
    known = {claim.id for claim in conclusion.claims}
    for i, item in enumerate(conclusion.ruled_out):
        if not any(c in known and c not in failed for c in item.claims) and item.id is None:
            text = f'ruled out "{item.hypothesis}": no claim that holds says why; give one, or name the refuted hypothesis'
            yield Problem("ruled_out", str(i), text)


def _propagation(conclusion: Conclusion, basis: Basis) -> Iterator[Problem]:
    texts = [view.text for view in basis.seen]
    for i, pair in enumerate(conclusion.propagation):
        for name in pair:
            if not occurs(name, texts):
                text = f'propagation {pair[0]} to {pair[1]}: "{name}" stands in no evidence of this run'
                yield Problem("propagation", str(i), text, name)


def _cited(claims: Sequence[Claim], basis: Basis) -> list[EvidenceView]:
    ids = dict.fromkeys(e for claim in claims for e in claim.evidence)
    return [view for view in basis.seen if view.id in ids]


def _answer(conclusion: Conclusion, basis: Basis) -> Iterator[Problem]:
    views = _cited(conclusion.claims, basis)
    document = _document(conclusion.answer)
    parts = (
        sentences(conclusion.answer)
        if document is None
        else [f"{k}: {x}" for k, v in document.items() for x in _leaves(v)]
    )
    for sentence in parts:
        yield from _free_text(sentence, "answer", "", views, basis)


def _free_text(
    text: str, part: Part, ref: str, views: Sequence[EvidenceView], basis: Basis
) -> Iterator[Problem]:
    yield from text_problems(text, part, ref, views, basis, asked=True)
    yield from action_problems(text, part, ref, views, basis)
    yield from recovery_problems(text, part, ref, basis)


def _fields(conclusion: Conclusion, basis: Basis) -> Iterator[Problem]:
    views = _cited(conclusion.claims, basis)
    for name, value in conclusion.fields.items():
        for leaf in _leaves(value):
            yield from text_problems(leaf, "field", name, views, basis, asked=True)
            yield from recovery_problems(leaf, "field", name, basis)


def _leaves(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON value
    """The scalars of a field as text; truth values and null say nothing that could be looked up."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value
    elif value is not None and not isinstance(value, bool):
        yield json.dumps(value)


def _recommendations(conclusion: Conclusion, basis: Basis) -> Iterator[Problem]:
    by_id = {claim.id: claim for claim in conclusion.claims}
    for i, item in enumerate(conclusion.recommendations):
        own = [by_id[c] for c in item.claims if c in by_id]
        views = _cited(own or conclusion.claims, basis)
        yield from text_problems(item.text, "recommendation", str(i), views, basis, asked=True)
        if missing := [c for c in item.claims if c not in by_id]:
            text = f"recommendation {i} rests on {', '.join(missing)}, which is no claim of the conclusion"
            yield Problem("recommendation", str(i), text)


def _verdict(conclusion: Conclusion, basis: Basis, failed: Collection[str]) -> Iterator[Problem]:
    verdict = conclusion.verdict
    if verdict is Verdict.CAUSE_FOUND and not conclusion.causes:
        yield Problem("verdict", "", "verdict cause_found without a cause: name one, or say inconclusive")
    if verdict is Verdict.HEALTHY and conclusion.causes:
        yield Problem("verdict", "", "verdict healthy with causes: drop them, or say cause_found")
    if verdict is Verdict.HEALTHY:
        yield from recovery_problems("everything is healthy", "verdict", verdict, basis)
    holds = any(claim.id not in failed for claim in conclusion.claims)
    if verdict in (Verdict.HEALTHY, Verdict.ANSWERED) and not holds:
        yield Problem(
            "verdict", "", f"verdict {verdict} needs at least one claim that holds: cite what shows it"
        )


def _rival(conclusion: Conclusion, hypotheses: Sequence[Hypothesis]) -> Iterator[Problem]:
    if conclusion.verdict is not Verdict.CAUSE_FOUND or conclusion.ruled_out:
        return
    refuted = any(h.status == "refuted" and h.contradicting for h in hypotheses)
    texts = [conclusion.answer, *(claim.text for claim in conclusion.claims)]
    if not refuted and not any(says_sole(text) for text in texts):
        text = (
            "no rival hypothesis was looked at: refute one with evidence, list it under ruled_out, "
            'or say that there was "only one candidate"'
        )
        yield Problem("rival", "", text)


_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?!\s|$)[^.!?。！？\n]*)*(?:[.!?。！？]+|\n|$)")


def sentences(text: str) -> list[str]:
    """The sentences of a text; a full stop ends one only before a space or the end."""
    return [match[0] for match in _SENTENCE.finditer(text) if match[0].strip()]


def strip_unsupported(conclusion: Conclusion, problems: Sequence[Problem]) -> Conclusion:
    """The conclusion without what `problems` found.

    Claims stay, as verified or unsupported with their reasons; causes, rulings, recommendations, fields,
    propagation and sentences of the answer go. With no cause left `cause_found` becomes `inconclusive`, with no
    claim left `healthy` and `answered` do.
    """
    claims = tuple(_judged(claim, problems) for claim in conclusion.claims)
    held = {claim.id for claim in claims if claim.status == "verified"}
    bad = {(p.part, p.ref) for p in problems}
    causes = _kept_causes(conclusion, held, bad)
    return Conclusion(
        verdict=_kept_verdict(conclusion.verdict, causes, held, bad),
        answer=_kept_answer(conclusion.answer, problems, claims),
        causes=causes,
        propagation=tuple(
            p for i, p in enumerate(conclusion.propagation) if ("propagation", str(i)) not in bad
        ),
        ruled_out=_kept_rulings(conclusion, held, bad),
        not_available=conclusion.not_available,
        recommendations=_kept_advice(conclusion, held, bad),
        fields={k: v for k, v in conclusion.fields.items() if ("field", k) not in bad},
        claims=claims,
    )


def _judged(claim: Claim, problems: Sequence[Problem]) -> Claim:
    reasons = tuple(p.text[:1000] for p in problems if p.part == "claim" and p.ref == claim.id)[:8]
    status = "unsupported" if reasons else "verified"
    return Claim.model_validate(claim.model_dump() | {"status": status, "problems": reasons})


def _kept_causes(
    conclusion: Conclusion, held: Collection[str], bad: Collection[tuple[str, str]]
) -> tuple[Cause, ...]:
    return tuple(
        Cause.model_validate(cause.model_dump() | {"claims": _only(cause.claims, held)})
        for i, cause in enumerate(conclusion.causes)
        if ("cause", str(i)) not in bad and _only(cause.claims, held)
    )


def _kept_rulings(
    conclusion: Conclusion, held: Collection[str], bad: Collection[tuple[str, str]]
) -> tuple[RuledOut, ...]:
    return tuple(
        RuledOut(hypothesis=item.hypothesis, id=item.id, claims=_only(item.claims, held))
        for i, item in enumerate(conclusion.ruled_out)
        if ("ruled_out", str(i)) not in bad
    )


def _kept_advice(
    conclusion: Conclusion, held: Collection[str], bad: Collection[tuple[str, str]]
) -> tuple[Recommendation, ...]:
    return tuple(
        Recommendation.model_validate(item.model_dump() | {"claims": _only(item.claims, held)})
        for i, item in enumerate(conclusion.recommendations)
        if ("recommendation", str(i)) not in bad
    )


def _only(claims: Sequence[str], held: Collection[str]) -> tuple[str, ...]:
    return tuple(claim for claim in claims if claim in held)


def _kept_verdict(
    verdict: Verdict, causes: Sequence[Cause], held: Collection[str], bad: Collection[tuple[str, str]]
) -> Verdict:
    if ("verdict", verdict) in bad:
        return Verdict.INCONCLUSIVE
    if verdict is Verdict.CAUSE_FOUND:
        return verdict if causes else Verdict.INCONCLUSIVE
    return verdict if held else Verdict.INCONCLUSIVE


def _kept_answer(answer: str, problems: Sequence[Problem], claims: Sequence[Claim]) -> str:
    """The sentences that hold; a value that failed takes its sentence with it, or its entry of a JSON answer.

    So does a claim that fell: what was not fit to be a claim is not fit to be said in the answer.
    """
    values = {p.value.casefold() for p in problems if p.part == "answer" and p.value}
    values |= {claim.text.casefold().rstrip(".") for claim in claims if claim.status == "unsupported"}
    if not values:
        return answer
    document = _document(answer)
    if document is not None:
        held = {k: v for k, v in document.items() if not _says(json.dumps(v, ensure_ascii=False), values)}
        return json.dumps(held, ensure_ascii=False)
    kept = "".join(s for s in sentences(answer) if not _says(s, values)).strip()
    return kept or NOTHING_LEFT


def _says(text: str, values: Collection[str]) -> bool:
    folded = text.casefold()
    return any(value in folded for value in values)


def _document(answer: str) -> dict[str, Any] | None:
    """The answer as a JSON object, if it is one."""
    try:
        document = json.loads(unfenced(answer))
    except ValueError:
        return None
    return document if isinstance(document, dict) else None

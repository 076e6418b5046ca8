"""The check of a draft: what it may say, what it lacks, and what is left of it without the rest."""

from collections.abc import Mapping
from typing import NamedTuple

from opsleuth.nodes.deps import Deps
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.investigation import Investigation
from opsleuth.verification.cause_changes import with_graded_changes
from opsleuth.verification.claim_resolution import resolve_claims
from opsleuth.verification.conclusion_basis import ConclusionBasis, EffectView, EvidenceView
from opsleuth.verification.conclusion_checks import check_conclusion, strip_unsupported
from opsleuth.verification.confidence import with_confidence
from opsleuth.verification.fact_wording import NEUTRAL, WORDING, detect_language
from opsleuth.verification.question_demands import find_unmet_demands
from opsleuth.verification.unaddressed_suspects import with_unaddressed_suspect


class CheckedDraft(NamedTuple):
    """What may be said, the gaps in words for the planner, and how many claims fell."""

    conclusion: Conclusion
    gaps: tuple[str, ...]
    unsupported: int
    unmet: tuple[str, ...] = ()


def check_draft(draft: Conclusion, state: Investigation, deps: Deps) -> CheckedDraft:
    """Hold the draft against all evidence of the run; deterministic."""
    views, effects = _evidence_views(state, deps), _effect_views(state, deps)
    basis = ConclusionBasis(
        views,
        state.window,
        _names_in_question(state),
        effects,
        given=_given_text(state),
        vocabulary=[spec.name for spec in deps.toolbox.specs],
        language=_answer_language(state),
        asks_for_cause=state.follow_up is None,
    )
    draft = resolve_claims(draft, basis)
    problems = check_conclusion(draft, basis, hypotheses=state.hypotheses, checklist=state.checklist)
    held = with_unaddressed_suspect(strip_unsupported(draft, problems), basis, state.hypotheses)
    graded = with_graded_changes(held, tuple(basis.evidence.values()))
    asked = state.alert.service if state.alert else None
    clean = with_confidence(graded, views, state.hypotheses, effects, asked)
    fallen = sum(claim.status == "unsupported" for claim in clean.claims)
    gaps = tuple(dict.fromkeys(p.text[:1000] for p in problems))
    unmet = tuple(text[:1000] for _, text in find_unmet_demands(clean, state.checklist))
    return CheckedDraft(clean, gaps, fallen, unmet)


_IN_ENGLISH = {
    "zh": "（未使用模型：以上结论为英文，各项测量见中文陈述。）",
    "de": "(Ohne Modell untersucht: die Zusammenfassung ist auf Englisch, die Messungen stehen auf Deutsch.)",
    NEUTRAL: "(Investigated without a model, which answers in English only.)",
}


def note_answer_language(answer: str, state: Investigation) -> str:
    """The answer of the planner without a model, which says in the question's language that it is in English."""
    note = _IN_ENGLISH.get(_answer_language(state))
    return answer if note is None or note in answer else f"{answer} {note}"[:20_000]


def _answer_language(state: Investigation) -> str:
    """The language that the question demands, else the one that it is written in."""
    wanted = next((d.name for d in state.checklist if d.kind == "language" and d.name), None)
    if wanted is not None:
        return wanted if wanted in WORDING else NEUTRAL
    return detect_language(state.question)


def _evidence_views(state: Investigation, deps: Deps) -> Mapping[str, EvidenceView]:
    """The evidence by id; an answer taken from the record is not evidence of its own."""
    own = [o.has_own_evidence for o in deps.observed.upto(state.observations)]
    return {v.id: v for v, is_own in zip(deps.observed.views(state.observations), own, strict=True) if is_own}


def _effect_views(state: Investigation, deps: Deps) -> tuple[EffectView, ...]:
    numbers = {o.call_id: f"E{o.number}" for o in deps.observed.upto(state.observations)}
    return tuple(
        EffectView(
            call_id=row.call_id,
            tool=row.tool,
            target=row.target or "",
            state=row.status,
            checked=row.verified,
            evidence=tuple(
                numbers[name] for name in (row.call_id, f"{row.call_id}/check") if name in numbers
            ),
        )
        for row in deps.store.effects.along(deps.run)
    )


def _names_in_question(state: Investigation) -> tuple[str, ...]:
    alert = state.alert.service if state.alert else None
    return tuple(dict.fromkeys(name for name in (alert, *(h.service for h in state.hypotheses)) if name))


def _given_text(state: Investigation) -> str:
    alert = state.alert
    return "\n".join([state.question, *((alert.text, alert.service or "") if alert else ())])

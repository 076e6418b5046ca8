"""The check of a draft: what it may say, what it lacks, and what is left of it without the rest."""

from collections.abc import Mapping
from typing import NamedTuple

from opsleuth.nodes.deps import Deps
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.investigation import Investigation
from opsleuth.verification.claims import Basis, EffectView, EvidenceView
from opsleuth.verification.conclusions import check_conclusion, strip_unsupported
from opsleuth.verification.confidence import with_confidence
from opsleuth.verification.overruled import with_ranking


class Checked(NamedTuple):
    """What may be said, the gaps in words for the planner, and how many claims fell."""

    conclusion: Conclusion
    gaps: tuple[str, ...]
    unsupported: int


def check(draft: Conclusion, state: Investigation, deps: Deps) -> Checked:
    """Hold the draft against all evidence of the run; deterministic."""
    views, effects = _views(state, deps), _effects(state, deps)
    basis = Basis(
        views,
        state.window,
        _names(state),
        effects,
        given=_given(state),
        vocabulary=[spec.name for spec in deps.toolbox.specs],
    )
    problems = check_conclusion(draft, basis, hypotheses=state.hypotheses, checklist=state.checklist)
    held = with_ranking(strip_unsupported(draft, problems), basis, state.hypotheses)
    clean = with_confidence(held, views, state.hypotheses, effects)
    fallen = sum(claim.status == "unsupported" for claim in clean.claims)
    return Checked(clean, tuple(dict.fromkeys(p.text[:1000] for p in problems)), fallen)


def _views(state: Investigation, deps: Deps) -> Mapping[str, EvidenceView]:
    """The evidence by id; an answer taken from the record is no evidence of its own."""
    own = [o.evidence == f"E{o.number}" for o in deps.observed.upto(state.observations)]
    return {v.id: v for v, is_own in zip(deps.observed.views(state.observations), own, strict=True) if is_own}


def _effects(state: Investigation, deps: Deps) -> tuple[EffectView, ...]:
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


def _names(state: Investigation) -> tuple[str, ...]:
    alert = state.alert.service if state.alert else None
    return tuple(dict.fromkeys(name for name in (alert, *(h.service for h in state.hypotheses)) if name))


def _given(state: Investigation) -> str:
    alert = state.alert
    return "\n".join([state.question, *((alert.text, alert.service or "") if alert else ())])

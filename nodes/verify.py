"""verify: nothing is believed. After an effect the world is read again; before the end the draft is checked."""

from langgraph.graph import END

from opsleuth.nodes.deps import Deps, Step
from opsleuth.nodes.opinion import By, second_opinion
from opsleuth.nodes.partial import partial, with_opening
from opsleuth.nodes.postconditions import after_effects
from opsleuth.nodes.ranked import ranked, undecided
from opsleuth.nodes.report import report
from opsleuth.nodes.review import Checked, check
from opsleuth.nodes.trace import tell_hypotheses
from opsleuth.state.conclusion import Conclusion, Review
from opsleuth.state.investigation import Investigation, Notice
from opsleuth.state.outcome import ENDS, StopReason
from opsleuth.verification.closing import closed
from opsleuth.verification.strangers import labelled, unseen


async def verify(state: Investigation, deps: Deps) -> Step:
    """Check what is to be said. Gaps go back to the planner while rework is left, then they are removed."""
    if state.unverified:
        return await after_effects(state, deps)
    draft = _draft(state, deps)
    by: By = "checks"
    checked = check(draft, state, deps)
    if state.stop_reason is None and state.rework < state.budget.limits.rework:
        heard = await second_opinion(draft, checked, state, deps)
        if gaps := (*checked.gaps, *heard.objections):
            return _rework(heard.state, gaps, checked, heard.by, deps)
        state, by = heard.state, heard.by
    if undecided(state, checked.conclusion):
        state = await ranked(state, deps)
        checked = check(_draft(state, deps), state, deps)
    return _end(state, checked, by, deps)


def _draft(state: Investigation, deps: Deps) -> Conclusion:
    """What the planner concluded, or what can be said where it did not."""
    return state.draft or partial(state, deps.observed.upto(state.observations))


def _rework(state: Investigation, gaps: tuple[str, ...], checked: Checked, by: By, deps: Deps) -> Step:
    gaps = gaps[:12]
    deps.trace.emit("claim.verified", accepted=False, gaps=list(gaps), rework=state.rework + 1)
    notices = tuple(Notice(code="rework", text=gap[:1000]) for gap in gaps)
    return Step(
        state.changed(
            notices=notices,
            rework=state.rework + 1,
            review=Review(accepted=False, gaps=gaps, unsupported=checked.unsupported, by=by),
        ),
        "plan",
    )


def _end(state: Investigation, checked: Checked, by: By, deps: Deps) -> Step:
    """Store the report in a table that is read without the framework, then end."""
    final: Conclusion = checked.conclusion
    if state.draft is None:
        said = with_opening(final.answer, state, deps.observed.upto(state.observations))
        final = Conclusion.model_validate(final.model_dump() | {"answer": said})
    closing = closed(state.hypotheses, final)
    state, final = _of_strangers(state, final, deps)
    reason, before = state.stop_reason or StopReason.CONCLUDED, state.hypotheses
    state = state.changed(
        draft=final,
        hypotheses=closing,
        review=Review(
            accepted=not checked.gaps, gaps=checked.gaps[:12], unsupported=checked.unsupported, by=by
        ),
        stop_reason=reason,
        status=ENDS[reason][0],
        notices=(),
    )
    for claim in final.claims:
        deps.trace.later(
            "claim.verified", id=claim.id, text=claim.text, status=claim.status, problems=list(claim.problems)
        )
    tell_hypotheses(before, state.hypotheses, deps.trace)
    deps.store.reports.put(deps.run, report(state, deps))
    return Step(state, END)


def _of_strangers(state: Investigation, final: Conclusion, deps: Deps) -> tuple[Investigation, Conclusion]:
    """What is said of services that were asked about and that no source knows, if no evidence names them either."""
    if not state.absent:
        return state, final
    texts = [view.text for view in deps.observed.views(state.observations) if view.shows]
    if not (absent := unseen(state.absent, texts)):
        return state.changed(absent=(), unresolved=""), final
    meant = state.alert.service if state.alert else None
    about = meant if meant and meant not in absent else "what there is data on"
    return state, labelled(final, absent, about)

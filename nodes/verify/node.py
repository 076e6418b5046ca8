"""verify: after an effect, read the service again; before the end, check the draft."""

from langgraph.graph import END

from opsleuth.models.planner import OFFLINE
from opsleuth.nodes.deps import Deps, NodeStep
from opsleuth.nodes.trace import trace_hypothesis_changes
from opsleuth.nodes.verify.draft_checks import CheckedDraft, check_draft, note_answer_language
from opsleuth.nodes.verify.fallback_ranking import (
    BESIDE_DRAFT,
    add_fallback_ranking,
    blames_unranked,
    found_nothing,
)
from opsleuth.nodes.verify.incident_memory import add_earlier_incidents
from opsleuth.nodes.verify.partial_conclusion import conclude_partially, with_opening
from opsleuth.nodes.verify.postconditions import check_effects
from opsleuth.nodes.verify.report import build_report
from opsleuth.nodes.verify.reviewer import ReviewerOpinion, ask_reviewer
from opsleuth.questions.unknown_services import find_names_without_evidence, label_unknown_services
from opsleuth.state.conclusion import Conclusion, Review
from opsleuth.state.investigation import Investigation, PlannerNotice
from opsleuth.state.run_status import ENDING_BY_STOP_REASON, StopReason
from opsleuth.verification.hypothesis_closing import close_unnamed_hypotheses


async def verify(state: Investigation, deps: Deps) -> NodeStep:
    """Check what to say. Gaps go back to the planner while rework is left, then they are removed.

    A reviewer sees only what the program has passed, and what goes out in the end.
    """
    if state.unverified:
        return await check_effects(state, deps)
    draft = _draft_or_partial(state, deps)
    if blames_unranked(state, draft):
        state = await add_fallback_ranking(state, deps, BESIDE_DRAFT)
    checked = check_draft(draft, state, deps)
    heard = ReviewerOpinion(state, outcome="skipped" if deps.second_opinion else "none")
    if state.stop_reason is None:
        rework_left = state.rework < state.budget.limits.rework
        if checked.gaps and rework_left:
            return _send_back_for_rework(state, checked.gaps, checked, heard, deps)
        heard = await ask_reviewer(checked.conclusion, checked, state, deps)
        if heard.objections and rework_left:
            return _send_back_for_rework(heard.state, heard.objections, checked, heard, deps)
        state = _keep_objections(heard)
    if found_nothing(state, checked.conclusion):
        state = await add_fallback_ranking(state, deps)
        checked = check_draft(_draft_or_partial(state, deps), state, deps)
    return _end_run(state, checked, heard, deps)


def _draft_or_partial(state: Investigation, deps: Deps) -> Conclusion:
    """What the planner concluded, or what can be said where it did not."""
    return state.draft or conclude_partially(state, deps.observed.upto(state.observations))


def _keep_objections(heard: ReviewerOpinion) -> Investigation:
    """The state after a review that sends nothing back: what is objected to appears in the report."""
    if heard.outcome != "objected":
        return heard.state
    return heard.state.changed(objections=heard.objections[:20])


def _send_back_for_rework(
    state: Investigation, gaps: tuple[str, ...], checked: CheckedDraft, heard: ReviewerOpinion, deps: Deps
) -> NodeStep:
    gaps = gaps[:12]
    deps.trace.emit("claim.checked", accepted=False, gaps=list(gaps), rework=state.rework + 1)
    notices = tuple(PlannerNotice(code="rework", text=gap[:1000]) for gap in gaps)
    return NodeStep(
        state.changed(
            notices=notices,
            rework=state.rework + 1,
            objections=heard.objections[:20] if heard.outcome == "objected" else state.objections,
            review=Review(accepted=False, gaps=gaps, unsupported=checked.unsupported, by=heard.by),
        ),
        "plan",
    )


def _end_run(state: Investigation, checked: CheckedDraft, heard: ReviewerOpinion, deps: Deps) -> NodeStep:
    """Store the report in a table that is read without the framework, then end."""
    final: Conclusion = checked.conclusion
    if state.draft is None:
        said = with_opening(final.answer, state, deps.observed.upto(state.observations))
        final = Conclusion.model_validate(final.model_dump() | {"answer": said})
    if deps.planner.name == OFFLINE:
        final = final.model_copy(update={"answer": note_answer_language(final.answer, state)})
    closing = close_unnamed_hypotheses(state.hypotheses, final)
    state, final = _label_unknown_services(state, final, deps)
    reason, before = state.stop_reason or StopReason.CONCLUDED, state.hypotheses
    state = state.changed(
        draft=final,
        hypotheses=closing,
        review=Review(
            accepted=not checked.gaps,
            gaps=checked.gaps[:12],
            unsupported=checked.unsupported,
            unmet=checked.unmet[:20],
            objections=() if heard.outcome == "accepted" else state.objections,
            second=heard.outcome,
            by=heard.by,
        ),
        stop_reason=reason,
        status=ENDING_BY_STOP_REASON[reason][0],
        notices=(),
    )
    for claim in final.claims:
        deps.trace.later(
            "claim.checked",
            id=claim.id,
            text=claim.text,
            status=claim.status,
            basis=claim.basis,
            problems=list(claim.problems),
        )
    trace_hypothesis_changes(before, state.hypotheses, deps.trace)
    deps.store.reports.put(deps.run, add_earlier_incidents(build_report(state, deps), state, deps))
    return NodeStep(state, END)


def _label_unknown_services(
    state: Investigation, final: Conclusion, deps: Deps
) -> tuple[Investigation, Conclusion]:
    """What is said of services that were asked about and that no source knows, if no evidence names them either."""
    if not state.absent:
        return state, final
    texts = [view.text for view in deps.observed.views(state.observations) if view.shows]
    if not (absent := find_names_without_evidence(state.absent, texts)):
        return state.changed(absent=(), unresolved=""), final
    meant = state.alert.service if state.alert else None
    about = meant if meant and meant not in absent else "what there is data on"
    return state, label_unknown_services(final, absent, about)

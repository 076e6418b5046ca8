"""A decision becomes state: checked against what exists, then applied. Pure functions."""

from collections.abc import Iterable, Sequence

from opsleuth.models.planner import Observation
from opsleuth.state.calls import ResultStatus
from opsleuth.state.decision import Decision, HypothesisChange, PlanChange
from opsleuth.state.investigation import (
    MOST_CITED,
    MOST_HYPOTHESES,
    MOST_STEPS,
    Hypothesis,
    Investigation,
    PlanStep,
)
from opsleuth.state.plurals import format_count


def find_decision_faults(
    decision: Decision, state: Investigation, observed: Sequence[Observation]
) -> list[str]:
    """What is wrong with a decision, in words for the planner; empty if it may be applied."""
    return [
        *_room_faults(decision, state),
        *find_plan_faults(decision.plan, state),
        *(
            fault
            for change in decision.hypotheses
            for fault in find_hypothesis_faults(change, state, observed)
        ),
        *_test_faults(decision, state),
        *_claim_faults(decision, state),
    ]


def apply_decision(decision: Decision, state: Investigation) -> Investigation:
    """The state with the plan and hypothesis changes of a decision without `faults`."""
    plan = list(state.plan)
    for change in decision.plan:
        plan = _change_step(plan, change)
    hypotheses = list(state.hypotheses)
    for revised in decision.hypotheses:
        hypotheses = _change_hypothesis(hypotheses, revised)
    return state.changed(plan=tuple(plan), hypotheses=tuple(hypotheses))


def _room_faults(decision: Decision, state: Investigation) -> Iterable[str]:
    steps = len(state.plan) + sum(change.id is None for change in decision.plan)
    if steps > MOST_STEPS:
        yield f"plan: {format_count(steps, 'step')}, there is room for {MOST_STEPS}: change the status of those there are"
    opened = len(state.hypotheses) + sum(change.id is None for change in decision.hypotheses)
    if opened > MOST_HYPOTHESES:
        yield f"hypotheses: {opened}, there is room for {MOST_HYPOTHESES}: support or refute those there are"


def find_plan_faults(changes: Iterable[PlanChange], state: Investigation) -> Iterable[str]:
    """What is wrong with changes of the plan, in words for the planner."""
    known = {step.id for step in state.plan}
    for change in changes:
        if change.id is None and not change.text:
            yield "plan: a new step needs a text"
        elif change.id is not None and change.id not in known:
            yield f"plan: no step {change.id}; the steps are {', '.join(sorted(known)) or 'none yet'}"


def find_hypothesis_faults(
    change: HypothesisChange, state: Investigation, observed: Sequence[Observation]
) -> Iterable[str]:
    """What is wrong with a change of a hypothesis, in words for the planner."""
    known = {h.id for h in state.hypotheses}
    if change.id is None and not change.text:
        yield "hypotheses: a new hypothesis needs a text"
    if change.id is not None and change.id not in known:
        yield f"hypotheses: no {change.id}; open ones are {', '.join(sorted(known)) or 'none yet'}"
    if change.status == "supported" and not change.supporting:
        yield f"hypotheses: {change.id or 'a new one'} cannot be supported without evidence: name it in `supporting`"
    if change.status == "refuted" and not change.contradicting:
        yield f"hypotheses: {change.id or 'a new one'} cannot be refuted without evidence: name it in `contradicting`"
    by_id = {f"E{o.number}": o for o in observed}
    for evidence in (*change.supporting, *change.contradicting):
        if (seen := by_id.get(evidence)) is None:
            yield f"hypotheses: {evidence} does not exist; the newest is E{state.observations}"
        elif seen.evidence != evidence:
            yield f"hypotheses: {evidence} does not exist, its call was answered from the record: cite {seen.evidence}"
        elif seen.status.is_error:
            yield f"hypotheses: {evidence} is an error of the tool {seen.tool}, which says nothing about the incident"
        elif seen.status is ResultStatus.NOT_RECORDED and change.status != "open":
            yield f"hypotheses: {evidence} says that nothing was recorded, which decides nothing: cite a result"


def _test_faults(decision: Decision, state: Investigation) -> Iterable[str]:
    """A call may test a hypothesis that exists, or one that this decision opens."""
    opened = sum(change.id is None for change in decision.hypotheses)
    known = {f"H{n}" for n in range(1, len(state.hypotheses) + opened + 1)}
    for call in decision.calls:
        if call.tests is not None and call.tests not in known:
            yield f"calls: {call.tool} tests {call.tests}, which does not exist; there are {', '.join(sorted(known)) or 'none'}"


def _claim_faults(decision: Decision, state: Investigation) -> Iterable[str]:
    if decision.conclusion is None:
        return
    ids = [claim.id for claim in decision.conclusion.claims]
    if len(ids) != len(set(ids)):
        yield "conclusion: two claims have the same id: number them C1, C2, …"
    cited = {c for cause in decision.conclusion.causes for c in cause.claims}
    if missing := sorted(cited - set(ids)):
        yield f"conclusion: causes cite {', '.join(missing)}, which are not among its claims; they are {', '.join(ids) or 'none'}"
    for claim in decision.conclusion.claims:
        if not claim.evidence:
            yield f"conclusion: {claim.id} cites no evidence"
        for evidence in claim.evidence:
            if int(evidence[1:]) > state.observations:
                yield f"conclusion: {claim.id} cites {evidence}, which does not exist; the newest is E{state.observations}"


def _change_step(plan: list[PlanStep], change: PlanChange) -> list[PlanStep]:
    if change.id is None:
        return [*plan, PlanStep(id=f"P{len(plan) + 1}", text=change.text, status=change.status)]
    return [
        PlanStep(id=step.id, text=change.text or step.text, status=change.status)
        if step.id == change.id
        else step
        for step in plan
    ]


def _change_hypothesis(hypotheses: list[Hypothesis], change: HypothesisChange) -> list[Hypothesis]:
    if change.id is None:
        new = Hypothesis(
            id=f"H{len(hypotheses) + 1}",
            text=change.text,
            service=change.service,
            kind=change.kind,
            status=change.status,
            supporting=change.supporting,
            contradicting=change.contradicting,
        )
        return [*hypotheses, new]
    return [_revise_hypothesis(h, change) if h.id == change.id else h for h in hypotheses]


def _revise_hypothesis(old: Hypothesis, change: HypothesisChange) -> Hypothesis:
    return Hypothesis(
        id=old.id,
        text=change.text or old.text,
        service=change.service or old.service,
        kind=change.kind or old.kind,
        status=change.status,
        supporting=_merge_citations(old.supporting, change.supporting),
        contradicting=_merge_citations(old.contradicting, change.contradicting),
    )


def _merge_citations(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...]:
    """Both, each once; beyond what there is room for the oldest go."""
    return tuple(dict.fromkeys((*old, *new)))[-MOST_CITED:]

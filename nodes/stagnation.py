"""Turns that bring nothing new: the planner is told twice, the second time that it is the last, then the run ends."""

from collections import Counter
from collections.abc import Mapping, Sequence

from opsleuth.state.calls import Call, CallGate
from opsleuth.state.investigation import PlannerNotice
from opsleuth.state.plurals import format_count
from opsleuth.state.results import Observation

WARN_AFTER, STALLED = 2, 4
"""Turns in a row without anything new before the planner is told, and before it is told to conclude: one more ends the run."""

_REFUSED = {CallGate.DENIED: "denied by a person", CallGate.REFUSED: "refused by the policy"}


def stalled_notice(stalled: int, why: str) -> tuple[PlannerNotice, ...]:
    """What the planner is told after this many turns without anything new; `why` is of the last of them."""
    if stalled == WARN_AFTER:
        text = f"{stalled} turns brought nothing new ({why}). Conclude with what is known, or ask for something else."
    elif stalled == STALLED:
        text = f"{stalled} turns brought nothing new ({why}). Conclude in this turn: the run ends if it brings nothing new either."
    else:
        return ()
    return (PlannerNotice(code="stagnation", text=text[:1000]),)


def describe_stall(stalled: int, why: str) -> str:
    """Why the run ends, in words for its report."""
    return f"{format_count(stalled, 'turn')} in a row brought nothing new; in the last, {why}"[:1000]


def explain_stalled_turn(new: Sequence[Observation], calls: Sequence[Call]) -> str:
    """The outcome of the calls of a turn that brought nothing new."""
    gates = {call.id: call.gate for call in calls}
    reasons = Counter(_reason_of_call(o, gates) for o in new)
    return ", ".join(f"{format_count(count, 'call')} {reason}" for reason, count in reasons.items())


def _reason_of_call(o: Observation, gates: Mapping[str, CallGate]) -> str:
    if refused := _REFUSED.get(gates.get(o.call_id, CallGate.FREE)):
        return refused
    if not o.has_own_evidence:
        return f"answered from the record ({o.evidence})"
    if o.status.is_error:
        return f"failed ({o.tool}: {o.status})"
    return "that asked the same again with other numbers"

"""What an operator asked for while the run was busy, read before every node."""

from langgraph.errors import GraphDrained

from opsleuth.checkpoints.control_requests import ANOTHER_ALERT
from opsleuth.nodes.deps import Deps, NodeStep
from opsleuth.state.investigation import Investigation, PlannerNotice
from opsleuth.state.run_status import StopReason

STOPS = {"cancel": StopReason.CANCELED, "terminate": StopReason.TERMINATED}


def step_for_operator_request(node: str, state: Investigation, deps: Deps) -> NodeStep | None:
    """The step to take instead of the node, or None.

    A pause leaves the run where it is: the node has not run and will be the next one at resume.
    A cancellation ends the run through verify, so that there is a report of what was found. Only the nodes
    that begin something are kept from it: act gives its calls no start, observe and verify finish what is there.
    """
    wish = deps.halted()
    if wish == "pause" or (deps.stopping.wished and wish not in STOPS):
        raise GraphDrained(wish or "stopped")
    if wish in STOPS and state.stop_reason is None and node in ("plan", "approve"):
        stopped = state.changed(stop_reason=STOPS[wish], stop_detail="by an operator", pending=())
        return NodeStep(stopped, "verify")
    return None


def add_operator_notes(state: Investigation, notes: list[str]) -> Investigation:
    """The state with notes for the planner: an operator's word, or an alert's text, which is data."""
    new = tuple(_notice_from_note(note) for note in notes)
    return state.changed(notices=(*state.notices, *new)[-12:]) if new else state


def _notice_from_note(note: str) -> PlannerNotice:
    if note.startswith(ANOTHER_ALERT):
        return PlannerNotice(code="alert", text=note[:1000])
    return PlannerNotice(code="note", text=f"Note of the operator: {note}"[:1000])

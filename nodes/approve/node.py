"""approve: ask people. Holds one typed interrupt and nothing that changes the world, before or after it."""

from typing import Any, Literal

from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field

from opsleuth.nodes.approve.precheck import precheck_gated_calls, with_gate
from opsleuth.nodes.deps import Deps, NodeStep
from opsleuth.state.base import JsonObject
from opsleuth.state.calls import Call, CallGate
from opsleuth.state.investigation import Investigation
from opsleuth.tools.spec import InvalidArgumentsError


class ResumedAnswer(BaseModel):
    """A person's answer to one call: the digest says to exactly which. `arguments` are those of an edit."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    decision: Literal["approved", "denied", "edited"]
    digest: str
    reason: str = ""
    arguments: JsonObject | None = None


class ResumedAnswers(BaseModel):
    """Answers by call id; a call without one stays as it is and is asked again. `limits` are new totals."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    answers: dict[str, ResumedAnswer]
    limits: JsonObject = Field(default_factory=dict)


async def approve(state: Investigation, deps: Deps) -> NodeStep:
    """Wait for an answer to each gated call, or to the outcome of an effect.

    First the target of each call is looked at, a step of its own, so that the person sees it. A person's word
    on an effect is in the ledger before the graph goes on: verify reads it there.
    """
    if (looked := await precheck_gated_calls(state, deps)) is not None:
        return NodeStep(looked, "approve")
    calls = [call.model_dump(mode="json") for call in state.pending if call.gate is CallGate.ASK]
    effects = [] if calls else _unknown_effects(state, deps)
    if not calls and not effects:
        return NodeStep(state, "act" if state.pending else "verify")
    raw = interrupt({"calls": calls, "effects": effects}, response_schema=ResumedAnswers)
    given = ResumedAnswers.model_validate(raw)
    state = state.changed(budget=state.budget.within(given.limits)) if given.limits else state
    if effects:
        return NodeStep(state, "verify")
    pending = tuple(_apply_answer(call, given.answers.get(call.id), deps) for call in state.pending)
    still = any(call.gate is CallGate.ASK for call in pending)
    return NodeStep(state.changed(pending=pending), "approve" if still else "act")


def _unknown_effects(state: Investigation, deps: Deps) -> list[dict[str, Any]]:
    rows = (deps.store.effects.of_call(deps.run, call_id) for call_id in state.unverified)
    return [
        {"id": row.call_id, "key": row.key} for row in rows if row and row.status in ("started", "unknown")
    ]


def _apply_answer(call: Call, answer: ResumedAnswer | None, deps: Deps) -> Call:
    if call.gate is not CallGate.ASK or answer is None or answer.digest != call.digest:
        return call
    if answer.decision == "edited":
        return _apply_edit(call, answer.arguments or {}, deps)
    if call.unfit and answer.decision == "approved":
        return call
    gate = CallGate.APPROVED if answer.decision == "approved" else CallGate.DENIED
    return with_gate(call, gate, answer.reason, call.precheck)


def _apply_edit(call: Call, arguments: JsonObject, deps: Deps) -> Call:
    """The call with a person's arguments: another digest, so it is shown and asked again."""
    request = call.asked(arguments)
    try:
        edited = deps.toolbox.check(request).call(request, call_id=call.id, number=call.number)
    except InvalidArgumentsError:
        return call
    return edited if edited.gate is CallGate.REFUSED else with_gate(edited, CallGate.ASK, edited.gate_reason)

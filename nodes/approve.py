"""approve: ask people. Holds one typed interrupt and nothing that changes the world, before or after it."""

from typing import Any, Literal

from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field

from opsleuth.nodes.asking import gated, prepared
from opsleuth.nodes.deps import Deps, Step
from opsleuth.state.base import JsonObject
from opsleuth.state.calls import Call, CallRequest, Gate
from opsleuth.state.investigation import Investigation
from opsleuth.tools.spec import InvalidArguments


class Answer(BaseModel):
    """A person's answer to one call: the digest says to exactly which. `arguments` are those of an edit."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    decision: Literal["approved", "denied", "edited"]
    digest: str
    reason: str = ""
    arguments: JsonObject | None = None


class Answers(BaseModel):
    """Answers by call id; a call without one stays as it is and is asked again. `limits` are new totals."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    answers: dict[str, Answer]
    limits: JsonObject = Field(default_factory=dict)


async def approve(state: Investigation, deps: Deps) -> Step:
    """Wait for an answer to each gated call, or to what became of an effect.

    First the target of each call is looked at, a step of its own, so that the person sees it. A person's word
    on an effect is in the ledger before the graph goes on: verify reads it there.
    """
    if (looked := await prepared(state, deps)) is not None:
        return Step(looked, "approve")
    calls = [call.model_dump(mode="json") for call in state.pending if call.gate is Gate.ASK]
    effects = [] if calls else _unknown(state, deps)
    if not calls and not effects:
        return Step(state, "act" if state.pending else "verify")
    raw = interrupt({"calls": calls, "effects": effects}, response_schema=Answers)
    given = Answers.model_validate(raw)
    state = state.changed(budget=state.budget.within(given.limits)) if given.limits else state
    if effects:
        return Step(state, "verify")
    pending = tuple(_answered(call, given.answers.get(call.id), deps) for call in state.pending)
    still = any(call.gate is Gate.ASK for call in pending)
    return Step(state.changed(pending=pending), "approve" if still else "act")


def _unknown(state: Investigation, deps: Deps) -> list[dict[str, Any]]:
    rows = (deps.store.effects.of_call(deps.run, call_id) for call_id in state.unverified)
    return [
        {"id": row.call_id, "key": row.key} for row in rows if row and row.status in ("started", "unknown")
    ]


def _answered(call: Call, answer: Answer | None, deps: Deps) -> Call:
    if call.gate is not Gate.ASK or answer is None or answer.digest != call.digest:
        return call
    if answer.decision == "edited":
        return _edited(call, answer.arguments or {}, deps)
    gate = Gate.APPROVED if answer.decision == "approved" else Gate.DENIED
    return gated(call, gate, answer.reason, call.precheck)


def _edited(call: Call, arguments: JsonObject, deps: Deps) -> Call:
    """The call with a person's arguments: another digest, so it is shown and asked again."""
    request = CallRequest(
        tool=call.tool, arguments=arguments, purpose=call.purpose, tests=call.tests, repeat_of=call.repeat_of
    )
    try:
        edited = deps.toolbox.check(request).call(request, call_id=call.id, number=call.number)
    except InvalidArguments:
        return call
    return edited if edited.gate is Gate.REFUSED else gated(edited, Gate.ASK, edited.gate_reason)

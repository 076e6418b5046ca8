"""approve: ask people. Holds nothing but one typed interrupt; everything else happens before or after it."""

from typing import Literal

from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict

from opsleuth.nodes.deps import Deps, Step
from opsleuth.state.calls import Call, Gate
from opsleuth.state.investigation import Investigation


class Answer(BaseModel):
    """A person's answer to one call: the digest says to exactly which."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    decision: Literal["approved", "denied", "stale"]
    digest: str
    reason: str = ""


class Answers(BaseModel):
    """Every gated call's answer, by call id."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    answers: dict[str, Answer]


async def approve(state: Investigation, deps: Deps) -> Step:  # noqa: ARG001 - every node has the same shape
    """Wait for an answer to each gated call; an answer to another digest leaves the call gated and asks again."""
    asked = [call.model_dump(mode="json") for call in state.pending if call.gate is Gate.ASK]
    given = interrupt({"calls": asked}, response_schema=Answers)
    answers = Answers.model_validate(given).answers
    pending = tuple(_answered(call, answers.get(call.id)) for call in state.pending)
    state = state.changed(pending=pending)
    return Step(state, "approve" if any(call.gate is Gate.ASK for call in pending) else "act")


def _answered(call: Call, answer: Answer | None) -> Call:
    if (
        call.gate is not Gate.ASK
        or answer is None
        or answer.decision == "stale"
        or answer.digest != call.digest
    ):
        return call
    gate = Gate.APPROVED if answer.decision == "approved" else Gate.DENIED
    return Call.model_validate(call.model_dump() | {"gate": gate, "gate_reason": answer.reason[:1000]})

"""Calls: what the planner asks for, and its outcome."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from opsleuth.state.base import FrozenModel, HypothesisId, JsonObject, Name, Sentence
from opsleuth.state.results import ResultStatus

__all__ = ["Call", "CallGate", "CallRequest", "ResultStatus", "Risk"]


class Risk(StrEnum):
    """How much harm a tool can do, mildest first."""

    READ = "read"
    LOW = "low"
    HIGH = "high"
    IRREVERSIBLE = "irreversible"


class CallGate(StrEnum):
    """Whether a call may run: `free` without asking, `ask` not before a person answered, `refused` never."""

    FREE = "free"
    ASK = "ask"
    APPROVED = "approved"
    DENIED = "denied"
    REFUSED = "refused"


class CallRequest(FrozenModel):
    """One call as the planner wrote it: `purpose` is what it is meant to find out, `tests` the hypothesis it tests."""

    tool: Name
    arguments: JsonObject = Field(default_factory=dict)
    purpose: Sentence = ""
    tests: HypothesisId | None = None
    repeat_of: Name | None = None


class Call(FrozenModel):
    """A validated call of this turn.

    `id` is unique everywhere (`<run>/t4c1`, the run that planned it). `number` is its observation's number,
    and its evidence's (`O7`, `E7`). `digest` covers tool, canonical arguments and target. `precheck` is what a
    look at the target said before a person was asked, None before that look; `unfit` says that it refused what a person
    had made of the call, which can then be edited or denied, and not approved. `reason` is the planner's for the whole
    turn, kept with its first call.
    """

    id: Name
    number: Annotated[int, Field(gt=0, lt=10_000_000)]
    tool: Name
    arguments: JsonObject
    purpose: Sentence = ""
    tests: HypothesisId | None = None
    risk: Risk = Risk.READ
    target: Name | None = None
    digest: str
    gate: CallGate = CallGate.FREE
    gate_reason: Sentence = ""
    precheck: Sentence | None = None
    unfit: bool = False
    repeat_of: Name | None = None
    reason: Sentence = ""

    @property
    def refused_by_target(self) -> bool:
        """Whether it was the target that said no, and neither the policy nor a person."""
        return self.gate is CallGate.REFUSED and self.precheck is not None

    def asked(self, arguments: JsonObject | None = None) -> CallRequest:
        """The request behind the call, or the same one with other arguments."""
        return CallRequest(
            tool=self.tool,
            arguments=self.arguments if arguments is None else arguments,
            purpose=self.purpose,
            tests=self.tests,
            repeat_of=self.repeat_of,
        )

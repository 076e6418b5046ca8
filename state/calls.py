"""Calls: what the planner asks for, and what becomes of it."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from opsleuth.state.base import Frozen, HypothesisId, JsonObject, Name, Sentence
from opsleuth.state.results import ResultStatus

__all__ = ["Call", "CallRequest", "Gate", "ResultStatus", "Risk"]


class Risk(StrEnum):
    """How much harm a tool can do, mildest first."""

    READ = "read"
    LOW = "low"
    HIGH = "high"
    IRREVERSIBLE = "irreversible"


class Gate(StrEnum):
    """Whether a call may run: `free` without asking, `ask` not before a person answered, `refused` never."""

    FREE = "free"
    ASK = "ask"
    APPROVED = "approved"
    DENIED = "denied"
    REFUSED = "refused"


class CallRequest(Frozen):
    """One call as the planner wrote it: `purpose` is what it is meant to find out, `tests` the hypothesis it tests."""

    tool: Name
    arguments: JsonObject = Field(default_factory=dict)
    purpose: Sentence = ""
    tests: HypothesisId | None = None
    repeat_of: Name | None = None


class Call(Frozen):
    """A validated call of this turn.

    `id` is unique everywhere (`<run>/t4c1`, the run that planned it). `number` is its observation's number,
    and its evidence's (`O7`, `E7`). `digest` covers tool, canonical arguments and target. `precheck` is what a
    look at the target said before a person was asked, None before that look.
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
    gate: Gate = Gate.FREE
    gate_reason: Sentence = ""
    precheck: Sentence | None = None
    repeat_of: Name | None = None

    @property
    def refused_by_target(self) -> bool:
        """Whether it was the target that said no, and neither the policy nor a person."""
        return self.gate is Gate.REFUSED and self.precheck is not None

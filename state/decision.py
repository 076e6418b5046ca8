"""What a planner returns each turn. The model writes it; code validates it and does the rest."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from opsleuth.state.base import EvidenceId, FrozenModel, HypothesisId, Name, Sentence
from opsleuth.state.calls import CallRequest
from opsleuth.state.conclusion import Conclusion, Kind


class PlanChange(FrozenModel):
    """Add a step (`id` None), or set the status of one that exists."""

    text: Sentence = ""
    id: Name | None = None
    status: Literal["pending", "active", "done", "dropped"] = "pending"


class HypothesisChange(FrozenModel):
    """Open a hypothesis (`id` None), or support or refute one, with the evidence for that."""

    id: HypothesisId | None = None
    text: Sentence = ""
    service: Name | None = None
    kind: Kind | None = None
    status: Literal["open", "supported", "refuted"] = "open"
    supporting: Annotated[tuple[EvidenceId, ...], Field(max_length=20)] = ()
    contradicting: Annotated[tuple[EvidenceId, ...], Field(max_length=20)] = ()


class Decision(FrozenModel):
    """One turn's decision: plan and hypothesis changes, and either calls, or a conclusion, or neither.

    Some models send one thing at a time; a turn that only changes the plan or hypotheses counts as no progress.
    """

    reason: Sentence
    plan: Annotated[tuple[PlanChange, ...], Field(max_length=20)] = ()
    hypotheses: Annotated[tuple[HypothesisChange, ...], Field(max_length=20)] = ()
    calls: Annotated[tuple[CallRequest, ...], Field(max_length=8)] = ()
    conclusion: Conclusion | None = None

    @model_validator(mode="after")
    def _calls_or_conclusion(self) -> Self:
        if self.calls and self.conclusion is not None:
            raise ValueError("a decision holds either calls or a conclusion, not both: send one of them")
        if not (self.calls or self.plan or self.hypotheses) and self.conclusion is None:
            raise ValueError("a decision holds calls (1 to 8) or a conclusion: this one holds nothing")
        return self

"""The answer of an investigation: claims with their evidence, causes, advice."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from opsleuth.state.base import ClaimId, EvidenceId, Frozen, HypothesisId, JsonObject, Name, Sentence, Text
from opsleuth.state.calls import Risk
from opsleuth.state.outcome import Verdict

Kind = Literal[
    "cpu", "memory", "disk", "storage_full", "network_delay", "network_loss", "dns", "latency", "errors",
    "exception", "crash", "out_of_memory", "image_pull", "scheduling", "probe", "quota", "config", "deploy",
    "dependency", "traffic", "slow_query", "locks", "connections", "replication_lag", "failover",
    "certificate", "permission", "other",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(Kind)

Confidence = Literal["confirmed", "likely", "possible"]


class Claim(Frozen):
    """One sentence and the evidence it rests on. `problems` says why it is not verified."""

    id: ClaimId
    text: Sentence
    evidence: Annotated[tuple[EvidenceId, ...], Field(max_length=20)] = ()
    status: Literal["draft", "verified", "unsupported"] = "draft"
    problems: Annotated[tuple[Sentence, ...], Field(max_length=8)] = ()


class Cause(Frozen):
    """A component that is to blame. `confidence` is computed by code, whatever the planner wrote."""

    service: Name
    kind: Kind
    metric: Name | None = None
    confidence: Confidence = "possible"
    claims: Annotated[tuple[ClaimId, ...], Field(max_length=20)] = ()


class Action(Frozen):
    """A tool call that a person could approve."""

    tool: Name
    arguments: JsonObject = Field(default_factory=dict)


class Recommendation(Frozen):
    """What a person should do next."""

    text: Sentence
    action: Action | None = None
    risk: Risk = Risk.READ
    claims: Annotated[tuple[ClaimId, ...], Field(max_length=20)] = ()


class RuledOut(Frozen):
    """A hypothesis that was looked at and did not hold."""

    hypothesis: Sentence
    id: HypothesisId | None = None
    claims: Annotated[tuple[ClaimId, ...], Field(max_length=20)] = ()


class Conclusion(Frozen):
    """The drafted answer; `causes` are ranked, best first."""

    verdict: Verdict
    answer: Text
    causes: Annotated[tuple[Cause, ...], Field(max_length=20)] = ()
    propagation: Annotated[tuple[tuple[Name, Name], ...], Field(max_length=60)] = ()
    ruled_out: Annotated[tuple[RuledOut, ...], Field(max_length=20)] = ()
    not_available: Annotated[tuple[Sentence, ...], Field(max_length=40)] = ()
    recommendations: Annotated[tuple[Recommendation, ...], Field(max_length=20)] = ()
    fields: JsonObject = Field(default_factory=dict)
    claims: Annotated[tuple[Claim, ...], Field(max_length=60)] = ()


class Review(Frozen):
    """What the check of a draft found: `gaps` go back to the planner."""

    accepted: bool
    gaps: Annotated[tuple[Sentence, ...], Field(max_length=20)] = ()
    unsupported: Annotated[int, Field(ge=0, lt=10_000)] = 0
    by: Literal["checks", "reviewer", "checks+reviewer"] = "checks"

"""The answer of an investigation: claims with their evidence, causes, advice."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from opsleuth.state.base import (
    ClaimId,
    EvidenceId,
    FactId,
    FrozenModel,
    HypothesisId,
    JsonObject,
    Name,
    Sentence,
    Text,
)
from opsleuth.state.calls import Risk
from opsleuth.state.run_status import Verdict

Kind = Literal[
    "cpu", "memory", "disk", "storage_full", "network_delay", "network_loss", "dns", "latency", "errors",
    "exception", "crash", "out_of_memory", "image_pull", "scheduling", "probe", "quota", "config", "deploy",
    "dependency", "traffic", "slow_query", "locks", "connections", "replication_lag", "failover",
    "certificate", "permission", "other",
]  # fmt: skip
KINDS: tuple[str, ...] = get_args(Kind)

Confidence = Literal["confirmed", "likely", "possible"]


ClaimBasis = Literal["measured", "computed", "inferred"]
ClaimOperation = Literal[
    "before", "ratio", "difference", "duration", "count", "absent", "all_of", "same_as_usual"
]  # fmt: skip
OPERATIONS: tuple[str, ...] = get_args(ClaimOperation)


_FACT_ID = re.compile(r"(E[1-9]\d{0,6})\.[1-9]\d{0,3}")
_SLOT = re.compile(rf"\{{({_FACT_ID.pattern})\}}")


def _read_old_status(status: object) -> object:
    return "holds" if status == "verified" else status


class Claim(FrozenModel):
    """One statement of a conclusion and what it rests on.

    A planner names facts (`E7.2`), with an operation to compute from them or its own words (`say`), or writes
    prose in `text` with the evidence for it. Code sets `basis`, and renders `text` of what is measured or computed.
    `problems` says why it is unsupported.
    """

    id: ClaimId
    text: Sentence = ""
    evidence: Annotated[tuple[EvidenceId, ...], Field(max_length=20)] = ()
    facts: Annotated[tuple[FactId, ...], Field(max_length=20)] = ()
    op: ClaimOperation | None = None
    say: Sentence = ""
    basis: ClaimBasis = "inferred"
    status: Annotated[Literal["draft", "holds", "unsupported"], BeforeValidator(_read_old_status)] = "draft"
    problems: Annotated[tuple[Sentence, ...], Field(max_length=8)] = ()

    @model_validator(mode="before")
    @classmethod
    def _cite_evidence_of_facts(cls, document: object) -> object:
        """A claim that names facts, or has them as slots in its own words, cites the evidence that they stand in."""
        if not isinstance(document, Mapping) or document.get("evidence"):
            return document
        named = document.get("facts")
        facts = [str(fact) for fact in named] if isinstance(named, list | tuple) else []
        facts += [slot[1] for slot in _SLOT.finditer(str(document.get("say") or ""))]
        cited = dict.fromkeys(match[1] for fact in facts if (match := _FACT_ID.fullmatch(fact)))
        return {**document, "evidence": list(cited)[:20]} if cited else document


class CauseEntity(FrozenModel):
    """The object that would have to be changed: kind, namespace (null for cluster-wide objects) and name.

    `name` is null where the kind follows from what was seen, and the object itself was not recorded.
    """

    kind: Name
    namespace: Name | None = None
    name: Name | None = None


ChangeGrade = Literal["cause", "coincides"]


class CauseChange(FrozenModel):
    """The change that set a cause off (`cause`: its diff shows how), or that only fits in place and time (`coincides`).

    `id` is its commit, own id or version; `at` RFC 3339, UTC; `place` the file and line where a stack trace meets it.
    """

    id: Name
    kind: Name
    service: Name
    at: Name
    grade: ChangeGrade
    why: Sentence
    author: Name | None = None
    place: Name | None = None


CauseGround = Literal["order", "path", "mechanism", "counter_test"]
CAUSE_GROUNDS: tuple[CauseGround, ...] = get_args(CauseGround)


class CauseSequence(FrozenModel):
    """When a cause was seen to begin, and the first of those that suffer which began later. Times RFC 3339, UTC."""

    began: Name
    later: Name
    later_began: Name


class Cause(FrozenModel):
    """A component that is to blame. `confidence`, what is `shown` for it and `sequence` are computed by code, whatever the planner wrote.

    `entity` is the object of the platform behind it, where one is known; `sequence` is null where nothing began later.
    """

    service: Name
    kind: Kind
    metric: Name | None = None
    entity: CauseEntity | None = None
    confidence: Confidence = "possible"
    shown: Annotated[tuple[CauseGround, ...], Field(max_length=4)] = ()
    sequence: CauseSequence | None = None
    claims: Annotated[tuple[ClaimId, ...], Field(max_length=20)] = ()
    change: CauseChange | None = None


class Action(FrozenModel):
    """A tool call that a person could approve."""

    tool: Name
    arguments: JsonObject = Field(default_factory=dict)


class Recommendation(FrozenModel):
    """What a person should do next."""

    text: Sentence
    action: Action | None = None
    risk: Risk = Risk.READ
    claims: Annotated[tuple[ClaimId, ...], Field(max_length=20)] = ()


class RuledOut(FrozenModel):
    """A hypothesis that was looked at and did not hold."""

    hypothesis: Sentence
    id: HypothesisId | None = None
    claims: Annotated[tuple[ClaimId, ...], Field(max_length=20)] = ()


class Conclusion(FrozenModel):
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


ReviewOutcome = Literal["none", "accepted", "objected", "failed", "skipped"]


class Review(FrozenModel):
    """What the check of a draft found: `gaps` go back to the planner.

    `unmet` are demands of the question that the last draft does not meet, `objections` what the reviewer said of it
    or of the one before; `second` the outcome of the reviewer's look (`none`: there is no reviewer).
    """

    accepted: bool
    gaps: Annotated[tuple[Sentence, ...], Field(max_length=20)] = ()
    unsupported: Annotated[int, Field(ge=0, lt=10_000)] = 0
    unmet: Annotated[tuple[Sentence, ...], Field(max_length=20)] = ()
    objections: Annotated[tuple[Sentence, ...], Field(max_length=20)] = ()
    second: ReviewOutcome = "none"
    by: Literal["checks", "reviewer", "checks+reviewer"] = "checks"

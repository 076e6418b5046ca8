"""`Investigation`: everything a run knows between two nodes. Lean: counters here, records in tables."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from opsleuth.state.base import (
    EvidenceId,
    FrozenModel,
    HypothesisId,
    JsonObject,
    Name,
    Sentence,
    Text,
    Utc,
    to_json,
)
from opsleuth.state.budget import Budget
from opsleuth.state.calls import Call
from opsleuth.state.conclusion import Conclusion, Kind, Review
from opsleuth.state.follow_up import FollowUp
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import Status, StopReason

SCHEMA_VERSION = 1


class Window(FrozenModel):
    """The incident window `[start, end)` in UTC, and where it came from.

    `stated_onset` is the time since when something fails, as the question says.
    """

    start: Utc
    end: Utc
    origin: Literal["alert", "question", "case", "options", "default"] = "default"
    stated_onset: Utc | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.end <= self.start:
            raise ValueError("the window ends before it starts: swap its start and end")
        return self

    @property
    def seconds(self) -> tuple[float, float]:
        """Start and end in seconds since the epoch."""
        return self.start.timestamp(), self.end.timestamp()


class Alert(FrozenModel):
    """The alert as received. `onset` is the start it claims, `fired_at` when it was sent."""

    text: Text
    service: Name | None = None
    metric: Name | None = None
    severity: Name | None = None
    fired_at: Utc | None = None
    onset: Utc | None = None
    labels: JsonObject = Field(default_factory=dict)


class Demand(FrozenModel):
    """Something that the question itself asks of the answer, checked before the end.

    `options` wants `count` recommendations, `candidates` as many causes, `field` a value by `name` in fields, `format` and `language`
    name the form, `untouchable` names what no call may target.
    """

    kind: Literal["options", "candidates", "field", "format", "language", "untouchable"]
    text: Sentence
    name: Name | None = None
    count: Annotated[int, Field(ge=1, le=50)] | None = None


MOST_STEPS = 40
MOST_HYPOTHESES = 40
MOST_CITED = 40
"""Steps of the plan, hypotheses, and evidence on one side of a hypothesis."""


class PlanStep(FrozenModel):
    """One step of the rough plan."""

    id: Name
    text: Sentence
    status: Literal["pending", "active", "done", "dropped"] = "pending"


class Hypothesis(FrozenModel):
    """A possible cause, with the evidence for and against it.

    `not_concluded`: what was concluded is something else; `reason` says what.
    """

    id: HypothesisId
    text: Sentence
    service: Name | None = None
    kind: Kind | None = None
    status: Literal["open", "supported", "refuted", "not_concluded"] = "open"
    reason: Sentence = ""
    supporting: Annotated[tuple[EvidenceId, ...], Field(max_length=MOST_CITED)] = ()
    contradicting: Annotated[tuple[EvidenceId, ...], Field(max_length=MOST_CITED)] = ()


class PlannerNotice(FrozenModel):
    """Something that the planner reads at its next turn: an error of its own, a mark, a note of the operator."""

    code: Literal[
        "malformed",
        "unseen",
        "dropped",
        "repeated",
        "stagnation",
        "breaker",
        "rework",
        "denied",
        "checked",
        "alert",
        "note",
    ]
    text: Sentence


class Investigation(FrozenModel):
    """The typed state of one run.

    With `from_alert` nobody asked in words: the question is the alert's text, and so data. `observations` counts calls that were given a number: `O1` to `On` lie in a table, read along the lineage.
    `follow_up`: the ended run that the question is about, if it is. `absent`: services that were asked about and that no source knows. `malformed_conclusion`: the last one as it was
    sent, while it was not valid.
    """

    schema_version: Literal[1] = 1
    question: Text
    from_alert: bool = False
    follow_up: FollowUp | None = None
    alert: Alert | None = None
    unresolved: Sentence = ""
    absent: Annotated[tuple[Name, ...], Field(max_length=8)] = ()
    window: Window
    checklist: Annotated[tuple[Demand, ...], Field(max_length=20)] = ()
    read_only: bool = False

    plan: Annotated[tuple[PlanStep, ...], Field(max_length=MOST_STEPS)] = ()
    hypotheses: Annotated[tuple[Hypothesis, ...], Field(max_length=MOST_HYPOTHESES)] = ()
    observations: Annotated[int, Field(ge=0, lt=10_000_000)] = 0
    pending: Annotated[tuple[Call, ...], Field(max_length=8)] = ()
    unverified: Annotated[tuple[Name, ...], Field(max_length=8)] = ()
    draft: Conclusion | None = None
    review: Review | None = None
    objections: Annotated[tuple[Sentence, ...], Field(max_length=20)] = ()
    notices: Annotated[tuple[PlannerNotice, ...], Field(max_length=12)] = ()

    malformed: Annotated[int, Field(ge=0, le=100)] = 0
    malformed_conclusion: JsonObject | None = None
    rework: Annotated[int, Field(ge=0, le=100)] = 0
    stalled: Annotated[int, Field(ge=0, le=100)] = 0
    budget: Budget = Budget()

    status: Status = Status.RUNNING
    stop_reason: StopReason | None = None
    stop_detail: Sentence = ""

    def changed(self, **values: JSON) -> Self:
        """The one way to change the state: the whole new state is validated.

        Raises pydantic's ValidationError for a value out of its bounds, and KeyError for an unknown field.
        """
        unknown = values.keys() - type(self).model_fields.keys()
        if unknown:
            raise KeyError(f"no such state field: {', '.join(sorted(unknown))}")
        return type(self).model_validate(to_json(self) | {k: _to_json_value(v) for k, v in values.items()})


def _to_json_value(value: JSON) -> JSON:
    if isinstance(value, FrozenModel):
        return to_json(value)
    if isinstance(value, tuple):
        return [_to_json_value(item) for item in value]
    return value

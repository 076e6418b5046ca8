"""The typed documents of the API, which also make up its OpenAPI description."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from opsleuth.checkpoints.service.received_alerts import AlertOutcome
from opsleuth.service.unfit_json import describe_unfit_json
from opsleuth.state.run_status import Status, StopReason, Verdict

Line = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")]
Words = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F-]{16,80}$")]


class RequestDocument(BaseModel):
    """A request: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class LimitsAsked(RequestDocument):
    """Totals that the run may use; what is left out has its default."""

    turns: Annotated[int, Field(ge=1, le=1_000)] | None = None
    seconds: Annotated[float, Field(gt=0, le=86_400)] | None = None
    tokens: Annotated[int, Field(ge=1, le=2**53 - 1)] | None = None
    cost: Annotated[float, Field(gt=0, lt=1e6)] | None = None


class TaskAsked(RequestDocument):
    """An investigation: a question, an alert in the form of any system that is known, or both."""

    question: Words | None = None
    alert: dict[str, Any] | None = None
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    name: Line | None = None
    read_only: bool = False
    limits: LimitsAsked = LimitsAsked()

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.question is None and not self.alert:
            raise ValueError("nothing was asked: give a question or an alert")
        if self.alert and (unfit := describe_unfit_json(self.alert)):
            raise ValueError(unfit)
        return self


class Resumption(RequestDocument):
    """What a run may use from now on: new totals, what it has used included."""

    limits: LimitsAsked = LimitsAsked()


class Accepted(BaseModel):
    """The run that a request led to. `joined`: there was one already, by the idempotency key or by the alert."""

    task_id: str
    status: Status
    joined: bool = False


class Task(BaseModel):
    """The status of a run."""

    task_id: str
    status: Status
    stop_reason: StopReason | None
    verdict: Verdict | None
    question: str
    name: str | None
    turn: int
    node: str | None
    created: datetime
    updated: datetime
    tokens: int
    cost: Decimal
    resumable: bool


class HypothesisSummary(BaseModel):
    """A possible cause, and the evidence for and against it."""

    id: str
    text: str
    status: str
    supporting: list[str] = []
    contradicting: list[str] = []


class EvidenceSummary(BaseModel):
    """A piece of evidence in a line."""

    id: str
    tool: str
    source: str
    headline: str
    status: str


class Findings(BaseModel):
    """What is known so far; `answer` once the run has one."""

    answer: str | None = None
    hypotheses: list[HypothesisSummary] = []
    evidence: list[EvidenceSummary] = []


class TaskDetail(Task):
    """A run with what it has found so far. `alerts` counts those that belong to it, `last_event` numbers its events.

    `follows` is an ended run that an alert of this one would have belonged to.
    """

    alerts: int
    follows: str | None
    pending: list[str]
    last_event: int
    findings: Findings


class Tasks(BaseModel):
    """Runs, newest first. `next` is `before` of the following page, null on the last one."""

    tasks: list[Task]
    next: str | None = None


class ShownField(BaseModel):
    """One thing that whoever answers must see. `untrusted` text comes from a model or from the outside.

    `level` is 1 for an argument, 2 for what that argument was before a person edited it, 0 for all else.
    """

    name: str
    value: str
    level: int
    untrusted: bool


class TaskApproval(BaseModel):
    """A question to a person. What is approved is exactly what `digest` covers.

    `shown` is what a terminal shows of it, in order: also the check beforehand and afterwards, the way back, an earlier
    change that this one repeats. `why` is the planner's own word, `rule` what lets a person be asked.
    """

    task_id: str
    id: str
    about: Literal["call", "effect"]
    status: str
    digest: str
    tool: str | None
    target: str | None
    risk: str | None
    arguments: dict[str, Any]
    why: str
    rule: str
    shown: list[ShownField]
    requested: str
    answered: str | None
    expires: str | None
    answered_by: str | None
    via: str | None
    reason: str


class ApprovalList(BaseModel):
    """Questions to people, oldest first. `next` is `after` of the following page, null on the last one."""

    approvals: list[TaskApproval]
    next: str | None = None


class Yes(RequestDocument):
    """An approval: names what was seen. `confirm_target` as well where nothing can be undone."""

    digest: Digest
    confirm_target: Line | None = None


class No(RequestDocument):
    """A denial; the planner is told the reason."""

    digest: Digest
    reason: Words


class Resolution(RequestDocument):
    """A person's word on an effect whose outcome nobody saw."""

    digest: Digest
    outcome: Literal["happened", "absent"]
    reason: Words


class Reason(RequestDocument):
    """Why a run is ended."""

    reason: Annotated[str, StringConstraints(max_length=1_000)] = ""


class ErrorResponse(BaseModel):
    """What went wrong, in words, and what to do about it."""

    error: str
    message: str


class Received(BaseModel):
    """The outcome of the alerts of a message: the runs they belong to, how many are new, how many are over."""

    tasks: list[str]
    started: int
    joined: int
    over: int


class ReceivedAlertDocument(BaseModel):
    """The outcome of one alert. `task_id` is the run it went to, `follows` the ended run that this one goes on from."""

    id: int
    received: datetime
    sender: str
    name: str
    service: str | None
    severity: str | None
    outcome: AlertOutcome
    task_id: str | None
    follows: str | None
    reason: str
    alert: dict[str, Any]


class AlertReceipts(BaseModel):
    """Alerts that were received, newest first. `next` is `before` of the following page, null on the last one."""

    alerts: list[ReceivedAlertDocument]
    next: int | None

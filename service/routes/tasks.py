"""Runs: start one, look at one, list them, end one."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query

from opsleuth.alerts.severity import MOST_URGENT
from opsleuth.checkpoints.errors import ConflictError
from opsleuth.checkpoints.processes import status_to_show
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.intake import IntakeRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.queued import with_limits
from opsleuth.service.api_context import ApiContext, Context, RequestRefusedError
from opsleuth.service.authorization import RunToken, ViewToken, find_team_run
from opsleuth.service.documents import (
    Accepted,
    Reason,
    Resumption,
    Task,
    TaskAsked,
    TaskDetail,
    Tasks,
)
from opsleuth.service.intake import RequestIntake, RequestSender
from opsleuth.service.task_findings import collect_findings
from opsleuth.service.team_budgets import find_budget_refusal
from opsleuth.state.budget import RunLimits
from opsleuth.state.run_status import FINISHED_STATUSES, Status, StopReason

_TOTALS: Mapping[StopReason | None, str] = {
    StopReason.TURN_LIMIT: "turns",
    StopReason.TIME_LIMIT: "seconds",
    StopReason.TOKEN_LIMIT: "tokens",
    StopReason.COST_LIMIT: "cost",
}
router = APIRouter(prefix="/api/tasks", tags=["tasks"])
TaskId = Annotated[
    str, Path(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9-]+$", description="The run's id.")
]
_PROBLEM = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"description": HTTPStatus(code).phrase, "content": _PROBLEM}
    for code in (400, 401, 403, 404, 408, 409, 413, 422, 429, 503)
}
"""How every address refuses: one form, whatever it gives otherwise."""


@router.post("", status_code=202, responses=REFUSALS)
async def start(
    asked: TaskAsked,
    context: Context,
    token: RunToken,
    key: Annotated[
        str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
    ] = None,
) -> Accepted:
    """Accept an investigation and answer at once. The same key, or the same alert, joins its run."""
    sender = RequestSender(token.name, token.team, key)

    def work(store: Store) -> Accepted:
        if not asked.alert:
            refuse_without_budget(context, store, token.team)
        run, joined = context.intake.take(store, asked, sender)
        row = store.runs.get(run) if joined else None  # a new one stands where all begin
        return Accepted(task_id=run, status=status_to_show(row) if row else Status.QUEUED, joined=joined)

    return await context.lanes.take_turn(token.team, work)


@router.get("", responses=REFUSALS)
async def list_tasks(
    context: Context,
    token: ViewToken,
    status: Status | None = None,
    search: Annotated[str | None, Query(min_length=2, max_length=200)] = None,
    before: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9-]{1,100}$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Tasks:
    """The team's runs, newest first; `before` takes `next` of the page before, or any run of the team.

    `search` finds a text in question, name or id among the newest 10,000 runs behind `before`; it excludes `status`.
    """
    if search is not None and status is not None:
        raise RequestRefusedError(422, "invalid", "search and status exclude each other: give one of them")

    def work(store: Store) -> Sequence[RunRow]:
        if before is not None:
            find_team_run(store, before, token)
        if search is not None:
            return store.runs.search(search, token.team, limit + 1, before)
        return store.runs.list(status=status, limit=limit + 1, project=token.team, before=before)

    rows = await context.stores(work)
    shown = rows[:limit]
    return Tasks(
        tasks=[_task_from_row(row) for row in shown], next=shown[-1].id if len(rows) > limit else None
    )


@router.get("/{task_id}", responses=REFUSALS)
async def show(task_id: TaskId, context: Context, token: ViewToken) -> TaskDetail:
    """The status of a run, and what it has found so far."""

    def work(store: Store) -> TaskDetail:
        row = find_team_run(store, task_id, token)
        return TaskDetail(
            **_task_from_row(row).model_dump(),
            alerts=store.alerts.count(row.id),
            follows=taken.follows if (taken := store.intake.get(row.id)) else None,
            pending=[asked.id for asked in store.approvals.list(row.id, "pending")],
            last_event=store.events.last(row.id),
            findings=collect_findings(store, row.id),
        )

    return await context.stores(work)


@router.post("/{task_id}/cancel", status_code=202, responses=REFUSALS)
async def cancel(task_id: TaskId, asked: Reason, context: Context, token: RunToken) -> Accepted:
    """End a run politely: what was found so far becomes its report. Refuses 409 for one that has ended otherwise.

    Asking again changes nothing.
    """

    def work(store: Store) -> Accepted:
        row = find_team_run(store, task_id, token)
        asked_before = any(wish.kind == "cancel" for wish in store.control.pending(row.id))
        if row.status is Status.CANCELED or (asked_before and row.status not in FINISHED_STATUSES):
            return Accepted(task_id=row.id, status=status_to_show(row), joined=True)
        if row.status in FINISHED_STATUSES:
            raise ConflictError(f"{row.id} is over: {row.status}")
        with store.transaction():
            store.control.set(row.id, "cancel", asked.reason)
            requeue_run(context.intake, store, row)
        return Accepted(task_id=row.id, status=status_to_show(row), joined=True)

    return await context.stores(work)


@router.post("/{task_id}/resume", status_code=202, responses=REFUSALS)
async def resume(task_id: TaskId, asked: Resumption, context: Context, token: RunToken) -> Accepted:
    """Go on with a run that is paused, was cancelled, failed, or came to a limit. Refuses 409 for every other one."""
    limits = asked.limits.model_dump(mode="json", exclude_none=True)

    context.intake.refuse_limits_above_caps(limits)

    def work(store: Store) -> Accepted:
        refuse_without_budget(context, store, token.team)
        with store.transaction():
            store.intake.one_at_a_time(token.team)
            row = find_team_run(store, task_id, token)
            if why := _reason_not_resumable(row, limits):
                raise ConflictError(f"{row.id} {why}")
            store.control.clear(row.id, "cancel")
            store.control.clear(row.id, "pause")
            settings = {**with_limits(row, limits).settings, "caps": context.intake.settings.caps}
            store.runs.update(row.id, status=Status.INTERRUPTED, stop_reason=None, settings=settings)
            store.intake.pardon(row.id)
            requeue_run(context.intake, store, row)
        return Accepted(task_id=row.id, status=Status.INTERRUPTED, joined=True)

    return await context.lanes.take_turn(token.team, work)


def refuse_without_budget(context: ApiContext, store: Store, team: str) -> None:
    """Refuse 429 where the team has spent what it may spend today. Alerts are never refused for it: their runs say so."""
    budget = context.service.budget.budget_of(team)
    if refused := find_budget_refusal(store.spending.read_today(team), budget, team):
        seconds = str(int(store.spending.seconds_until_tomorrow()) + 1)
        raise RequestRefusedError(429, "budget_used_up", refused.text, {"Retry-After": seconds})


def _reason_not_resumable(row: RunRow, limits: Mapping[str, Any]) -> str | None:
    """Why a run cannot go on, None where it can."""
    if row.status not in (*FINISHED_STATUSES, Status.PAUSED):
        return f"is {status_to_show(row)}: only one that has ended or is paused can be resumed"
    if not row.resumable:
        return f"is {row.status} for good ({row.stop_reason or '-'})"
    total = _TOTALS.get(row.stop_reason)
    if total and total not in limits and not _was_stopped_by_team_budget(row):
        return f"has used up its {total}: give a new total in limits.{total}"
    return None


def _was_stopped_by_team_budget(row: RunRow) -> bool:
    """Whether the team's budget stopped the run, not its own limit: it continues once the team has a budget again."""
    own = RunLimits.model_validate(row.settings["state"]["budget"]["limits"])
    if row.stop_reason is StopReason.COST_LIMIT:
        return own.cost is None or row.cost < own.cost
    return row.stop_reason is StopReason.TOKEN_LIMIT and row.tokens < own.tokens


def requeue_run(intake: RequestIntake, store: Store, row: RunRow) -> None:
    """Put a run in line again, before others: a person waits for what comes of it."""
    known = store.intake.get(row.id)
    if known is None:
        known = IntakeRow(
            run=row.id, team=row.project, severity=MOST_URGENT, sender="", request=None, digest=""
        )
    intake.enqueue(store, [known])


def _task_from_row(row: RunRow) -> Task:
    return Task(
        task_id=row.id,
        status=status_to_show(row),
        stop_reason=row.stop_reason,
        verdict=row.verdict,
        question=row.question,
        name=row.name,
        turn=row.turn,
        node=row.node,
        created=row.created,
        updated=row.updated,
        tokens=row.tokens,
        cost=row.cost,
        resumable=row.resumable,
    )

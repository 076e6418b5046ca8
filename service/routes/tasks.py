"""Runs: start one, look at one, list them, end one."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query

from opsleuth.checkpoints.errors import Conflict
from opsleuth.checkpoints.intake import Taken
from opsleuth.checkpoints.processes import standing
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.queued import with_limits
from opsleuth.service.context import Context, Starter, Viewer, of_team
from opsleuth.service.documents import (
    Accepted,
    Problem,
    Reason,
    Resumption,
    Task,
    TaskAsked,
    TaskDetail,
    Tasks,
)
from opsleuth.service.findings import findings
from opsleuth.service.intake import Intake, Sender
from opsleuth.service.severity import MOST
from opsleuth.state.outcome import FINISHED, Status, StopReason

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
_PROBLEM = {"application/json": {"schema": Problem.model_json_schema()}}
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"description": HTTPStatus(code).phrase, "content": _PROBLEM}
    for code in (400, 401, 403, 404, 409, 413, 422, 429, 503)
}
"""How every address refuses: one form, whatever it gives otherwise."""


@router.post("", status_code=202, responses=REFUSALS)
async def start(
    asked: TaskAsked,
    context: Context,
    token: Starter,
    key: Annotated[
        str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")
    ] = None,
) -> Accepted:
    """Accept an investigation and answer at once. The same key, or the same alert, joins its run."""
    sender = Sender(token.name, token.team, key)

    def work(store: Store) -> Accepted:
        run, joined = context.intake.take(store, asked, sender)
        row = store.runs.get(run) if joined else None  # a new one stands where all begin
        return Accepted(task_id=run, status=standing(row) if row else Status.QUEUED, joined=joined)

    return await context.stores(work)


@router.get("", responses=REFUSALS)
async def list_tasks(
    context: Context,
    token: Viewer,
    status: Status | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Tasks:
    """The team's runs, newest first."""
    rows = await context.stores(lambda store: store.runs.list(status=status, limit=limit, project=token.team))
    return Tasks(tasks=[_task(row) for row in rows])


@router.get("/{task_id}", responses=REFUSALS)
async def show(task_id: TaskId, context: Context, token: Viewer) -> TaskDetail:
    """How a run stands, and what it has found so far."""

    def work(store: Store) -> TaskDetail:
        row = of_team(store, task_id, token)
        return TaskDetail(
            **_task(row).model_dump(),
            alerts=store.alerts.count(row.id),
            pending=[asked.id for asked in store.approvals.list(row.id, "pending")],
            last_event=store.events.last(row.id),
            findings=findings(store, row.id),
        )

    return await context.stores(work)


@router.post("/{task_id}/cancel", status_code=202, responses=REFUSALS)
async def cancel(task_id: TaskId, asked: Reason, context: Context, token: Starter) -> Accepted:
    """End a run politely: what was found so far becomes its report. Refuses 409 for one that is over."""

    def work(store: Store) -> Accepted:
        row = of_team(store, task_id, token)
        if row.status in FINISHED:
            raise Conflict(f"{row.id} is over: {row.status}")
        with store.transaction():
            store.control.set(row.id, "cancel", asked.reason)
            go_on(context.intake, store, row)
        return Accepted(task_id=row.id, status=standing(row), joined=True)

    return await context.stores(work)


@router.post("/{task_id}/resume", status_code=202, responses=REFUSALS)
async def resume(task_id: TaskId, asked: Resumption, context: Context, token: Starter) -> Accepted:
    """Go on with a run that is paused, was cancelled, failed, or came to a limit. Refuses 409 for every other one."""
    limits = asked.limits.model_dump(mode="json", exclude_none=True)

    def work(store: Store) -> Accepted:
        with store.transaction():
            store.intake.one_at_a_time(token.team)
            row = of_team(store, task_id, token)
            if why := _held_back(row, limits):
                raise Conflict(f"{row.id} {why}")
            store.control.clear(row.id, "cancel")
            store.control.clear(row.id, "pause")
            settings = with_limits(row, limits).settings
            store.runs.update(row.id, status=Status.INTERRUPTED, stop_reason=None, settings=settings)
            store.intake.pardon(row.id)
            go_on(context.intake, store, row)
        return Accepted(task_id=row.id, status=Status.INTERRUPTED, joined=True)

    return await context.stores(work)


def _held_back(row: RunRow, limits: Mapping[str, Any]) -> str | None:
    """Why a run cannot go on, None where it can."""
    if row.status not in (*FINISHED, Status.PAUSED):
        return f"is {standing(row)}: only one that has ended or is paused can be resumed"
    if not row.resumable:
        return f"is {row.status} for good ({row.stop_reason or '-'})"
    if (total := _TOTALS.get(row.stop_reason)) and total not in limits:
        return f"has used up its {total}: give a new total in limits.{total}"
    return None


def go_on(intake: Intake, store: Store, row: RunRow) -> None:
    """Put a run in line again, before others: a person waits for what comes of it."""
    known = store.intake.get(row.id)
    if known is None:
        known = Taken(run=row.id, team=row.project, severity=MOST, sender="", request=None, digest="")
    intake.enqueue(store, known)


def _task(row: RunRow) -> Task:
    return Task(
        task_id=row.id,
        status=standing(row),
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

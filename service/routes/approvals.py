"""What people are asked, and their answers. Whoever answers is named in the row by the name of the token."""

from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from opsleuth.checkpoints import approvals as rows
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.tokens import Token
from opsleuth.console.questions import cleaned, fields
from opsleuth.graph import decisions
from opsleuth.graph.decisions import Person
from opsleuth.service.context import ApiContext, Approver, Context, Viewer, of_team
from opsleuth.service.documents import Approval, Approvals, No, Resolution, Shown, Yes
from opsleuth.service.routes.tasks import REFUSALS, TaskId, go_on

router = APIRouter(prefix="/api", tags=["approvals"])
ApprovalId = Annotated[str, Path(pattern=r"^[AQ][1-9][0-9]{0,5}$", description="A1, A2, … of the run.")]


@router.get("/approvals", responses=REFUSALS)
async def waiting(
    context: Context, token: Viewer, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> Approvals:
    """What waits for a person in the team's runs, oldest first."""

    def work(store: Store) -> Approvals:
        found = store.approvals.pending(token.team, limit)
        return Approvals(approvals=[_document(asked) for asked in found])

    return await context.stores(work)


@router.get("/tasks/{task_id}/approvals", responses=REFUSALS)
async def of_task(task_id: TaskId, context: Context, token: Viewer) -> Approvals:
    """All that was asked in a run, with the answers."""

    def work(store: Store) -> Approvals:
        row = of_team(store, task_id, token)
        return Approvals(approvals=[_document(asked) for asked in store.approvals.list(row.id)])

    return await context.stores(work)


@router.post("/tasks/{task_id}/approvals/{approval_id}/approve", responses=REFUSALS)
async def approve(
    task_id: TaskId, approval_id: ApprovalId, given: Yes, context: Context, token: Approver
) -> Approval:
    """Let exactly the call with this digest run. Refuses 409 for another digest, and for one that was answered."""

    def answer(store: Store, person: Person) -> rows.Approval:
        return decisions.approve(
            store, task_id, approval_id, given.digest, person, confirm=given.confirm_target
        )

    return await _answered(context, task_id, token, answer)


@router.post("/tasks/{task_id}/approvals/{approval_id}/deny", responses=REFUSALS)
async def deny(
    task_id: TaskId, approval_id: ApprovalId, given: No, context: Context, token: Approver
) -> Approval:
    """Refuse a call; the run goes on without it and is told the reason."""

    def answer(store: Store, person: Person) -> rows.Approval:
        store.approvals.asked(task_id, approval_id, given.digest)
        return decisions.deny(store, task_id, approval_id, given.reason, person)

    return await _answered(context, task_id, token, answer)


@router.post("/tasks/{task_id}/approvals/{approval_id}/resolve", responses=REFUSALS)
async def resolve(
    task_id: TaskId, approval_id: ApprovalId, given: Resolution, context: Context, token: Approver
) -> Approval:
    """Say what became of an effect whose outcome nobody saw."""

    def answer(store: Store, person: Person) -> rows.Approval:
        store.approvals.asked(task_id, approval_id, given.digest)
        return decisions.resolve(store, task_id, approval_id, given.outcome, given.reason, person)

    return await _answered(context, task_id, token, answer)


async def _answered(
    context: ApiContext, task_id: str, token: Token, answer: Callable[[Store, Person], rows.Approval]
) -> Approval:
    """The answer and the run's place in the queue, in one transaction."""

    def work(store: Store) -> Approval:
        row = of_team(store, task_id, token)
        with store.transaction():
            answered = answer(store, Person(token.name, "api"))
            go_on(context.intake, store, row)
        return _document(answered)

    return await context.stores(work)


def _document(asked: rows.Approval) -> Approval:
    shown = asked.document
    about: Literal["call", "effect", "question"] = asked.about
    return Approval(
        task_id=asked.run,
        id=asked.id,
        about=about,
        status=asked.status,
        digest=asked.digest,
        tool=shown.get("tool"),
        target=shown.get("target"),
        risk=shown.get("risk"),
        arguments=dict(shown.get("arguments") or {}),
        why=str(shown.get("purpose") or ""),
        rule=str(shown.get("gate_reason") or ""),
        shown=[Shown(**cleaned(field)._asdict()) for field in fields(asked)],
        requested=asked.requested,
        answered=asked.answered,
        expires=asked.expires,
        answered_by=asked.answered_by,
        via=asked.via,
        reason=asked.reason,
    )

"""What people are asked, and their answers. Whoever answers is named in the row by the name of the token."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from opsleuth.checkpoints import approvals as rows
from opsleuth.checkpoints.service.tokens import ApiToken
from opsleuth.checkpoints.store import Store
from opsleuth.console.approval_questions import clean_question_field, list_question_fields
from opsleuth.graph.approvals.decisions import AnsweringPerson, OperatorReply, record_answer
from opsleuth.service.api_context import ApiContext, Context
from opsleuth.service.authorization import ApproveToken, ViewToken, find_team_run
from opsleuth.service.documents import ApprovalList, No, Resolution, ShownField, TaskApproval, Yes
from opsleuth.service.routes.tasks import REFUSALS, TaskId, requeue_run

router = APIRouter(prefix="/api", tags=["approvals"])
ApprovalId = Annotated[str, Path(pattern=r"^A[1-9][0-9]{0,5}$", description="A1, A2, … of the run.")]


@router.get("/approvals", responses=REFUSALS)
async def waiting(
    context: Context,
    token: ViewToken,
    after: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9-]{1,100}/A[1-9][0-9]{0,5}$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ApprovalList:
    """What waits for a person in the team's runs, oldest first; `after` takes `next` of the page before."""

    def work(store: Store) -> ApprovalList:
        behind = None
        if after is not None:
            run, _, approval_id = after.partition("/")
            behind = (find_team_run(store, run, token).id, approval_id)
        found = store.approvals.pending(token.team, limit + 1, behind)
        shown = found[:limit]
        return ApprovalList(
            approvals=[_build_approval_document(asked) for asked in shown],
            next=f"{shown[-1].run}/{shown[-1].id}" if len(found) > limit else None,
        )

    return await context.stores(work)


@router.get("/tasks/{task_id}/approvals", responses=REFUSALS)
async def of_task(task_id: TaskId, context: Context, token: ViewToken) -> ApprovalList:
    """All that was asked in a run, with the answers."""

    def work(store: Store) -> ApprovalList:
        row = find_team_run(store, task_id, token)
        return ApprovalList(
            approvals=[_build_approval_document(asked) for asked in store.approvals.list(row.id)]
        )

    return await context.stores(work)


@router.post("/tasks/{task_id}/approvals/{approval_id}/approve", responses=REFUSALS)
async def approve(
    task_id: TaskId, approval_id: ApprovalId, given: Yes, context: Context, token: ApproveToken
) -> TaskApproval:
    """Let exactly the call with this digest run. Refuses 409 for another digest, and for one that was answered."""
    reply = OperatorReply("approved", digest=given.digest, confirm=given.confirm_target)
    return await _answer_and_requeue(context, task_id, approval_id, token, reply)


@router.post("/tasks/{task_id}/approvals/{approval_id}/deny", responses=REFUSALS)
async def deny(
    task_id: TaskId, approval_id: ApprovalId, given: No, context: Context, token: ApproveToken
) -> TaskApproval:
    """Refuse a call; the run goes on without it and is told the reason."""
    reply = OperatorReply("denied", digest=given.digest, reason=given.reason)
    return await _answer_and_requeue(context, task_id, approval_id, token, reply)


@router.post("/tasks/{task_id}/approvals/{approval_id}/resolve", responses=REFUSALS)
async def resolve(
    task_id: TaskId, approval_id: ApprovalId, given: Resolution, context: Context, token: ApproveToken
) -> TaskApproval:
    """Record the outcome of an effect that nobody saw."""
    reply = OperatorReply("resolved", digest=given.digest, outcome=given.outcome, reason=given.reason)
    return await _answer_and_requeue(context, task_id, approval_id, token, reply)


async def _answer_and_requeue(
    context: ApiContext, task_id: str, approval_id: str, token: ApiToken, reply: OperatorReply
) -> TaskApproval:
    """The answer and the run's place in the queue, in one transaction."""

    def work(store: Store) -> TaskApproval:
        row = find_team_run(store, task_id, token)
        with store.transaction():
            answered = record_answer(store, task_id, approval_id, reply, AnsweringPerson(token.name, "api"))
            requeue_run(context.intake, store, row)
        return _build_approval_document(answered)

    return await context.stores(work)


def _build_approval_document(asked: rows.Approval) -> TaskApproval:
    shown = asked.document
    return TaskApproval(
        task_id=asked.run,
        id=asked.id,
        about=asked.about,
        status=asked.status,
        digest=asked.digest,
        tool=shown.get("tool"),
        target=shown.get("target"),
        risk=shown.get("risk"),
        arguments=dict(shown.get("arguments") or {}),
        why=str(shown.get("purpose") or ""),
        rule=str(shown.get("gate_reason") or ""),
        shown=[ShownField(**clean_question_field(field)._asdict()) for field in list_question_fields(asked)],
        requested=asked.requested,
        answered=asked.answered,
        expires=asked.expires,
        answered_by=asked.answered_by,
        via=asked.via,
        reason=asked.reason,
    )

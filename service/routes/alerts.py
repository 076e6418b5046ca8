"""The outcome of the alerts that were received."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from opsleuth.checkpoints.service.received_alerts import AlertOutcome, AlertReceipt, ReceiptFilter
from opsleuth.checkpoints.store import Store
from opsleuth.service.api_context import Context
from opsleuth.service.authorization import ViewToken
from opsleuth.service.documents import AlertReceipts, ReceivedAlertDocument
from opsleuth.service.routes.tasks import REFUSALS

router = APIRouter(prefix="/api/alerts", tags=["alerts"])
Number = Annotated[int, Query(ge=1, le=2**62)]


@router.get("", responses=REFUSALS)
async def list_received_alerts(
    context: Context,
    token: ViewToken,
    task_id: Annotated[str | None, Query(max_length=100)] = None,
    outcome: AlertOutcome | None = None,
    name: Annotated[str | None, Query(max_length=300)] = None,
    before: Number | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> AlertReceipts:
    """The outcome of each alert of the team and why, newest first; `before` takes `next` of the page before."""
    wanted = ReceiptFilter(run=task_id, outcome=outcome, name=name, before=before)

    def work(store: Store) -> tuple[AlertReceipt, ...]:
        return store.receipts.list(token.team, wanted, limit + 1)

    found = await context.stores(work)
    shown = found[:limit]
    return AlertReceipts(
        alerts=[_build_receipt_document(receipt) for receipt in shown],
        next=shown[-1].id if len(found) > limit else None,
    )


def _build_receipt_document(receipt: AlertReceipt) -> ReceivedAlertDocument:
    return ReceivedAlertDocument(
        id=receipt.id,
        received=datetime.fromisoformat(receipt.received),
        sender=receipt.sender,
        name=receipt.name,
        service=receipt.service,
        severity=receipt.severity,
        outcome=receipt.outcome,
        task_id=receipt.run,
        follows=receipt.linked,
        reason=receipt.reason,
        alert=dict(receipt.document),
    )

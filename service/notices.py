"""Notices about runs to others: that a person is needed, and every end. Signed, at least once, in the order of time.

Who receives a message finds its id in it and in `X-Opsleuth-Notice`: the same at every attempt.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import httpx

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.notices import OutgoingNotice
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import WebhookSettings
from opsleuth.console.approval_questions import clean_question_field, list_question_fields
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.service.signatures import HEADER, sign_message
from opsleuth.state.backoff import Backoff
from opsleuth.state.clock import Clock
from opsleuth.state.run_status import ExitCode, Status, StopReason

NoticeKind = Literal[
    "approval_needed", "effect_unknown", "concluded", "limit", "failed", "canceled", "limit_near"
]
SECONDS = 10.0
"""So long may a receiver take to answer."""
CLAIM = timedelta(seconds=60)
"""A claim lasts this long; then another worker may send the notice."""
RETRIES = Backoff(first=5.0, longest=3_600.0)
"""Seconds until a message that could not be told is tried again; twice as long each time."""


def notice_kind(outcome: AttemptOutcome) -> NoticeKind | None:
    """What an attempt's end is to others; None for one that goes on elsewhere."""
    if outcome.exit_code is ExitCode.EFFECT_UNKNOWN:
        return "effect_unknown"
    if outcome.status is Status.WAITING:
        return "approval_needed"
    if outcome.stop_reason is StopReason.CONCLUDED:
        return "concluded"
    if outcome.status in (Status.CANCELED, Status.TERMINATED):
        return "canceled"
    if outcome.status is Status.FAILED:
        return "failed"
    return "limit" if outcome.status is Status.COMPLETED else None


def queue_notices(store: Store, outcome: AttemptOutcome, webhooks: Mapping[str, WebhookSettings]) -> None:
    """Write down who is to be told. Telling the same again changes nothing."""
    kind, row = notice_kind(outcome), store.runs.get(outcome.run)
    if kind is None or row is None:
        return
    pending = store.approvals.list(row.id, "pending")
    about = ",".join(asked.id for asked in pending) or str(row.attempt)
    document = _build_notice_document(row, outcome, kind, [_approval_to_json(asked) for asked in pending])
    with store.transaction():
        for name, webhook in webhooks.items():
            if not webhook.teams or row.project in webhook.teams:
                key = f"{kind}:{about}"
                store.notices.put(
                    OutgoingNotice(run=row.id, key=key, target=name, kind=kind, document=document)
                )


@dataclass(frozen=True, slots=True)
class NoticeTarget:
    """A webhook as messages are sent to it; `secret` signs them."""

    name: str
    url: str
    secret: str


async def deliver_due_notices(
    store: Store, target: NoticeTarget, clock: Clock, client: httpx.AsyncClient
) -> int:
    """Send this target the due messages that no other worker is sending; returns how many were delivered."""
    sent = 0
    for notice in store.notices.due(target.name):
        if store.notices.claim(notice, clock.now() + CLAIM):
            problem = await _post_notice(notice, target, clock, client)
            sent += not problem
            if problem:
                wait = RETRIES.seconds(notice.tries + 1)
                store.notices.later(notice, clock.now() + timedelta(seconds=wait), problem)
            else:
                store.notices.delivered(notice)
    return sent


async def _post_notice(
    notice: OutgoingNotice, target: NoticeTarget, clock: Clock, client: httpx.AsyncClient
) -> str:
    """What went wrong, empty if the receiver has it."""
    body = json.dumps({"id": notice.id, **notice.document}, sort_keys=True).encode()
    headers = {
        "Content-Type": "application/json",
        "X-Opsleuth-Notice": notice.id,
        HEADER: sign_message(target.secret, body, clock.now().timestamp()),
    }
    try:
        answer = await client.post(target.url, content=body, headers=headers, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return "" if answer.is_success else f"the receiver answered {answer.status_code}"


def _build_notice_document(
    row: RunRow, outcome: AttemptOutcome, kind: NoticeKind, asked: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    return {
        "kind": kind,
        "task_id": row.id,
        "team": row.project,
        "question": row.question,
        "status": outcome.status.value,
        "stop_reason": outcome.stop_reason.value if outcome.stop_reason else None,
        "verdict": outcome.verdict.value if outcome.verdict else None,
        "detail": outcome.detail,
        "approvals": list(asked),
        "report": dict(outcome.report) if outcome.report else None,
    }


def _approval_to_json(asked: Approval) -> dict[str, Any]:
    call = {name: asked.document.get(name) for name in ("tool", "target", "risk", "arguments", "purpose")}
    shown = [clean_question_field(field)._asdict() for field in list_question_fields(asked)]
    return {"id": asked.id, "about": asked.about, "digest": asked.digest, **call, "shown": shown}

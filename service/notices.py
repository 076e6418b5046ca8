"""What others are told of runs: that a person is needed, and every end. Signed, at least once, in the order of time.

Who receives a message finds its id in it and in `X-Opsleuth-Notice`: the same at every try.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import httpx

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.notices import Notice
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.console.questions import cleaned, fields
from opsleuth.graph.outcome import Outcome
from opsleuth.service.settings import Webhook
from opsleuth.service.signatures import HEADER, sign
from opsleuth.state.clock import Clock
from opsleuth.state.outcome import ExitCode, Status, StopReason

Kind = Literal["approval_needed", "effect_unknown", "concluded", "limit", "failed", "canceled"]
SECONDS = 10.0
"""So long may a receiver take to answer."""
CLAIM = timedelta(seconds=60)
"""A claim lasts this long; then another worker may send the notice."""
FIRST_WAIT, LONGEST_WAIT = 5.0, 3_600.0
"""Seconds until a message that could not be told is tried again; twice as long each time."""


def kind_of(outcome: Outcome) -> Kind | None:
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


def tell(store: Store, outcome: Outcome, webhooks: Mapping[str, Webhook]) -> None:
    """Write down who is to be told. Telling the same again changes nothing."""
    kind, row = kind_of(outcome), store.runs.get(outcome.run)
    if kind is None or row is None:
        return
    pending = store.approvals.list(row.id, "pending")
    about = ",".join(asked.id for asked in pending) or str(row.attempt)
    document = _document(row, outcome, kind, [_asked(asked) for asked in pending])
    with store.transaction():
        for name, webhook in webhooks.items():
            if not webhook.teams or row.project in webhook.teams:
                key = f"{kind}:{about}"
                store.notices.put(Notice(run=row.id, key=key, target=name, kind=kind, document=document))


@dataclass(frozen=True, slots=True)
class Target:
    """A webhook as messages are sent to it; `secret` signs them."""

    name: str
    url: str
    secret: str


async def deliver(store: Store, target: Target, clock: Clock, client: httpx.AsyncClient) -> int:
    """Send this target what is due and nobody else is sending; how many were delivered."""
    sent = 0
    for notice in store.notices.due(target.name):
        if store.notices.claim(notice, clock.now() + CLAIM):
            problem = await _send(notice, target, clock, client)
            sent += not problem
            if problem:
                wait = min(FIRST_WAIT * 2 ** min(notice.tries, 12), LONGEST_WAIT)
                store.notices.later(notice, clock.now() + timedelta(seconds=wait), problem)
            else:
                store.notices.delivered(notice)
    return sent


async def _send(notice: Notice, target: Target, clock: Clock, client: httpx.AsyncClient) -> str:
    """What went wrong, empty if the receiver has it."""
    body = json.dumps({"id": notice.id, **notice.document}, sort_keys=True).encode()
    headers = {
        "Content-Type": "application/json",
        "X-Opsleuth-Notice": notice.id,
        HEADER: sign(target.secret, body, clock.now().timestamp()),
    }
    try:
        answer = await client.post(target.url, content=body, headers=headers, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return "" if answer.is_success else f"the receiver answered {answer.status_code}"


def _document(
    row: RunRow, outcome: Outcome, kind: Kind, asked: Sequence[Mapping[str, Any]]
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


def _asked(asked: Approval) -> dict[str, Any]:
    call = {name: asked.document.get(name) for name in ("tool", "target", "risk", "arguments", "purpose")}
    shown = [cleaned(field)._asdict() for field in fields(asked)]
    return {"id": asked.id, "about": asked.about, "digest": asked.digest, **call, "shown": shown}

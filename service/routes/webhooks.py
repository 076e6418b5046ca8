"""Alerts from systems that send them by themselves, in their own form; signed, or with a token."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from opsleuth.checkpoints.store import Store
from opsleuth.graph.alerts import received
from opsleuth.service.context import ApiContext, Context, Refused, caller, host_of, refused_if
from opsleuth.service.documents import Received
from opsleuth.service.intake import Sender
from opsleuth.service.routes.tasks import REFUSALS
from opsleuth.service.signatures import is_signed

router = APIRouter(prefix="/api/webhooks", tags=["webhooks"])
_bearer = HTTPBearer(auto_error=False, description="A token with the role run, unless the message is signed.")
_BODY = {
    "requestBody": {
        "required": True,
        "description": "What Alertmanager, Grafana, Prometheus, PagerDuty, Opsgenie or CloudWatch sends.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


@router.post("/{sender}", status_code=202, responses=REFUSALS, openapi_extra=_BODY)
async def receive(
    sender: Annotated[
        str,
        Path(
            pattern=r"^[A-Za-z0-9_-]{1,100}$",
            description="Its name in the configuration, or any with a token.",
        ),
    ],
    request: Request,
    context: Context,
    given: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Received:
    """Take each alert of a message in: it starts a run or joins one. Refuses 401 without signature or token."""
    body = await request.body()
    who = await _sender(sender, request, context, given, body)
    alerts = received(_document(body))
    if not alerts:
        raise Refused(
            422,
            "unknown_form",
            "unknown alert format; supported are Alertmanager, Grafana, Prometheus, PagerDuty, Opsgenie, CloudWatch",
        )

    def work(store: Store) -> Received:
        placed = context.intake.receive(store, alerts, who)
        return Received(
            tasks=list(dict.fromkeys(one.run for one in placed)),
            started=sum(not one.joined for one in placed),
            joined=sum(one.joined for one in placed),
            over=sum(alert.over is not None for alert in alerts),
        )

    return await context.stores(work)


async def _sender(
    name: str, request: Request, context: ApiContext, given: HTTPAuthorizationCredentials | None, body: bytes
) -> Sender:
    """Whose message it is: by its signature where the sender is configured with a secret, else by its token."""
    known = context.service.senders.get(name)
    if known is None or given is not None:
        token = await caller(context, request, given)
        if "run" not in token.roles:
            raise Refused(403, "forbidden", "this needs a token with the role run")
        return Sender(token.name, token.team)
    now = context.clock.now().timestamp()
    if not is_signed(known.kind, context.secrets[name], dict(request.headers), body, now):
        refused_if(context.unauthenticated_pace.wait(host_of(request)))
        raise Refused(
            401, "unauthorized", "the message is not signed, or not with the right secret, or too old"
        )
    refused_if(context.pace.wait(f"sender {name}"))
    return Sender(name, known.team)


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused(422, "invalid", "the body is no JSON") from None
    if not isinstance(document, dict):
        raise Refused(422, "invalid", "the body is no JSON object")
    return document

"""Alerts from systems that send them by themselves, in their own form; signed, or with a token."""

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from opsleuth.alerts.documents import count_unreadable_entries, parse_alert_document
from opsleuth.alerts.grouping import ReceivedAlert
from opsleuth.configuration.service_settings import SenderSettings
from opsleuth.service.api_context import (
    ApiContext,
    Context,
    RequestRefusedError,
    authenticate_caller,
    client_host,
    refuse_too_many_requests,
)
from opsleuth.service.documents import Received
from opsleuth.service.intake import RequestSender
from opsleuth.service.routes.tasks import REFUSALS
from opsleuth.service.signatures import has_valid_signature
from opsleuth.service.sns_messages import SnsRefusedError
from opsleuth.service.unfit_json import describe_unfit_json

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
    who = await _identify_sender(sender, request, context, given, body)
    document, alerts = await asyncio.to_thread(_parse_alerts, body)
    if _is_sns_sender(sender, context, given) and await _confirm_subscription(context, document):
        return Received(tasks=[], started=0, joined=0, over=0)
    unreadable = count_unreadable_entries(document)
    if not alerts and not unreadable:
        raise RequestRefusedError(
            422,
            "unknown_form",
            "unknown alert format; supported are Alertmanager, Grafana, Prometheus, PagerDuty, Opsgenie, CloudWatch",
        )

    if unreadable:
        await context.lanes.take_turn(
            who.team, lambda store: context.intake.note_unreadable(store, who, unreadable)
        )
    placed = await context.lanes.receive_alerts(context.intake, alerts, who)
    return Received(
        tasks=list(dict.fromkeys(one.run for one in placed)),
        started=sum(not one.joined for one in placed),
        joined=sum(one.joined for one in placed),
        over=sum(alert.over is not None for alert in alerts),
    )


async def _identify_sender(
    name: str, request: Request, context: ApiContext, given: HTTPAuthorizationCredentials | None, body: bytes
) -> RequestSender:
    """Whose message it is: by its signature where the sender is configured with a secret, else by its token."""
    known = context.service.senders.get(name)
    if known is None or given is not None:
        token = await authenticate_caller(context, request, given)
        if "run" not in token.roles:
            raise RequestRefusedError(403, "forbidden", "this needs a token with the role run")
        return RequestSender(token.name, token.team)
    if known.kind == "sns":
        await _verify_sns_message(known, request, context, body)
        return RequestSender(name, known.team)
    now = context.clock.now().timestamp()
    if not has_valid_signature(known.kind, context.secrets[name], dict(request.headers), body, now):
        refuse_too_many_requests(context.unauthenticated_pace.wait(client_host(request)))
        raise RequestRefusedError(
            401, "unauthorized", "the message is not signed, or not with the right secret, or too old"
        )
    refuse_too_many_requests(context.pace.wait(f"sender {name}"))
    return RequestSender(name, known.team)


def _is_sns_sender(name: str, context: ApiContext, given: HTTPAuthorizationCredentials | None) -> bool:
    known = context.service.senders.get(name)
    return known is not None and known.kind == "sns" and given is None


async def _verify_sns_message(
    sender: SenderSettings, request: Request, context: ApiContext, body: bytes
) -> None:
    """Refuses 401 for what Amazon SNS has not signed for a configured topic."""
    refuse_too_many_requests(context.unauthenticated_pace.left(client_host(request)))
    try:
        await context.sns.verify(_parse_json_body(body), sender.topics, context.clock.now())
    except SnsRefusedError as error:
        refuse_too_many_requests(context.unauthenticated_pace.wait(client_host(request)))
        raise RequestRefusedError(401, "unauthorized", str(error)) from None


async def _confirm_subscription(context: ApiContext, document: Mapping[str, Any]) -> bool:
    """Whether the message was about the subscription itself. Refuses 503 while Amazon cannot be reached: it asks again."""
    try:
        return await context.sns.confirm(document) or document["Type"] == "UnsubscribeConfirmation"
    except SnsRefusedError as error:
        raise RequestRefusedError(503, "unavailable", str(error), {"Retry-After": "20"}) from None


def _parse_alerts(body: bytes) -> tuple[dict[str, Any], tuple[ReceivedAlert, ...]]:
    """The body as a document, and the alerts in it."""
    document = _parse_json_body(body)
    return document, parse_alert_document(document)


def _parse_json_body(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise RequestRefusedError(422, "invalid", "the body is not JSON") from None
    if not isinstance(document, dict):
        raise RequestRefusedError(422, "invalid", "the body is not a JSON object")
    if unfit := describe_unfit_json(document):
        raise RequestRefusedError(422, "invalid", unfit)
    return document

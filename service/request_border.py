"""Checks before a body is read: the caller, the validity of the request, and clients that disconnect."""

import logging
from collections import Counter
from http import HTTPStatus

from fastapi import Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opsleuth.service.api_context import ApiContext, RequestRefusedError, authenticate_bearer, client_host

log = logging.getLogger("opsleuth.api")
UNSIGNED_BODIES, UNSIGNED_OF_ADDRESS = 64, 8
"""Bodies of senders that sign, read at once, and those of one address: their signature can only be checked when all of it is there."""
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_WEBHOOKS = "/api/webhooks/"


class RequestBorder:
    """Lets a request in, or answers it at once without reading what it sends."""

    def __init__(self, app: ASGIApp, context: ApiContext) -> None:
        self._app, self._context = app, context
        self._unsigned = Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._let_in(scope, receive, send)
        except RequestRefusedError as refused:
            await _answer_refusal(refused, scope, receive, send)
        except ClientDisconnect:
            log.info("%s %s: the client left before it had sent everything", scope["method"], scope["path"])

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        _refuse_two_lengths(Headers(scope=scope))
        if scope["method"] not in _WITH_BODY or not scope["path"].startswith("/api/"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if self._is_signed_sender(scope, headers):
            await self._read_unsigned(scope, receive, send)
            return
        request = Request(scope)
        scheme, _, text = headers.get("authorization", "").partition(" ")
        text = text.strip() if scheme.lower() == "bearer" else ""
        request.state.token = await authenticate_bearer(self._context, client_host(request), text)
        await self._app(scope, receive, send)

    def _is_signed_sender(self, scope: Scope, headers: Headers) -> bool:
        path = scope["path"]
        name = path.removeprefix(_WEBHOOKS) if path.startswith(_WEBHOOKS) else ""
        return name in self._context.service.senders and "authorization" not in headers

    async def _read_unsigned(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = client_host(Request(scope))
        if self._unsigned[host] >= UNSIGNED_OF_ADDRESS or self._unsigned.total() >= UNSIGNED_BODIES:
            raise RequestRefusedError(
                503, "unavailable", "too many messages are being read: try again", {"Retry-After": "2"}
            )
        self._unsigned[host] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._unsigned[host] -= 1
            if not self._unsigned[host]:
                del self._unsigned[host]


class HeadRequests:
    """Answers HEAD as GET, without the body. Event streams have no end, and no HEAD."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].endswith("/events"):
            await self._app(scope, receive, send)
            return

        async def send_headers(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self._app({**scope, "method": "GET"}, receive, send_headers)


def _refuse_two_lengths(headers: Headers) -> None:
    """Two lengths of one body: a proxy may have read the other one. Refuses 400."""
    if "content-length" in headers and "transfer-encoding" in headers:
        raise RequestRefusedError(
            HTTPStatus.BAD_REQUEST, "bad_request", "Content-Length and Transfer-Encoding exclude each other"
        )


async def _answer_refusal(refused: RequestRefusedError, scope: Scope, receive: Receive, send: Send) -> None:
    """The refusal; the connection ends with it, for nobody has read what is still to come."""
    headers = {**refused.headers, "Connection": "close"}
    answer = JSONResponse({"error": refused.error, "message": refused.message}, refused.status, headers)
    await answer(scope, receive, send)

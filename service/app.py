"""The HTTP API, assembled: addresses, who may use them, and how errors are reported."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opsleuth import __version__
from opsleuth.checkpoints.errors import (
    ConflictError,
    NotFoundError,
    RunBusyError,
    StoreError,
    StoreFailedError,
)
from opsleuth.service.api_context import ApiContext, RequestRefusedError
from opsleuth.service.documents import ErrorResponse
from opsleuth.service.request_border import HeadRequests, RequestBorder
from opsleuth.service.request_limits import BodyLimits
from opsleuth.service.routes import alerts, approvals, events, operations, page, reports, tasks, webhooks
from opsleuth.state.errors import UsageError

ROUTERS = (
    tasks.router,
    events.router,
    reports.router,
    approvals.router,
    alerts.router,
    webhooks.router,
    operations.router,
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Of every answer that does not say otherwise."""


class ServiceApi(FastAPI):
    """The application, whose description names the one form of every refusal once."""

    def openapi(self) -> dict[str, Any]:
        """The description of the API, with `Problem` among its schemas."""
        document = super().openapi()
        document["components"]["schemas"]["Problem"] = {
            **ErrorResponse.model_json_schema(),
            "title": "Problem",
        }
        return document


def build_app(context: ApiContext) -> FastAPI:
    """The application of one process; it closes the context's stores when it ends."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        context.stores.close()
        context.lanes.close()

    app = ServiceApi(
        title="opsleuth",
        version=__version__,
        description="Accepts investigations and replies at once; shows them, asks people for approval, reports when they end.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # the usual page of documentation loads its programs from another host
        redoc_url=None,
        redirect_slashes=False,  # a redirect would lead wherever the request's own Host says
        lifespan=life,
    )
    app.state.context = context
    for router in (*ROUTERS, page.router):
        app.include_router(router)
    app.add_middleware(BodyLimits, most=context.service.body_bytes, seconds=context.service.body_seconds)
    app.add_middleware(RequestBorder, context=context)
    app.add_middleware(HeadRequests)
    app.add_middleware(MetricsAndHeaders, context=context)
    for kind in (RequestRefusedError, RequestValidationError, HTTPException, UsageError, StoreError):
        app.add_exception_handler(kind, _response_from_error)
    return app


class MetricsAndHeaders:
    """Counts and times requests, and adds the headers that every answer has."""

    def __init__(self, app: ASGIApp, context: ApiContext) -> None:
        self._app, self._context = app, context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._context.clock.monotonic()

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._context.traffic.add(
                    scope["method"],
                    _declared_route_path(scope),
                    message["status"],
                    self._context.clock.monotonic() - began,
                )
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


def _declared_route_path(scope: Scope) -> str:
    """The address as it was declared; `none` where nothing is."""
    return str(getattr(scope.get("route"), "path", "none"))


async def _response_from_error(_: Request, error: Exception) -> Response:
    """Everything that goes wrong, in one form; of an invalid field what is wrong with it, never its value."""
    match error:
        case RequestRefusedError():
            return _problem_response(error.status, error.error, error.message, error.headers)
        case RequestValidationError():
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
            return _problem_response(422, "invalid", wrong)
        case HTTPException():
            word = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
            return _problem_response(error.status_code, word, str(error.detail), error.headers)
        case UsageError():
            return _problem_response(422, "invalid", str(error))
        case NotFoundError():
            return _problem_response(404, "not_found", str(error))
        case ConflictError() | RunBusyError():
            return _problem_response(409, "conflict", str(error))
        case StoreFailedError():
            return _problem_response(
                503, "unavailable", "the database cannot be used now: try again", {"Retry-After": "2"}
            )
    return _problem_response(
        500, "internal", "what is stored cannot be read; the log of the service says more"
    )


def _problem_response(
    status: int, error: str, message: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    return JSONResponse({"error": error, "message": message}, status, headers)

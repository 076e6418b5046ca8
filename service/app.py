"""The HTTP API, put together: addresses, who may use them, and how everything that goes wrong is told."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opsleuth import __version__
from opsleuth.checkpoints.errors import Busy, Conflict, NotFound, StoreError, StoreFailed
from opsleuth.service.context import ApiContext, Refused
from opsleuth.service.limits import BodyLimit
from opsleuth.service.routes import approvals, events, operations, page, reports, tasks, webhooks
from opsleuth.state.errors import UsageError

ROUTERS = (tasks.router, events.router, reports.router, approvals.router, webhooks.router, operations.router)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Of every answer that does not say otherwise."""


def build(context: ApiContext) -> FastAPI:
    """The application of one process; it closes the context's stores when it ends."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        context.stores.close()

    app = FastAPI(
        title="opsleuth",
        version=__version__,
        description="Accepts investigations and answers at once; shows them, asks people, tells of their end.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # the usual page of documentation loads its programs from another host
        redoc_url=None,
        lifespan=life,
    )
    app.state.context = context
    for router in (*ROUTERS, page.router):
        app.include_router(router)
    app.add_middleware(BodyLimit, most=context.service.body_bytes)
    app.add_middleware(MetricsAndHeaders, context=context)
    for kind in (Refused, RequestValidationError, HTTPException, UsageError, StoreError):
        app.add_exception_handler(kind, _told)
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
                    _declared(scope),
                    message["status"],
                    self._context.clock.monotonic() - began,
                )
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


def _declared(scope: Scope) -> str:
    """The address as it was declared; `none` where nothing is."""
    return str(getattr(scope.get("route"), "path", "none"))


async def _told(_: Request, error: Exception) -> Response:
    """Everything that goes wrong, in one form; of an invalid field what is wrong with it, never its value."""
    match error:
        case Refused():
            return _problem(error.status, error.error, error.message, error.headers)
        case RequestValidationError():
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
            return _problem(422, "invalid", wrong)
        case HTTPException():
            word = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
            return _problem(error.status_code, word, str(error.detail), error.headers)
        case UsageError():
            return _problem(422, "invalid", str(error))
        case NotFound():
            return _problem(404, "not_found", str(error))
        case Conflict() | Busy():
            return _problem(409, "conflict", str(error))
        case StoreFailed():
            return _problem(
                503, "unavailable", "the database cannot be used now: try again", {"Retry-After": "2"}
            )
    return _problem(500, "internal", "what is stored cannot be read; the log of the service says more")


def _problem(status: int, error: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": error, "message": message}, status, headers)

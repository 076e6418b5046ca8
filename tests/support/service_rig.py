"""The API of one process over a store, with a token for each role, asked without a network."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.service.intake import IntakeRow
from opsleuth.checkpoints.service.tokens import Role
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import ServiceSettings, parse_service_settings
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.api_context import ApiContext
from opsleuth.service.app import build_app
from opsleuth.service.client_connections import TimedConnection
from opsleuth.service.intake import Enqueue, RequestIntake
from opsleuth.service.intake_lanes import IntakeLanes
from opsleuth.service.sns_messages import SnsMessages
from opsleuth.service.store_pool import StorePool
from opsleuth.state.clock import Clock, SystemClock

ALERT: Mapping[str, Any] = {
    "text": "orders are slow",
    "service": "orders-api",
    "severity": "critical",
    "labels": {"alertname": "Slow"},
}
SECRETS = {"pages": "page-secret", "panels": "panel-secret", "peer": "peer-secret"}
SENDERS = {
    "pages": {"kind": "pagerduty", "team": "shop", "secret": {"env": "X"}},
    "panels": {"kind": "grafana", "team": "shop", "secret": {"env": "X"}},
    "peer": {"kind": "opsleuth", "team": "shop", "secret": {"env": "X"}},
}


@dataclass
class Api:
    """The application, its store, and who may ask. `queued` are the runs that were put in line."""

    app: FastAPI
    context: ApiContext
    store: Store
    clock: Clock
    queued: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)

    def token(self, *roles: Role, team: str = "shop") -> str:
        """A token of these roles; its owner is named after them."""
        name = f"{team}-{'-'.join(roles) or 'view'}"
        if name not in self.tokens:
            self.tokens[name] = self.store.tokens.create(name, team, roles)[1]
        return self.tokens[name]

    async def __call__(
        self, method: str, path: str, token: str | None = None, **request: Any
    ) -> httpx.Response:
        headers = dict(request.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://opsleuth.test") as client:
            return await client.request(method, path, headers=headers, **request)

    async def start(self, question: str = "what is slow", **more: Any) -> str:
        """A new run of the team shop; its id."""
        answer = await self("POST", "/api/tasks", self.token("run"), json={"question": question, **more})
        assert answer.status_code == 202, answer.text
        task: str = answer.json()["task_id"]
        return task


@asynccontextmanager
async def serving(
    place: Place,
    clock: Clock | None = None,
    settings: RunSettings | None = None,
    enqueue: Enqueue | None = None,
    sns: SnsMessages | None = None,
    **service: Any,
) -> AsyncIterator[Api]:
    """The API over this store."""
    clock = clock or SystemClock()
    queued: list[str] = []

    def note(_: Store, taken: Sequence[IntakeRow]) -> None:
        queued.extend(row.run for row in taken)

    def opened() -> Store:
        return Store.open(place, clock, Redactor())

    table: ServiceSettings = parse_service_settings({"senders": SENDERS, **service}, "the test")
    stores = StorePool(opened, size=2)
    intake = RequestIntake(settings or RunSettings(), enqueue or note, clock, webhooks=table.webhooks)
    lanes = IntakeLanes(StorePool(opened, size=2))
    context = ApiContext(stores, lanes, intake, table, clock, SECRETS, sns or SnsMessages())
    try:
        with opened() as store:
            yield Api(build_app(context), context, store, clock, queued)
    finally:
        stores.close()
        lanes.close()


class _Telling(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._when_started = started

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._when_started()


@asynccontextmanager
async def listening(app: FastAPI, port: int = 0) -> AsyncIterator[str]:
    """The application, served on loopback by a thread of its own, on this port or a free one; its address."""
    ready, loop = asyncio.Event(), asyncio.get_running_loop()
    config = uvicorn.Config(
        app,
        port=port,
        http=TimedConnection,
        ws="none",
        log_config=None,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    server = _Telling(config, lambda: loop.call_soon_threadsafe(ready.set))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    try:
        await ready.wait()
        taken: int = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{taken}"
    finally:
        server.should_exit = True
        await asyncio.to_thread(thread.join)


def folder_store(folder: Path) -> Path:
    """A store in a file."""
    return folder / "store.db"

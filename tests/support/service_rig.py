"""The API of one process over a store, with a token for each role, asked without a network."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from opsleuth.checkpoints.intake import Taken
from opsleuth.checkpoints.places import Place
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.tokens import Role
from opsleuth.graph.prepare import Settings
from opsleuth.service.app import build
from opsleuth.service.context import ApiContext
from opsleuth.service.intake import Enqueue, Intake
from opsleuth.service.settings import Service, service_of
from opsleuth.service.stores import Stores
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
    settings: Settings | None = None,
    enqueue: Enqueue | None = None,
    **service: Any,
) -> AsyncIterator[Api]:
    """The API over this store."""
    clock = clock or SystemClock()
    queued: list[str] = []

    def note(_: Store, taken: Taken) -> None:
        queued.append(taken.run)

    def opened() -> Store:
        return Store.open(place, clock, Redactor())

    table: Service = service_of({"senders": SENDERS, **service}, "the test")
    stores = Stores(opened, size=2)
    intake = Intake(settings or Settings(), enqueue or note, clock)
    context = ApiContext(stores, intake, table, clock, SECRETS)
    try:
        with opened() as store:
            yield Api(build(context), context, store, clock, queued)
    finally:
        stores.close()


class _Telling(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._when_started = started

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._when_started()


@asynccontextmanager
async def listening(app: FastAPI) -> AsyncIterator[str]:
    """The application, served on loopback by a thread of its own; its address."""
    ready, loop = asyncio.Event(), asyncio.get_running_loop()
    config = uvicorn.Config(app, port=0, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = _Telling(config, lambda: loop.call_soon_threadsafe(ready.set))
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    try:
        await ready.wait()
        port: int = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await asyncio.to_thread(thread.join)


def folder_store(folder: Path) -> Path:
    """A store in a file."""
    return folder / "store.db"

"""What others are told: signed, of every question and every end, once each, however often the receiver fails first."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from loop_rig import concludes
from service_rig import Api, serving
from worker_rig import Place, worker

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import InvalidRowError
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import ModelRates
from opsleuth.models.planner_selection import PlannerAndReviewer
from opsleuth.models.scripted_planner import ScriptedPlanner
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.model_rate_limit import limit_model_rates
from opsleuth.service.queue import create_queue_tables
from opsleuth.service.signatures import has_valid_signature
from opsleuth.state.backoff import Backoff
from opsleuth.state.clock import FakeClock, SystemClock
from opsleuth.state.decision import Decision
from opsleuth.state.run_status import StopReason

SECONDS = 240.0
SECRET = "chat-secret"
RESTART = {"reason": "act", "calls": [{"tool": "restart", "arguments": {"thing": "a"}}]}
LOOK = {"reason": "look", "calls": [{"tool": "look", "arguments": {"thing": "a"}}]}


class Receiver:
    """A place that is told: keeps what it accepts, and refuses the first `failing` messages."""

    def __init__(self, failing: int = 0) -> None:
        self.failing, self.refused, self.heard = failing, 0, list[dict[str, Any]]()
        self.answers = threading.Event()
        self.answers.set()
        self.unsigned = 0

    def hear(self, headers: dict[str, str], body: bytes) -> int:
        self.answers.wait()
        if self.refused < self.failing:
            self.refused += 1
            return 503
        self.unsigned += not has_valid_signature(
            "opsleuth", SECRET, headers, body, SystemClock().now().timestamp()
        )
        self.heard.append(json.loads(body))
        assert headers["x-opsleuth-notice"] == self.heard[-1]["id"]
        return 204


@contextmanager
def receiving(receiver: Receiver) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(receiver.hear({k.lower(): v for k, v in self.headers.items()}, body))
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing is written to the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def told(receiver: Receiver, *kinds: str) -> None:
    async with asyncio.timeout(SECONDS):
        while sorted(message["kind"] for message in receiver.heard) != sorted(kinds):  # noqa: ASYNC110 - another's thread
            await asyncio.sleep(0.05)


async def approve(api: Api, run: str) -> None:
    (asked,) = api.store.approvals.list(run, "pending")
    path = f"/api/tasks/{run}/approvals/{asked.id}/approve"
    await api("POST", path, api.token("approve"), json={"digest": asked.digest})


@pytest.mark.slow
async def test_questions_and_ends_are_told_signed_and_once(server: PostgresServer, tmp_path: Path) -> None:
    create_queue_tables(server)
    receiver, world = Receiver(), Place(tmp_path)
    world.write(RESTART, concludes("Done.", "E1"))
    with receiving(receiver) as url:
        table = {"webhooks": {"chat": {"url": url, "secret": {"env": "X"}, "teams": ["shop"]}}}
        async with serving(server, enqueue=lambda store, taken: store.jobs.put_all(taken)) as api:
            run = await api.start()
            theirs = await api("POST", "/api/tasks", api.token("run", team="bank"), json={"question": "why"})
            one = replace(worker(tmp_path, server, 2, table), secrets={"chat": SECRET})
            task = asyncio.create_task(one.run())
            await told(receiver, "approval_needed")
            await approve(api, run)
            await told(receiver, "approval_needed", "concluded")
            limited = await api.start("short", limits={"turns": 1})
            await told(receiver, "approval_needed", "concluded", "approval_needed")
            await api("POST", f"/api/tasks/{limited}/cancel", api.token("run"), json={})
            await told(receiver, "approval_needed", "concluded", "approval_needed", "canceled")
            one.leaving.set()
            await task
    assert receiver.unsigned == 0
    assert {message["task_id"] for message in receiver.heard} == {run, limited}
    assert theirs.json()["task_id"] not in str(receiver.heard)
    first, concluded = receiver.heard[0], receiver.heard[1]
    assert first["approvals"][0]["tool"] == "restart"
    assert len(first["approvals"][0]["digest"]) == 64
    assert {"check now", "check after", "undo"} <= {field["name"] for field in first["approvals"][0]["shown"]}
    assert concluded["report"]["stop_reason"] == "concluded"
    assert receiver.heard[-1]["report"]["stop_reason"] == "canceled"


@pytest.mark.slow
async def test_a_limit_comes_with_the_partial_report_and_a_failing_receiver_is_asked_again(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opsleuth.service.notices.RETRIES", Backoff(first=0.1, longest=3_600.0))
    create_queue_tables(server)
    receiver, world = Receiver(failing=2), Place(tmp_path)
    world.write(LOOK)
    with receiving(receiver) as url:
        table = {"webhooks": {"chat": {"url": url, "secret": {"env": "X"}}}}
        async with serving(server, enqueue=lambda store, taken: store.jobs.put_all(taken)) as api:
            await api.start(limits={"turns": 1})
            one = replace(worker(tmp_path, server, 1, table), secrets={"chat": SECRET})
            task = asyncio.create_task(one.run())
            await told(receiver, "limit")
            one.leaving.set()
            await task
            assert api.store.notices.waiting() == 0
    assert receiver.refused == 2
    assert receiver.heard[0]["report"]["stop_reason"] == "turn_limit"


async def test_a_receiver_that_hangs_or_cannot_be_addressed_delays_nobody_else(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opsleuth.service.notices.SECONDS", 10 * SECONDS)
    create_queue_tables(server)
    hanging, receiver, world = Receiver(), Receiver(), Place(tmp_path)
    hanging.answers.clear()
    world.write(concludes("Nothing."))
    with receiving(hanging) as slow, receiving(receiver) as url:
        urls = {"a": slow, "b": "http://[bad/hook", "c": url}
        table = {"webhooks": {name: {"url": url, "secret": {"env": "X"}} for name, url in urls.items()}}
        async with serving(server, enqueue=lambda store, taken: store.jobs.put_all(taken)) as api:
            await api.start()
            one = replace(worker(tmp_path, server, 1, table), secrets=dict.fromkeys(urls, SECRET))
            task = asyncio.create_task(one.run())
            try:
                await told(receiver, "concluded")
                assert hanging.heard == []
            finally:
                hanging.answers.set()
            await told(hanging, "concluded")
            one.leaving.set()
            await task
            assert api.store.notices.waiting() == 1


_REFUSING = "ALTER TABLE opsleuth.notices ADD CONSTRAINT refusing CHECK (false) NOT VALID"


async def test_an_end_whose_message_could_not_be_written_with_it_is_told_later(
    server: PostgresServer, tmp_path: Path
) -> None:
    create_queue_tables(server)
    receiver, world = Receiver(), Place(tmp_path)
    world.write(concludes("Nothing."))
    with receiving(receiver) as url, psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(_REFUSING)
        table = {"webhooks": {"chat": {"url": url, "secret": {"env": "X"}}}}
        async with serving(server, enqueue=lambda store, taken: store.jobs.put_all(taken)) as api:
            run = await api.start()
            one = replace(worker(tmp_path, server, 1, table), secrets={"chat": SECRET})
            with contextlib.closing(one), pytest.raises(InvalidRowError):
                await one.investigate(run, "shop")
            assert api.store.runs.find(run).stop_reason is StopReason.CONCLUDED
            connection.execute("ALTER TABLE opsleuth.notices DROP CONSTRAINT refusing")
            task = asyncio.create_task(one.run())
            await told(receiver, "concluded")
            one.leaving.set()
            await task
            assert api.store.runs.find(run).attempt == 1


async def test_all_planners_together_keep_to_one_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(SystemClock().now())
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("opsleuth.service.model_rate_limit.asyncio.sleep", wait)
    with (
        Store.open(tmp_path / "store.db", clock, Redactor()) as one,
        Store.open(tmp_path / "store.db", clock, Redactor()) as other,
    ):
        rates = ModelRates(requests_per_minute=60)
        decision = Decision.model_validate(concludes("Nothing."))
        planners = [
            limit_model_rates(PlannerAndReviewer(ScriptedPlanner([decision])), store, rates).planner
            for store in (one, other)
        ]

        class View:
            class state:  # noqa: N801 - stands for the state of a view
                class budget:  # noqa: N801
                    class used:  # noqa: N801
                        turns = 1

        for planner in planners * 3:
            await planner.decide(View)  # type: ignore[arg-type]
    assert waits == pytest.approx([0, 0, 0, 1, 2, 3], abs=0.01)

"""Workers on a real PostgreSQL: they take runs, stop at a node, succeed those that died, set poison aside."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import psycopg
import pytest
from loop_rig import concludes
from service_rig import Api, serving
from worker_rig import QUICK, Place, started, worker

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.background_tasks import remove_old_runs
from opsleuth.service.queue import RetryLaterError, create_queue_tables
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import FINISHED_STATUSES, Status, StopReason

SECONDS = 240.0
"""Longer than anything here takes, so that a failure ends."""


def calls(tool: str, thing: str, **arguments: Any) -> dict[str, Any]:
    return {"reason": "go", "calls": [{"tool": tool, "arguments": {"thing": thing, **arguments}}]}


@pytest.fixture
def world(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def api(server: PostgresServer) -> AsyncIterator[Api]:
    create_queue_tables(server)
    async with serving(server, enqueue=lambda store, taken: store.jobs.put_all(taken)) as running:
        yield running


@asynccontextmanager
async def working(
    world: Place, server: PostgresServer, concurrency: int = 2, **table: Any
) -> AsyncIterator[None]:
    """A worker in this process while the block runs."""
    one = worker(world.folder, server, concurrency, table)
    task = asyncio.create_task(one.run())
    try:
        yield
    finally:
        one.leaving.set()
        await task


@contextmanager
def processes(
    world: Place, server: PostgresServer, count: int, **table: Any
) -> Iterator[list[ForkServerProcess]]:
    """Workers as processes, ended with the block."""
    running = [started(world.folder, server, **table) for _ in range(count)]
    try:
        yield running
    finally:
        for process in running:
            process.terminate()
            process.join(SECONDS)


async def seen(what: Callable[[], bool]) -> None:
    """Come back once this is so."""
    async with asyncio.timeout(SECONDS):
        while not what():  # noqa: ASYNC110 - another process works, and tells nobody
            await asyncio.sleep(0.05)


async def until(api: Api, run: str, *statuses: Status) -> RunRow:
    """The run's row, once it stands like this."""
    await seen(lambda: api.store.runs.find(run).status in statuses)
    return api.store.runs.find(run)


async def test_a_queued_run_is_worked_on_to_its_end(api: Api, world: Place, server: PostgresServer) -> None:
    world.write(calls("look", "a"), concludes("It is 7.", "E1"))
    runs = [await api.start() for _ in range(5)]
    async with working(world, server):
        rows = [await until(api, run, *FINISHED_STATUSES) for run in runs]
    assert {row.stop_reason for row in rows} == {StopReason.CONCLUDED}
    assert sorted(world.lines("looked")) == sorted(f"{run} a" for run in runs)
    assert api.store.jobs.counts() == {}


async def test_an_approval_over_the_api_lets_the_run_go_on(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(calls("restart", "a"), concludes("Done.", "E1"))
    run = await api.start()
    async with working(world, server):
        await until(api, run, Status.WAITING)
        assert world.lines("done") == []
        (asked,) = (await api("GET", "/api/approvals", api.token("view"))).json()["approvals"]
        path = f"/api/tasks/{run}/approvals/{asked['id']}/approve"
        answer = await api("POST", path, api.token("approve"), json={"digest": asked["digest"]})
        assert answer.status_code == 200
        await until(api, run, *FINISHED_STATUSES)
    assert world.lines("done") == [f"{run} a"]
    assert api.store.approvals.list(run)[0].answered_by == "shop-approve"


async def test_a_run_is_cancelled_while_it_waits_or_queues(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(calls("restart", "a"), concludes("Done.", "E1"))
    waits = await api.start()
    async with working(world, server):
        await until(api, waits, Status.WAITING)
    queued = await api.start()
    for run in (waits, queued):
        assert (await api("POST", f"/api/tasks/{run}/cancel", api.token("run"), json={})).status_code == 202
    async with working(world, server):
        rows = [await until(api, run, *FINISHED_STATUSES) for run in (waits, queued)]
    assert {row.status for row in rows} == {Status.CANCELED}
    assert world.lines("done") == []
    assert (await api("GET", f"/api/tasks/{waits}/report", api.token("view"))).json()[
        "stop_reason"
    ] == "canceled"


async def test_a_job_too_many_begins_nothing_again(api: Api, world: Place, server: PostgresServer) -> None:
    world.write(calls("restart", "a"), concludes("Done.", "E1"))
    run = await api.start()
    token = api.token("run")
    assert (await api("POST", f"/api/tasks/{run}/cancel", token, json={})).status_code == 202
    async with working(world, server):
        await until(api, run, Status.CANCELED)
        await seen(lambda: not api.store.jobs.counts())
    assert api.store.runs.find(run).status is Status.CANCELED
    assert api.store.approvals.list(run) == ()


@pytest.mark.slow
async def test_a_worker_that_is_told_to_end_stops_at_a_node_and_another_goes_on(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(calls("look", "a", seconds=3), concludes("It is 7.", "E1"))
    run = await api.start()
    with processes(world, server, 1) as (first,):
        await until(api, run, Status.RUNNING)
        await seen(lambda: bool(world.lines("looked")))
        first.terminate()
        await asyncio.to_thread(first.join, SECONDS)
        assert first.exitcode == 0
    assert api.store.jobs.counts() == {"todo": 1}
    async with working(world, server):
        row = await until(api, run, *FINISHED_STATUSES)
    assert (row.stop_reason, row.attempt) == (StopReason.CONCLUDED, 2)


@pytest.mark.slow
async def test_a_dead_workers_run_goes_on_from_its_last_node(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(calls("look", "a"), calls("look", "b", seconds=2), concludes("It is 7.", "E1", "E2"))
    run = await api.start()
    with processes(world, server, 1) as (first,):
        await seen(lambda: len(world.lines("looked")) == 2)
        first.kill()
        first.join()
    async with working(world, server):
        row = await until(api, run, *FINISHED_STATUSES)
    assert (row.stop_reason, row.attempt) == (StopReason.CONCLUDED, 2)
    assert world.lines("looked") == [f"{run} a", f"{run} b", f"{run} b"]


def heard_of(server: PostgresServer) -> float:
    """Seconds since the epoch at which the worker that has the job was last heard of, by the server's clock."""
    with psycopg.connect(server.url) as connection:
        row = connection.execute(
            "SELECT extract(epoch FROM max(last_heartbeat)) FROM opsleuth.procrastinate_workers"
            " WHERE id IN (SELECT worker_id FROM opsleuth.procrastinate_jobs WHERE status = 'doing')"
        ).fetchone()
    return float(row[0] or 0) if row else 0.0


@pytest.mark.slow
async def test_a_worker_whose_loop_computes_for_long_keeps_its_runs(
    api: Api, world: Place, server: PostgresServer
) -> None:
    os.mkfifo(world.gate)
    world.write(calls("look", "a", hang=True), concludes("It is 7.", "E1"))
    run = await api.start()
    with processes(world, server, 2):
        await seen(lambda: bool(world.lines("looked")))
        since = heard_of(server)
        await seen(lambda: heard_of(server) > since + 3 * QUICK["stalled_seconds"])
        await asyncio.to_thread(world.gate.write_bytes, b"")
        row = await until(api, run, *FINISHED_STATUSES)
    assert (row.stop_reason, row.attempt) == (StopReason.CONCLUDED, 1)
    assert world.lines("looked") == [f"{run} a"]


@pytest.mark.slow
async def test_a_worker_whose_loop_hangs_is_succeeded_and_writes_nothing_when_it_wakes_up(
    api: Api, world: Place, server: PostgresServer
) -> None:
    os.mkfifo(world.gate)
    world.write(calls("look", "a", hang=True), concludes("It is 7.", "E1"))
    run = await api.start()
    with processes(world, server, 2, hung_seconds=1) as running:
        row = await until(api, run, *FINISHED_STATUSES)
        ended = api.store.events.read(run)
        await asyncio.to_thread(world.gate.write_bytes, b"")
        await seen(lambda: "was taken over" in (world.folder / "worker.log").read_text())
        assert [process.exitcode for process in running] == [None, None]
    assert (row.stop_reason, row.attempt) == (StopReason.CONCLUDED, 2)
    assert world.lines("looked") == [f"{run} a", f"{run} a"]
    assert api.store.events.read(run) == ended
    assert api.store.events.verify(run).broken_at is None


async def test_a_run_that_somebody_works_on_is_no_attempt_of_another_worker(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(concludes("Nothing."))
    run = await api.start()
    one = worker(world.folder, server, 1, {"most_strikes": 1})
    with contextlib.closing(one), api.store.lock(run):
        for _ in range(3):
            with pytest.raises(RetryLaterError):
                await one.investigate(run, "shop")
        assert api.store.runs.find(run).status is Status.QUEUED
    async with working(world, server, most_strikes=1):
        row = await until(api, run, *FINISHED_STATUSES)
    assert row.stop_reason is StopReason.CONCLUDED


@pytest.mark.slow
async def test_a_run_that_kills_its_workers_is_set_aside_and_the_others_are_not(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(calls("look", "a", die=True))
    run = await api.start()
    with processes(world, server, 1, most_strikes=2) as running:
        async with asyncio.timeout(SECONDS):
            while api.store.runs.find(run).status not in FINISHED_STATUSES:
                if running[0].exitcode is not None:
                    running[0] = started(world.folder, server, most_strikes=2)
                await asyncio.sleep(0.05)  # another process works; it tells nobody
    row = api.store.runs.find(run)
    assert (row.status, row.stop_reason) == (Status.FAILED, StopReason.INTERNAL_ERROR)
    assert "2 attempts in a row" in api.store.events.read(run)[-1]["data"]["detail"]
    assert len(world.lines("looked")) == 3  # the first had made the plan
    assert row.resumable
    assert (await api("POST", f"/api/tasks/{run}/resume", api.token("run"), json={})).status_code == 202
    taken = api.store.intake.get(run)
    assert taken is not None
    assert taken.strikes == 0


async def test_a_run_that_came_to_its_limit_is_resumed_over_the_api_with_a_new_total(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(calls("look", "a"), calls("look", "b"), concludes("It is 7.", "E1"))
    run = await api.start(limits={"turns": 1})
    path, token = f"/api/tasks/{run}/resume", api.token("run")
    assert (await api("POST", path, token, json={})).status_code == 409  # it is queued
    async with working(world, server):
        await until(api, run, *FINISHED_STATUSES)
        assert api.store.runs.find(run).stop_reason is StopReason.TURN_LIMIT
        refused = await api("POST", path, token, json={"limits": {"tokens": 5_000}})
        assert (refused.status_code, "limits.turns" in refused.json()["message"]) == (409, True)
        assert (await api("POST", path, api.token("view"), json={})).status_code == 403
        assert (await api("POST", path, api.token("run", team="bank"), json={})).status_code == 404
        went_on = await api("POST", path, token, json={"limits": {"turns": 9}})
        assert (went_on.status_code, went_on.json()["status"]) == (202, "interrupted")
        await seen(lambda: api.store.runs.find(run).stop_reason is StopReason.CONCLUDED)
        assert (await api("POST", path, token, json={"limits": {"turns": 20}})).status_code == 409
    assert world.lines("looked") == [f"{run} a", f"{run} b"]
    assert api.store.control.pending(run) == ()


async def test_a_run_whose_job_was_lost_is_put_in_line_again(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(concludes("Nothing."))
    run = await api.start()
    api.store.database.change("DELETE FROM procrastinate_jobs")
    async with working(world, server):
        await until(api, run, *FINISHED_STATUSES)


async def test_teams_take_turns_and_the_most_urgent_goes_first(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(calls("look", "a"), concludes("It is 7.", "E1"))
    shop = [await api.start(f"shop {n}") for n in range(4)]
    token = api.token("run", team="bank")
    bank = [
        (await api("POST", "/api/tasks", token, json={"question": f"bank {n}"})).json()["task_id"]
        for n in range(2)
    ]
    alert = {"text": "down", "service": "x", "severity": "critical"}
    urgent = (await api("POST", "/api/tasks", token, json={"alert": alert})).json()["task_id"]
    async with working(world, server, concurrency=1):
        for run in (*shop, *bank, urgent):
            await until(api, run, *FINISHED_STATUSES)
    order = [line.split()[0] for line in world.lines("looked")]
    assert order[0] == urgent
    assert max(order.index(run) for run in bank) < order.index(shop[3])


async def test_old_runs_go_and_those_that_wait_stay(server: PostgresServer, clock: FakeClock) -> None:
    create_queue_tables(server)
    async with serving(server, clock) as api:
        runs = {
            status: await api.start(status) for status in (*FINISHED_STATUSES, Status.WAITING, Status.QUEUED)
        }
        for status, run in runs.items():
            api.store.runs.update(run, status=status)
        clock.advance(29 * 86_400)
        assert remove_old_runs(api.store, clock, 30) == 0
        clock.advance(2 * 86_400)
        assert remove_old_runs(api.store, clock, 30) == len(FINISHED_STATUSES)
        left = {row.status for row in api.store.runs.list()}
    assert left == {Status.WAITING, Status.QUEUED}


async def test_an_old_run_that_another_worker_removes_meanwhile_is_no_trouble(
    server: PostgresServer, clock: FakeClock
) -> None:
    create_queue_tables(server)
    async with serving(server, clock) as api:
        run = await api.start()
        api.store.runs.update(run, status=Status.COMPLETED)
        clock.advance(31 * 86_400)

        def other_removes() -> bool:
            with Store.open(server, clock, Redactor()) as other:
                return not other.prune.remove(run, clock.now())

        assert remove_old_runs(api.store, clock, 30, other_removes) == 0
        assert not api.store.runs.list()


_WAITING = (
    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


async def test_runs_go_on_while_the_removal_of_an_old_one_waits(
    api: Api, world: Place, server: PostgresServer
) -> None:
    world.write(concludes("Nothing."))
    old = await api.start()
    async with working(world, server):  # it makes the framework's tables too
        await until(api, old, *FINISHED_STATUSES)
    with (
        psycopg.connect(server.url) as holder,
        psycopg.connect(server.url, autocommit=True) as onlooker,
    ):
        onlooker.execute(
            "UPDATE opsleuth.runs SET updated = '2020-01-01T00:00:00.000000Z' WHERE id = %s", (old,)
        )
        holder.execute("SELECT 1 FROM opsleuth.runs WHERE id = %s FOR UPDATE", (old,))
        async with working(world, server):
            await seen(lambda: onlooker.execute(_WAITING).fetchone() != (0,))
            await until(api, await api.start(), *FINISHED_STATUSES)
            holder.rollback()
            await seen(lambda: api.store.runs.get(old) is None)

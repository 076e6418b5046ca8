"""A dump of the database while runs are in work: what is restored from it goes on, and says what the first one said."""

import asyncio
import subprocess
from pathlib import Path

import pytest
import servers
from loop_rig import concludes
from nonempty import nonempty
from service_rig import serving
from worker_rig import Place, worker

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.service.queue import create_queue_tables
from opsleuth.state.run_status import FINISHED_STATUSES, Status

SECONDS = 240.0


@pytest.mark.slow
async def test_a_dump_of_a_live_database_can_be_worked_on(
    server: PostgresServer, postgres: servers.Postgres, tmp_path: Path
) -> None:
    dump, restore = servers.need("pg_dump", "pg_restore")
    world, copy = Place(tmp_path), PostgresServer(postgres.database(), tmp_path / "copy")
    copy.folder.mkdir()
    look = {"reason": "look", "calls": [{"tool": "look", "arguments": {"thing": "a"}}]}
    act = {"reason": "act", "calls": [{"tool": "restart", "arguments": {"thing": "a"}}]}
    world.write(look, act, concludes("Done.", "E1"))
    create_queue_tables(server)
    async with serving(server, enqueue=lambda store, taken: store.jobs.put_all(taken)) as api:
        runs = [await api.start(f"run {n}") for n in range(3)]
        one = worker(tmp_path, server, 2, {})
        task = asyncio.create_task(one.run())
        async with asyncio.timeout(SECONDS):
            while api.store.runs.find(runs[0]).status is not Status.WAITING:  # noqa: ASYNC110 - a worker tells nobody
                await asyncio.sleep(0.05)
        argv = [dump, "--format=custom", f"--file={tmp_path / 'dump'}", server.url]
        await asyncio.to_thread(subprocess.run, argv, check=True, capture_output=True)
        one.leaving.set()
        await task
        before = {run: api.store.events.read(run)[:5] for run in runs[:1]}
    argv = [restore, "--no-owner", f"--dbname={copy.url}", str(tmp_path / "dump")]
    await asyncio.to_thread(subprocess.run, argv, check=True, capture_output=True)
    async with serving(copy, enqueue=lambda store, taken: store.jobs.put_all(taken)) as api:
        assert {run: api.store.events.read(run)[:5] for run in before} == before
        again = worker(tmp_path, copy, 2, {})
        task = asyncio.create_task(again.run())
        token = api.token("view", "approve")
        async with asyncio.timeout(SECONDS):
            while any(api.store.runs.find(run).status not in FINISHED_STATUSES for run in runs):
                for asked in (await api("GET", "/api/approvals", token)).json()["approvals"]:
                    path = f"/api/tasks/{asked['task_id']}/approvals/{asked['id']}/approve"
                    await api("POST", path, token, json={"digest": asked["digest"]})
                await asyncio.sleep(0.1)
        again.leaving.set()
        await task
        assert {run: api.store.events.verify(run).broken_at for run in nonempty(runs)} == dict.fromkeys(runs)
    assert world.more_than_once() == {}

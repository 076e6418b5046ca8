"""Many alerts of a few incidents become one run for each incident, whoever sends them and in whatever order they come.

What one alert costs does not grow with those that came before it.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from service_rig import Api, serving

from opsleuth.alerts.grouping import ReceivedAlert
from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.intake import RequestIntake, RequestSender
from opsleuth.service.queue import create_queue_tables
from opsleuth.state.clock import FakeClock, format_timestamp

CALLS = {f"web-{n}": [f"api-{n}"] for n in range(40)} | {f"api-{n}": [f"db-{n}"] for n in range(40)}
KINDS = ("Latency", "Errors", "Saturation")


def alert(incident: int, number: int, clock: FakeClock) -> dict[str, Any]:
    """One of an incident's alerts: of the service that fails or of those that call it; again and again, from other pods."""
    service = ("db", "api", "web")[number % 3]
    labels = {
        "alertname": KINDS[number // 3 % 3],
        "service": f"{service}-{incident}",
        "severity": ("critical", "warning")[number % 2],
        "pod": f"{service}-{incident}-{number:04x}",
        "instance": f"10.0.{incident}.{number}:9090",
    }
    started = clock.now() - timedelta(seconds=number % 50)
    return {
        "status": "firing",
        "labels": labels,
        "annotations": {"summary": "it is slow"},
        "startsAt": format_timestamp(started),
    }


async def storm(api: Api, clock: FakeClock, incidents: int, alerts: int) -> list[tuple[int, str]]:
    """Send them all, eight at once; the incident and the run of each."""
    token, gate = api.token("run"), asyncio.Semaphore(8)
    sent = [(n % incidents, n // incidents) for n in range(alerts)]
    random.Random(7).shuffle(sent)

    async def one(incident: int, number: int) -> tuple[int, str]:
        async with gate:
            clock.advance(60 / alerts)
            message = {"version": "4", "alerts": [alert(incident, number, clock)]}
            answer = await api("POST", "/api/webhooks/alertmanager", token, json=message)
            assert answer.status_code == 202, answer.text
            return incident, answer.json()["tasks"][0]

    return await asyncio.gather(*(one(*which) for which in sent))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("incidents", "alerts"), [(12, 240), pytest.param(40, 1_000, marks=pytest.mark.exhaustive)]
)
async def test_a_storm_becomes_one_run_for_each_incident(
    server: PostgresServer, clock: FakeClock, incidents: int, alerts: int
) -> None:
    create_queue_tables(server)
    settings = RunSettings(sources={"calls": {"kind": "declared", "calls": CALLS}})
    async with serving(
        server, clock, settings, lambda store, taken: store.jobs.put_all(taken), requests_per_minute=1e9
    ) as api:
        placed = await storm(api, clock, incidents, alerts)
        runs: dict[int, set[str]] = defaultdict(set)
        for incident, run in placed:
            runs[incident].add(run)
        assert len(runs) == incidents
        assert all(len(found) == 1 for found in runs.values())
        assert len({run for found in runs.values() for run in found}) == incidents
        assert len(api.store.runs.list(limit=1000)) == incidents
        assert api.store.jobs.counts() == {"todo": incidents}
        assert sum(api.store.alerts.count(next(iter(found))) for found in runs.values()) == alerts


READ_BLOCKS = """
SELECT sum(shared_blks_hit + shared_blks_read) AS blocks, sum(calls) AS calls FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def count_work(database: Any, work: Callable[[], object]) -> tuple[int, int]:
    """Blocks that the server looks at, and statements that it is sent, for this work."""
    before = database.row(READ_BLOCKS)
    work()
    after = database.row(READ_BLOCKS)
    return int(after[0] or 0) - int(before[0] or 0), int(after[1] or 0) - int(before[1] or 0)


@pytest.mark.slow
def test_thousandth_alert_costs_what_the_hundredth_did(server: PostgresServer, clock: FakeClock) -> None:
    create_queue_tables(server)
    sender, intake = RequestSender("am", "shop"), make_intake(clock)
    batches = [
        [
            ReceivedAlert(name="Slow", text="it is slow", service=f"service-{n}", severity="critical")
            for n in range(at, at + 10)
        ]
        for at in range(0, 1_000, 10)
    ]
    with Store.open(server, clock, Redactor()) as store:
        store.database.rows("CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA opsleuth")

        def receive(first: int, last: int) -> None:
            for batch in batches[first:last]:
                assert not any(one.joined for one in intake.receive_batch(store, batch, sender))

        receive(0, 5)
        early = count_work(store.database, lambda: receive(5, 15))
        receive(15, 90)
        late = count_work(store.database, lambda: receive(90, 100))
        assert late[0] <= 3 * early[0]
        assert late[1] == early[1]
        assert store.jobs.counts() == {"todo": 1_000}


def make_intake(clock: FakeClock) -> RequestIntake:
    return RequestIntake(RunSettings(), lambda store, taken: store.jobs.put_all(taken), clock)


def test_runs_of_a_storm_stand_behind_one_another_and_another_team_before_them(
    server: PostgresServer, clock: FakeClock
) -> None:
    create_queue_tables(server)
    intake = make_intake(clock)
    with Store.open(server, clock, Redactor()) as store:
        for team, count in (("shop", 12), ("shop", 3), ("bank", 1)):
            alerts = [
                ReceivedAlert(name="Slow", text="slow", service=f"{team}-{count}-{n}", severity="critical")
                for n in range(count)
            ]
            intake.receive_batch(store, alerts, RequestSender("am", team))
        rows = store.database.rows(
            "SELECT args ->> 'team' AS team, priority FROM procrastinate_jobs ORDER BY id"
        )
    found = {team: [row["priority"] for row in rows if row["team"] == team] for team in ("shop", "bank")}
    most = found["bank"][0]
    assert found == {"shop": [most - n for n in range(15)], "bank": [most]}

"""A thousand alerts of forty incidents become forty runs, whoever sends them and in whatever order they come."""

import asyncio
import random
from collections import defaultdict
from datetime import timedelta
from typing import Any

from service_rig import Api, serving

from opsleuth.checkpoints.places import Server
from opsleuth.graph.prepare import Settings
from opsleuth.service.queue import make_queue
from opsleuth.state.clock import FakeClock, stamp

INCIDENTS, ALERTS = 40, 1_000
CALLS = {f"web-{n}": [f"api-{n}"] for n in range(INCIDENTS)} | {
    f"api-{n}": [f"db-{n}"] for n in range(INCIDENTS)
}
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
        "startsAt": stamp(started),
    }


async def storm(api: Api, clock: FakeClock) -> list[tuple[int, str]]:
    """Send them all, eight at once; the incident and the run of each."""
    token, gate = api.token("run"), asyncio.Semaphore(8)
    sent = [(n % INCIDENTS, n // INCIDENTS) for n in range(ALERTS)]
    random.Random(7).shuffle(sent)  # noqa: S311 - repeatable

    async def one(incident: int, number: int) -> tuple[int, str]:
        async with gate:
            clock.advance(60 / ALERTS)
            message = {"version": "4", "alerts": [alert(incident, number, clock)]}
            answer = await api("POST", "/api/webhooks/alertmanager", token, json=message)
            assert answer.status_code == 202, answer.text
            return incident, answer.json()["tasks"][0]

    return await asyncio.gather(*(one(*which) for which in sent))


async def test_a_storm_becomes_one_run_for_each_incident(server: Server, clock: FakeClock) -> None:
    make_queue(server)
    settings = Settings(sources={"calls": {"kind": "declared", "calls": CALLS}})
    async with serving(
        server, clock, settings, lambda store, taken: store.jobs.put(taken), requests_per_minute=1e9
    ) as api:
        placed = await storm(api, clock)
        runs: dict[int, set[str]] = defaultdict(set)
        for incident, run in placed:
            runs[incident].add(run)
        assert len(runs) == INCIDENTS
        assert all(len(found) == 1 for found in runs.values())
        assert len({run for found in runs.values() for run in found}) == INCIDENTS
        assert len(api.store.runs.list(limit=1000)) == INCIDENTS
        assert api.store.jobs.counts() == {"todo": INCIDENTS}
        assert sum(api.store.alerts.count(next(iter(found))) for found in runs.values()) == ALERTS

"""A real Alertmanager sends 200 alerts of twelve situations, also while nobody listens: each ends in a run or a stated reason.

The same through kills of the service and a restart of its database: what was answered is kept, what was not is sent again.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import servers
from package_path import PACKAGE_PATH
from service_rig import folder_store, listening, serving

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import StoreFailedError
from opsleuth.checkpoints.service.received_alerts import AlertReceipt
from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.queue import create_queue_tables
from opsleuth.state.clock import SystemClock, format_timestamp
from opsleuth.state.run_status import Status

CONFIG = """
route: {{receiver: opsleuth, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}
receivers:
- name: opsleuth
  webhook_configs:
  - url: http://127.0.0.1:{port}/api/webhooks/alertmanager
    send_resolved: true
    http_config: {{authorization: {{credentials: "{token}"}}}}
"""
CALLS = {f"web-{number}": [f"service-{number}"] for number in range(20)}
Alert = dict[str, Any]


def alert(situation: str, number: int, name: str, **labels: str) -> Alert:
    """An alert whose summary says what it stands for."""
    named = {"alertname": name, "severity": "warning", **labels}
    return {"labels": named, "annotations": {"summary": f"{situation}-{number}"}}


def many(count: int, situation: str, name: str, **labels: str) -> list[Alert]:
    """So many alerts; `{n}` in a label is the number."""
    return [
        alert(situation, number, name, **{key: value.format(n=number) for key, value in labels.items()})
        for number in range(count)
    ]


FIRST = [
    *many(40, "new", "Slow", service="service-{n}"),
    *many(20, "host", "HostDown", instance="10.0.0.{n}:9100"),
    *many(10, "risen", "Full", service="disk-{n}"),
    *many(5, "flapping", "Flaps", service="flap-{n}"),
    *many(5, "heartbeat", "Watchdog", source="{n}"),
    *many(10, "unimportant", "Note", service="note-{n}", severity="none"),
    *many(10, "silenced", "Silenced", service="quiet-{n}"),
]
SECOND = [
    *many(20, "same service", "Errors", service="service-{n}"),
    *many(20, "caller", "Slow", service="web-{n}"),
    *many(20, "pod", "Slow", service="service-{n}", pod="service-{n}-x"),
    *many(10, "escalated", "Full", service="disk-{n}", severity="critical"),
    *many(15, "ended", "Down", service="service-{n}"),
    *many(15, "over", "Brief", service="brief-{n}"),
]
FIRST_OUTCOMES = {
    "new": "started", "host": "started", "risen": "started", "flapping": "started", "heartbeat": "muted", "unimportant": "muted",
}  # fmt: skip
SECOND_OUTCOMES = {
    "same service": "joined",
    "caller": "joined",
    "pod": "repeated",
    "escalated": "escalated",
    "ended": "linked",
    "over": "started",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "alertmanager"
    made.mkdir()
    return made


def situations(store: Store) -> dict[str, list[AlertReceipt]]:
    """The receipts by the situation of their alert, oldest first."""
    found: dict[str, list[AlertReceipt]] = defaultdict(list)
    for receipt in reversed(store.receipts.list("shop", limit=5_000)):
        found[str(receipt.document["text"]).rpartition(": ")[2]].append(receipt)
    return found


async def receive_all(store: Store, expected: set[str]) -> dict[str, list[AlertReceipt]]:
    """The receipts, once each of these situations has one."""
    async with asyncio.timeout(120):
        while expected - situations(store).keys():  # noqa: ASYNC110 - another process sends, and tells nobody
            await asyncio.sleep(0.2)
    return situations(store)


def names_of(alerts: list[Alert]) -> set[str]:
    return {one["annotations"]["summary"] for one in alerts}


def count_outcomes(found: dict[str, list[AlertReceipt]], situation: str) -> Counter[str]:
    return Counter(
        receipts[0].outcome for name, receipts in found.items() if name.rpartition("-")[0] == situation
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_no_alert_of_an_alertmanager_is_unaccounted_for(tmp_path: Path, folder: Path) -> None:
    port, settings = servers.free_port(), RunSettings(sources={"calls": {"kind": "declared", "calls": CALLS}})
    assert len(FIRST) + len(SECOND) == 200
    async with serving(folder_store(tmp_path), settings=settings, requests_per_minute=1e9) as api:
        config = CONFIG.format(port=port, token=api.token("run"))
        with servers.alertmanager(folder, config) as address:
            await asyncio.to_thread(silence_alerts, address)
            heard = names_of(
                [one for one in FIRST if not one["annotations"]["summary"].startswith("silenced")]
            )
            async with listening(api.app, port):
                await asyncio.to_thread(servers.post, f"{address}/api/v2/alerts", FIRST)
                found = await receive_all(api.store, heard)
            for situation, outcome in FIRST_OUTCOMES.items():
                assert set(count_outcomes(found, situation)) == {outcome}, situation
            for number in range(25, 40):
                api.store.runs.update(str(found[f"new-{number}"][0].run), status=Status.COMPLETED)
            second = [one for _, one in second_alerts()]
            await asyncio.to_thread(servers.post, f"{address}/api/v2/alerts", second)
            await asyncio.sleep(2)  # nobody listens: it tries again
            async with listening(api.app, port):
                found = await receive_all(api.store, heard | names_of(SECOND))
            assert not [name for name in found if name.startswith("silenced")]
            for situation, outcome in SECOND_OUTCOMES.items():
                assert set(count_outcomes(found, situation)) == {outcome}, situation
            for receipts in found.values():
                for receipt in receipts:
                    assert receipt.reason
                    assert receipt.run or receipt.outcome in ("muted", "resolved", "unreadable")


def silence_alerts(address: str) -> None:
    """Keep the alerts named Silenced quiet for an hour."""
    silence = {
        "matchers": [{"name": "alertname", "value": "Silenced", "isRegex": False}],
        "startsAt": "2020-01-01T00:00:00Z",
        "endsAt": "2099-01-01T00:00:00Z",
        "createdBy": "test",
        "comment": "quiet",
    }
    servers.post(f"{address}/api/v2/silences", silence)


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for other processes, which tell nobody; longer than usual, for they are many."""
    end = time.monotonic() + 240
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)  # another process offers no event to wait for


@dataclass
class KilledService:
    """`opsleuth serve` as a process of its own, to be killed and begun again, over a PostgreSQL that may be restarted."""

    postgres: servers.Postgres
    home: Path
    port: int
    place: PostgresServer = field(init=False)
    process: "subprocess.Popen[bytes] | None" = None

    def __post_init__(self) -> None:
        self.place = PostgresServer(self.postgres.database(), self.home)
        create_queue_tables(self.place)
        file = self.home / ".config" / "opsleuth" / "config.toml"
        file.parent.mkdir(parents=True)
        calls = "".join(
            f'[services.{caller}]\ncalls = ["{callees[0]}"]\n' for caller, callees in CALLS.items()
        )
        metrics = '[environments.test.sources.metrics]\nkind = "prometheus"\nurl = "http://127.0.0.1:9"\n'
        file.write_text(f"[service]\nrequests_per_minute = 1e9\n{metrics}{calls}")

    def begin(self) -> None:
        """Start it, and wait until it answers."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PACKAGE_PATH),
            "HOME": str(self.home),
            "OPSLEUTH_DB": self.place.url,
        }
        command = [
            sys.executable,
            "-m",
            "opsleuth",
            "--environment",
            "test",
            "serve",
            "--port",
            str(self.port),
        ]
        with (self.home / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.home)
        wait_until(servers.answers(f"http://127.0.0.1:{self.port}/healthz"))

    def kill(self) -> None:
        """Without a word, as a machine that goes down."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    @contextmanager
    def opened(self) -> Iterator[Store]:
        with Store.open(self.place, SystemClock(), Redactor()) as store:
            yield store

    def wait_for(self, number: int) -> None:
        """Wait until so many different alerts have a row."""

        def heard() -> bool:
            try:
                with self.opened() as store:
                    return len(situations(store)) >= number
            except StoreFailedError:
                return False

        wait_until(heard)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_alert_is_lost_through_kills_and_restarts(tmp_path: Path, folder: Path) -> None:
    with servers.postgres() as postgres:
        service = KilledService(postgres, tmp_path, servers.free_port())
        with service.opened() as store:
            token = store.tokens.create("am", "shop", ["run"])[1]
        with servers.alertmanager(folder, CONFIG.format(port=service.port, token=token)) as address:
            silence_alerts(address)
            try:
                service.begin()
                send_with_kills(service, address)
                repeat_and_end(service, address)
            finally:
                service.kill()
        with service.opened() as store:
            check_ledger(store)


def send_with_kills(service: KilledService, address: str) -> None:
    """All 200 alerts; the service is killed four times and PostgreSQL restarted once while they come."""
    heard = len(FIRST) - sum(one["annotations"]["summary"].startswith("silenced") for one in FIRST)
    servers.post(f"{address}/api/v2/alerts", FIRST)
    for number in (10, 40, 70):
        service.wait_for(number)
        service.kill()
        service.begin()
    service.wait_for(heard)
    with service.opened() as store:
        found = situations(store)
        for number in range(25, 40):
            store.runs.update(str(found[f"new-{number}"][0].run), status=Status.COMPLETED)
    servers.post(f"{address}/api/v2/alerts", [one for _, one in second_alerts()])
    service.wait_for(heard + 20)
    service.postgres.stop()
    service.postgres.start()
    service.wait_for(heard + 50)
    service.kill()
    service.begin()
    service.wait_for(heard + len(SECOND))


def repeat_and_end(service: KilledService, address: str) -> None:
    """Some alerts end; others end and come back three times."""
    clock = SystemClock()
    over = [one for one in SECOND if one["labels"]["alertname"] == "Brief"]
    flaps = [one for one in FIRST if one["labels"]["alertname"] == "Flaps"]
    for turn in range(3):
        ended = format_timestamp(clock.now() - timedelta(seconds=1))
        quiet = [{**one, "endsAt": ended} for one in [*flaps, *(over if turn == 0 else ())]]
        servers.post(f"{address}/api/v2/alerts", quiet)
        wait_for_outcomes(service, "flapping", {"resolved"}, turn + 1)
        servers.post(
            f"{address}/api/v2/alerts", [{**one, "startsAt": format_timestamp(clock.now())} for one in flaps]
        )
        wait_for_outcomes(service, "flapping", {"started", "repeated", "flapping"}, turn + 1)
    wait_for_outcomes(service, "over", {"resolved"}, 1)


def wait_for_outcomes(service: KilledService, situation: str, outcomes: set[str], number: int) -> None:
    """Wait until each alert of a situation has turned to one of these outcomes so often."""

    def count_turns(receipts: list[AlertReceipt]) -> int:
        became = [receipt.outcome in outcomes for receipt in receipts]
        return sum(now and not before for before, now in pairwise(became))

    def heard() -> bool:
        with service.opened() as store:
            found = situations(store)
        return all(
            count_turns(receipts) >= number
            for name, receipts in found.items()
            if name.rpartition("-")[0] == situation
        )

    wait_until(heard)


def second_alerts() -> Iterator[tuple[str, Alert]]:
    """The second half by situation, those of ended runs under the services whose runs have ended."""
    number = 25
    for one in SECOND:
        situation = one["annotations"]["summary"].rpartition("-")[0]
        if situation == "ended":
            yield situation, {**one, "labels": {**one["labels"], "service": f"service-{number}"}}
            number += 1
        else:
            yield situation, one


def check_ledger(store: Store) -> None:
    """Each alert has its row, each row its run or its reason, each run its place in the queue, and none is there twice."""
    found = situations(store)
    silenced = {name for name in names_of(FIRST) if name.startswith("silenced")}
    assert found.keys() == (names_of(FIRST) | names_of(SECOND)) - silenced
    for situation, outcome in (FIRST_OUTCOMES | SECOND_OUTCOMES).items():
        assert set(count_outcomes(found, situation)) == {outcome}, situation
    assert {receipts[-1].outcome for name, receipts in found.items() if name.startswith("flapping")} == {
        "flapping"
    }
    started = Counter(
        receipt.run
        for receipts in found.values()
        for receipt in receipts
        if receipt.outcome in ("started", "linked")
    )
    stored = {run.id for run in store.runs.list(project="shop", limit=1_000)}
    assert stored == started.keys()
    assert set(started.values()) == {1}
    assert store.jobs.counts() == {"todo": len(stored)}
    for receipt in (receipt for receipts in found.values() for receipt in receipts):
        assert receipt.reason
        assert receipt.run in stored or receipt.outcome == "muted"

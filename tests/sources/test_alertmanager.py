"""A real Alertmanager: what fires, and what is silenced."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import servers
from live_rig import one

from opsleuth.analysis.records import TimeRange


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.alertmanager(tmp_path_factory.mktemp("alertmanager")) as url:
        yield url


async def test_alerts_and_silences(alertmanager: str) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    start, end = (now - timedelta(minutes=20)).isoformat(), (now + timedelta(hours=1)).isoformat()
    labels = {"alertname": "CartSlow", "service": "cart", "severity": "page"}
    quiet = {"alertname": "DiskFull", "app": "web"}
    servers.post(f"{alertmanager}/api/v2/silences", {
        "matchers": [{"name": "alertname", "value": "DiskFull", "isRegex": False, "isEqual": True}],
        "startsAt": start, "endsAt": end, "createdBy": "ada", "comment": "disk is being changed"})  # fmt: skip
    servers.post(f"{alertmanager}/api/v2/alerts", [
        {"labels": labels, "annotations": {"summary": "p95 above 1 s"}, "startsAt": start, "endsAt": end},
        {"labels": quiet, "startsAt": start, "endsAt": end}])  # fmt: skip
    source = one(kind="alertmanager", url=alertmanager)
    window = TimeRange(now.timestamp() - 1_800, now.timestamp() + 60)
    events = {event.reason: event for event in (await source.read(["events"], window)).events or ()}
    assert events["CartSlow"].object == "Alert/cart"
    assert events["CartSlow"].first_time == (now - timedelta(minutes=20)).timestamp()
    assert "p95 above 1 s; service=cart, severity=page" in events["CartSlow"].message
    assert "silenced by" in events["DiskFull"].message
    [silence] = (await source.read(["objects"], window)).objects or ()
    assert (silence.kind, silence.spec) == ("Silence", {"matchers": ["alertname=DiskFull"]})
    assert isinstance(silence.status, dict)
    assert (silence.status["createdBy"], silence.status["comment"]) == ("ada", "disk is being changed")
    await source.discover()
    assert source.services == {"cart", "web"}
    assert {check.state for check in await source.check()} == {"ok"}


async def test_what_an_exporter_measured_belongs_to_the_workload_and_what_always_fires_is_no_event(
    tmp_path: Path,
) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    times = {"startsAt": (now - timedelta(minutes=20)).isoformat(), "endsAt": (now + timedelta(hours=1)).isoformat()}  # fmt: skip
    restarts = {"alertname": "Restarts", "service": "kube-state-metrics", "pod": "cart-5c7d9b8f6d-x2x9p"}
    with servers.alertmanager(tmp_path) as url:
        servers.post(f"{url}/api/v2/alerts", [{"labels": sent, **times} for sent in (restarts, {"alertname": "Watchdog"})])  # fmt: skip
        source = one(kind="alertmanager", url=url)
        events = (
            await source.read(["events"], TimeRange(now.timestamp() - 1_800, now.timestamp() + 60))
        ).events
    assert [event.object for event in events or ()] == ["Alert/cart"]
    assert source.services == {"cart"}

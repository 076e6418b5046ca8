"""Every alert that is received ends in a run or in a stated reason, and a run that has ended is never changed."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from service_rig import ALERT, Api, folder_store, serving

from opsleuth.checkpoints.service.received_alerts import AlertReceipt
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.state.clock import FakeClock, format_timestamp
from opsleuth.state.run_status import FINISHED_STATUSES, Status

CALLS = {"web": ["api"], "api": ["db"]}
HOOK = {"url": "https://chat.example.com/hook", "secret": {"env": "X"}, "teams": ["shop"]}


@pytest.fixture
async def api(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Api]:
    settings = RunSettings(sources={"calls": {"kind": "declared", "calls": CALLS}})
    async with serving(folder_store(tmp_path), clock, settings, webhooks={"chat": HOOK}) as running:
        yield running


def alert(
    name: str = "Slow", service: str | None = "api", status: str = "firing", **labels: str
) -> dict[str, Any]:
    named = {"service": service} if service else {}
    return {"status": status, "labels": {"alertname": name, "severity": "warning", **named, **labels}}


async def send(api: Api, *alerts: Any, sender: str = "run") -> list[AlertReceipt]:
    """Send one message; the receipts of its alerts in order."""
    clock = api.clock
    stamped = [
        {"startsAt": format_timestamp(clock.now()), **one} if isinstance(one, dict) else one for one in alerts
    ]
    message = {"version": "4", "alerts": stamped}
    answer = await api("POST", "/api/webhooks/am", api.token("run"), json=message)
    assert answer.status_code == 202, answer.text
    return list(reversed(api.store.receipts.list("shop", limit=len(alerts))))


def outcomes(receipts: list[AlertReceipt]) -> list[str]:
    return [receipt.outcome for receipt in receipts]


@pytest.mark.parametrize("status", sorted(FINISHED_STATUSES))
async def test_alert_of_an_ended_run_starts_another_that_follows_it(api: Api, status: Status) -> None:
    (first,) = await send(api, alert())
    assert first.run
    api.store.runs.update(first.run, status=status)
    before = api.store.runs.find(first.run)
    (second,) = await send(api, alert())
    assert (second.outcome, second.linked) == ("linked", first.run)
    assert second.run not in (None, first.run)
    assert f"{first.run}, which is {status}" in second.reason
    assert api.store.runs.find(first.run) == before
    assert api.store.control.pending(first.run) == ()
    taken = api.store.intake.get(str(second.run))
    assert taken is not None
    assert taken.follows == first.run
    shown = await api("GET", f"/api/tasks/{second.run}", api.token("view"))
    assert shown.json()["follows"] == first.run


async def test_critical_alert_of_the_same_service_is_not_swallowed_by_an_ended_run(api: Api) -> None:
    (warned,) = await send(api, alert("LatencyWarn"))
    api.store.runs.update(str(warned.run), status=Status.COMPLETED)
    (down,) = await send(api, alert("CartDown", severity="critical"))
    assert (down.outcome, down.linked) == ("linked", warned.run)


async def test_new_alert_of_a_live_run_is_told_to_the_run_and_to_people(api: Api) -> None:
    (first,) = await send(api, alert())
    (second,) = await send(api, alert("Errors", "web"))
    assert (second.outcome, second.run) == ("joined", first.run)
    (note,) = api.store.control.pending(str(first.run))
    assert note.text.startswith("another alert of this incident: ")
    assert second.note == note.id
    (notice,) = api.store.notices.due("chat")
    assert (notice.kind, notice.document["alert"]["name"]) == ("alert_joined", "Errors")


async def test_repetition_tells_nothing(api: Api) -> None:
    receipts = [(await send(api, alert()))[0] for _ in range(4)]
    assert outcomes(receipts) == ["started", "repeated", "repeated", "repeated"]
    assert api.store.control.pending(str(receipts[0].run)) == ()
    assert api.store.notices.waiting() == 0


async def test_rise_in_severity_is_told_once(api: Api) -> None:
    receipts = [
        (await send(api, alert(severity=severity)))[0]
        for severity in ("warning", "critical", "critical", "warning")
    ]
    assert outcomes(receipts) == ["started", "escalated", "repeated", "repeated"]
    (note,) = api.store.control.pending(str(receipts[0].run))
    assert "its severity rose from warning to critical" in note.text
    assert [notice.kind for notice in api.store.notices.due("chat")] == ["alert_escalated"]


async def test_flapping_is_told_at_the_third_return_and_then_at_each_doubling(api: Api) -> None:
    (first,) = await send(api, alert())
    found = []
    for _ in range(12):
        await send(api, alert(status="resolved"))
        found += outcomes(await send(api, alert()))
    assert [number for number, outcome in enumerate(found, 1) if outcome == "flapping"] == [3, 6, 12]
    assert len(api.store.control.pending(str(first.run))) == 3


@pytest.mark.parametrize("label", ["instance", "host", "node", "ip", "hostname"])
async def test_three_hosts_are_three_troubles_where_no_service_is_named(api: Api, label: str) -> None:
    receipts = await send(api, *[alert("HostDown", None, **{label: f"10.0.0.{n}"}) for n in range(3)])
    assert outcomes(receipts) == ["started"] * 3
    assert len({receipt.run for receipt in receipts}) == 3


async def test_three_hosts_behind_one_exporter_are_three_troubles(api: Api) -> None:
    receipts = await send(
        api, *[alert("HostDown", "node-exporter", instance=f"10.0.0.{n}:9100") for n in range(3)]
    )
    assert len({receipt.run for receipt in receipts}) == 3


async def test_pods_of_one_service_are_one_trouble(api: Api) -> None:
    receipts = await send(api, *[alert(instance=f"10.0.0.{n}:9090", pod=f"api-{n}") for n in range(3)])
    assert outcomes(receipts) == ["started", "repeated", "repeated"]


async def test_quiet_alerts_start_nothing_and_have_a_reason(api: Api) -> None:
    receipts = await send(
        api,
        alert(status="resolved"),
        {**alert(), "status": {"state": "suppressed", "silencedBy": ["s-1"]}},
        alert("Watchdog", None),
        alert(severity="none"),
        "not an object",
    )
    unreadable, resolved, silenced, watchdog, none = receipts
    assert outcomes(receipts) == ["unreadable", "resolved", "muted", "muted", "muted"]
    assert unreadable.reason == "1 entries in the list of alerts are not JSON objects"
    assert resolved.reason == "it is over, and no run is known for it"
    assert "silenced by s-1" in silenced.reason
    assert "always fires" in watchdog.reason
    assert "severity none" in none.reason
    assert api.queued == []


async def test_alerts_far_apart_in_time_are_two_incidents(api: Api, clock: FakeClock) -> None:
    (first,) = await send(api, alert())
    clock.advance(timedelta(hours=2).total_seconds())
    (second,) = await send(api, alert("Errors"))
    assert (second.outcome, second.run == first.run) == ("started", False)


async def test_run_is_told_of_no_more_alerts_than_it_can_read(api: Api) -> None:
    receipts = await send(api, *[alert(f"Alert{number}") for number in range(40)])
    assert outcomes(receipts) == ["started", *["joined"] * 39]
    assert len(api.store.control.pending(str(receipts[0].run))) == 30
    assert sum(receipt.note is None for receipt in receipts) == 10


async def test_alert_that_came_too_late_for_its_run_starts_another(api: Api) -> None:
    (first,) = await send(api, alert())
    (second,) = await send(api, alert("Errors"))
    assert second.run == first.run
    api.store.runs.update(str(first.run), status=Status.COMPLETED)
    (placed,) = api.context.intake.follow_unheard(api.store, str(first.run), "shop")
    assert not placed.joined
    assert api.context.intake.follow_unheard(api.store, str(first.run), "shop") == []
    (receipt, *_) = api.store.receipts.list("shop")
    assert (receipt.outcome, receipt.run, receipt.linked) == ("linked", placed.run, first.run)


async def test_request_about_alerts_has_a_receipt_for_each(api: Api) -> None:
    document = {"version": "4", "alerts": [alert(), alert("Errors", "far"), alert(status="resolved")]}
    answer = await api("POST", "/api/tasks", api.token("run"), json={"alert": document})
    run = answer.json()["task_id"]
    found = {(one.outcome, one.run) for one in api.store.receipts.list("shop")}
    assert found == {("started", run), ("joined", run), ("resolved", run)}


async def test_receipts_are_asked_for_over_the_api_page_by_page(api: Api) -> None:
    await send(api, *[alert(f"Alert{number}", f"service-{number}") for number in range(5)])
    token, seen, cursor = api.token("view"), [], ""
    for _ in range(3):
        page = (await api("GET", f"/api/alerts?limit=2{cursor}", token)).json()
        seen += [one["name"] for one in page["alerts"]]
        cursor = f"&before={page['next']}"
    assert seen == [f"Alert{number}" for number in range(4, -1, -1)]
    assert page["next"] is None
    one = (await api("GET", "/api/alerts?name=Alert3", token)).json()["alerts"][0]
    assert (one["outcome"], one["service"], one["sender"]) == ("started", "service-3", "shop-run")
    theirs = (await api("GET", "/api/alerts", api.token("view", team="bank"))).json()
    assert theirs == {"alerts": [], "next": None}


async def test_alert_in_our_own_form_is_in_the_ledger_too(api: Api) -> None:
    await api("POST", "/api/tasks", api.token("run"), json={"alert": dict(ALERT)})
    (receipt,) = api.store.receipts.list("shop")
    assert (receipt.outcome, receipt.service) == ("started", "orders-api")

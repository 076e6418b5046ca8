"""Starting runs and looking at them over the API."""

import asyncio
import json
from typing import Any

import pytest
from service_rig import ALERT, Api

from opsleuth.checkpoints.evidence import EvidenceMeta
from opsleuth.graph.lifecycle.queued import request_of
from opsleuth.service.api_context import MOST_STREAMS
from opsleuth.service.routes.events import QUIET_SECONDS
from opsleuth.state.clock import FakeClock
from opsleuth.state.results import ResultStatus
from opsleuth.state.run_status import Status, StopReason


async def test_a_question_is_accepted_at_once(api: Api) -> None:
    answer = await api(
        "POST", "/api/tasks", api.token("run"), json={"question": "why slow", "limits": {"turns": 4}}
    )
    assert answer.status_code == 202
    task = answer.json()
    assert task["status"] == "queued"
    assert api.queued == [task["task_id"]]
    row = api.store.runs.find(task["task_id"])
    assert (row.status, row.project) == (Status.QUEUED, "shop")
    assert request_of(row).limits == {"turns": 4}
    assert len(row.id.rpartition("-")[2]) == 10


async def test_the_same_key_is_the_same_run_and_another_request_under_it_is_refused(api: Api) -> None:
    token, key = api.token("run"), {"Idempotency-Key": "k-1"}
    first = await api("POST", "/api/tasks", token, json={"question": "why"}, headers=key)
    again = await api("POST", "/api/tasks", token, json={"question": "why"}, headers=key)
    other = await api("POST", "/api/tasks", token, json={"question": "who"}, headers=key)
    theirs = await api(
        "POST", "/api/tasks", api.token("run", team="bank"), json={"question": "why"}, headers=key
    )
    assert again.json() == {**first.json(), "joined": True}
    assert other.status_code == 409
    assert theirs.json()["task_id"] != first.json()["task_id"]
    assert len(api.queued) == 2


async def test_many_at_once_with_one_key_are_one_run(api: Api) -> None:
    token, key = api.token("run"), {"Idempotency-Key": "k-1"}
    answers = await asyncio.gather(
        *(api("POST", "/api/tasks", token, json={"question": "why"}, headers=key) for _ in range(8))
    )
    assert len({answer.json()["task_id"] for answer in answers}) == 1
    assert len(api.queued) == 1


async def test_an_alert_that_comes_again_joins_its_run(api: Api, clock: FakeClock) -> None:
    token = api.token("run")
    first = await api("POST", "/api/tasks", token, json={"alert": ALERT})
    volatile = {**ALERT, "labels": {"alertname": "Slow", "pod": "orders-7d9f"}}
    again = await api("POST", "/api/tasks", token, json={"alert": volatile})
    other = await api(
        "POST", "/api/tasks", token, json={"alert": {**ALERT, "service": "payments", "text": "x"}}
    )
    api.store.runs.update(first.json()["task_id"], status=Status.COMPLETED)
    clock.advance(31 * 60)
    later = await api("POST", "/api/tasks", token, json={"alert": ALERT})
    assert again.json()["task_id"] == first.json()["task_id"]
    assert len({answer.json()["task_id"] for answer in (first, other, later)}) == 3
    shown = await api("GET", f"/api/tasks/{first.json()['task_id']}", token)
    assert shown.json()["question"] == ALERT["text"]


def page(status: str, pod: str) -> dict[str, Any]:
    labels = {"alertname": "Slow", "service": "orders-api", "pod": pod}
    return {
        "status": status,
        "labels": labels,
        "startsAt": "2026-11-29T14:00:00Z",
        "endsAt": "2026-11-29T14:04:00Z",
    }


async def test_an_alert_that_keeps_coming_or_fires_anew_is_looked_into_again(
    api: Api, clock: FakeClock
) -> None:
    async def sent(*alerts: dict[str, Any]) -> list[str]:
        message = {"version": "4", "alerts": list(alerts)}
        answer = await api("POST", "/api/webhooks/alertmanager", api.token("run"), json=message)
        found: list[str] = answer.json()["tasks"]
        return found

    (first,) = await sent(page("firing", "a"))
    await sent(page("resolved", "a"))
    assert await sent(page("firing", "a")) == [first]  # it comes and goes while its run goes on
    api.store.runs.update(first, status=Status.COMPLETED)
    (second,) = await sent(page("resolved", "b"), page("firing", "a"))  # a run that has ended is not changed
    for _ in range(3):
        clock.advance(10 * 60)
        assert await sent(page("resolved", "b"), page("firing", "a")) == [second]
    api.store.runs.update(second, status=Status.COMPLETED)
    assert await sent(page("resolved", "a")) == []
    (third,) = await sent(page("firing", "a"))
    assert len({first, second, third}) == 3


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": ""},
        {"question": "why", "case": "/etc"},
        {"question": "why", "limits": {"turns": 0}},
        {"question": "why", "since": "2026-11-29T14:00"},
        {"alert": {"labels": {}}},
    ],
)
async def test_what_cannot_be_meant_is_refused_in_words(api: Api, body: object) -> None:
    answer = await api("POST", "/api/tasks", api.token("run"), json=body)
    assert answer.status_code == 422
    assert answer.json()["message"]
    assert api.queued == []


async def test_a_run_is_shown_with_what_it_has_found(api: Api) -> None:
    task = await api.start()
    api.store.runs.update(task, status=Status.WAITING, turn=3)
    told = {"id": "H1", "text": "the release", "status": "open", "for": [], "against": []}
    api.store.events.append(task, "hypothesis.updated", told)
    api.store.events.append(task, "hypothesis.updated", {**told, "status": "supported", "for": ["E1"]})
    meta = EvidenceMeta(
        call_id=f"{task}/t1c1", tool="metrics_query", status=ResultStatus.OK, headline="60 points"
    )
    api.store.evidence.put(task, 1, meta, {"points": []})
    shown = (await api("GET", f"/api/tasks/{task}", api.token("view"))).json()
    assert (shown["status"], shown["turn"], shown["last_event"]) == ("waiting", 3, 2)
    assert shown["findings"]["hypotheses"] == [
        {"id": "H1", "text": "the release", "status": "supported", "supporting": ["E1"], "contradicting": []}
    ]
    assert [piece["headline"] for piece in shown["findings"]["evidence"]] == ["60 points"]


async def test_runs_are_listed_newest_first(api: Api) -> None:
    tasks = [await api.start(f"question {n}") for n in range(3)]
    listed = (await api("GET", "/api/tasks?limit=2", api.token("view"))).json()["tasks"]
    assert [task["task_id"] for task in listed] == tasks[:0:-1]
    assert (await api("GET", "/api/tasks?status=waiting", api.token("view"))).json() == {
        "tasks": [],
        "next": None,
    }


async def test_a_run_is_cancelled_by_whoever_has_it(api: Api) -> None:
    task = await api.start()
    answer = await api("POST", f"/api/tasks/{task}/cancel", api.token("run"), json={"reason": "not needed"})
    assert answer.status_code == 202
    assert [(wish.kind, wish.text) for wish in api.store.control.pending(task)] == [("cancel", "not needed")]
    assert api.queued == [task, task]
    api.store.runs.update(task, status=Status.COMPLETED, stop_reason=StopReason.CONCLUDED)
    assert (await api("POST", f"/api/tasks/{task}/cancel", api.token("run"), json={})).status_code == 409


def parts(text: str) -> list[dict[str, str]]:
    """The parts of a stream of events, comments left out."""
    return [
        dict(line.split(": ", 1) for line in part.splitlines() if not line.startswith(":"))
        for part in text.split("\n\n")
        if part
    ]


async def test_events_begin_after_any_number(api: Api) -> None:
    task = await api.start()
    for n in range(5):
        api.store.events.append(task, "warning", {"message": f"line\n\n{n}"})
    path, token = f"/api/tasks/{task}/events?follow=false", api.token("view")
    whole = parts((await api("GET", path, token)).text)
    assert [part.get("id") for part in whole] == ["1", "2", "3", "4", "5", None]
    assert json.loads(whole[2]["data"]) == api.store.events.read(task)[2]
    rest = parts((await api("GET", f"{path}&after=3", token)).text)
    assert [part.get("id") for part in rest] == ["4", "5", None]
    resumed = await api("GET", path, token, headers={"Last-Event-ID": "4"})
    assert [part.get("id") for part in parts(resumed.text)] == ["5", None]


async def test_a_stream_ends_with_its_run(api: Api) -> None:
    task = await api.start()
    api.store.events.append(task, "run.started", {})
    stream = asyncio.create_task(api("GET", f"/api/tasks/{task}/events", api.token("view")))
    api.store.events.append(task, "run.completed", {})
    api.store.runs.update(task, status=Status.COMPLETED, stop_reason=StopReason.CONCLUDED)
    answer = await asyncio.wait_for(stream, 30)
    assert [part["event"] for part in parts(answer.text)] == ["run.started", "run.completed", "end"]
    assert set(api.context.streams.values()) == {0}


async def test_a_stream_breaks_off_once_its_token_is_revoked(api: Api, clock: FakeClock) -> None:
    task = await api.start()
    stream = asyncio.create_task(api("GET", f"/api/tasks/{task}/events", api.token("view")))
    await opened(api, 1)
    (token,) = [token for token in api.store.tokens.list() if token.name == "shop-view"]
    api.store.tokens.revoke(token.id)
    clock.advance(QUIET_SECONDS)
    answer = await asyncio.wait_for(stream, 30)
    assert "event: end" not in answer.text
    assert set(api.context.streams.values()) == {0}
    assert (await api("GET", f"/api/tasks/{task}/events", api.token("view"))).status_code == 401


async def test_no_more_streams_are_open_than_may_be_however_they_are_asked_for(api: Api) -> None:
    task = await api.start()
    path, token = f"/api/tasks/{task}/events", api.token("view")
    asked = [asyncio.create_task(api("GET", path, token)) for _ in range(MOST_STREAMS + 5)]
    refused = 0
    for answer in asyncio.as_completed(asked):
        refused += (await answer).status_code == 429
        if refused == 5:
            api.store.runs.update(task, status=Status.COMPLETED)
    assert refused == 5


async def opened(api: Api, streams: int) -> None:
    async with asyncio.timeout(30):
        while sum(api.context.streams.values()) != streams:  # noqa: ASYNC110 - the application tells nobody
            await asyncio.sleep(0.01)


async def test_a_report_comes_in_every_form(api: Api) -> None:
    task, token = await api.start(), api.token("view")
    assert (await api("GET", f"/api/tasks/{task}/report", token)).status_code == 404
    document = {"run": task, "question": "<b>why</b>", "verdict": "inconclusive", "answer": "nobody knows"}
    api.store.reports.put(task, document)
    answers = {
        form: await api("GET", f"/api/tasks/{task}/report?format={form}", token)
        for form in ("json", "md", "text", "html")
    }
    assert answers["json"].json() == document
    assert "nobody knows" in answers["md"].text
    assert "nobody knows" in answers["text"].text
    assert "&lt;b&gt;why" in answers["html"].text
    assert "default-src 'none'" in answers["html"].headers["content-security-policy"]


async def test_figures_name_no_run(api: Api) -> None:
    task = await api.start()
    await api("GET", f"/api/tasks/{task}", api.token("view"))
    text = (await api("GET", "/metrics", api.token("view"))).text
    assert 'opsleuth_runs{status="queued"} 1' in text
    assert 'path="/api/tasks/{task_id}",status="200"' in text
    assert task not in text

"""The budget of a team and day: counted, warned of before it is used up, kept to by every run."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, concludes, looks
from service_rig import ALERT, folder_store, serving

from opsleuth.configuration.service_settings import ServiceSettings, TeamBudget, parse_service_settings
from opsleuth.graph.lifecycle import queued
from opsleuth.graph.lifecycle.first_state import StartRequest
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.service.team_budgets import allow_spending
from opsleuth.state.budget import ModelCallCost
from opsleuth.state.clock import FakeClock
from opsleuth.state.errors import ConfigError
from opsleuth.state.run_status import Status, StopReason

SPENDING = ModelCallCost(tokens_in=300, tokens_out=100, cost=Decimal("0.2"), model_calls=1)
HOOK = {"url": "https://chat.example.com/hook", "secret": {"env": "X"}}


def read_settings(**table: Any) -> ServiceSettings:
    return parse_service_settings({"webhooks": {"chat": HOOK}, "budget": table}, "the test")


@pytest.fixture
def loop(tmp_path: Path, clock: FakeClock) -> Iterator[Loop]:
    made = Loop(tmp_path, clock)
    made.world.spent = SPENDING
    made.world.write(*[looks(f"thing {number}") for number in range(20)], concludes("done"))
    yield made
    made.store.close()


def drive_run(loop: Loop, run: str, service: ServiceSettings, team: str = "shop") -> AttemptOutcome:
    """A run of the team, to its end."""
    if loop.store.runs.get(run) is None:
        queued.queue_run(loop.store, StartRequest(run=run, question="why", project=team), loop.clock)
    parts = replace(loop.world.parts(), allowance=lambda own, row: allow_spending(own, row, service))
    return asyncio.run(Runner(loop.store, clock=loop.clock, parts=parts).resume(run, {}))


def test_runs_of_a_team_share_its_budget(loop: Loop) -> None:
    service = read_settings(cost=1)
    first = drive_run(loop, "inv-20261129-aaaa", service)
    second = drive_run(loop, "inv-20261129-bbbb", service)
    other = drive_run(loop, "inv-20261129-cccc", service, team="bank")
    assert [one.stop_reason for one in (first, second, other)] == [StopReason.COST_LIMIT] * 3
    assert "team shop" in first.detail
    assert "$1.00 of $1.00" in first.detail
    assert [loop.store.runs.find(one.run).turn for one in (first, second, other)] == [5, 0, 5]


def test_budget_is_renewed_on_the_next_day(loop: Loop, clock: FakeClock) -> None:
    service, run = read_settings(cost=1), "inv-20261129-aaaa"
    assert drive_run(loop, run, service).stop_reason is StopReason.COST_LIMIT
    clock.advance(24 * 3_600)
    drive_run(loop, run, service)
    assert loop.store.runs.find(run).turn == 10


def test_tokens_are_a_budget_where_no_price_is_known(loop: Loop) -> None:
    loop.world.spent = SPENDING._replace(cost=Decimal(0))
    outcome = drive_run(loop, "inv-20261129-aaaa", read_settings(tokens=1_000))
    assert outcome.stop_reason is StopReason.TOKEN_LIMIT
    assert "1200 of 1000" in outcome.detail


def test_people_are_warned_once_before_it_is_used_up(loop: Loop) -> None:
    service, run = read_settings(cost=1), "inv-20261129-aaaa"
    drive_run(loop, run, service)
    events = [event["type"] for event in loop.store.events.read(run)]
    (notice,) = loop.store.notices.due("chat")
    assert notice.kind == "limit_near"
    assert notice.document["detail"] == "team shop has spent $0.80 of its $1.00 for 2026-11-29"
    assert events.count("limit.near") == 1
    drive_run(loop, "inv-20261129-bbbb", service)
    assert len(loop.store.notices.due("chat")) == 1


@pytest.mark.parametrize(
    ("table", "team", "cost", "tokens"),
    [
        ({}, "shop", 50, None),
        ({"cost": 9}, "shop", 9, None),
        ({"cost": 9, "teams": {"shop": {"cost": 3}}}, "shop", 3, None),
        ({"tokens": 7, "teams": {"shop": {"cost": 3}}}, "shop", 3, 7),
        ({"tokens": 7, "teams": {"bank": {"cost": 3}}}, "shop", 50, 7),
    ],
)
def test_budget_of_a_team(table: dict[str, Any], team: str, cost: int, tokens: int | None) -> None:
    budget = read_settings(**table).budget.budget_of(team)
    assert budget == TeamBudget(cost=Decimal(cost), tokens=tokens)


@pytest.mark.parametrize("table", [{"cost": -1}, {"tokens": 0}, {"kost": 3}, {"teams": {"shop": {"day": 1}}}])
def test_budget_that_cannot_be_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"\[service\]"):
        read_settings(**table)


async def test_question_is_refused_and_an_alert_is_taken_when_it_is_used_up(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with serving(folder_store(tmp_path), clock, budget={"cost": 1}) as api:
        run = await api.start()
        api.store.spending.add("shop", Decimal(1), 10)
        token = api.token("run")
        asked = await api("POST", "/api/tasks", token, json={"question": "why"})
        alert = await api("POST", "/api/tasks", token, json={"alert": dict(ALERT)})
        api.store.runs.update(run, status=Status.PAUSED)
        resumed = await api("POST", f"/api/tasks/{run}/resume", token, json={})
        other = await api("POST", "/api/tasks", api.token("run", team="bank"), json={"question": "why"})
        figures = (await api("GET", "/metrics", token)).text
    assert [one.status_code for one in (asked, alert, resumed, other)] == [429, 202, 429, 202]
    assert asked.json()["error"] == "budget_used_up"
    assert asked.headers["Retry-After"] == "35701"  # from 14:05 to midnight
    assert "opsleuth_team_cost_today_dollars 1" in figures
    assert "opsleuth_team_cost_limit_dollars 1" in figures


async def test_run_that_its_team_stopped_goes_on_without_a_new_total(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with serving(folder_store(tmp_path), clock) as api:
        run = await api.start(limits={"cost": 2})
        api.store.runs.update(run, status=Status.COMPLETED, stop_reason=StopReason.COST_LIMIT, cost="0.4")
        path, token = f"/api/tasks/{run}/resume", api.token("run")
        assert (await api("POST", path, token, json={})).status_code == 202
        api.store.runs.update(run, status=Status.COMPLETED, stop_reason=StopReason.COST_LIMIT, cost="2.01")
        assert (await api("POST", path, token, json={})).status_code == 409

"""Twenty-five ways to spend more than the operator allows: each is refused, or cut to the cap."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, concludes, looks
from service_rig import ALERT, Api, folder_store, serving

from opsleuth.cli import cli
from opsleuth.console.options import current_options
from opsleuth.graph.approvals.decisions import AnsweringPerson, OperatorReply, record_answer
from opsleuth.graph.lifecycle import queued
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.follow_ups import FollowUpRequest
from opsleuth.graph.lifecycle.limit_defaults import default_caps
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.restrictions import Restrictions
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.stepping.edits import StateEdit
from opsleuth.graph.stepping.fork import ForkRequest, call_checker_for, fork_run
from opsleuth.service.commands.serve import cap_run_settings
from opsleuth.service.commands.worker import cap_runs_of_worker
from opsleuth.state.base import to_json
from opsleuth.state.budget import ModelCallCost
from opsleuth.state.clock import FakeClock
from opsleuth.state.errors import UsageError
from opsleuth.state.limit_caps import LimitCaps
from opsleuth.state.run_status import Status, StopReason

CAPS: Mapping[str, Any] = {"turns": 5, "seconds": 60.0, "tokens": 1_000, "cost": "0.5"}
ABOVE = {"turns": 6, "seconds": 60.5, "tokens": 1_001, "cost": 0.51}
EXTREMES = ({"cost": 999_999}, {"turns": 1_000}, {"seconds": 86_400}, {"tokens": 2**53 - 1})
PRICED = {"model": "m", "price": {"input": "1", "output": "1", "date": "2026-11-01"}}
MOST_TOKENS = 1_400
"""The cap of tokens, and one turn that crosses it."""
RUN = "inv-20240501-caps"
SPENDING = ModelCallCost(tokens_in=300, tokens_out=100, cost=Decimal("0.2"), model_calls=1)


@pytest.fixture
async def capped(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Api]:
    """An API whose operator allows little."""
    async with serving(folder_store(tmp_path), clock, RunSettings(caps=CAPS)) as running:
        yield running


def limits_of(api: Api, run: str) -> dict[str, Any]:
    limits: dict[str, Any] = api.store.runs.find(run).settings["state"]["budget"]["limits"]
    return {name: limits[name] for name in CAPS}


# What is asked over the API: 1 to 9.


@pytest.mark.parametrize("name", CAPS)
async def test_request_above_a_cap_is_refused_and_says_which(capped: Api, name: str) -> None:
    body = {"question": "why", "limits": {name: ABOVE[name]}}
    answer = await capped("POST", "/api/tasks", capped.token("run"), json=body)
    assert answer.status_code == 422
    assert f"limits.{name} is {ABOVE[name]}" in answer.json()["message"]
    assert capped.queued == []


@pytest.mark.parametrize("limits", EXTREMES)
async def test_alert_with_limits_above_the_caps_is_refused(capped: Api, limits: dict[str, Any]) -> None:
    body = {"alert": dict(ALERT), "limits": limits}
    answer = await capped("POST", "/api/tasks", capped.token("run"), json=body)
    assert answer.status_code == 422
    assert capped.queued == []


@pytest.mark.parametrize("value", ["NaN", "Infinity", -1, 0, "1e5", True, None])
async def test_no_odd_value_lifts_a_cap(capped: Api, value: object) -> None:
    body = {"question": "why", "limits": {"cost": value}}
    answer = await capped("POST", "/api/tasks", capped.token("run"), json=body)
    if answer.status_code == 202:
        assert Decimal(limits_of(capped, answer.json()["task_id"])["cost"]) <= Decimal(CAPS["cost"])
    else:
        assert answer.status_code == 422


async def test_request_may_lower_each_limit(capped: Api) -> None:
    below = {"turns": 2, "seconds": 10.0, "tokens": 100, "cost": 0.1}
    run = await capped.start(limits=below)
    assert limits_of(capped, run) == {**below, "cost": "0.1"}


async def test_run_without_limits_of_its_own_gets_the_caps(capped: Api) -> None:
    assert limits_of(capped, await capped.start()) == CAPS


async def test_run_of_a_webhook_gets_the_caps(capped: Api) -> None:
    labels = {"alertname": "Slow", "service": "orders-api", "max_cost": "999999"}
    body = {"version": "4", "alerts": [{"status": "firing", "labels": labels, "limits": {"cost": 999_999}}]}
    answer = await capped("POST", "/api/webhooks/am", capped.token("run"), json=body)
    assert limits_of(capped, answer.json()["tasks"][0]) == CAPS


async def test_repeated_key_does_not_raise_a_limit(capped: Api) -> None:
    key = {"Idempotency-Key": "k"}
    token, body = capped.token("run"), {"question": "why", "limits": {"turns": 2}}
    first = await capped("POST", "/api/tasks", token, json=body, headers=key)
    again = await capped("POST", "/api/tasks", token, json={**body, "limits": {"turns": 5}}, headers=key)
    assert (first.status_code, again.status_code) == (202, 409)
    assert limits_of(capped, first.json()["task_id"])["turns"] == 2


@pytest.mark.parametrize("name", CAPS)
async def test_resumption_above_a_cap_is_refused(capped: Api, name: str) -> None:
    run = await capped.start()
    capped.store.runs.update(run, status=Status.COMPLETED, stop_reason=StopReason.TURN_LIMIT)
    body = {"limits": {"turns": 5, name: ABOVE[name]}}
    answer = await capped("POST", f"/api/tasks/{run}/resume", capped.token("run"), json=body)
    assert answer.status_code == 422
    assert capped.store.runs.find(run).status is Status.COMPLETED


async def test_resumption_takes_the_caps_of_today(capped: Api) -> None:
    run = await capped.start()
    before = dict(capped.store.runs.find(run).settings)
    capped.store.runs.update(run, status=Status.PAUSED, settings=before | {"caps": {"cost": "999999"}})
    answer = await capped("POST", f"/api/tasks/{run}/resume", capped.token("run"), json={})
    assert answer.status_code == 202
    assert capped.store.runs.find(run).settings["caps"] == CAPS


# What a file, a variable or a flag says to serve: 10 to 13.


def read_caps(arguments: list[str]) -> LimitCaps:
    """The caps of `serve` for a command line, as the command itself makes them."""
    with cli.make_context("opsleuth", [*arguments, "serve"]) as context, context:
        given = current_options().limits
    settings = cap_run_settings(RunSettings(model=PRICED), given)
    return LimitCaps.model_validate(settings.caps)


def test_flag_is_a_cap() -> None:
    assert read_caps(["--max-cost", "0.3", "--max-turns", "7"]) == LimitCaps(
        turns=7, seconds=900, tokens=300_000, cost=Decimal("0.3")
    )


def test_variable_is_a_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSLEUTH_MAX_COST", "0.4")
    monkeypatch.setenv("OPSLEUTH_MAX_TIME", "90s")
    caps = read_caps([])
    assert (caps.cost, caps.seconds) == (Decimal("0.4"), 90)


def test_file_is_a_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "config" / "opsleuth"
    home.mkdir(parents=True)
    (home / "config.toml").write_text("[options]\nmax_cost = 0.7\nmax_tokens = 5000\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    caps = read_caps([])
    assert (caps.cost, caps.tokens) == (Decimal("0.7"), 5_000)


def test_file_of_a_project_that_nobody_trusts_lifts_no_cap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".opsleuth").mkdir()
    (tmp_path / ".opsleuth" / "config.toml").write_text("[options]\nmax_cost = 999\n")
    monkeypatch.chdir(tmp_path)
    assert read_caps([]).cost == Decimal(2)


@pytest.mark.parametrize(
    ("model", "planner", "cost"),
    [
        (PRICED, "auto", Decimal(2)),
        (PRICED, "offline", None),
        ({"model": "m"}, "auto", None),
        (None, "auto", None),
        ({**PRICED, "reviewer": {"model": "other"}}, "auto", None),
        ({**PRICED, "reviewer": "none"}, "auto", Decimal(2)),
    ],
)
def test_money_is_capped_by_default_where_every_price_is_known(
    model: dict[str, Any] | None, planner: str, cost: Decimal | None
) -> None:
    caps = default_caps(planner, model, {})
    assert (caps.cost, caps.tokens) == (cost, 300_000)


# What reaches a run on its way: 14 to 25.


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    made = Loop(tmp_path)
    made.world.spent = SPENDING
    made.world.write(*[looks(f"thing {number}") for number in range(12)], concludes("done"))
    yield made
    made.store.close()


def place_run(loop: Loop, settings: RunSettings | None = None, **limits: Any) -> str:
    """A queued run with these settings, as a service stores it."""
    request = StartRequest(
        run=RUN, question="why", limits=limits, settings=settings or RunSettings(caps=CAPS)
    )
    return queued.queue_run(loop.store, request, loop.clock).id


def drive_run(loop: Loop, run: str, restrictions: Restrictions | None = None) -> AttemptOutcome:
    """One attempt of a worker under these restrictions."""
    parts = replace(loop.world.parts(), restrictions=restrictions or Restrictions(always_capped=True))
    return asyncio.run(Runner(loop.store, clock=loop.clock, parts=parts).resume(run, {}))


def test_run_ends_at_the_cap_of_its_cost(loop: Loop) -> None:
    outcome = drive_run(loop, place_run(loop))
    assert outcome.stop_reason is StopReason.TOKEN_LIMIT  # 400 tokens a turn: before the money
    assert loop.store.runs.find(RUN).tokens <= MOST_TOKENS


def test_limits_that_an_older_version_stored_are_cut(loop: Loop) -> None:
    run = place_run(loop)
    row = loop.store.runs.find(run)
    state = row.settings["state"]
    raised = state["budget"]["limits"] | {"cost": "999999", "tokens": 10**9, "turns": 900}
    stored = {**row.settings, "state": state | {"budget": state["budget"] | {"limits": raised}}}
    loop.store.runs.update(run, settings=stored | {"request": {**row.settings["request"], "limits": raised}})
    assert drive_run(loop, run).stop_reason is StopReason.TOKEN_LIMIT


def test_totals_that_wait_for_the_next_attempt_are_cut(loop: Loop) -> None:
    run = place_run(loop)
    assert drive_run(loop, run).stop_reason is StopReason.TOKEN_LIMIT
    row = queued.with_limits(loop.store.runs.find(run), {"tokens": 10**9, "cost": "999"})
    loop.store.runs.update(run, settings=row.settings)
    assert drive_run(loop, run).stop_reason is StopReason.TOKEN_LIMIT
    assert loop.store.runs.find(run).tokens <= MOST_TOKENS


def test_resume_from_the_command_line_above_a_cap_is_refused(loop: Loop) -> None:
    run = place_run(loop)
    drive_run(loop, run)
    with pytest.raises(UsageError, match="the operator allows at most 1000 tokens"):
        loop.resume(run, tokens=10**9)


def test_fork_keeps_the_caps_and_its_edit_is_cut(loop: Loop) -> None:
    run = place_run(loop)
    drive_run(loop, run)
    row, ids = loop.store.runs.find(run), count(1)
    edits = [StateEdit("budget.limits.tokens", 10**9), StateEdit("budget.limits.turns", 900)]
    branch = fork_run(
        loop.store,
        loop.store.history.find(run, "c1"),
        lambda: f"inv-20240501-fork{next(ids)}",
        call_checker_for(loop.world.parts(), row),
        ForkRequest(edits=edits),
    )
    outcome = drive_run(loop, branch.run.id)
    assert outcome.stop_reason is StopReason.TOKEN_LIMIT
    assert loop.store.runs.find(branch.run.id).tokens <= MOST_TOKENS


def test_run_without_caps_gets_those_of_the_worker(loop: Loop) -> None:
    run = place_run(loop, RunSettings(), tokens=10**9)
    parts = cap_runs_of_worker(loop.world.parts(), {"tokens": 900})
    assert drive_run(loop, run, parts.restrictions).stop_reason is StopReason.TOKEN_LIMIT
    assert loop.store.runs.find(run).settings["caps"]["turns"] == 30


def test_worker_with_a_lower_limit_cuts_what_the_api_allowed(loop: Loop) -> None:
    run = place_run(loop)
    outcome = drive_run(loop, run, Restrictions(caps=LimitCaps(turns=1), always_capped=True))
    assert outcome.stop_reason is StopReason.TURN_LIMIT


def test_worker_with_a_higher_limit_raises_nothing(loop: Loop) -> None:
    run = place_run(loop)
    drive_run(loop, run, Restrictions(caps=LimitCaps(tokens=10**9), always_capped=True))
    assert loop.store.runs.find(run).tokens <= MOST_TOKENS


def test_retry_spends_no_more(loop: Loop) -> None:
    run = place_run(loop)
    drive_run(loop, run)
    parts = replace(loop.world.parts(), restrictions=Restrictions(always_capped=True))
    asyncio.run(Runner(loop.store, clock=loop.clock, parts=parts).retry(run))
    assert loop.store.runs.find(run).tokens <= MOST_TOKENS


def ask_question(loop: Loop, run: str, number: int, **limits: Any) -> AttemptOutcome:
    """A question on an ended run, as `opsleuth ask` puts it."""
    request = FollowUpRequest(run, "was it the cache?", limits)
    runner = Runner(loop.store, clock=loop.clock, parts=loop.world.parts())
    return asyncio.run(runner.ask(request, lambda: f"inv-20240501-ask{number}"))


@pytest.mark.parametrize("name", CAPS)
def test_question_above_a_cap_is_refused(loop: Loop, name: str) -> None:
    loop.world.write(looks("thing"), concludes("done"))
    run = place_run(loop)
    assert drive_run(loop, run).stop_reason is StopReason.CONCLUDED
    with pytest.raises(UsageError, match="the operator allows at most"):
        ask_question(loop, run, 1, **{name: ABOVE[name]})


def test_questions_spend_what_the_caps_left_of_the_run(loop: Loop) -> None:
    loop.world.write(looks("thing"), concludes("done"), *[looks(f"more {number}") for number in range(12)])
    run = place_run(loop)
    assert drive_run(loop, run).stop_reason is StopReason.CONCLUDED
    assert ask_question(loop, run, 1).stop_reason is StopReason.TOKEN_LIMIT
    spent = [loop.store.runs.find(one).tokens for one in loop.store.runs.list_family(run)]
    assert max(spent) <= MOST_TOKENS
    with pytest.raises(UsageError, match="nothing is left"):
        ask_question(loop, run, 2)


def test_limits_that_come_with_answers_are_cut(loop: Loop) -> None:
    loop.world.write(looks("a", tool="restart"), *[looks(f"thing {number}") for number in range(12)])
    run = place_run(loop)
    assert drive_run(loop, run).status is Status.WAITING
    row = queued.with_limits(loop.store.runs.find(run), {"tokens": 10**9})
    loop.store.runs.update(run, settings=row.settings)
    (asked,) = loop.store.approvals.list(run, "pending")
    reply = OperatorReply("denied", digest=asked.digest, reason="no")
    record_answer(loop.store, run, asked.id, reply, AnsweringPerson("ana", "api"))
    assert drive_run(loop, run).stop_reason is StopReason.TOKEN_LIMIT


def test_run_says_once_that_a_limit_is_near(loop: Loop) -> None:
    run = place_run(loop, RunSettings(caps={"turns": 5}))
    drive_run(loop, run, Restrictions(caps=LimitCaps(turns=5)))
    near = [event["data"] for event in loop.store.events.read(run) if event["type"] == "limit.near"]
    assert [(event["code"], event["message"]) for event in near] == [("turns", "4 of 5 turns are used")]


def test_caps_leave_lower_limits_alone() -> None:
    caps = LimitCaps.model_validate(CAPS)
    assert caps.describe_excess({"cost": "0.5", "turns": 5}) is None
    assert to_json(caps.tightened_by(LimitCaps(turns=3)))["turns"] == 3

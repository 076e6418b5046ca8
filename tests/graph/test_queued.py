"""A run that is accepted by one process and begun by another."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from loop_rig import SINCE, UNTIL, Loop, concludes, looks

from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.queued import queue_run, request_of
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import Status, StopReason

RUN = "inv-20240501-wait"
ALERT = {"text": "orders are slow", "service": "orders-api", "severity": "critical"}


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    return Loop(tmp_path)


def asked(**more: Any) -> StartRequest:
    return replace(StartRequest(run=RUN, question="what is slow", since=SINCE, until=UNTIL), **more)


def test_what_was_asked_comes_back_as_it_was(loop: Loop) -> None:
    request = asked(
        alert=ALERT, limits={"turns": 5}, name="night", project="shop", settings=RunSettings(read_only=True)
    )
    row = queue_run(loop.store, request, loop.clock)
    assert (row.status, row.project, row.name) == (Status.QUEUED, "shop", "night")
    again = request_of(loop.store.runs.find(RUN))
    assert replace(again, settings=request.settings) == request
    assert again.settings.read_only


def test_a_queued_run_is_begun_by_whoever_takes_it(loop: Loop) -> None:
    queue_run(loop.store, asked(), loop.clock)
    loop.world.write(looks("a"), concludes("a was looked at.", "E1"))
    outcome = loop.resume(RUN)
    assert outcome.stop_reason is StopReason.CONCLUDED
    assert loop.types()[0] == "run.started"
    assert loop.world.lines("looked") == ["a"]


def test_a_queued_run_can_be_ended_before_it_began(loop: Loop) -> None:
    queue_run(loop.store, asked(), loop.clock)
    loop.world.write(looks("a"))
    loop.store.control.set(RUN, "cancel", "not needed")
    outcome = asyncio.run(loop.runner.end(RUN, "cancel"))
    assert outcome.status is Status.CANCELED
    assert loop.world.lines("looked") == []


def test_what_can_never_begin_is_not_accepted(loop: Loop) -> None:
    with pytest.raises(UsageError, match="turns"):
        queue_run(loop.store, asked(limits={"turns": 0}), loop.clock)
    assert loop.store.runs.list() == []


def test_a_secret_in_a_question_is_stored_nowhere(loop: Loop) -> None:
    secret = "ghp_" + "a1B2" * 9
    queue_run(loop.store, asked(question=f"is {secret} the cause"), loop.clock)
    assert secret not in str(loop.store.runs.find(RUN))

"""A call is waited for by the CPU that it gets while it computes, and by the clock while it waits for others."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from tool_rig import Rig, context, orders

from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.tools.fair_waiting import wait_fairly
from opsleuth.tools.spec import ToolContext, ToolResult

LIMIT = 0.05


async def answer_late(_: Any, __: ToolContext) -> ToolResult:
    """After three times the limit by the clock."""
    await asyncio.sleep(3.5 * LIMIT)
    return ToolResult(record={"rows": 1}, headline="1 row", source="fake")


def advancing(share: float) -> Callable[[], float]:
    """The CPU of a process that gets this share of a core: each look finds half of a limit's share more."""
    ticks: Iterator[int] = count()
    return lambda: next(ticks) * share * LIMIT


async def run_late(cpu: Callable[[], float], risk: Risk = Risk.READ) -> ResultStatus:
    rig = Rig(orders(answer_late, risk=risk)).with_limits(call_seconds=LIMIT, tries=1)
    executor = replace(rig.executor, cpu_seconds=cpu)
    return (await executor.run(rig.call(), context())).status


async def test_a_call_that_gets_little_cpu_is_given_more_time() -> None:
    assert await run_late(advancing(0.12)) is ResultStatus.OK


async def test_a_call_that_only_waits_is_cut_by_the_clock() -> None:
    assert await run_late(lambda: 1.0) is ResultStatus.TIMEOUT


async def test_a_call_that_had_its_cpu_is_cut() -> None:
    assert await run_late(advancing(0.6)) is ResultStatus.TIMEOUT


async def test_a_change_is_cut_by_the_clock_whatever_the_machine_does() -> None:
    assert await run_late(advancing(0.12), Risk.HIGH) is ResultStatus.UNKNOWN


@pytest.mark.parametrize("longest", [1.0, 2.0, 5.0])
async def test_no_call_is_waited_for_longer_than_the_longest(longest: float) -> None:
    never: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    began = asyncio.get_running_loop().time()
    await wait_fairly(never, LIMIT, longest * LIMIT, advancing(0.12))
    assert asyncio.get_running_loop().time() - began >= 0.9 * longest * LIMIT
    assert not never.done()

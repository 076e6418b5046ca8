"""Several requests at once: in order, and none that outlives another's failure."""

import asyncio

import pytest

from opsleuth.tools.concurrency import gather_or_cancel


async def _after(seconds: float, ended: list[str], name: str) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        ended.append(f"{name} cancelled")
        raise
    ended.append(name)
    return name


async def _refused() -> str:
    await asyncio.sleep(0)
    raise ConnectionRefusedError("nobody there")


async def test_results_are_in_the_order_asked() -> None:
    ended: list[str] = []
    assert await gather_or_cancel(_after(s, ended, n) for s, n in ((0.02, "slow"), (0, "quick"))) == [
        "slow",
        "quick",
    ]
    assert ended == ["quick", "slow"]


async def test_the_first_error_ends_the_others_before_it_is_raised() -> None:
    ended: list[str] = []
    with pytest.raises(ConnectionRefusedError, match="nobody there"):
        await gather_or_cancel([_after(60, ended, "other"), _refused()])
    assert ended == ["other cancelled"]


async def test_who_is_cancelled_ends_them_all() -> None:
    ended: list[str] = []
    task = asyncio.create_task(gather_or_cancel([_after(60, ended, "one"), _after(60, ended, "two")]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == ["one cancelled", "two cancelled"]

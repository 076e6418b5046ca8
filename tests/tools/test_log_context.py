"""Log lines around a moment, of one pod, and of a container's run before its restart."""

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import SHOP, T0, WINDOW

from opsleuth.analysis.records import LogLine, Recording
from opsleuth.state.clock import FakeClock
from opsleuth.state.investigation import Window
from opsleuth.tools.logs import LOGS
from opsleuth.tools.nearest_lines import NearestLines
from opsleuth.tools.registry import parse_arguments
from opsleuth.tools.sources.memory_source import MemorySource
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import InvalidArgumentsError, ToolContext, ToolResult

(SPEC,) = LOGS
LINES = [
    LogLine(T0 + i, "cart" if i % 3 else "stock", f"step {i}", "INFO", pod=f"cart-{i % 2}", previous=i < 20)
    for i in range(60)
]
BOOK = replace(SHOP, logs=LINES)


async def search(recording: Recording = BOOK, **arguments: Any) -> ToolResult:
    start, end = (datetime.fromtimestamp(t, UTC) for t in (WINDOW.start, WINDOW.end))
    context = ToolContext(
        window=Window(start=start, end=end),
        clock=FakeClock(end),
        sources=RunSources([MemorySource(recording)]),
        evidence=lambda _: None,
    )
    return await SPEC.run(parse_arguments(SPEC, arguments), context)


async def test_lines_around_a_time_are_the_nearest_on_both_sides() -> None:
    shuffled = replace(BOOK, logs=random.Random(7).sample(LINES, len(LINES)))
    record = (await search(shuffled, around="2024-05-01T14:00:30Z", limit=6, text="STEP 31")).record
    assert [line["message"] for line in record["lines"]] == [f"step {i}" for i in range(27, 33)]
    assert [line["message"] for line in record["lines"] if line.get("marked")] == ["step 31"]
    assert record["matched"] == 60


async def test_lines_around_a_time_of_one_pod() -> None:
    record = (await search(around="2024-05-01T14:00:30Z", pod="cart-1", limit=4)).record
    assert [line["message"] for line in record["lines"]] == ["step 27", "step 29", "step 31", "step 33"]


async def test_lines_of_the_run_before_the_restart() -> None:
    before = (await search(previous=True, pod="cart-0", limit=100)).record
    assert [line["message"] for line in before["lines"]] == [f"step {i}" for i in range(0, 20, 2)]
    assert all(line["previous"] for line in before["lines"])
    assert (await search(previous=False)).matched == 40
    assert (await search()).matched == 60


@pytest.mark.parametrize("other", [{"since": "2024-05-01T14:00:00Z"}, {"baseline": True}])
async def test_around_and_another_stretch_are_refused(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError, match="around stands alone"):
        await search(around="2024-05-01T14:00:30Z", **other)


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(0, 30), st.integers(1, 12))
def test_nearest_lines_are_what_sorting_would_give(times: list[int], moment: int, limit: int) -> None:
    kept = NearestLines(float(moment), limit)
    lines = [LogLine(float(time), "cart", str(number)) for number, time in enumerate(times)]
    for line in lines:
        kept.add_line(line)
    in_order = sorted(lines, key=lambda line: line.time or 0.0)
    before = [line for line in in_order if (line.time or 0.0) < moment]
    after = [line for line in in_order if (line.time or 0.0) >= moment]
    half = limit // 2
    assert kept.list_lines() == [*before[len(before) - min(half, len(before)) :], *after[: limit - half]]

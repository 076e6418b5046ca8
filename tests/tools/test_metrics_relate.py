"""Several metrics on one time axis, their ratio and their correlation."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import SHOP, T0, WINDOW

from opsleuth.analysis.aligned_series import align_series, correlate_columns
from opsleuth.analysis.records import LogLine, MetricSeries, Recording, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.state.investigation import Window
from opsleuth.tools.metrics_relate import METRICS_RELATE
from opsleuth.tools.registry import parse_arguments
from opsleuth.tools.sources.memory_source import MemorySource
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import InvalidArgumentsError, ToolContext, ToolResult

(SPEC,) = METRICS_RELATE


def series(
    service: str, metric: str, values: Sequence[float], step: float = 60.0, **more: Any
) -> MetricSeries:
    times = tuple(T0 + step * i for i in range(len(values)))
    return MetricSeries(service, metric, more.get("unit", "1"), times, tuple(values), more.get("instance"))


async def compare(recording: Recording, *names: str, **arguments: Any) -> ToolResult:
    start, end = (datetime.fromtimestamp(t, UTC) for t in (WINDOW.start, WINDOW.end))
    context = ToolContext(
        window=Window(start=start, end=end),
        clock=FakeClock(end),
        sources=RunSources([MemorySource(recording)]),
        evidence=lambda _: None,
    )
    return await SPEC.run(parse_arguments(SPEC, {"series": list(names), **arguments}), context)


def recorded(*found: MetricSeries) -> Recording:
    return replace(SHOP, metrics=list(found))


async def test_series_of_different_steps_share_the_coarser_axis() -> None:
    shop = recorded(series("cart", "errors", range(30)), series("cart", "requests", [100.0] * 120, 15.0))
    record = (await compare(shop, "cart:errors", "cart:requests")).record
    assert record["step_seconds"] == 60
    assert record["rows"][3] == {"time": "2024-05-01T14:03:00Z", "a": 3, "b": 100}
    assert len(record["rows"]) == 30


async def test_ratio_has_its_extremes_and_leaves_out_what_divides_by_zero() -> None:
    shop = recorded(series("cart", "errors", [1, 5, 9]), series("cart", "requests", [100, 0, 90]))
    record = (await compare(shop, "cart:errors", "cart:requests", relation="ratio")).record
    assert [row.get("ratio") for row in record["rows"]] == [0.01, None, 0.1]
    assert record["max_ratio"] == {"time": "2024-05-01T14:02:00Z", "value": 0.1}


async def test_correlation_tells_which_follows_which() -> None:
    wave = [math.sin(i / 3) for i in range(30)]
    follower = [0.0, 0.0, *wave[:-2]]
    shop = recorded(
        series("db", "locks", wave), series("cart", "latency", follower), series("web", "flat", [1.0] * 30)
    )
    record = (await compare(shop, "db:locks", "cart:latency", "web:flat", relation="correlation")).record
    first, second = record["correlations"]
    assert (first["best_shift_seconds"], first["coefficient_at_best_shift"]) == (
        120,
        pytest.approx(1.0, abs=0.01),
    )
    assert "not_computed" in second


async def test_names_with_colons_are_found_and_unknown_ones_refused_with_the_nearest() -> None:
    shop = recorded(series("cart:80", "job:errors:rate5m", range(30)), series("cart", "up", [1.0] * 30))
    assert (await compare(shop, "cart:80:job:errors:rate5m", "cart:up")).status is ResultStatus.OK
    with pytest.raises(
        InvalidArgumentsError, match=r"no series 'cart:ups'; write service:metric \(nearest: cart:up\)"
    ):
        await compare(shop, "cart:80:job:errors:rate5m", "cart:ups")


async def test_instances_are_averaged_and_counted() -> None:
    shop = recorded(
        series("cart", "cpu", [10.0] * 9, instance="x"),
        series("cart", "cpu", [30.0] * 9, instance="y"),
        series("cart", "rps", range(9)),
    )
    record = (await compare(shop, "cart:cpu", "cart:rps")).record
    assert record["series"]["a"] == {"series": "cart:cpu", "unit": "1", "averaged_instances": 2}
    assert {row["a"] for row in record["rows"]} == {20}


async def test_stretch_without_samples_is_not_recorded() -> None:
    shop = recorded(series("cart", "errors", [1.0] * 3), series("cart", "requests", [2.0] * 30))
    result = await compare(
        shop, "cart:errors", "cart:requests", since="2024-05-01T14:10:00Z", until="2024-05-01T14:20:00Z"
    )
    assert (result.status, result.record["not_recorded"]) == (
        ResultStatus.NOT_RECORDED, "no samples of cart:errors in this time range",
    )  # fmt: skip


async def test_ratio_of_three_series_is_refused() -> None:
    shop = recorded(*(series("cart", name, [1.0]) for name in ("one", "two", "six")))
    with pytest.raises(InvalidArgumentsError, match="a ratio takes two series, not 3"):
        await compare(shop, "cart:one", "cart:two", "cart:six", relation="ratio")


async def test_numbers_in_log_lines_are_series_too() -> None:
    lines = [LogLine(T0 + 20 * i, "api", f"request took {i + 5} ms, queue={2 * i}") for i in range(60)]
    shop = replace(SHOP, metrics=None, logs=lines)
    with pytest.raises(InvalidArgumentsError) as refused:
        await compare(shop, "api:none", "api:nothing")
    names = re.findall(r'api:median \w+ of "[^"]+"', str(refused.value))
    assert len(names) == 2
    result = await compare(shop, *names, relation="correlation")
    assert result.record["correlations"][0]["coefficient"] == 1
    assert result.source == "memory"


@given(st.lists(st.floats(-1e6, 1e6), min_size=12, max_size=40), st.floats(0.1, 50), st.floats(-100, 100))
def test_a_series_moves_fully_with_its_own_scaled_copy(
    values: list[float], scale: float, offset: float
) -> None:
    spread = max(values) - min(values)
    twins = [[series("a", "m", values)], [series("b", "m", [value * scale + offset for value in values])]]
    aligned = align_series(twins, TimeRange(T0, T0 + 60 * len(values)), 60)
    found = correlate_columns(aligned, 0, 1)
    if spread > 1e-3:
        assert found is not None
        assert found.coefficient == pytest.approx(1.0, abs=1e-6)
        assert found.shift == 0

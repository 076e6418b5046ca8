"""Numbers inside lines: what counts as a measurement, its name and unit, and the series that come of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.line_numbers import MeasuredNumber, NumberReader, number_series
from opsleuth.analysis.log_templates import Masker
from opsleuth.analysis.records import LogLine


def measured(message: str, **extra: Any) -> list[MeasuredNumber]:
    line = LogLine(0.0, "cart", message, extra=extra or None)
    return NumberReader().read(line, Masker().form(message))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("duration: 4012.313 ms  statement: UPDATE baskets", [("duration", "ms", 4012.313)]),
        ("basket 1042 settled in 43 ms", [("settled", "ms", 43.0)]),
        ("# Query_time: 12.5  Lock_time: 0.5 Rows_sent: 1  Rows_examined: 10", [("query_time", "ms", 12_500.0), ("lock_time", "ms", 500.0), ("rows_sent", "", 1.0), ("rows_examined", "", 10.0)]),
        ("GC(311) Pause Full (G1 Compaction Pause) 2044M->2041M(2048M) 4113.252ms", [("duration", "ms", 4113.252)]),
        ("GET /basket?full=true 200 in 0.042 s", [("duration", "ms", 42.0)]),
        ("worker=3 queue=128 lag_ms=17 user_id=9", [("queue", "", 128.0), ("lag_ms", "ms", 17.0)]),
        ("process 314 still waiting for ShareLock after 1000.123 ms", [("sharelock", "ms", 1000.123)]),
        ("request_time=0.25 size=12 KB", [("request_time", "ms", 250.0), ("size", "bytes", 12_000.0)]),
        ("disk 97% full", [("disk", "%", 97.0)]),
        ("listening on 0.0.0.0:8080, pid 31, version 2.13.4", []),
        ("user 7f3ad4d1-9d0c-4b8f-8a55-6c1a9b3f2e10 port=8080 id=5", []),
    ],
)  # fmt: skip
def test_what_is_measured(message: str, expected: list[tuple[str, str, float]]) -> None:
    found = measured(message)
    assert [(n.name, n.unit) for n in found] == [(name, unit) for name, unit, _ in expected]
    assert [n.value for n in found] == pytest.approx([value for _, _, value in expected])


def test_fields_of_a_line_are_measured_too() -> None:
    found = measured(
        "request", status=502, duration_ms=12.5, user_id=9, ok=True, attr={"durationMillis": 4012}
    )
    assert found == [("status", "", 502), ("duration_ms", "ms", 12.5), ("durationmillis", "ms", 4012.0)]


@given(st.integers(0, 10**6), st.floats(0, 10**6).map(lambda x: round(x, 3)), st.integers(0, 2**64 - 1))
def test_values_are_those_of_the_line(number: int, took: float, token: int) -> None:
    masker, reader = Masker(), NumberReader()
    for n, t in ((number, took), (7, 1.0)):
        message = f"trace {token:016x} order {n} took {t:.3f} ms queue={n}"
        found = reader.read(LogLine(0.0, "cart", message), masker.form(message))
        assert found == [("took", "ms", pytest.approx(t)), ("queue", "", n)]


def test_series_by_statement_and_minute() -> None:
    lines = [LogLine(60.0 * (i // 10), "cart", f"order {i} took {i % 10 + 1} ms") for i in range(40)]
    middle, highest = reversed(number_series(lines))
    assert (middle.service, middle.unit, highest.unit) == ("cart", "ms", "ms")
    assert middle.metric == 'median took of "order <n> took <n> ms"'
    assert list(middle.times) == [0.0, 60.0, 120.0, 180.0]
    assert list(middle.values) == [5.5] * 4
    assert list(highest.values) == [10.0] * 4


def test_statuses_are_counted_by_class() -> None:
    lines = [
        LogLine(60.0 * (i // 10), "web", "GET /", extra={"status": 502 if i >= 16 else 200})
        for i in range(20)
    ]
    found = {series.metric: list(series.values) for series in number_series(lines)}
    assert found == {"requests with status 2xx": [10.0, 6.0], "requests with status 5xx": [0.0, 4.0]}


def test_lines_without_a_time_are_in_no_series() -> None:
    assert number_series([LogLine(None, "cart", "took 5 ms")]) == []


def test_many_values_of_a_minute_are_sampled_and_their_highest_is_exact() -> None:
    lines = [LogLine(0.0, "cart", f"took {i} ms") for i in range(10_001)]
    highest, middle = number_series(lines)
    assert highest.values == [10_000.0]
    assert middle.values[0] == pytest.approx(5_000, rel=0.05)

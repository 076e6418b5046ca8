"""What counts as a number, in which unit, and what does not; in linear time."""

from itertools import pairwise

import pytest
from growth import assert_grows_at_most
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.verification.quantities import Quantity, TimeToken, find_quantities, scan_tokens


def read(text: str) -> list[tuple[float, str]]:
    return [(q.value * q.units[0].factors[0], q.units[0].dimension) for q in find_quantities(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("took 250ms", [(0.25, "time")]),
        ("took 250 ms", [(0.25, "time")]),
        ("a 40-minute window", [(2400.0, "time")]),
        ("1h30m in all", [(5400.0, "time")]),
        ("2 min 30 s later", [(150.0, "time")]),
        ("4.1 % of requests", [(0.041, "share")]),
        ("14,200 rows", [(14200.0, "count")]),
        ("1.2k rows and 3M more", [(1200.0, "count"), (3e6, "count")]),
        ("8 GiB left", [(8 * 1024.0**3, "bytes")]),
        ("costs $12.50", [(12.5, "money")]),
        ("p99=30ms", [(0.03, "time")]),
        ("latency:250ms", [(0.25, "time")]),
        ("3/5 pods", [(3.0, "count"), (5.0, "count")]),
        ("20–40 ms", [(0.02, "time"), (0.04, "time")]),
        ("延迟为250毫秒，持续40分钟，错误率4.1%", [(0.25, "time"), (2400.0, "time"), (0.041, "share")]),
        ("最近3个小时", [(10800.0, "time")]),
        ("1e-3s", [(0.001, "time")]),
    ],
)
def test_numbers_with_their_units(text: str, expected: list[tuple[float, str]]) -> None:
    found = read(text)
    assert [dimension for _, dimension in found] == [dimension for _, dimension in expected]
    assert [value for value, _ in found] == pytest.approx([value for value, _ in expected])


@pytest.mark.parametrize(
    "text",
    [
        "payments-api-7f9dd8b6c4-x7gr9",
        "v3.2.0",
        "image redis-7.2.1",
        "10.0.0.12:8080",
        "see [E7], H2 and C3 of inv-20261129-7k3f",
        "the 3rd attempt, the 99th percentile",
        "p99 of 5xx",
        "1. roll back\n2) wait",
        "option 2",
        "7f9dd8b6c4",
        "方案1",
    ],
)
def test_names_ids_and_ordinals_are_no_numbers(text: str) -> None:
    assert find_quantities(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "13:40Z",
        "13:40",
        "2026-11-29T13:40Z",
        "2026-11-29 13:40:07.123Z",
        "2026-11-29T13:40:00+08:00",
        "13:40 UTC",
    ],
)
def test_times_are_read_whole(text: str) -> None:
    [token] = scan_tokens(f"at {text}, then")[1:-1]
    assert isinstance(token, TimeToken)
    assert token.moment.text == text


@pytest.mark.parametrize("joint", ["–", "-", " to ", " and "])
def test_a_range_shares_the_zone(joint: str) -> None:
    first, second = (t for t in scan_tokens(f"between 13:40{joint}14:20Z") if isinstance(t, TimeToken))
    assert first.moment.zoned
    assert second.moment.seconds - first.moment.seconds == 2400


def test_impossible_times_are_no_times() -> None:
    assert not [t for t in scan_tokens("25:70 and 2026-02-31") if isinstance(t, TimeToken)]


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("900 s", 899.5, 900.5),
        ("about 900 s", 850, 950),
        ("over 900 s", 900, 1000),
        ("under 900 s", 800, 900),
        ("大约900秒", 850, 950),
        ("超过900秒", 900, 1000),
        ("0.25 s", 0.245, 0.255),
    ],
)
def test_what_may_be_written_so(text: str, low: float, high: float) -> None:
    [quantity] = find_quantities(text)
    assert [quantity.low, quantity.high] == pytest.approx([low, high])


def test_number_words_only_on_request() -> None:
    assert find_quantities("two of twelve pods") == []
    assert [q.value for q in find_quantities("two of twelve pods", words=True)] == [2, 12]


@given(st.text(max_size=300))
def test_any_text_is_read_in_order_without_overlap(text: str) -> None:
    tokens = scan_tokens(text)
    assert all(0 <= t.start < t.end <= len(text) for t in tokens)
    assert all(a.end <= b.start for a, b in pairwise(tokens))


@given(st.integers(0, 10**9), st.integers(0, 4))
def test_a_number_is_read_as_written(digits: int, places: int) -> None:
    value = digits / 10**places
    [quantity] = find_quantities(f"it was {value:,.{places}f} ms in all")
    assert isinstance(quantity, Quantity)
    assert quantity.value == pytest.approx(value)
    assert quantity.high - quantity.low == pytest.approx(10.0**-places, rel=1e-3)


PIECES = [
    "1",
    "a-",
    "1,",
    "1,234",
    ".",
    "1 ",
    "12:",
    "2022-08-22 ",
    "1d ",
    "x:1",
    "-1",
    "é",
    "1.1.1/",
    "`",
    " ",
]


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_large_texts_take_linear_time(piece: str) -> None:
    small, large = piece * (10_000 // len(piece)), piece * (100_000 // len(piece))
    assert_grows_at_most(40, lambda: scan_tokens(small), lambda: scan_tokens(large))  # ten times the text


@pytest.mark.parametrize(
    ("text", "value", "dimension"),
    [
        ("fifteen lines", 15, "count"),
        ("two dozen lines", 24, "count"),
        ("half a dozen pods", 6, "count"),
        ("a hundred and twelve requests", 112, "count"),
        ("forty-seven restarts", 47, "count"),
        ("ten seconds before", 10, "time"),
        ("three and a half hours", 12_600, "time"),
        ("half an hour later", 1800, "time"),
        ("nine times as much", 9, "ratio"),
        ("half of the requests", 0.5, "share"),
        ("two thirds of all failures", 2 / 3, "share"),
        ("fünfzehn Minuten später", 900, "time"),
        ("siebenundzwanzig Zeilen", 27, "count"),
        ("十五分钟之后", 900, "time"),
        ("三分之一的请求", 1 / 3, "share"),
        ("三倍", 3, "ratio"),
    ],
)
def test_numbers_in_words_are_numbers(text: str, value: float, dimension: str) -> None:
    (found,) = find_quantities(text, words=True)
    assert found.units[0].dimension == dimension
    assert found.value * found.units[0].factors[0] == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["two-factor login", "the third pod", "a second look", "half-open breaker", "五金", "one pod"]
)
def test_words_that_only_hold_a_number_word_are_no_numbers(text: str) -> None:
    assert find_quantities(text, words=True) == []

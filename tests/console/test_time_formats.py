"""Times as people write them: one without a zone is local, and said back with its zone."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.console.time_formats import (
    TimeDisplay,
    find_time_zone,
    format_age,
    format_elapsed,
    parse_duration,
    parse_moment,
)
from opsleuth.state.local_times import LocalTimes

NOW = datetime(2026, 11, 29, 14, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-29T13:40Z", "2026-11-29T13:40:00+00:00"),
        ("2026-11-29T22:40+09:00", "2026-11-29T13:40:00+00:00"),
        ("2026-11-29 13:40:07.5Z", "2026-11-29T13:40:07.500000+00:00"),
        ("now", "2026-11-29T14:05:00+00:00"),
        ("now-30m", "2026-11-29T13:35:00+00:00"),
        ("now-1h30m", "2026-11-29T12:35:00+00:00"),
        ("13:40Z", "2026-11-29T13:40:00+00:00"),
        ("15:00Z", "2026-11-28T15:00:00+00:00"),
        ("9:00+09:00", "2026-11-29T00:00:00+00:00"),
    ],
)
def test_moments(text: str, moment: str) -> None:
    assert parse_moment(text, NOW).isoformat() == moment


@pytest.fixture
def in_tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_tokyo")
@pytest.mark.parametrize(
    ("text", "moment", "note"),
    [
        ("2026-11-29T13:40", "2026-11-29T04:40:00+00:00", "2026-11-29 13:40 JST (+09:00), which is 2026-11-29 04:40Z"),
        ("2026-11-29", "2026-11-28T15:00:00+00:00", "2026-11-29 00:00 JST (+09:00), which is 2026-11-28 15:00Z"),
        ("22:40", "2026-11-29T13:40:00+00:00", "2026-11-29 22:40 JST (+09:00), which is 2026-11-29 13:40Z"),
        ("23:30", "2026-11-28T14:30:00+00:00", "2026-11-28 23:30 JST (+09:00), which is 2026-11-28 14:30Z"),
    ],
)  # fmt: skip
def test_a_time_without_a_zone_is_local_and_said_back_with_its_zone(
    text: str, moment: str, note: str
) -> None:
    heard: list[str] = []
    assert parse_moment(text, NOW, LocalTimes(note=heard.append)).isoformat() == moment
    assert heard == [f"{text} has no time zone: read as {note}"]


def test_where_local_time_is_utc_it_is_said_once() -> None:
    heard: list[str] = []
    parse_moment("13:40", NOW, LocalTimes(UTC, heard.append))
    assert heard == ["13:40 has no time zone: read as 2026-11-29 13:40Z (the local time zone is UTC)"]


@pytest.mark.parametrize(
    "text", ["yesterday", "", "now+5m", "25:00Z", "now-", "now-5", "0001-01-01T00:00+14:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|Write|out of range"):
        parse_moment(text, NOW)


@given(st.integers(1, 10**6), st.sampled_from("smhd"))
def test_durations(number: int, unit: str) -> None:
    seconds = number * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[unit]
    if seconds < 1e9:
        assert parse_duration(f"{number}{unit}") == timedelta(seconds=seconds)
    else:
        with pytest.raises(ValueError, match="out of range"):
            parse_duration(f"{number}{unit}")


@pytest.mark.parametrize("text", ["", "15", "m", "15 m", "0s", "-5m", "99999999999d"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|range"):
        parse_duration(text)


def test_times_are_shown_in_the_zone_that_was_asked_for() -> None:
    tokyo = TimeDisplay(find_time_zone("Asia/Tokyo"))
    assert TimeDisplay().full("2026-11-29T22:58:07.412Z") == "2026-11-29 22:58:07Z"
    assert tokyo.full("2026-11-29T22:58:07.412Z") == "2026-11-30 07:58:07 JST"
    assert TimeDisplay().span("2026-11-29T13:40:00Z", "2026-11-29T14:20:00Z") == "13:40Z–14:20Z"
    assert (
        tokyo.span("2026-11-29T13:40:00Z", "2026-11-29T15:20:30Z")
        == "2026-11-29 22:40:00 JST–2026-11-30 00:20:30 JST"
    )
    assert TimeDisplay().clock("soon") == "soon"


def test_an_unknown_zone_names_near_ones() -> None:
    with pytest.raises(ValueError, match="Asia/Tokyo"):
        find_time_zone("tokyo")


def test_ages_and_durations_have_one_unit() -> None:
    assert [
        format_age(t, NOW)
        for t in ("2026-11-29T14:04:48Z", "2026-11-29T09:00:00Z", "2026-11-01T00:00:00Z", None)
    ] == [
        "12s",
        "5h",
        "28d",
        "-",
    ]
    assert [format_elapsed(ms) for ms in (812, 12_000, 200_000)] == ["0.8s", "12s", "3m20s"]

"""Which windows tell the usual and which the incident."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.time_windows import BASELINE, classify_windows, parse_window_start, window_name_at

MINUTES = [f"2024-05-01T10:{minute:02d}Z" for minute in range(20)]


def at(minute: int, second: int = 0) -> float:
    return datetime(2024, 5, 1, 10, minute, second, tzinfo=UTC).timestamp()


def test_a_minute_is_read_as_utc() -> None:
    assert parse_window_start("2024-05-01T10:07Z", 0) == at(7)
    assert parse_window_start("2024-05-01T12:07+02:00", 0) == at(7)
    assert parse_window_start(BASELINE, 0) is None


def test_the_minute_of_the_onset_belongs_to_the_incident() -> None:
    windows = classify_windows([BASELINE, *MINUTES[:4]], at(2, 30))
    assert windows.reference == (BASELINE,)
    assert windows.before == tuple(MINUTES[:2])
    assert windows.incident == tuple(MINUTES[2:4])


def test_an_alert_sent_late_is_about_the_last_minute() -> None:
    windows = classify_windows([BASELINE, MINUTES[3], MINUTES[5]], at(7))
    assert windows.before == (MINUTES[3],)
    assert windows.incident == (MINUTES[5],)


def test_without_a_baseline_earlier_minutes_are_the_reference() -> None:
    windows = classify_windows(MINUTES, at(15))
    assert windows.reference == tuple(MINUTES[:10])
    assert windows.before == tuple(MINUTES[10:15])
    assert windows.incident == tuple(MINUTES[15:])


def test_beside_a_baseline_earlier_minutes_are_kept_apart() -> None:
    windows = classify_windows([BASELINE, *MINUTES], at(15))
    assert windows.reference == (BASELINE,)
    assert windows.earlier == tuple(MINUTES[:10])
    assert windows.starts[MINUTES[3]] == at(3)


def test_nothing_gives_nothing() -> None:
    windows = classify_windows([], at(0))
    assert (windows.reference, windows.earlier, windows.before, windows.incident) == ((), (), (), ())


@given(st.floats(1e6, 2e9), st.integers(-7200, 7200))
def test_own_rows_are_placed_by_their_distance_to_the_onset(onset: float, away: int) -> None:
    windows = classify_windows([window_name_at(onset + away, onset), window_name_at(onset, onset)], onset)
    where = window_name_at(onset + away, onset)
    assert (where in windows.incident) == (onset + away >= onset)
    assert windows.starts[where] == pytest.approx(onset + away, rel=0, abs=60.01)


def test_own_rows_long_before_the_onset_are_the_reference() -> None:
    names = [window_name_at(time, 1000.0) for time in (600.0, 699.0, 701.0, 999.0, 1000.0, 1061.0)]
    windows = classify_windows(names, 1000.0)
    assert windows.reference == ("-7 min", "-6 min")
    assert windows.before == ("-5 min", "-1 min")
    assert windows.incident == ("+0 min", "+1 min")

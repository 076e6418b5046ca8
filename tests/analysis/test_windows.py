"""Which windows tell the usual and which the incident."""

from datetime import UTC, datetime

from opsleuth.analysis.windows import BASELINE, BEFORE, INCIDENT, arrange, place, start_of

MINUTES = [f"2024-05-01T10:{minute:02d}Z" for minute in range(20)]


def at(minute: int, second: int = 0) -> float:
    return datetime(2024, 5, 1, 10, minute, second, tzinfo=UTC).timestamp()


def test_a_minute_is_read_as_utc() -> None:
    assert start_of("2024-05-01T10:07Z") == at(7)
    assert start_of("2024-05-01T12:07+02:00") == at(7)
    assert start_of(BASELINE) is None


def test_the_minute_of_the_onset_belongs_to_the_incident() -> None:
    windows = arrange([BASELINE, *MINUTES[:4]], at(2, 30))
    assert windows.reference == (BASELINE,)
    assert windows.before == tuple(MINUTES[:2])
    assert windows.incident == tuple(MINUTES[2:4])


def test_an_alert_sent_late_is_about_the_last_minute() -> None:
    windows = arrange([BASELINE, MINUTES[3], MINUTES[5]], at(7))
    assert windows.before == (MINUTES[3],)
    assert windows.incident == (MINUTES[5],)


def test_without_a_baseline_earlier_minutes_are_the_reference() -> None:
    windows = arrange(MINUTES, at(15))
    assert windows.reference == tuple(MINUTES[:10])
    assert windows.before == tuple(MINUTES[10:15])
    assert windows.incident == tuple(MINUTES[15:])


def test_without_an_onset_the_last_minute_is_the_incident() -> None:
    assert arrange([BASELINE, *MINUTES[:3]], None).incident == (MINUTES[2],)


def test_nothing_gives_nothing() -> None:
    windows = arrange([], at(0))
    assert (windows.reference, windows.before, windows.incident) == ((), (), ())


def test_own_rows_are_placed_by_their_distance_to_the_onset() -> None:
    assert [place(t, 1000.0) for t in (699, 701, 999, 1000)] == [BASELINE, BEFORE, BEFORE, INCIDENT]
    windows = arrange([BASELINE, BEFORE, INCIDENT], 1000.0)
    assert (windows.reference, windows.before, windows.incident) == ((BASELINE,), (BEFORE,), (INCIDENT,))

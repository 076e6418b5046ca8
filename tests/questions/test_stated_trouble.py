"""Whether a question says since when something fails, or only which stretch to look at."""

from datetime import UTC, datetime

import pytest

from opsleuth.questions.incident_window import ZonelessTimeError, window_from_question

NOW = datetime(2026, 10, 6, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize("question", [
    "uploads fail since 08:30Z", "Why can nobody log in since 2026-10-06T08:30Z?", "since 08:30Z checkout is slow",
    "checkout answers 503 since 08:30Z", "orders have been failing since about 08:30Z", "从 08:30Z 开始下单失败",
    "search is down from 08:30Z", "mails get stuck starting at 08:30Z",
])  # fmt: skip
def test_a_question_that_reports_a_failure_states_its_onset(question: str) -> None:
    window = window_from_question(question, now=NOW)
    assert window is not None
    assert window.stated_onset == window.start == datetime(2026, 10, 6, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize("question", [
    "What happened since 08:30Z?", "any errors since 08:30Z?", "How many errors since 08:30Z?", "Was anything slow since 08:30Z?",
    "uploads failed between 08:30Z and 09:00Z", "uploads failed at 08:30Z", "uploads failed in the last hour", "what changed since 08:30Z",
])  # fmt: skip
def test_an_open_question_or_another_stretch_states_none(question: str) -> None:
    window = window_from_question(question, now=NOW)
    assert window is not None
    assert window.stated_onset is None


@pytest.mark.parametrize(
    "when",
    [
        "08:30Z on 2026-10-05",
        "08:30Z, 2026-10-05",
        "2026-10-05 at 08:30Z",
        "2026-10-05, 08:30Z",
        "2026-10-05T08:30Z",
        "2026-10-05 08:30Z",
    ],
)
def test_a_day_beside_a_clock_time_is_its_day(when: str) -> None:
    window = window_from_question(f"uploads fail since {when}", now=NOW)
    assert window is not None
    assert window.start == datetime(2026, 10, 5, 8, 30, tzinfo=UTC)


@pytest.mark.parametrize("when", ["08:30 on 2026-10-05", "2026-10-05"])
def test_a_day_gives_no_zone(when: str) -> None:
    with pytest.raises(ZonelessTimeError):
        window_from_question(f"uploads fail since {when}", now=NOW)

"""When trouble began according to logs and traces, where neither an alert nor a metric shows it."""

from collections.abc import Sequence

from opsleuth.analysis.log_series import (
    LogSeries,
    LogSeriesRise,
    courses_of_logs,
    courses_of_spans,
)
from opsleuth.analysis.ongoing_trouble import is_ongoing, is_time_stated, list_rises
from opsleuth.analysis.past_questions import asks_about_past
from opsleuth.analysis.records import Recording

_WEAKER = {"lines written": 0.3}
"""More lines alone may be more work: such a rise counts less."""


def find_onset_candidates(recording: Recording) -> list[LogSeriesRise]:
    """Where something rose inside the window, the strongest first."""
    window = recording.window
    logs = [line for line in recording.logs or () if line.time is not None and window.start <= line.time < window.end]  # fmt: skip
    spans = [span for span in recording.spans or () if window.start <= span.start < window.end]
    courses: Sequence[LogSeries] = [*courses_of_logs(logs), *courses_of_spans(spans)]
    rises = [rise for course in courses for rise in list_rises(course)]
    return sorted(rises, key=lambda rise: (-_weigh_rise(rise), rise.time, rise.course.service))


def find_log_onset(recording: Recording) -> float | None:
    """The time of the strongest candidate; None where nothing rose. One that still runs at the end goes first."""
    rises = find_onset_candidates(recording)
    plain = [rise for rise in rises if rise.course.quantity not in _WEAKER]
    alert = recording.alert
    past = is_time_stated(alert) or asks_about_past(alert, alert.service or "")
    if not past and (running := list(filter(is_ongoing, plain))):
        return running[0].time
    return next((rise.time for rise in rises), None)


def _weigh_rise(rise: LogSeriesRise) -> float:
    return rise.strength * _WEAKER.get(rise.course.quantity, 1.0)

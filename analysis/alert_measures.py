"""The measures that an alert is about, whatever their names, and how each of them compares with the stretch before.

An alert names its metric, or says in words what it is about; then the measures of its service that fit the words
stand for it. What moved is the incident itself. It names no cause, but it rules out a healthy verdict.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from opsleuth.analysis.level_shifts import ENOUGH, NOTICEABLE
from opsleuth.analysis.metric_roles import find_metric_role, to_snake_case
from opsleuth.analysis.metric_units import infer_unit
from opsleuth.analysis.number_format import format_number, scale_to_readable_unit
from opsleuth.analysis.records import AlertFacts, Finding, MetricSeries, Recording
from opsleuth.analysis.robust_statistics import typical_step
from opsleuth.analysis.stretch_comparison import EITHER_SIDE, LEAST_MOVE, WindowJudgement, judge_window

DETECTOR = "alert_measure"
"""Detector of findings that say whether what the alert is about moved."""

# An alert is sent after its rule held for some time, and rules look at some minutes at once: so long before it was
# sent it may have begun. Never more than a quarter of what was recorded before, or there is nothing to compare with.
_LOOK_BACK_SECONDS = 3600.0
_LOOK_BACK_SAMPLES = 6
_LOOK_BACK_SHARE = 4
_MOST_OTHERS = 60

_SIDES = (
    (
        +1,
        re.compile(
            r"\b(above|over|exceed\w*|high(er)?|too (many|much|long|slow)|ris\w+|increas\w+|spik\w+)\b|>",
            re.IGNORECASE,
        ),
    ),
    (
        -1,
        re.compile(
            r"\b(below|under|less than|low(er)?|drop\w*|fall\w*|fell|decreas\w+|too few)\b|<", re.IGNORECASE
        ),
    ),
)
_ANY_MOVE = re.compile(
    r"\b(unusual\w*|anomal\w+|abnormal\w*|deviat\w+|unexpected\w*|outlier\w*)\b", re.IGNORECASE
)
# Words by which an alert names what a role measures.
_WORDS_OF_ROLE = {
    "latency": r"slow\w*|latenc\w+|response times?|durations?|p9\d",
    "failures": r"errors?|fail\w*|5xx|4xx|availab\w+|success\w*",
    "success": r"errors?|fail\w*|5xx|4xx|availab\w+|success\w*",
    "cpu": r"cpu|processor",
    "memory": r"memory|mem|heap|oom",
    "storage_used": r"disk space|storage|disk usage|filesystem",
    "storage_free": r"disk space|storage|disk usage|filesystem|free space",
    "disk_queue": r"disk|i/?o",
    "connections": r"connections?",
    "requests": r"traffic|requests? (rate|volume)|rps|qps|throughput",
    "queue": r"queue\w*|backlog",
    "replication_lag": r"replica\w*|lag",
    "restarts": r"restart\w*",
}
# Units and statistics in names, which alerts seldom repeat.
_SAYS_NOTHING = re.compile(
    r"p\d+|avg|mean|max|min|total|count|sum|seconds?|secs?|ms|bytes|ratio|percent|pct|value|per|rate"
)
# Words in names that say which kind of fault a measure is about, where no role does.
_KIND_OF_WORDS = (
    ("quota", r"throttl|quota|capacity_exceeded|rate_limit"),
    ("errors", r"err(or)?s?(_|$)|fail|5xx|4xx|reject|timeouts?|exceptions?|dropped"),
    ("connections", r"pool|connections?"),
    ("latency", r"latency|duration|seconds|_ms(_|$)|wait"),
    ("traffic", r"queue|backlog|network|bytes_(in|out)|messages"),
    ("memory", r"mem|heap|gc_"),
    ("disk", r"disk|io_"),
)
_KIND_OF_ROLE = {
    "latency": "latency",
    "failures": "errors",
    "success": "errors",
    "requests": "traffic",
    "queue": "traffic",
    "network_receive": "traffic",
    "network_transmit": "traffic",
    "memory_free": "memory",
    "storage_free": "storage_full",
    "storage_used": "storage_full",
    "disk_queue": "disk",
    "write_latency": "disk",
    "read_latency": "disk",
    "write_ops": "disk",
    "read_ops": "disk",
    "restarts": "crash",
}

# A latency strays by a quarter in any hour; a success rate hardly moves at all.
LEAST_LATENCY_MOVE = 0.3
_LEAST_BY_ROLE = {"success": 0.0, "latency": LEAST_LATENCY_MOVE}
_UP, _DOWN = (+1,), (-1,)
_BAD_SIDES = {
    **dict.fromkeys(("latency", "failures", "queue", "replication_lag", "restarts", "locks"), _UP),
    **dict.fromkeys(("disk_queue", "write_latency", "read_latency", "storage_used", "swap"), _UP),
    **dict.fromkeys(("success", "storage_free", "memory_free"), _DOWN),
}
"""Sides to which a move is trouble, where the role tells; faster requests than usual, for example, are not trouble."""


class AlertMeasure(NamedTuple):
    """One series that the alert is about, and how it compares."""

    series: MetricSeries
    judgement: WindowJudgement


def judge_alert_measures(recording: Recording) -> list[AlertMeasure]:
    """Every series that the alert is about with its judgement; empty where no series is."""
    return [
        AlertMeasure(series, judge_measure(recording, series)) for series in find_alert_measures(recording)
    ]


def find_alert_measures(recording: Recording) -> list[MetricSeries]:
    """The series of the alert's own metric; without one, those of its service that fit its words."""
    alert, metrics = recording.alert, recording.metrics or ()
    if alert.metric:
        named = [s for s in metrics if to_snake_case(s.metric) == to_snake_case(alert.metric)]
        # The service of the alert may be what its hosts are called together: then the metric alone says what it is about.
        return [s for s in named if s.service == alert.service] or named
    if alert.service is None:
        return []
    return [s for s in metrics if s.service == alert.service and _fits_words(s, alert)]


def _fits_words(series: MetricSeries, alert: AlertFacts) -> bool:
    text = alert.text.lower()
    if to_snake_case(series.metric) in to_snake_case(text) or _are_all_words_in(series.metric, text):
        return True
    role = find_metric_role(series.metric, series.unit, series.values)
    words = _WORDS_OF_ROLE.get(role.name) if role else None
    return bool(words and re.search(rf"\b({words})\b", text))


def _are_all_words_in(metric: str, text: str) -> bool:
    """Whether the alert says every word of the name, in any spelling: `KafkaConsumerLag` and `kafka_consumer_lag`."""
    words = [word for word in to_snake_case(metric).split("_") if word and not _SAYS_NOTHING.fullmatch(word)]
    squeezed = re.sub(r"[^a-z0-9]", "", text)
    return len(words) > 1 and all(word in squeezed for word in words)


def judge_measure(recording: Recording, series: MetricSeries) -> WindowJudgement:
    """The series from the onset on (or from some time before the alert was sent) against what came before."""
    inside = [
        (time, value)
        for time, value in zip(series.times, series.values, strict=True)
        if time <= recording.window.end
    ]
    times, values = [time for time, _ in inside], [value for _, value in inside]
    rest = [
        value
        for other in recording.metrics_baseline or ()
        if (other.service, other.metric, other.instance) == (series.service, series.metric, series.instance)
        for value in other.values
    ]
    role = find_metric_role(series.metric, series.unit, series.values)
    name = role.name if role else ""
    either = name not in _BAD_SIDES or _ANY_MOVE.search(recording.alert.text)
    return judge_window(
        times,
        values,
        _count_samples_before(recording, times, len(rest)),
        rest,
        sides=EITHER_SIDE if either else _BAD_SIDES[name],
        least=_LEAST_BY_ROLE.get(name, LEAST_MOVE),
    )


def list_values_since(recording: Recording, series: MetricSeries) -> list[float]:
    """The samples of the stretch that the alert is about, without those that it is compared with."""
    inside = [
        (time, value)
        for time, value in zip(series.times, series.values, strict=True)
        if time <= recording.window.end
    ]
    return [value for _, value in inside][_count_samples_before(recording, [time for time, _ in inside], 0) :]


def _count_samples_before(recording: Recording, times: Sequence[float], at_rest: int) -> int:
    """How many samples ended before the stretch that the alert is about began.

    An onset is claimed early. Where it leaves too little to compare with, the time at which the alert was sent decides.
    """
    if not times:
        return 0
    step, alert = typical_step(times), recording.alert
    if alert.onset is not None:
        before = sum(1 for time in times if time + step <= alert.onset)
        if before + at_rest >= ENOUGH or alert.fired is None:
            return before
    sent = times[-1] if alert.fired is None else min(alert.fired, times[-1])
    back = max(_LOOK_BACK_SECONDS, _LOOK_BACK_SAMPLES * step)
    begin = sent - min(back, (sent - times[0]) / _LOOK_BACK_SHARE)
    return sum(1 for time in times if time + step <= begin)


def find_alert_measure_moves(recording: Recording) -> list[Finding]:
    """A finding for each series of the alert that moved, or of which it cannot be ruled out.

    They are marked as victims; the ranking blames the service of what moved where nothing else is to blame.
    """
    found = [_build_move(recording, measure) for measure in judge_alert_measures(recording)]
    return sorted((f for f in found if f is not None), key=lambda f: (-f.size, f.service, f.metric or ""))


def find_other_moves(recording: Recording, service: str, known: Collection[str]) -> list[Finding]:
    """What else moved on a service, whatever it is called: beside errors a pool that shrank; `known` metrics left out."""
    series = [s for s in recording.metrics or () if s.service == service and s.metric not in known]
    found = [
        _build_move(recording, AlertMeasure(s, judge_measure(recording, s))) for s in series[:_MOST_OTHERS]
    ]
    moved = [f for f in found if f is not None and f.figures["state"] == "moved"]
    return sorted(moved, key=lambda f: (-f.size, f.metric or ""))


def _build_move(recording: Recording, measure: AlertMeasure) -> Finding | None:
    series, judged = measure
    if judged.state not in ("moved", "unclear"):
        return None
    asked = {side for side, words in _SIDES if words.search(recording.alert.text)}
    moved = judged.state == "moved" and (len(asked) != 1 or judged.side in asked)
    levels = (judged.low, judged.high, judged.seen)
    unit = infer_unit(series.metric, series.unit, series.values) if not series.unit else series.unit
    (low, high, seen), unit = scale_to_readable_unit(levels, unit)
    went = "rose" if judged.side > 0 else "fell"
    text = (
        f"{series.metric} of {series.service} {went} to {_with_unit(seen, unit)}; before it lay between "
        f"{format_number(low)} and {_with_unit(high, unit)}."
        if judged.state == "moved"
        else f"{series.metric} of {series.service} is unlike the stretch before, though within its range of "
        f"{format_number(low)} to {_with_unit(high, unit)}."
    )
    return Finding(
        detector=DETECTOR,
        signal="metrics",
        service=series.service,
        kind=kind_of_measure(series),
        size=NOTICEABLE * (1.0 + judged.margin) if moved else 0.0,
        text=text,
        figures={
            "usual_low": low,
            "usual_high": high,
            "incident": seen,
            "unit": unit,
            "state": judged.state,
            "lasts": judged.lasts,
        },
        onset=judged.onset,
        direction="victim",
        metric=series.metric,
    )


def _with_unit(value: float, unit: str) -> str:
    return f"{format_number(value)} {unit}".strip()


def kind_of_measure(series: MetricSeries) -> str:
    """The kind of fault that a measure is about by its name; `other` where the name says nothing known."""
    role = find_metric_role(series.metric, series.unit, series.values)
    if role is not None:
        return _KIND_OF_ROLE.get(role.name, role.name if role.name in _OWN_KIND else "other")
    name = to_snake_case(series.metric)
    return next((kind for kind, words in _KIND_OF_WORDS if re.search(words, name)), "other")


_OWN_KIND = frozenset({"cpu", "memory", "locks", "connections", "replication_lag"})

"""How a metric stands at the end of the window: still away from its usual level, or back since when."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from opsleuth.state.base import to_json
from opsleuth.state.investigation import Investigation

_ENOUGH = 3
"""Points on each side: fewer do not show a level."""
_ROOM = 0.5
"""Of the usual range: so far beyond it a point still counts as usual."""
_LEAST_ROOM = 0.1
"""Of the usual level, where the usual range is narrow."""


class MetricEnd(NamedTuple):
    """Whether the metric is away from its usual level at the end (None where that is not clear), and the sentence that says it."""

    failing: bool | None
    text: str


class _SeriesPoint(NamedTuple):
    time: str
    value: float


def describe_metric_end(record: Mapping[str, Any], state: Investigation) -> MetricEnd | None:
    """The end of the metric's course; None where its record holds no course, or nothing tells what is usual."""
    points = [
        _SeriesPoint(str(row["time"]), float(row["value"]))
        for row in record.get("points", ())
        if isinstance(row, Mapping) and row.get("value") is not None
    ]
    onset = _find_onset(record, state)
    before = [p for p in points if onset is not None and parse_time(p.time) < parse_time(onset)]
    since = points[len(before) :]
    usual = [p.value for p in before] if len(before) >= _ENOUGH else _read_baseline_levels(record)
    if len(since) < _ENOUGH or not usual:
        return None
    low, high = _widen_range(usual)
    outside = [not low <= p.value <= high for p in since]
    name = f"{record.get('metric')} of {record.get('service')}"
    unit = f" {record['unit']}" if record.get("unit") else ""
    last = since[-1]
    was = f"before it was between {min(usual):g} and {max(usual):g}{unit}"
    if not any(outside):
        return MetricEnd(
            None, f"{name} did not leave its usual range: {last.value:g}{unit} at {last.time}, {was}."
        )
    if all(outside[-_ENOUGH:]):
        return MetricEnd(True, f"{name} is {last.value:g}{unit} at {last.time}, {was}.")
    back = len(outside) - 1 - max(i for i, is_outside in enumerate(outside) if is_outside)
    if back < _ENOUGH:
        return MetricEnd(None, f"{name} goes up and down: {last.value:g}{unit} at {last.time}, {was}.")
    return MetricEnd(
        False, f"{name} is normal since {since[-back].time}: {last.value:g}{unit} at {last.time}, {was}."
    )


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _find_onset(record: Mapping[str, Any], state: Investigation) -> str | None:
    """When the trouble began: as the alert claims it, failing that where this metric turned."""
    alert = to_json(state.alert) if state.alert else {}
    return str(alert.get("onset") or record.get("change_point") or alert.get("fired_at") or "") or None


def _read_baseline_levels(record: Mapping[str, Any]) -> list[float]:
    """The usual range, as the time before the window or the baseline has it."""
    for key in ("before_window", "baseline"):
        level = record.get(key)
        if isinstance(level, Mapping) and int(level.get("samples") or 0) >= _ENOUGH:
            return [float(level["min"]), float(level["max"])]
    return []


def _widen_range(usual: Sequence[float]) -> tuple[float, float]:
    low, high = min(usual), max(usual)
    room = max(_ROOM * (high - low), _LEAST_ROOM * max(abs(low), abs(high)))
    return low - room, high + room

"""Counters that were recorded as they stand: what only grows, but for restarts, as a rate per second.

Prometheus, statsd exporters and databases count since their start. Such a number says nothing by its level, and where
its program restarts it falls without anything having gone wrong.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from opsleuth.analysis.metric_units import infer_unit, seconds_of_rate
from opsleuth.analysis.records import MetricSeries

_COUNTER_NAME = re.compile(r"_(total|count|sum)$")
_ENOUGH_STEPS = 8
# The busiest series of a metric grows at nearly every step; errors may do so seldom.
_BUSY_SHARE = 0.5
_STEPS_PER_RESTART = 8
_TIMES = {"s": "s", "seconds": "s", "bytes": "bytes"}


def rates_of_counters(series: Iterable[MetricSeries]) -> list[MetricSeries]:
    """All series, those of counters as rates; a metric counts as one only where none of its series contradicts."""
    groups: dict[tuple[str, str], list[MetricSeries]] = defaultdict(list)
    held = list(series)
    for one in held:
        groups[one.service, _base_name(one)].append(one)
    counters = {key for key, members in groups.items() if _are_counters(key[1], members)}
    return [_rate_of(one) if (one.service, _base_name(one)) in counters else one for one in held]


def _base_name(one: MetricSeries) -> str:
    return one.metric.partition("{")[0]


def _are_counters(name: str, members: Sequence[MetricSeries]) -> bool:
    if not _COUNTER_NAME.search(name) or any(seconds_of_rate(infer_unit("", one.unit)) for one in members):
        return False
    return all(map(_never_shrinks, members)) and any(map(_grows_steadily, members))


def _never_shrinks(one: MetricSeries) -> bool:
    """Whether it falls only as a restart makes it fall: seldom, and to less than half."""
    falls = [(before, after) for before, after in pairwise(one.values) if after < before]
    rises = sum(after > before for before, after in pairwise(one.values))
    restarts = all(after < 0.5 * before for before, after in falls)
    return (
        restarts
        and (not falls or rises >= _STEPS_PER_RESTART * len(falls))
        and min(one.values, default=0.0) >= 0
    )


def _grows_steadily(one: MetricSeries) -> bool:
    steps = len(one.values) - 1
    rises = sum(after > before for before, after in pairwise(one.values))
    return (
        steps >= _ENOUGH_STEPS and rises >= _BUSY_SHARE * steps and not one.values[0] == one.values[-1] == 0
    )


def _rate_of(one: MetricSeries) -> MetricSeries:
    """Per second; after a restart what was counted since, which is the least that can have happened."""
    rates, times = list[float](), list[float]()
    for (begin, before), (end, after) in pairwise(zip(one.times, one.values, strict=True)):
        if end > begin:
            rates.append((after - before if after >= before else after) / (end - begin))
            times.append(end)
    unit = infer_unit(_base_name(one), one.unit)
    name = _COUNTER_NAME.sub("", _base_name(one))
    unit = _TIMES.get(infer_unit(name, ""), "count" if unit in ("", "count") else unit)
    return replace(one, unit=f"{unit}/s", times=tuple(times), values=tuple(rates))

"""Replicas of one service where one now gets most of the requests that all shared evenly before."""

import re
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from opsleuth.analysis.fault_phrases import ACTS
from opsleuth.analysis.harm_attribution import find_slower_services
from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.number_format import to_percent
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, MetricSeries, Recording

# Twice an even share, and half as much more than before: no balancer strays that far by itself.
TIMES_EVEN = 1.7
ENOUGH_SAMPLES = 4
_NUMBERED = re.compile(r"[_.-]?(?<!\d)\d+$")


def find_imbalance(recording: Recording) -> list[Finding]:
    """A finding for each slower service one of whose replicas took over the requests of the others."""
    slower = find_slower_services(recording)
    groups: dict[tuple[str, str], list[MetricSeries]] = defaultdict(list)
    for series in recording.metrics or ():
        role = find_metric_role(series.metric, series.unit)
        if (
            role is not None
            and role.name == "requests"
            and (series.instance or _NUMBERED.search(series.metric))
        ):
            groups[series.service, _NUMBERED.sub("", series.metric)].append(series)
    found = [
        _find_skew(group, recording) for (service, _), group in sorted(groups.items()) if service in slower
    ]
    return [finding for finding in found if finding is not None]


def _find_skew(group: Sequence[MetricSeries], recording: Recording) -> Finding | None:
    if len(group) < 2:
        return None
    onset = assumed_onset_of(recording)
    before, after = [], []
    for series in group:
        early = [v for t, v in zip(series.times, series.values, strict=True) if t < onset]
        late = [v for t, v in zip(series.times, series.values, strict=True) if t >= onset]
        if len(early) < ENOUGH_SAMPLES or len(late) < ENOUGH_SAMPLES:
            return None
        before.append(median(early))
        after.append(median(late))
    if sum(before) <= 0 or sum(after) <= 0:
        return None
    usual, now = max(before) / sum(before), max(after) / sum(after)
    even = 1.0 / len(group)
    if now < min(TIMES_EVEN * even, 0.9) or now < 1.5 * usual:
        return None
    return Finding(
        detector="imbalance",
        signal="metrics",
        service=group[0].service,
        kind="traffic",
        size=2.0 * ACTS,
        text=(
            f"one of {len(group)} replicas of {group[0].service} takes {to_percent(now):.0f} % of its requests, "
            f"usually {to_percent(usual):.0f} %"
        ),
        figures={
            "replicas": len(group),
            "share_percent": to_percent(now),
            "usual_percent": to_percent(usual),
        },
        onset=onset,
        metric=group[after.index(max(after))].metric,
    )

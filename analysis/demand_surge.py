"""Increased demand at the entry: more requests than the callers of a service account for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.harm_attribution import find_slower_services
from opsleuth.analysis.level_shifts import LevelShift, ShiftRule, find_level_shift
from opsleuth.analysis.number_format import format_number
from opsleuth.analysis.records import Finding, MetricSeries, Recording
from opsleuth.analysis.request_metrics import ServiceTraffic, traffic_by_service
from opsleuth.analysis.topology import find_unrelated_services

# Five requests more or less in a period are nothing, nor is a twentieth; a quarter more in minutes is news.
SURGE_RULE = ShiftRule("traffic", +1, 5.0, 0.05, ratio=1.25)
# From twice as many on nobody asks whether it matters.
DOUBLE = 2.0
# Where fewer came it is a hint, less than what is just noticeable, and only where they are served slower.
HINT = 2.0


@dataclass(frozen=True, slots=True)
class _RequestCounts:
    """Requests per period of one service by time, in the window and in the fault-free recording."""

    traffic: ServiceTraffic
    now: Mapping[float, float]
    rest: Mapping[float, float]


def find_demand_surges(recording: Recording) -> list[Finding]:
    """Services whose requests rose by a quarter at least, and by more than those of their callers.

    More calls inside the application are somebody's work, not demand. Without a topology only the alerting
    service is known to be an entry.
    """
    reference = traffic_by_service(recording.metrics_baseline)
    counts = {
        service: _RequestCounts(
            traffic,
            {sample.time: sample.requests for sample in traffic.samples},
            {sample.time: sample.requests for sample in reference[service].samples}
            if service in reference
            else {},
        )
        for service, traffic in traffic_by_service(recording.metrics).items()
        if traffic.counted
    }
    surges = {
        service: _detect_request_surge(recording, one.traffic.service, one.now, list(one.rest.values()))
        for service, one in counts.items()
    }
    slower = find_slower_services(recording)
    elsewhere = find_unrelated_services(recording.topology, recording.alert.service)
    findings = [
        _build_surge_finding(service, counts[service].traffic, surge)
        for service, surge in surges.items()
        if surge is not None
        and service not in elsewhere
        and (_growth_factor(surge) >= DOUBLE or service in slower)
        and _rises_beyond_callers(recording, service, counts, surge)
    ]
    return sorted(findings, key=lambda finding: (-finding.size, finding.service))


def _growth_factor(surge: LevelShift) -> float:
    return surge.incident / surge.usual if surge.usual > 0 else math.inf


def _rises_beyond_callers(
    recording: Recording, service: str, counts: Mapping[str, _RequestCounts], surge: LevelShift
) -> bool:
    """Whether no caller accounts for the rise: each of them is counted, and asks for no more than usual.

    Who is called for the first time has a caller that began to.
    """
    if not recording.topology:
        return service == recording.alert.service
    callers = {edge.caller for edge in recording.topology if edge.callee == service} - {service}
    if callers and surge.usual <= 0:
        return False
    own = counts[service].now
    for caller in callers:
        if caller not in counts:
            return False
        asked = counts[caller].now
        shares = {time: own[time] / asked[time] for time in sorted(own) if asked.get(time)}
        calm, asked_at_rest = counts[service].rest, counts[caller].rest
        # Periods are paired by their time: either series may have gaps, or begin later.
        rest = [calm[time] / asked_at_rest[time] for time in sorted(calm) if asked_at_rest.get(time)]
        if _detect_request_surge(recording, service, shares, rest, floor=0.0) is None:
            return False
    return True


def _detect_request_surge(
    recording: Recording,
    service: str,
    values: Mapping[float, float],
    rest: Sequence[float],
    floor: float = SURGE_RULE.floor,
) -> LevelShift | None:
    series = MetricSeries(service, "requests", "count", list(values), list(values.values()))
    rule = ShiftRule(
        SURGE_RULE.kind, SURGE_RULE.side, floor or 1e-9, SURGE_RULE.relative, ratio=SURGE_RULE.ratio
    )
    return find_level_shift(series, 1.0, rule, recording.alert.onset, rest)


def _build_surge_finding(service: str, traffic: ServiceTraffic, move: LevelShift) -> Finding:
    times = move.incident / move.usual if move.usual > 0 else None
    grew = f"{times:.1f} times as many" if times else "where there were none"
    return Finding(
        detector="demand",
        signal="metrics",
        service=service,
        kind=SURGE_RULE.kind,
        size=move.size if _growth_factor(move) >= DOUBLE else HINT,
        text=f"{service} took {format_number(move.incident)} requests a period, usually {format_number(move.usual)}, {grew}.",
        figures={"usual": move.usual, "incident": move.incident, "times": times, "score": move.score},
        onset=move.onset,
        metric=traffic.requests_metric,
    )

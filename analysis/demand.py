"""Demand that rose where it comes in: more requests than those who call a service account for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.harm import slower_services
from opsleuth.analysis.moves import Move, Rule, moved
from opsleuth.analysis.plain import number
from opsleuth.analysis.records import Finding, Recording, Series
from opsleuth.analysis.topology import strangers
from opsleuth.analysis.traffic import Traffic, traffic_of

# Five requests more or less in a period are nothing, nor is a twentieth; a quarter more in minutes is news.
RULE = Rule("traffic", +1, 5.0, 0.05, ratio=1.25)
# From twice as many on nobody asks whether it matters.
DOUBLE = 2.0
# Where fewer came it is a hint, less than what is just noticeable, and only where they are served slower.
HINT = 2.0


@dataclass(frozen=True, slots=True)
class _Counts:
    """Requests per period of one service by time, in the window and in the fault-free recording."""

    traffic: Traffic
    now: Mapping[float, float]
    rest: Sequence[float]


def find(recording: Recording) -> list[Finding]:
    """Services whose requests rose by a quarter at least, and by more than those of whoever calls them.

    More calls inside the application are somebody's work, not demand. Without a topology only the alerting
    service is known to be an entry.
    """
    reference = traffic_of(recording.metrics_baseline)
    counts = {
        service: _Counts(
            traffic,
            {sample.time: sample.requests for sample in traffic.samples},
            [sample.requests for sample in reference[service].samples] if service in reference else (),
        )
        for service, traffic in traffic_of(recording.metrics).items()
        if traffic.counted
    }
    surges = {
        service: _surge(recording, one.traffic.service, one.now, one.rest) for service, one in counts.items()
    }
    slower = slower_services(recording)
    elsewhere = strangers(recording.topology, recording.alert.service)
    findings = [
        _finding(service, counts[service].traffic, surge)
        for service, surge in surges.items()
        if surge is not None
        and service not in elsewhere
        and (_factor(surge) >= DOUBLE or service in slower)
        and _of_its_own(recording, service, counts, surge)
    ]
    return sorted(findings, key=lambda finding: (-finding.size, finding.service))


def _factor(surge: Move) -> float:
    return surge.incident / surge.usual if surge.usual > 0 else math.inf


def _of_its_own(recording: Recording, service: str, counts: Mapping[str, _Counts], surge: Move) -> bool:
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
        rest = zip(counts[service].rest, counts[caller].rest, strict=False)
        if _surge(recording, service, shares, [mine / its for mine, its in rest if its], floor=0.0) is None:
            return False
    return True


def _surge(
    recording: Recording,
    service: str,
    values: Mapping[float, float],
    rest: Sequence[float],
    floor: float = RULE.floor,
) -> Move | None:
    series = Series(service, "requests", "count", list(values), list(values.values()))
    rule = Rule(RULE.kind, RULE.side, floor or 1e-9, RULE.relative, ratio=RULE.ratio)
    return moved(series, 1.0, rule, recording.alert.onset, rest)


def _finding(service: str, traffic: Traffic, move: Move) -> Finding:
    times = move.incident / move.usual if move.usual > 0 else None
    grew = f"{times:.1f} times as many" if times else "where there were none"
    return Finding(
        detector="demand",
        signal="metrics",
        service=service,
        kind=RULE.kind,
        size=move.size if _factor(move) >= DOUBLE else HINT,
        text=f"{service} took {number(move.incident)} requests a period, usually {number(move.usual)}, {grew}.",
        figures={"usual": move.usual, "incident": move.incident, "times": times, "score": move.score},
        onset=move.onset,
        metric=traffic.requests_metric,
    )

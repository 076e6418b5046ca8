"""Demand that rose where it comes in: more requests at a service that nobody of the application calls."""

from opsleuth.analysis.moves import Move, Rule, moved
from opsleuth.analysis.records import Finding, Recording, Series
from opsleuth.analysis.topology import strangers
from opsleuth.analysis.traffic import Traffic, traffic_of

# Five requests more or less in a period are nothing, nor is a fifth; twice as many are news.
RULE = Rule("traffic", +1, 5.0, 0.2, ratio=2.0)


def find(recording: Recording) -> list[Finding]:
    """Entries whose requests at least doubled: inside the application more calls are somebody's work, not demand.

    Without a topology only the alerting service is known to be one.
    """
    reference = traffic_of(recording.metrics_baseline)
    inner = {edge.callee for edge in recording.topology or ()} | strangers(
        recording.topology, recording.alert.service
    )
    findings = []
    for service, traffic in traffic_of(recording.metrics).items():
        if (
            traffic.counted
            and service not in inner
            and (recording.topology or service == recording.alert.service)
        ):
            move = _surge(traffic, reference.get(service), recording.alert.onset)
            findings += [_finding(service, traffic, move)] if move else []
    return sorted(findings, key=lambda finding: (-finding.size, finding.service))


def _surge(traffic: Traffic, at_rest: Traffic | None, onset: float | None) -> Move | None:
    samples = traffic.samples
    counts = Series(
        traffic.service, "requests", "count", [s.time for s in samples], [s.requests for s in samples]
    )
    return moved(counts, 1.0, RULE, onset, [s.requests for s in at_rest.samples] if at_rest else ())


def _finding(service: str, traffic: Traffic, move: Move) -> Finding:
    times = move.incident / move.usual if move.usual > 0 else None
    grew = f"{times:.1f} times as many" if times else "where there were none"
    return Finding(
        detector="demand",
        signal="metrics",
        service=service,
        kind=RULE.kind,
        size=move.size,
        text=f"{service} took {move.incident:.4g} requests a period against {move.usual:.4g} usual, {grew}.",
        figures={"usual": move.usual, "incident": move.incident, "times": times, "score": move.score},
        onset=move.onset,
        metric=traffic.requests_metric,
    )

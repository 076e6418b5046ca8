"""Resources that leave their usual level: CPU, memory, disk, storage, connections, locks, restarts, replication.

Each rule says in the resource's own unit how much movement is nothing, which side is bad, from where on it hurts,
and what kind of fault it speaks for.
"""

from dataclasses import dataclass
from statistics import median

from opsleuth.analysis.harm_attribution import find_slower_services
from opsleuth.analysis.harm_measures import collect_traffic_comparisons, load_growth
from opsleuth.analysis.level_shifts import ENOUGH, NOTICEABLE, LevelShift, ShiftRule, find_level_shift
from opsleuth.analysis.metric_roles import MetricRole, find_metric_role
from opsleuth.analysis.number_format import format_number, scale_to_readable_unit
from opsleuth.analysis.records import Finding, MetricSeries, Recording

# Queueing doubles the time a request takes at half of the capacity (M/M/1); memory hurts nobody until it runs out.
BUSY = 0.5
FULL = 0.9
# A store that has lost half of what was free will be empty after as long again.
LOST_SHARE = 0.5
# What counts as begun to shrink.
BEGUN_SHARE = 0.1

# What is nothing, in the role's own unit. Shares of a capacity stray by a point, and move from five on. Device
# latencies: a fifth of a millisecond, as solid-state devices have it. Locks, restarts: under one there is none;
# queues are means, and stray by a fifth. Cores: a fiftieth of one. Bytes: 16 MB of memory. Of levels that have no
# capacity a tenth is nothing.
SHARE = 0.01
LEAST_SHARE = 0.05
# Allocators and collectors take memory and give it back in blocks.
BLOCKS = 0.03
RULES: dict[str, ShiftRule] = {
    "cpu": ShiftRule("cpu", +1, 0.02, 0.02, ratio=1.2, sure=2.0),
    "memory": ShiftRule("memory", +1, 16e6, 0.02, ratio=1.1, sure=1.5, grows=True),
    "replication_lag": ShiftRule("replication_lag", +1, 10.0, 0.1, ratio=2.0),
    "disk_queue": ShiftRule("disk", +1, 0.2, 0.1, ratio=1.5, least=0.5),
    "write_latency": ShiftRule("disk", +1, 2e-4, 0.1, ratio=1.5, symptom=True),
    "read_latency": ShiftRule("disk", +1, 2e-4, 0.1, ratio=1.5, symptom=True),
    # What waits is the work of who sends it, or of who is slow to take it.
    "queue": ShiftRule("traffic", +1, 2.0, 0.1, ratio=2.0, least=5.0, symptom=True),
    "connections": ShiftRule("connections", +1, 5.0, 0.1, ratio=1.5, symptom=True),
    "locks": ShiftRule("locks", +1, 1.0, 0.1, ratio=2.0),
    "restarts": ShiftRule("crash", +1, 0.3, 0.0),
}
# The same as shares of their capacity.
SHARE_RULES: dict[str, ShiftRule] = {
    "cpu": ShiftRule("cpu", +1, SHARE, 0.0, harmful=BUSY, least=LEAST_SHARE, sure=1.25),
    "memory": ShiftRule("memory", +1, BLOCKS, 0.0, harmful=FULL, least=LEAST_SHARE, grows=True),
    "connections": ShiftRule("connections", +1, SHARE, 0.0, harmful=FULL, least=LEAST_SHARE),
    "storage_used": ShiftRule("storage_full", +1, SHARE, 0.0, harmful=FULL, least=LEAST_SHARE),
}
# A move that hurts nobody by itself is a hint: less than what is just noticeable, however steady it was before.
HINT = 2.0
# Kinds of resources that requests use in proportion.
WORK = frozenset({"cpu", "disk", "connections"})
EXHAUSTIBLE = {"storage_free": "storage_full", "memory_free": "memory"}


@dataclass(frozen=True, slots=True)
class ServiceLoad:
    """What else is known of a service: whether it answers slower than usual, and how its load grew (1: as usual)."""

    slower: bool = False
    load: float = 1.0


def find_resource_shifts(recording: Recording) -> list[Finding]:
    """One finding per series that left its usual level on its bad side, strongest first."""
    reference = {(s.service, s.metric, s.instance): s for s in recording.metrics_baseline or ()}
    known = _measure_service_loads(recording)
    findings = []
    for series in recording.metrics or ():
        role = find_metric_role(series.metric, series.unit, series.values)
        if role is not None:
            at_rest = reference.get((series.service, series.metric, series.instance))
            around = known.get(series.service, ServiceLoad())
            findings.append(_judge_series(recording, series, role, at_rest, around))
    found = [finding for finding in findings if finding is not None]
    return sorted(found, key=lambda f: (-f.size, f.service, f.metric or ""))


def _measure_service_loads(recording: Recording) -> dict[str, ServiceLoad]:
    slower = find_slower_services(recording)
    return {
        name: ServiceLoad(name in slower, load_growth(part))
        for name, part in collect_traffic_comparisons(recording).items()
    }


def _judge_series(
    recording: Recording,
    series: MetricSeries,
    role: MetricRole,
    at_rest: MetricSeries | None,
    around: ServiceLoad,
) -> Finding | None:
    if role.name in EXHAUSTIBLE:
        return _find_exhaustion(series, EXHAUSTIBLE[role.name])
    rule = (SHARE_RULES if role.share else RULES).get(role.name)
    if rule is None:
        return None
    move = find_level_shift(
        series, role.scale, rule, recording.alert.onset, at_rest.values if at_rest else ()
    )
    return _build_shift_finding(series, role, rule, move, around) if move else None


def _weigh_shift(rule: ShiftRule, move: LevelShift, around: ServiceLoad) -> tuple[str, float]:
    """Direction and size: a cause if it hurts by itself, a hint of one if whoever moved answers slower since.

    Work that grew no more than the requests did is not the fault of the service that does it.
    """
    if rule.symptom or (rule.kind in WORK and move.incident <= around.load * move.usual):
        return "victim", move.size
    if move.incident >= max(rule.harmful, rule.sure * move.usual):
        return "cause", move.size
    return ("cause", HINT) if around.slower else ("victim", move.size)


def _format_series_owner(series: MetricSeries) -> str:
    return f"{series.service} (instance {series.instance})" if series.instance else series.service


def _find_exhaustion(series: MetricSeries, kind: str) -> Finding | None:
    """A free amount that shrank to less than half within the window and did not come back."""
    if len(series.values) < ENOUGH or series.values[0] <= 0:
        return None
    start, end = series.values[0], median(series.values[-3:])
    lost = (start - end) / start
    if lost < LOST_SHARE:
        return None
    begun = (1.0 - BEGUN_SHARE) * start
    (usual, incident), unit = scale_to_readable_unit((start, end), series.unit)
    return Finding(
        detector=f"resources.{kind}",
        signal="metrics",
        service=series.service,
        kind=kind,
        size=NOTICEABLE * lost / LOST_SHARE,
        text=(
            f"{series.metric} of {_format_series_owner(series)} fell from {format_number(usual)} to {format_number(incident)} {unit}, "
            f"{100 * lost:.0f} % of what was free."
        ),
        figures={
            "usual": usual,
            "incident": incident,
            "lost": lost,
            "lost_percent": 100 * lost,
            "unit": unit,
        },
        onset=next(time for time, value in zip(series.times, series.values, strict=True) if value < begun),
        metric=series.metric,
    )


def _build_shift_finding(
    series: MetricSeries, role: MetricRole, rule: ShiftRule, move: LevelShift, around: ServiceLoad
) -> Finding:
    direction, size = _weigh_shift(rule, move, around)
    levels = (move.usual / role.scale, move.incident / role.scale)
    (usual, incident), unit = scale_to_readable_unit(levels, series.unit)
    return Finding(
        detector=f"resources.{rule.kind}",
        signal="metrics",
        service=series.service,
        kind=rule.kind,
        size=size,
        text=(
            f"{series.metric} of {_format_series_owner(series)} went from {format_number(usual)} to {format_number(incident)} {unit}, "
            f"{format_number(round(move.score, 1))} times its usual spread."
        ),
        figures={"usual": usual, "incident": incident, "score": move.score, "unit": unit},
        onset=move.onset,
        direction=direction,
        metric=series.metric,
    )

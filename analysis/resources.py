"""Resources that leave their usual level: CPU, memory, disk, storage, connections, locks, restarts, replication.

Each rule says in the resource's own unit how much movement is nothing, which side is bad, from where on it hurts,
and what kind of fault it speaks for.
"""

from dataclasses import dataclass
from statistics import median

from opsleuth.analysis.costs import load_growth, stretches
from opsleuth.analysis.harm import slower_services
from opsleuth.analysis.moves import ENOUGH, NOTICEABLE, Move, Rule, moved
from opsleuth.analysis.plain import number, readable
from opsleuth.analysis.records import Finding, Recording, Series
from opsleuth.analysis.roles import Role, role_of

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
RULES: dict[str, Rule] = {
    "cpu": Rule("cpu", +1, 0.02, 0.02, ratio=1.2, sure=2.0),
    "memory": Rule("memory", +1, 16e6, 0.02, ratio=1.1, sure=1.5, grows=True),
    "replication_lag": Rule("replication_lag", +1, 10.0, 0.1, ratio=2.0),
    "disk_queue": Rule("disk", +1, 0.2, 0.1, ratio=1.5, least=0.5),
    "write_latency": Rule("disk", +1, 2e-4, 0.1, ratio=1.5, symptom=True),
    "read_latency": Rule("disk", +1, 2e-4, 0.1, ratio=1.5, symptom=True),
    "connections": Rule("connections", +1, 5.0, 0.1, ratio=1.5, symptom=True),
    "locks": Rule("locks", +1, 1.0, 0.1, ratio=2.0),
    "restarts": Rule("crash", +1, 0.3, 0.0),
}
# The same as shares of their capacity.
SHARE_RULES: dict[str, Rule] = {
    "cpu": Rule("cpu", +1, SHARE, 0.0, harmful=BUSY, least=LEAST_SHARE, sure=1.25),
    "memory": Rule("memory", +1, BLOCKS, 0.0, harmful=FULL, least=LEAST_SHARE, grows=True),
    "connections": Rule("connections", +1, SHARE, 0.0, harmful=FULL, least=LEAST_SHARE),
    "storage_used": Rule("storage_full", +1, SHARE, 0.0, harmful=FULL, least=LEAST_SHARE),
}
# A move that hurts nobody by itself is a hint: less than what is just noticeable, however steady it was before.
HINT = 2.0
# Kinds of resources that requests use in proportion.
WORK = frozenset({"cpu", "disk", "connections"})
EXHAUSTIBLE = {"storage_free": "storage_full", "memory_free": "memory"}


@dataclass(frozen=True, slots=True)
class Service:
    """What else is known of a service: whether it answers slower than usual, and how its load grew (1: as usual)."""

    slower: bool = False
    load: float = 1.0


def find(recording: Recording) -> list[Finding]:
    """One finding per series that left its usual level on its bad side, strongest first."""
    reference = {(s.service, s.metric, s.instance): s for s in recording.metrics_baseline or ()}
    known = _services(recording)
    findings = []
    for series in recording.metrics or ():
        role = role_of(series.metric, series.unit)
        if role is not None:
            at_rest = reference.get((series.service, series.metric, series.instance))
            around = known.get(series.service, Service())
            findings.append(_judge(recording, series, role, at_rest, around))
    found = [finding for finding in findings if finding is not None]
    return sorted(found, key=lambda f: (-f.size, f.service, f.metric or ""))


def _services(recording: Recording) -> dict[str, Service]:
    slower = slower_services(recording)
    return {name: Service(name in slower, load_growth(part)) for name, part in stretches(recording).items()}


def _judge(
    recording: Recording, series: Series, role: Role, at_rest: Series | None, around: Service
) -> Finding | None:
    if role.name in EXHAUSTIBLE:
        return _exhaustion(series, EXHAUSTIBLE[role.name])
    rule = (SHARE_RULES if role.share else RULES).get(role.name)
    if rule is None:
        return None
    move = moved(series, role.scale, rule, recording.alert.onset, at_rest.values if at_rest else ())
    return _moved_finding(series, role, rule, move, around) if move else None


def _weighed(rule: Rule, move: Move, around: Service) -> tuple[str, float]:
    """Direction and size: a cause if it hurts by itself, a hint of one if whoever moved answers slower since.

    Work that grew no more than the requests did is no fault of the one who does it.
    """
    if rule.symptom or (rule.kind in WORK and move.incident <= around.load * move.usual):
        return "victim", move.size
    if move.incident >= max(rule.harmful, rule.sure * move.usual):
        return "cause", move.size
    return ("cause", HINT) if around.slower else ("victim", move.size)


def _where(series: Series) -> str:
    return f"{series.service} (instance {series.instance})" if series.instance else series.service


def _exhaustion(series: Series, kind: str) -> Finding | None:
    """A free amount that shrank to less than half within the window and did not come back."""
    if len(series.values) < ENOUGH or series.values[0] <= 0:
        return None
    start, end = series.values[0], median(series.values[-3:])
    lost = (start - end) / start
    if lost < LOST_SHARE:
        return None
    begun = (1.0 - BEGUN_SHARE) * start
    (usual, incident), unit = readable((start, end), series.unit)
    return Finding(
        detector=f"resources.{kind}",
        signal="metrics",
        service=series.service,
        kind=kind,
        size=NOTICEABLE * lost / LOST_SHARE,
        text=(
            f"{series.metric} of {_where(series)} fell from {number(usual)} to {number(incident)} {unit}, "
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


def _moved_finding(series: Series, role: Role, rule: Rule, move: Move, around: Service) -> Finding:
    direction, size = _weighed(rule, move, around)
    levels = (move.usual / role.scale, move.incident / role.scale)
    (usual, incident), unit = readable(levels, series.unit)
    return Finding(
        detector=f"resources.{rule.kind}",
        signal="metrics",
        service=series.service,
        kind=rule.kind,
        size=size,
        text=(
            f"{series.metric} of {_where(series)} went from {number(usual)} to {number(incident)} {unit}, "
            f"{number(round(move.score, 1))} times its usual spread."
        ),
        figures={"usual": usual, "incident": incident, "score": move.score, "unit": unit},
        onset=move.onset,
        direction=direction,
        metric=series.metric,
    )

"""What users see: the share of requests that succeed, where it is measured in front of all services."""

from collections.abc import Sequence
from statistics import median

from opsleuth.analysis.records import Finding, Recording, Series
from opsleuth.analysis.robust import quantile, spread, typical_step
from opsleuth.analysis.roles import role_of
from opsleuth.analysis.topology import callees_of

# Share of requests that fails by chance at rest: one in two hundred, so that a single failure is no incident.
FLOOR = 0.005
# Spreads from which users suffer: the usual bound for an outlier.
SUFFER = 3.0
# What is exceeded during a quarter of the incident: a fault need not last until the recording ends.
LASTING = 0.75


def entries(recording: Recording) -> list[str]:
    """Where requests come in: the alerting service if it is one that others are called from, else all that nobody calls."""
    callees = callees_of(recording.topology)
    if recording.alert.service in callees:
        return [recording.alert.service]
    called = set().union(*callees.values()) if callees else set()
    return sorted(set(callees) - called)


def find(recording: Recording) -> list[Finding]:
    """The entry as the place where requests begin to fail: it stands as long as nobody behind it explains them."""
    doors = entries(recording)
    if len(doors) != 1:
        return []
    measured = [s for s in recording.metrics or () if not _is_service(s.service, recording)]
    found = [_finding(doors[0], series, recording.alert.onset) for series in measured]
    return [finding for finding in found if finding is not None]


def _is_service(name: str, recording: Recording) -> bool:
    return any(name in (edge.caller, edge.callee) for edge in recording.topology or ())


def _finding(entry: str, series: Series, onset: float | None) -> Finding | None:
    role = role_of(series.metric, series.unit)
    if role is None or role.name != "success" or onset is None:
        return None
    start = onset - typical_step(series.times)
    before = _failing(series, role.scale, [t < start for t in series.times])
    during = _failing(series, role.scale, [t >= start for t in series.times])
    if not before or not during:
        return None
    usual, now = median(before), quantile(during, LASTING)
    size = (now - usual) / spread(before, FLOOR)
    if size < SUFFER:
        return None
    return Finding(
        detector="entry",
        signal="metrics",
        service=entry,
        kind="errors",
        size=size,
        text=(
            f"{100 * now:.2f} % of the users' requests fail ({series.metric}), usually {100 * usual:.2f} %; "
            f"they come in at {entry}"
        ),
        figures={"baseline": 100 * usual, "incident": 100 * now, "unit": "%"},
        onset=next(
            (
                t
                for t, v in zip(series.times, series.values, strict=True)
                if t >= start and 1 - role.scale * v > usual + FLOOR
            ),
            None,
        ),
        metric=series.metric,
    )


def _failing(series: Series, scale: float, chosen: Sequence[bool]) -> list[float]:
    return [1 - scale * value for value, take in zip(series.values, chosen, strict=True) if take]

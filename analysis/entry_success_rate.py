"""What users see: the share of requests that succeed, where it is measured in front of all services."""

from collections.abc import Sequence
from statistics import median

from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.records import Finding, MetricSeries, Recording
from opsleuth.analysis.robust_statistics import quantile, robust_spread, typical_step
from opsleuth.analysis.topology import callees_by_caller

# Share of requests that fails by chance at rest: one in two hundred, so that a single failure is not an incident.
FLOOR = 0.005
# Spreads from which users suffer: the usual bound for an outlier.
SUFFER = 3.0
# What is exceeded during a quarter of the incident: a fault need not last until the recording ends.
LASTING = 0.75


def find_entry_services(recording: Recording) -> list[str]:
    """Where requests come in: the alerting service if it calls others, else all services without callers."""
    callees = callees_by_caller(recording.topology)
    if recording.alert.service in callees:
        return [recording.alert.service]
    called = set().union(*callees.values()) if callees else set()
    return sorted(set(callees) - called)


def find_entry_failures(recording: Recording) -> list[Finding]:
    """The entry as the place where requests begin to fail: it is reported unless a service behind it explains them."""
    doors = find_entry_services(recording)
    if len(doors) != 1:
        return []
    measured = [s for s in recording.metrics or () if not _is_in_topology(s.service, recording)]
    found = [_build_entry_finding(doors[0], series, recording.alert.onset) for series in measured]
    return [finding for finding in found if finding is not None]


def _is_in_topology(name: str, recording: Recording) -> bool:
    return any(name in (edge.caller, edge.callee) for edge in recording.topology or ())


def _build_entry_finding(entry: str, series: MetricSeries, onset: float | None) -> Finding | None:
    role = find_metric_role(series.metric, series.unit, series.values)
    if role is None or role.name != "success" or onset is None:
        return None
    start = onset - typical_step(series.times)
    before = _select_failed_shares(series, role.scale, [t < start for t in series.times])
    during = _select_failed_shares(series, role.scale, [t >= start for t in series.times])
    if not before or not during:
        return None
    usual, now = median(before), quantile(during, LASTING)
    size = (now - usual) / robust_spread(before, FLOOR)
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


def _select_failed_shares(series: MetricSeries, scale: float, chosen: Sequence[bool]) -> list[float]:
    return [1 - scale * value for value, take in zip(series.values, chosen, strict=True) if take]

"""Requests, their latency and their failures per service, brought together from loose metric series."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from opsleuth.analysis.records import Recording, Series
from opsleuth.analysis.robust import typical_step
from opsleuth.analysis.roles import Role, role_of, statistic_rank

# A success rate above this is in percent, whatever its unit says.
PER_CENT_FROM = 1.5
_WANTED = {"requests", "latency", "success", "failures"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One period of one service.

    `requests` in it (1 where nobody counted), `latency` in seconds, `failed` as a share of the requests. None: not
    recorded in this period.
    """

    time: float
    requests: float
    latency: float | None
    failed: float | None


@dataclass(frozen=True, slots=True)
class Traffic:
    """All periods of one service in time order, and the metrics that they were read from.

    `counted`: somebody counts its requests. `shares`: `failed` is a share of them, not a number a period.
    """

    service: str
    samples: Sequence[Sample]
    requests_metric: str | None = None
    latency_metric: str | None = None
    failed_metric: str | None = None
    counted: bool = False
    shares: bool = True


@dataclass(slots=True)
class _Chosen:
    """The series of one role of one service: those that share the best metric name so far."""

    role: Role
    rank: tuple[int, int, str]
    series: list[Series] = field(default_factory=list)


def traffic_of(series: Sequence[Series] | None) -> dict[str, Traffic]:
    """Per service what its metrics say about requests, latency and failures; services without any are left out."""
    chosen: dict[str, dict[str, _Chosen]] = defaultdict(dict)
    for one in series or ():
        role = role_of(one.metric, one.unit)
        if role is not None and role.name in _WANTED:
            _offer(chosen[one.service], one, role)
    return {service: _traffic(service, roles) for service, roles in chosen.items()}


def _offer(roles: dict[str, _Chosen], one: Series, role: Role) -> None:
    rank = (_outward(one.metric), statistic_rank(one.metric), one.metric)
    held = roles.get(role.name)
    if held is None or rank < held.rank:
        roles[role.name] = _Chosen(role, rank, [one])
    elif rank == held.rank:
        held.series.append(one)


def _outward(metric: str) -> int:
    """1 for what a service sees of others: its own clients' view says less about itself than the server's."""
    return int(any(word in metric.lower() for word in ("client", "upstream", "outbound", "egress")))


def _traffic(service: str, roles: Mapping[str, _Chosen]) -> Traffic:
    requests = _by_time(roles.get("requests"), total=True)
    latency = _by_time(roles.get("latency"), total=False)
    failed, failed_metric = _failed_share(roles, requests)
    times = sorted(set(latency) | set(failed) | set(requests))
    # A period whose count was lost had as many requests as most; where nobody counts, all periods weigh the same.
    lost = median(requests.values()) if requests else 1.0
    samples = [Sample(time, requests.get(time, lost), latency.get(time), failed.get(time)) for time in times]
    return Traffic(
        service,
        samples,
        _metric(roles, "requests"),
        _metric(roles, "latency"),
        failed_metric,
        bool(requests),
        bool(requests) or "success" in roles or _share(roles.get("failures")),
    )


def _share(chosen: _Chosen | None) -> bool:
    return chosen is not None and chosen.role.share


def _metric(roles: Mapping[str, _Chosen], role: str) -> str | None:
    return roles[role].series[0].metric if role in roles else None


def _failed_share(
    roles: Mapping[str, _Chosen], requests: Mapping[float, float]
) -> tuple[dict[float, float], str | None]:
    """Failed share of the requests per period; failures per period where nobody counts requests."""
    if "success" in roles:
        chosen = roles["success"]
        succeeded = _by_time(chosen, total=False)
        whole = (
            100.0 if not chosen.role.share and max(succeeded.values(), default=1.0) > PER_CENT_FROM else 1.0
        )
        shares = {time: min(1.0, max(0.0, 1.0 - value / whole)) for time, value in succeeded.items()}
        return shares, chosen.series[0].metric
    if "failures" not in roles:
        return {}, None
    chosen = roles["failures"]
    if chosen.role.share or not requests:
        return _by_time(chosen, total=not chosen.role.share), chosen.series[0].metric
    counts = _by_time(chosen, total=True)
    return {t: min(1.0, n / requests[t]) for t, n in counts.items() if requests.get(t)}, chosen.series[
        0
    ].metric


def _by_time(chosen: _Chosen | None, *, total: bool) -> dict[float, float]:
    """Value per sample time over all instances: their sum (`total`) or their mean."""
    if chosen is None:
        return {}
    found: dict[float, list[float]] = defaultdict(list)
    for one in chosen.series:
        scale = chosen.role.scale * (_per_period(one) if total else 1.0)
        for time, value in zip(one.times, one.values, strict=True):
            found[time].append(value * scale)
    return {time: (math.fsum(values) if total else fmean(values)) for time, values in found.items()}


def _per_period(one: Series) -> float:
    """A rate per second counts as many events as its period has seconds."""
    rate = one.unit.strip().lower().endswith(("/s", "/sec", "/second"))
    return (typical_step(one.times) or 1.0) if rate else 1.0


def split_at(
    traffic: Traffic, start: float | None, recording: Recording
) -> tuple[list[Sample], list[Sample]]:
    """Samples of the window that ended before `start`, and those that touch the incident.

    A sample's time is the start of its period. Without a start everything counts as incident.
    """
    inside = [s for s in traffic.samples if recording.window.start <= s.time <= recording.window.end]
    if start is None:
        return [], inside
    step = typical_step([s.time for s in inside])
    return [s for s in inside if s.time + step <= start], [s for s in inside if s.time + step > start]

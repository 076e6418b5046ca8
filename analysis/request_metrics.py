"""Requests, their latency and their failures per service, brought together from loose metric series."""

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from opsleuth.analysis.metric_roles import MetricRole, find_metric_role, is_mean, statistic_rank
from opsleuth.analysis.metric_units import seconds_of_rate, to_snake_case
from opsleuth.analysis.records import MetricSeries, Recording
from opsleuth.analysis.robust_statistics import typical_step

# A success rate above this is in percent, whatever its unit says.
PER_CENT_FROM = 1.5
_ONE_STATUS = re.compile(r"(?<![a-z0-9])[1-5](?:xx|\d\d)(?![a-z0-9])", re.IGNORECASE)
_FAILED_STATUS = re.compile(r"(?<![a-z0-9])5(?:xx|\d\d)(?![a-z0-9])", re.IGNORECASE)
# So long before the time since when it fails, as a question says, the usual state is looked for.
BEFORE_STATED = 3600.0
_WANTED = {"requests", "latency", "success", "failures"}


@dataclass(frozen=True, slots=True)
class TrafficSample:
    """One period of one service.

    `requests` in it (1 where nobody counted), `latency` in seconds, `failed` as a share of the requests. None: not
    recorded in this period.
    """

    time: float
    requests: float
    latency: float | None
    failed: float | None


@dataclass(frozen=True, slots=True)
class ServiceTraffic:
    """All periods of one service in time order, and the metrics that they were read from.

    `counted`: somebody counts its requests. `shares`: `failed` is a share of them, not a number a period.
    `additive`: the latency is a mean, so that latency times requests is a sum of seconds; of percentiles it is not.
    """

    service: str
    samples: Sequence[TrafficSample]
    requests_metric: str | None = None
    latency_metric: str | None = None
    failed_metric: str | None = None
    counted: bool = False
    shares: bool = True
    additive: bool = True


@dataclass(slots=True)
class _ChosenSeries:
    """The series of one role of one service: those that share the best metric name so far."""

    role: MetricRole
    rank: tuple[int, int, str]
    series: list[MetricSeries] = field(default_factory=list)


def traffic_by_service(series: Sequence[MetricSeries] | None) -> dict[str, ServiceTraffic]:
    """Per service what its metrics say about requests, latency and failures; services without any are left out."""
    chosen: dict[str, dict[str, _ChosenSeries]] = defaultdict(dict)
    parts: dict[str, list[MetricSeries]] = defaultdict(list)
    for one in series or ():
        role = find_metric_role(one.metric, one.unit, one.values)
        if role is None or role.name not in _WANTED or not _has_known_unit(one, role):
            continue
        if _counts_one_status(one, role):
            parts[one.service].append(one)
        if role.name != "requests" or not _counts_one_status(one, role):
            _keep_best_series(chosen[one.service], one, role)
    for service, classes in parts.items():
        _add_requests_of_all_statuses(chosen[service], classes)
    return {service: _build_service_traffic(service, roles) for service, roles in chosen.items()}


def _has_known_unit(one: MetricSeries, role: MetricRole) -> bool:
    """Whether the values can be computed with: a time without a unit, or a rate of who knows what, cannot."""
    if role.name == "latency":
        return role.is_time
    if role.name == "requests":
        return not role.share
    bare_rate = not role.unit and to_snake_case(one.metric).endswith("_rate")
    return role.name == "success" or not bare_rate


def _counts_one_status(one: MetricSeries, role: MetricRole) -> bool:
    """Whether the series counts answers of one status class only, which are a part of the requests."""
    return not role.share and _ONE_STATUS.search(one.metric) is not None


def _add_requests_of_all_statuses(roles: dict[str, _ChosenSeries], classes: Sequence[MetricSeries]) -> None:
    """The classes of status together are the requests, where the good answers are among them and nothing counts all."""
    good = next((one for one in classes if not _FAILED_STATUS.search(one.metric)), None)
    role = find_metric_role(good.metric, good.unit, good.values) if good else None
    if good is not None and role is not None and "requests" not in roles:
        alike = [one for one in classes if one.unit == good.unit]
        roles["requests"] = _ChosenSeries(role, (0, 0, good.metric), alike)


def _keep_best_series(roles: dict[str, _ChosenSeries], one: MetricSeries, role: MetricRole) -> None:
    rank = (_client_view_rank(one.metric), statistic_rank(one.metric), one.metric)
    held = roles.get(role.name)
    if held is None or rank < held.rank:
        roles[role.name] = _ChosenSeries(role, rank, [one])
    elif rank == held.rank:
        held.series.append(one)


def _client_view_rank(metric: str) -> int:
    """1 for what a service sees of others: its own clients' view says less about itself than the server's."""
    return int(any(word in metric.lower() for word in ("client", "upstream", "outbound", "egress")))


def _build_service_traffic(service: str, roles: Mapping[str, _ChosenSeries]) -> ServiceTraffic:
    requests = _values_by_time(roles.get("requests"), total=True)
    latency = _values_by_time(roles.get("latency"), total=False)
    failed, failed_metric = _failed_share(roles, requests)
    times = sorted(set(latency) | set(failed) | set(requests))
    # A period whose count was lost had as many requests as most; where nobody counts, all periods weigh the same.
    lost = median(requests.values()) if requests else 1.0
    samples = [
        TrafficSample(time, requests.get(time, lost), latency.get(time), failed.get(time)) for time in times
    ]
    return ServiceTraffic(
        service,
        samples,
        _metric_name_for_role(roles, "requests"),
        _metric_name_for_role(roles, "latency"),
        failed_metric,
        bool(requests),
        bool(requests) or "success" in roles or _measures_share(roles.get("failures")),
        is_mean(_metric_name_for_role(roles, "latency") or ""),
    )


def _measures_share(chosen: _ChosenSeries | None) -> bool:
    return chosen is not None and chosen.role.share


def _metric_name_for_role(roles: Mapping[str, _ChosenSeries], role: str) -> str | None:
    return roles[role].series[0].metric if role in roles else None


def _failed_share(
    roles: Mapping[str, _ChosenSeries], requests: Mapping[float, float]
) -> tuple[dict[float, float], str | None]:
    """Failed share of the requests per period; failures per period where requests are not counted."""
    if "success" in roles:
        chosen = roles["success"]
        succeeded = _values_by_time(chosen, total=False)
        whole = (
            100.0 if not chosen.role.share and max(succeeded.values(), default=1.0) > PER_CENT_FROM else 1.0
        )
        shares = {time: min(1.0, max(0.0, 1.0 - value / whole)) for time, value in succeeded.items()}
        return shares, chosen.series[0].metric
    if "failures" not in roles:
        return {}, None
    chosen = roles["failures"]
    if chosen.role.share or not requests:
        return _values_by_time(chosen, total=not chosen.role.share), chosen.series[0].metric
    counts = _values_by_time(chosen, total=True)
    return {t: min(1.0, n / requests[t]) for t, n in counts.items() if requests.get(t)}, chosen.series[
        0
    ].metric


def _values_by_time(chosen: _ChosenSeries | None, *, total: bool) -> dict[float, float]:
    """Value per sample time over all instances: their sum (`total`) or their mean."""
    if chosen is None:
        return {}
    found: dict[float, list[float]] = defaultdict(list)
    for one in chosen.series:
        scale = chosen.role.scale * (_events_per_unit(one, chosen.role) if total else 1.0)
        for time, value in zip(one.times, one.values, strict=True):
            found[time].append(value * scale)
    return {time: (math.fsum(values) if total else fmean(values)) for time, values in found.items()}


def _events_per_unit(one: MetricSeries, role: MetricRole) -> float:
    """By what a sample counts its period's events: a rate per second by the seconds between samples, a number by 1."""
    seconds = seconds_of_rate(role.unit)
    return (typical_step(one.times) or 1.0) / seconds if seconds else 1.0


def split_samples_at(
    traffic: ServiceTraffic, start: float | None, recording: Recording
) -> tuple[list[TrafficSample], list[TrafficSample]]:
    """Samples of the window that ended before `start`, and those that touch the incident.

    A sample's time is the start of its period. Without a start everything counts as incident.
    """
    stated = recording.alert.stated
    # A window that begins where it fails, as the question says, holds nothing of the usual state.
    begin = recording.window.start if stated is None else min(recording.window.start, stated - BEFORE_STATED)
    inside = [s for s in traffic.samples if begin <= s.time <= recording.window.end]
    if start is None:
        return [], inside
    step = typical_step([s.time for s in inside])
    return [s for s in inside if s.time + step <= start], [s for s in inside if s.time + step > start]

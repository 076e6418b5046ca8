"""What a service costs the users over an incident, in units that add up along calls.

- waiting: (latency - usual latency) x requests, in seconds. By Little's law this is the extra time that
  requests spent inside the service and what it calls.
- failures: (failed share - usual share) x requests.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, pvariance

from opsleuth.analysis.records import Recording
from opsleuth.analysis.request_metrics import (
    ServiceTraffic,
    TrafficSample,
    split_samples_at,
    traffic_by_service,
)
from opsleuth.analysis.robust_statistics import UsualLevel, measure_usual_level, quantile

# Latency wobbles by some percent between any two stretches; a spread below that is luck, not precision.
LATENCY_FLOOR_SHARE = 0.05
LATENCY_FLOOR_SECONDS = 1e-4
# A share of failures that nobody can turn into a number wobbles by half a percent of the requests.
FAILED_FLOOR = 0.005
# A harm must stand out by so many of its usual fluctuations (three: one false alarm in some hundred).
NOTICEABLE = 3.0
# So many samples at rest have a spread of their own.
ENOUGH = 4


@dataclass(frozen=True, slots=True)
class ServiceHarm:
    """What one service costs in one respect over the incident.

    `total`, of it `own` (not explained by callees) and `noise` (the usual fluctuation) are request-seconds or
    failed requests; `usual` and `incident` the level per request (seconds, or a share), over `requests` requests;
    `extra` the harm of each recorded period by its time; `onset` the first period that stands out; `peak` by how
    many fluctuations the worse quarter of the periods stands out; `counted` is false where nobody counts requests
    (then `requests` is the number of periods), `shares` where failures are numbers a period; `additive` is false where
    the level is a percentile: then `total` and `own` compare services, but are seconds of nothing.
    """

    service: str
    metric: str
    total: float
    own: float
    noise: float
    usual: float
    incident: float
    requests: float
    extra: Mapping[float, float]
    onset: float | None
    peak: float
    counted: bool
    shares: bool
    additive: bool = True


@dataclass(frozen=True, slots=True)
class TrafficComparison:
    """Samples of one service: those of the incident (of `periods` in all), and one list per reference at rest."""

    traffic: ServiceTraffic
    incident: Sequence[TrafficSample]
    rest: Sequence[Sequence[TrafficSample]]
    periods: int


def collect_traffic_comparisons(recording: Recording) -> dict[str, TrafficComparison]:
    """The series to compare for each service with traffic metrics."""
    reference = traffic_by_service(recording.metrics_baseline)
    split = {
        service: (traffic, *split_samples_at(traffic, recording.alert.onset, recording))
        for service, traffic in traffic_by_service(recording.metrics).items()
    }
    periods = max((len(incident) for _, _, incident in split.values()), default=0)
    found = {}
    for service, (traffic, before, incident) in split.items():
        at_rest = reference[service].samples if service in reference else []
        found[service] = TrafficComparison(
            traffic, incident, [rest for rest in (before, at_rest) if rest], periods
        )
    return found


def _widest_reference_spread(rests: Sequence[UsualLevel]) -> float:
    """The widest spread of the references that have enough samples to tell; of all if none has."""
    return max([rest.spread for rest in rests if rest.count >= ENOUGH] or [rest.spread for rest in rests])


def measure_extra_waiting(stretch: TrafficComparison) -> ServiceHarm | None:
    """Extra request-seconds beyond the slower of the references; None without latencies on both sides."""
    rests = [rest for samples in stretch.rest if (rest := _usual_latency(samples)) is not None]
    during = {s.time: (s.requests, s.latency) for s in stretch.incident if s.latency is not None}
    if not rests:
        return None
    slower = max(rests, key=lambda rest: rest.level)
    return _compute_service_harm(
        stretch, stretch.traffic.latency_metric, during, slower.level, _widest_reference_spread(rests)
    )


def _usual_latency(samples: Sequence[TrafficSample]) -> UsualLevel | None:
    values = [s.latency for s in samples if s.latency is not None and s.requests > 0]
    if not values:
        return None
    return measure_usual_level(values, max(LATENCY_FLOOR_SECONDS, LATENCY_FLOOR_SHARE * median(values)))


def measure_extra_failures(stretch: TrafficComparison) -> ServiceHarm | None:
    """Extra failed requests beyond the worse of the references; None without a share of failures on both sides."""
    rests = [rest for samples in stretch.rest if (rest := _usual_failures(samples)) is not None]
    during = {s.time: (s.requests, s.failed) for s in stretch.incident if s.failed is not None}
    requests = math.fsum(count for count, _ in during.values())
    if not rests or requests <= 0:
        return None
    worse = max(share for share, _ in rests)
    noise = _failed_share_noise(rests, requests, len(during), stretch.traffic)
    return _compute_service_harm(stretch, stretch.traffic.failed_metric, during, worse, noise)


def _failed_share_noise(
    rests: Sequence[tuple[float, float]], requests: float, periods: int, traffic: ServiceTraffic
) -> float:
    """By how much the share of failed among so many requests of so many periods usually strays."""
    if traffic.shares and not traffic.counted:
        return max(FAILED_FLOOR, *(math.sqrt(variance) for _, variance in rests))
    # Counts of rare events scatter by the root of their expectation, or by more where they come in bursts; the 1
    # keeps a first failure from being a proof.
    poisson = max(share for share, _ in rests) * requests + 1.0
    bursts = max(variance for _, variance in rests) * periods
    return math.sqrt(max(poisson, bursts)) / requests


def _usual_failures(samples: Sequence[TrafficSample]) -> tuple[float, float] | None:
    """Share of failed requests at rest, and the variance of their number per period."""
    known = [(s.requests, s.failed) for s in samples if s.failed is not None]
    requests = math.fsum(count for count, _ in known)
    if requests <= 0:
        return None
    failed = [count * share for count, share in known]
    return math.fsum(failed) / requests, pvariance(failed)


def _compute_service_harm(
    stretch: TrafficComparison,
    metric: str | None,
    during: Mapping[float, tuple[float, float]],
    level: float,
    noise: float,
) -> ServiceHarm | None:
    requests = math.fsum(count for count, _ in during.values())
    if requests <= 0:
        return None
    extra = {time: count * (value - level) for time, (count, value) in during.items()}
    # Periods that were not recorded count as the mean of those that were.
    complete = stretch.periods / len(extra)
    total = complete * max(0.0, math.fsum(extra.values()))
    beyond = {time: (value - level) / noise for time, (count, value) in during.items() if count > 0}
    return ServiceHarm(
        service=stretch.traffic.service,
        metric=metric or "",
        total=total,
        own=total,
        noise=complete * noise * requests,
        usual=level,
        incident=level + math.fsum(extra.values()) / requests,
        requests=requests,
        extra=extra,
        onset=next((time for time, score in beyond.items() if score > NOTICEABLE), None),
        peak=quantile(list(beyond.values()), 0.75),
        counted=stretch.traffic.counted,
        shares=stretch.traffic.shares,
        additive=stretch.traffic.additive,
    )


def measure_harm_by_service(
    parts: Mapping[str, TrafficComparison], measure: Callable[[TrafficComparison], ServiceHarm | None]
) -> dict[str, ServiceHarm]:
    """What `measure` (`waiting` or `failures`) makes of each service, those left out that it cannot judge."""
    return {service: harm for service, part in parts.items() if (harm := measure(part)) is not None}


def load_growth(stretch: TrafficComparison) -> float:
    """How many times as many requests a period came as at the busier of the references; 1 where requests are not counted."""
    usual = [median(s.requests for s in samples) for samples in stretch.rest if samples]
    if not stretch.traffic.counted or not stretch.incident or max(usual, default=0.0) <= 0:
        return 1.0
    return median(s.requests for s in stretch.incident) / max(usual)

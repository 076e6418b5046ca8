"""Who costs the users what: extra waiting and extra failures, and how much of it the callees do not explain.

A deviation says how unusual a series is, not how much it hurts: a steady 2 ms call that now takes 4 ms deviates
more than the checkout that now takes 3 s. So every service is measured in units that add up along calls:

- waiting: (latency - usual latency) x requests, in seconds. By Little's law this is the extra time that
  requests spent inside the service and what it calls.
- failures: (failed share - usual share) x requests.

What a service inherits is the harm of what it calls. Its own harm minus that of its callees is what begins at
the service itself. Of a chain that carries one and the same harm (load balancer, wrapper, function) only the
last keeps anything, whatever their names. A callee without a usual level (nobody called it before) explains
nothing: that its caller began to call it is the caller's change.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, pvariance

from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.robust import Usual, quantile, usual
from opsleuth.analysis.roles import role_of
from opsleuth.analysis.topology import callees_of, distances, nearest
from opsleuth.analysis.traffic import Sample, Traffic, split_at, traffic_of

# Latency wobbles by some percent between any two stretches; a spread below that is luck, not precision.
LATENCY_FLOOR_SHARE = 0.05
LATENCY_FLOOR_SECONDS = 1e-4
# A harm must stand out by so many of its usual fluctuations (three: one false alarm in some hundred).
NOTICEABLE = 3.0
# So many samples at rest have a spread of their own.
ENOUGH = 4
# A service is a cause if the smaller half of its harm is inherited.
OWN_SHARE = 0.5

_KIND = {"waiting": "latency", "failures": "errors"}


@dataclass(frozen=True, slots=True)
class Harm:
    """What one service costs in one respect over the incident.

    `total`, of it `own` (not explained by callees) and `noise` (the usual fluctuation) are request-seconds or
    failed requests; `usual` and `incident` the level per request (seconds, or a share), over `requests` requests;
    `extra` the harm of each recorded period by its time; `onset` the first period that stands out; `peak` by how
    many fluctuations the worse quarter of the periods stands out; `counted` is false where nobody counts requests
    (then `requests` is the number of periods).
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


@dataclass(frozen=True, slots=True)
class Stretch:
    """Samples of one service: those of the incident (of `periods` in all), and one list per reference at rest."""

    traffic: Traffic
    incident: Sequence[Sample]
    rest: Sequence[Sequence[Sample]]
    periods: int


def find(recording: Recording) -> list[Finding]:
    """Findings about extra waiting and extra failures of the services that the alerting one reaches."""
    parts = stretches(recording)
    findings: list[Finding] = []
    for respect, measure in (("waiting", waiting), ("failures", failures)):
        if _about(recording) in (respect, None):
            harms = {name: harm for name, part in parts.items() if (harm := measure(part)) is not None}
            findings += _findings(recording, respect, own_harm(recording, harms))
    return findings


def users_wait(recording: Recording) -> bool | None:
    """Whether requests to the entry take noticeably longer than usual; None where no metric can tell."""
    parts = stretches(recording)
    entry = _entry(
        recording, {name: harm for name, part in parts.items() if (harm := waiting(part)) is not None}
    )
    return None if entry is None else entry.peak >= NOTICEABLE


def stretches(recording: Recording) -> dict[str, Stretch]:
    """What there is to compare for each service with traffic metrics."""
    reference = traffic_of(recording.metrics_baseline)
    split = {
        service: (traffic, *split_at(traffic, recording.alert.onset, recording))
        for service, traffic in traffic_of(recording.metrics).items()
    }
    periods = max((len(incident) for _, _, incident in split.values()), default=0)
    found = {}
    for service, (traffic, before, incident) in split.items():
        at_rest = reference[service].samples if service in reference else []
        found[service] = Stretch(traffic, incident, [rest for rest in (before, at_rest) if rest], periods)
    return found


def _noise(rests: Sequence[Usual]) -> float:
    """The widest spread of the references that have enough samples to tell; of all if none has."""
    return max([rest.spread for rest in rests if rest.count >= ENOUGH] or [rest.spread for rest in rests])


def waiting(stretch: Stretch) -> Harm | None:
    """Extra request-seconds beyond the slower of the references; None without latencies on both sides."""
    rests = [rest for samples in stretch.rest if (rest := _usual_latency(samples)) is not None]
    during = {s.time: (s.requests, s.latency) for s in stretch.incident if s.latency is not None}
    if not rests:
        return None
    slower = max(rests, key=lambda rest: rest.level)
    return _harm(stretch, stretch.traffic.latency_metric, during, slower.level, _noise(rests))


def _usual_latency(samples: Sequence[Sample]) -> Usual | None:
    values = [s.latency for s in samples if s.latency is not None and s.requests > 0]
    if not values:
        return None
    return usual(values, max(LATENCY_FLOOR_SECONDS, LATENCY_FLOOR_SHARE * median(values)))


def failures(stretch: Stretch) -> Harm | None:
    """Extra failed requests beyond the worse of the references; None without a share of failures on both sides."""
    rests = [rest for samples in stretch.rest if (rest := _usual_failures(samples)) is not None]
    during = {s.time: (s.requests, s.failed) for s in stretch.incident if s.failed is not None}
    requests = math.fsum(count for count, _ in during.values())
    if not rests or requests <= 0:
        return None
    worse = max(share for share, _ in rests)
    # Counts of rare events scatter by the root of their expectation, or by more where they come in bursts; the 1
    # keeps a first failure from being a proof.
    poisson = worse * requests + 1.0
    bursts = max(variance for _, variance in rests) * len(during)
    noise = math.sqrt(max(poisson, bursts)) / requests
    return _harm(stretch, stretch.traffic.failed_metric, during, worse, noise)


def _usual_failures(samples: Sequence[Sample]) -> tuple[float, float] | None:
    """Share of failed requests at rest, and the variance of their number per period."""
    known = [(s.requests, s.failed) for s in samples if s.failed is not None]
    requests = math.fsum(count for count, _ in known)
    if requests <= 0:
        return None
    failed = [count * share for count, share in known]
    return math.fsum(failed) / requests, pvariance(failed)


def _harm(
    stretch: Stretch,
    metric: str | None,
    during: Mapping[float, tuple[float, float]],
    level: float,
    noise: float,
) -> Harm | None:
    requests = math.fsum(count for count, _ in during.values())
    if requests <= 0:
        return None
    extra = {time: count * (value - level) for time, (count, value) in during.items()}
    # Periods that were not recorded count as the mean of those that were.
    complete = stretch.periods / len(extra)
    total = complete * max(0.0, math.fsum(extra.values()))
    beyond = {time: (value - level) / noise for time, (count, value) in during.items() if count > 0}
    return Harm(
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
    )


def own_harm(recording: Recording, harms: Mapping[str, Harm]) -> dict[str, Harm]:
    """The same harms with `own` reduced by what direct callees explain (through callees that nobody measures).

    Only services within reach of the alert (all of them if the topology does not hold the alerting service).
    """
    callees = callees_of(recording.topology)
    alerting = recording.alert.service
    reach = distances(callees, alerting) if alerting in callees else dict.fromkeys(harms, 0)
    return {
        service: replace(harm, own=_own(harm, [harms[callee] for callee in nearest(callees, service, harms)]))
        for service, harm in harms.items()
        if service in reach
    }


def _own(harm: Harm, callees: Sequence[Harm]) -> float:
    """Harm that the callees do not explain, period by period, so that gaps in one series do not look like harm."""
    hurting = [callee for callee in callees if callee.total > 0]
    means = [fmean(callee.extra.values()) for callee in hurting]
    left = [
        extra - math.fsum(callee.extra.get(time, mean) for callee, mean in zip(hurting, means, strict=True))
        for time, extra in harm.extra.items()
    ]
    scale = harm.total / total if (total := math.fsum(harm.extra.values())) > 0 else 0.0
    return min(harm.total, scale * max(0.0, math.fsum(left)))


def _about(recording: Recording) -> str | None:
    """Which of the two the alert complains about, if its metric says so."""
    role = role_of(recording.alert.metric or "", "")
    names = {"latency": "waiting", "success": "failures", "failures": "failures"}
    return names.get(role.name) if role else None


def _findings(recording: Recording, respect: str, harms: Mapping[str, Harm]) -> list[Finding]:
    entry = _entry(recording, harms)
    if respect == "waiting" and entry is not None and entry.peak < NOTICEABLE:
        return []  # what the alert complains about is as usual: nothing to explain
    harms = _felt(respect, harms, entry)
    all_own = math.fsum(harm.own for harm in harms.values())
    noticed = [harm for harm in harms.values() if harm.total > NOTICEABLE * harm.noise]
    ordered = sorted(noticed, key=lambda harm: (-harm.own, harm.service))
    # One yardstick for all, so that sizes compare: the usual fluctuation of the one that costs most.
    scale = ordered[0].noise if ordered else 1.0
    return [_finding(respect, harm, all_own, scale) for harm in ordered]


def _felt(respect: str, harms: Mapping[str, Harm], entry: Harm | None) -> Mapping[str, Harm]:
    """Leaves out failures that do not reach the users: many more than an entry that is almost as usual has itself."""
    if respect != "failures" or entry is None or entry.total > NOTICEABLE * entry.noise:
        return harms
    seen = entry.incident * entry.requests
    return {name: harm for name, harm in harms.items() if OWN_SHARE * harm.own <= seen}


def _entry(recording: Recording, harms: Mapping[str, Harm]) -> Harm | None:
    """The alerting service; failing that, of those that nobody calls the one whose requests take the most time."""
    alerting = harms.get(recording.alert.service or "")
    if alerting is not None:
        return alerting
    called = {edge.callee for edge in recording.topology or ()}
    roots = [harm for harm in harms.values() if harm.service not in called]
    return max(roots, key=lambda harm: (harm.requests * harm.incident, harm.service), default=None)


def _finding(respect: str, harm: Harm, all_own: float, scale: float) -> Finding:
    share = harm.own / all_own if all_own > 0 else 0.0
    cause = harm.own > OWN_SHARE * harm.total and harm.own > NOTICEABLE * harm.noise
    figures = {
        "usual": harm.usual,
        "incident": harm.incident,
        "requests": harm.requests,
        "total": harm.total,
        "own": harm.own,
        "share": share,
        "unit": "s" if respect == "waiting" else "share",
    }
    return Finding(
        detector=f"harm.{respect}",
        signal="metrics",
        service=harm.service,
        kind=_KIND[respect],
        size=share * harm.own / scale,
        text=_text(respect, harm, share),
        figures=figures,
        onset=harm.onset,
        direction="cause" if cause else "victim",
        metric=harm.metric,
    )


def _text(respect: str, harm: Harm, share: float) -> str:
    own = f"{harm.own:.4g} of {harm.total:.4g}"
    if respect == "waiting":
        return (
            f"{harm.service} took {harm.incident:.4g} s a request against {harm.usual:.4g} s usual over "
            f"{harm.requests:.0f} requests; {own} extra request-seconds are its own, "
            f"a share of {share:.2f} of all that begins anywhere."
        )
    if not harm.counted:
        return (
            f"{harm.service} had {harm.incident:.4g} failures a period against {harm.usual:.4g} usual over "
            f"{harm.requests:.0f} periods; {own} extra failures are its own, "
            f"a share of {share:.2f} of all that begin anywhere."
        )
    return (
        f"{harm.service} failed {harm.incident:.4g} of its {harm.requests:.0f} requests against {harm.usual:.4g} usual; "
        f"{own} extra failures are its own, a share of {share:.2f} of all that begin anywhere."
    )

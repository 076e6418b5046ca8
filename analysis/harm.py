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
from dataclasses import dataclass
from statistics import median

from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.robust import Usual, usual
from opsleuth.analysis.roles import role_of
from opsleuth.analysis.topology import callees_of, distances
from opsleuth.analysis.traffic import Sample, Traffic, split_at, traffic_of

# Latency wobbles by some percent between any two stretches; a spread below that is luck, not precision.
LATENCY_FLOOR_SHARE = 0.05
LATENCY_FLOOR_SECONDS = 1e-4
# A harm must stand out by so many of its usual fluctuations (three: one false alarm in some hundred).
NOTICEABLE = 3.0
# What users see is the sum of many parts; it needs to move less to be believed than one part of it.
ENTRY_NOTICEABLE = 2.0
# A service is a cause if the smaller half of its harm is inherited.
OWN_SHARE = 0.5

_KIND = {"waiting": "latency", "failures": "errors"}


@dataclass(frozen=True, slots=True)
class Harm:
    """What one service costs in one respect over the incident.

    `total`, of it `own` (not explained by callees) and `noise` (the usual fluctuation) are request-seconds or
    failed requests; `usual` and `incident` the level per request (seconds, or a share), over `requests` requests;
    `onset` is the first period that stands out.
    """

    service: str
    metric: str
    total: float
    own: float
    noise: float
    usual: float
    incident: float
    requests: float
    onset: float | None


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Samples of one service: those of the incident, and one list per reference at rest."""

    traffic: Traffic
    incident: Sequence[Sample]
    rest: Sequence[Sequence[Sample]]


def find(recording: Recording) -> list[Finding]:
    """Findings about extra waiting and extra failures of the services that the alerting one reaches."""
    stretches = _stretches(recording)
    findings: list[Finding] = []
    for respect, measure in (("waiting", waiting), ("failures", failures)):
        harms = own_harm(
            recording, {name: h for name, s in stretches.items() if (h := measure(s)) is not None}
        )
        if _about(recording) in (respect, None):
            findings += _findings(recording, respect, harms)
    return findings


def _stretches(recording: Recording) -> dict[str, _Stretch]:
    reference = traffic_of(recording.metrics_baseline)
    found = {}
    for service, traffic in traffic_of(recording.metrics).items():
        before, incident = split_at(traffic, recording.alert.onset, recording)
        at_rest = reference[service].samples if service in reference else []
        found[service] = _Stretch(traffic, incident, [rest for rest in (before, at_rest) if rest])
    return found


def waiting(stretch: _Stretch) -> Harm | None:
    """Extra request-seconds beyond the slower of the references; None without latencies on both sides."""
    rests = [rest for samples in stretch.rest if (rest := _usual_latency(samples)) is not None]
    during = [(s.requests, s.latency, s.time) for s in stretch.incident if s.latency is not None]
    if not rests or not during:
        return None
    slower = max(rests, key=lambda rest: rest.level)
    noise = max(rest.spread for rest in rests)
    return _harm(stretch.traffic, stretch.traffic.latency_metric, during, slower.level, noise)


def _usual_latency(samples: Sequence[Sample]) -> Usual | None:
    values = [s.latency for s in samples if s.latency is not None and s.requests > 0]
    if not values:
        return None
    return usual(values, max(LATENCY_FLOOR_SECONDS, LATENCY_FLOOR_SHARE * median(values)))


def failures(stretch: _Stretch) -> Harm | None:
    """Extra failed requests beyond the worse of the references; None without a share of failures on both sides."""
    rests = [share for samples in stretch.rest if (share := _failed_share(samples)) is not None]
    during = [(s.requests, s.failed, s.time) for s in stretch.incident if s.failed is not None]
    requests = sum(count for count, _, _ in during)
    if not rests or not during or requests <= 0:
        return None
    worse = max(rests)
    # Counts of rare events scatter by the root of their expectation; the 1 keeps a first failure from being a proof.
    noise = math.sqrt(worse * requests + 1.0) / requests
    return _harm(stretch.traffic, stretch.traffic.failed_metric, during, worse, noise)


def _failed_share(samples: Sequence[Sample]) -> float | None:
    known = [(s.requests, s.failed) for s in samples if s.failed is not None]
    requests = sum(count for count, _ in known)
    return sum(count * share for count, share in known) / requests if requests > 0 else None


def _harm(
    traffic: Traffic,
    metric: str | None,
    during: Sequence[tuple[float, float, float]],
    level: float,
    noise: float,
) -> Harm | None:
    requests = sum(count for count, _, _ in during)
    if requests <= 0:
        return None
    incident = sum(count * value for count, value, _ in during) / requests
    total = max(0.0, incident - level) * requests
    onset = next(
        (time for count, value, time in during if count > 0 and value - level > NOTICEABLE * noise), None
    )
    return Harm(
        traffic.service, metric or "", total, total, noise * requests, level, incident, requests, onset
    )


def own_harm(recording: Recording, harms: Mapping[str, Harm]) -> dict[str, Harm]:
    """The same harms with `own` reduced by what direct callees explain.

    Only services within reach of the alert (all of them if the topology does not hold the alerting service).
    """
    callees = callees_of(recording.topology)
    alerting = recording.alert.service
    reach = distances(callees, alerting) if alerting in callees else dict.fromkeys(harms, 0)
    reduced = {}
    for service, harm in harms.items():
        if service in reach:
            inherited = sum(harms[callee].total for callee in callees.get(service, ()) if callee in harms)
            reduced[service] = _with_own(harm, max(0.0, harm.total - inherited))
    return reduced


def _with_own(harm: Harm, own: float) -> Harm:
    return Harm(
        harm.service,
        harm.metric,
        harm.total,
        own,
        harm.noise,
        harm.usual,
        harm.incident,
        harm.requests,
        harm.onset,
    )


def _about(recording: Recording) -> str | None:
    """Which of the two the alert complains about, if its metric says so."""
    role = role_of(recording.alert.metric or "", "")
    names = {"latency": "waiting", "success": "failures", "failures": "failures"}
    return names.get(role.name) if role else None


def _findings(recording: Recording, respect: str, harms: Mapping[str, Harm]) -> list[Finding]:
    entry = harms.get(recording.alert.service or "")
    if respect == "waiting" and entry is not None and entry.total < ENTRY_NOTICEABLE * entry.noise:
        return []  # what the alert complains about is as usual: nothing to explain
    all_own = sum(harm.own for harm in harms.values())
    noticed = [harm for harm in harms.values() if harm.total > NOTICEABLE * harm.noise]
    # One yardstick for all, so that sizes compare: the fluctuation that users are used to.
    scale = entry.noise if entry is not None else max((harm.noise for harm in noticed), default=1.0)
    ordered = sorted(noticed, key=lambda harm: (-harm.own, harm.service))
    return [_finding(respect, harm, all_own, scale) for harm in ordered]


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
        size=harm.own / scale,
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
    return (
        f"{harm.service} failed {harm.incident:.4g} of its {harm.requests:.0f} requests against {harm.usual:.4g} usual; "
        f"{own} extra failures are its own, a share of {share:.2f} of all that begin anywhere."
    )

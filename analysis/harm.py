"""Who costs the users what, and how much of it the callees do not explain.

A deviation says how unusual a series is, not how much it hurts: a steady 2 ms call that now takes 4 ms deviates
more than the checkout that now takes 3 s. So services are compared by what they cost.

What a service inherits is the harm of what it calls. Its own harm minus that of its callees is what begins at
the service itself. Of a chain that carries one and the same harm (load balancer, wrapper, function) only the
last keeps anything, whatever their names. A callee without a usual level (nobody called it before) explains
nothing: that its caller began to call it is the caller's change.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from opsleuth.analysis.costs import NOTICEABLE, Harm, failures, measured, stretches, waiting
from opsleuth.analysis.plain import number, percent
from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.roles import role_of
from opsleuth.analysis.topology import callees_of, distances, nearest

# Harms of which the smaller is at least two thirds of the larger may be one and the same, with some of it lost.
SAME = 2 / 3
# What lies so many spreads off is no longer at rest, though it would not be noticed by itself.
LEANING = NOTICEABLE / 2
# A service is a cause if the smaller half of its harm is inherited.
OWN_SHARE = 0.5

_KIND = {"waiting": "latency", "failures": "errors"}


def find(recording: Recording) -> list[Finding]:
    """Findings about extra waiting and extra failures of the services that the alerting one reaches."""
    parts = stretches(recording)
    slow, failed = measured(parts, waiting), measured(parts, failures)
    loads = {name: harm.usual * harm.requests for name, harm in slow.items()}
    findings: list[Finding] = []
    for respect, harms in (("waiting", slow), ("failures", failed)):
        if _about(recording) in (respect, None):
            findings += _findings(recording, respect, own_harm(recording, harms, loads))
    return findings


def users_wait(recording: Recording) -> bool | None:
    """Whether requests to the entry take noticeably longer than usual; None where no metric can tell, or by little."""
    own = [series for series in recording.metrics or () if series.service == recording.alert.service]
    for metrics in (
        own,
        recording.metrics,
    ):  # most often the alerting service can tell, and it is quickly asked
        entry = _entry(recording, measured(stretches(replace(recording, metrics=metrics)), waiting))
        if entry is not None:
            return None if LEANING <= entry.peak < NOTICEABLE else entry.peak >= NOTICEABLE
    return None


def slower_services(recording: Recording) -> set[str]:
    """Services whose latency at least leans to the slow side."""
    harms = measured(stretches(recording), waiting)
    return {name for name, harm in harms.items() if harm.peak >= LEANING}


def own_harm(recording: Recording, harms: Mapping[str, Harm], loads: Mapping[str, float]) -> dict[str, Harm]:
    """The same harms with `own` reduced by what direct callees explain (through callees that nobody measures).

    Only services within reach of the alert; all of them if the topology does not hold the alerting service. Where
    there is no topology, `loads` (usual request-seconds of each service) stand in for it.
    """
    if not recording.topology:
        return {
            name: replace(harm, own=_own(harm, _inside(harm, harms, loads))) for name, harm in harms.items()
        }
    callees = callees_of(recording.topology)
    alerting = recording.alert.service
    reach = distances(callees, alerting) if alerting in callees else dict.fromkeys(harms, 0)
    return {
        service: replace(harm, own=_own(harm, [harms[callee] for callee in nearest(callees, service, harms)]))
        for service, harm in harms.items()
        if service in reach
    }


def _inside(harm: Harm, harms: Mapping[str, Harm], loads: Mapping[str, float]) -> list[Harm]:
    """The service that most likely hands its harm up to this one, where nobody recorded who calls whom.

    Time spent in a callee is part of the caller's: of services with much the same harm, the one that usually takes
    less time in all lies deeper.
    """
    load = loads.get(harm.service, 0.0)
    inner = [
        other
        for name, other in harms.items()
        if loads.get(name, 0.0) < load and SAME * harm.total < other.total < harm.total / SAME
    ]
    return sorted(inner, key=lambda other: (-other.total, other.service))[:1]


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
    if respect == "waiting" and entry is not None and not _to_explain(entry, harms):
        return []
    harms = _felt(respect, harms, entry)
    all_own = math.fsum(harm.own for harm in harms.values())
    noticed = [harm for harm in harms.values() if harm.total > NOTICEABLE * harm.noise]
    ordered = sorted(noticed, key=lambda harm: (-harm.own, harm.service))
    # One yardstick for all, so that sizes compare: the usual fluctuation of the one that costs most.
    scale = ordered[0].noise if ordered else 1.0
    return [_finding(respect, harm, all_own, scale) for harm in ordered]


def _to_explain(entry: Harm, harms: Mapping[str, Harm]) -> bool:
    """Whether what the alert complains about left its usual level.

    It is enough that it leans to the slow side, if somebody behind it stands out who costs as much.
    """
    if entry.peak >= NOTICEABLE:
        return True
    behind = [harm for harm in harms.values() if harm.peak >= NOTICEABLE]
    return entry.peak >= LEANING and any(harm.own >= SAME * entry.total for harm in behind)


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
        "share_percent": percent(share),
        "unit": "s" if respect == "waiting" else "share",
    }
    if respect == "failures" and harm.shares:
        figures |= {"usual_percent": percent(harm.usual), "incident_percent": percent(harm.incident)}
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
    own = f"{number(harm.own)} of {number(harm.total)}"
    part = f"{number(percent(share))} % of all that"
    if respect == "waiting":
        return (
            f"{harm.service} took {number(harm.incident)} s a request, usually {number(harm.usual)} s, over "
            f"{harm.requests:,.0f} requests; {own} extra request-seconds are its own, {part} begins anywhere."
        )
    if not harm.shares:
        return (
            f"{harm.service} had {number(harm.incident)} failures a period, usually {number(harm.usual)}, over "
            f"{harm.requests:,.0f} periods; {own} extra failures are its own, {part} begin anywhere."
        )
    requests = f"{harm.requests:,.0f} requests" if harm.counted else "requests"
    failed = (
        f"{number(percent(harm.incident))} % of the {requests} to {harm.service} failed, usually "
        f"{number(percent(harm.usual))} %"
    )
    if not harm.counted:
        return f"{failed}; {number(percent(share))} % of all failures begin there."
    return f"{failed}; {own} extra failures are its own, {part} begin anywhere."

"""What each service costs the users, and how much of it its callees do not explain.

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

from opsleuth.analysis.harm_measures import (
    NOTICEABLE,
    ServiceHarm,
    collect_traffic_comparisons,
    measure_extra_failures,
    measure_extra_waiting,
    measure_harm_by_service,
)
from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.number_format import format_number, to_percent
from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.request_fields import is_access_log
from opsleuth.analysis.topology import (
    callees_by_caller,
    find_nearest_known_callees,
    measure_call_distances,
)

# Shares of failing requests that grow by less are what every service has.
LEAST_FAILING = 0.001
# Harms of which the smaller is at least two thirds of the larger may be one and the same, with some of it lost.
SAME = 2 / 3
# What lies so many spreads off is no longer at rest, though it would not be noticed by itself.
LEANING = NOTICEABLE / 2
# A service is a cause if the smaller half of its harm is inherited.
OWN_SHARE = 0.5

_KIND = {"waiting": "latency", "failures": "errors"}


def find_service_harm(recording: Recording) -> list[Finding]:
    """Findings about extra waiting and extra failures of the services that the alerting one reaches."""
    parts = collect_traffic_comparisons(recording)
    slow, failed = (
        measure_harm_by_service(parts, measure_extra_waiting),
        measure_harm_by_service(parts, measure_extra_failures),
    )
    loads = {name: harm.usual * harm.requests for name, harm in slow.items()}
    findings: list[Finding] = []
    for respect, harms in (("waiting", slow), ("failures", failed)):
        if _infer_alert_complaint(recording) in (respect, None):
            findings += _rank_harm_findings(recording, respect, compute_own_harm(recording, harms, loads))
    return findings


def users_wait(recording: Recording) -> bool | None:
    """Whether requests to the entry take noticeably longer than usual; None where no metric can tell, or by little."""
    own = [series for series in recording.metrics or () if series.service == recording.alert.service]
    for metrics in (
        own,
        recording.metrics,
    ):  # most often the alerting service can tell, and it is quickly asked
        entry = _find_entry_harm(
            recording,
            measure_harm_by_service(
                collect_traffic_comparisons(replace(recording, metrics=metrics)), measure_extra_waiting
            ),
        )
        if entry is not None:
            return None if LEANING <= entry.peak < NOTICEABLE else entry.peak >= NOTICEABLE
    return None


def find_slower_services(recording: Recording) -> set[str]:
    """Services whose latency at least leans to the slow side."""
    harms = measure_harm_by_service(collect_traffic_comparisons(recording), measure_extra_waiting)
    return {name for name, harm in harms.items() if harm.peak >= LEANING}


def compute_own_harm(
    recording: Recording, harms: Mapping[str, ServiceHarm], loads: Mapping[str, float]
) -> dict[str, ServiceHarm]:
    """The same harms with `own` reduced by what direct callees explain (through callees that nobody measures).

    Only services within reach of the alert; all of them if the topology does not hold the alerting service. Where
    there is no topology, `loads` (usual request-seconds of each service) stand in for it.
    """
    if not recording.topology:
        return {
            name: replace(harm, own=_subtract_callee_harm(harm, _find_harm_source(harm, harms, loads)))
            for name, harm in harms.items()
        }
    callees = callees_by_caller(recording.topology)
    alerting = recording.alert.service
    reach = measure_call_distances(callees, alerting) if alerting in callees else dict.fromkeys(harms, 0)
    return {
        service: replace(
            harm,
            own=_subtract_callee_harm(
                harm, [harms[callee] for callee in find_nearest_known_callees(callees, service, harms)]
            ),
        )
        for service, harm in harms.items()
        if service in reach
    }


def _find_harm_source(
    harm: ServiceHarm, harms: Mapping[str, ServiceHarm], loads: Mapping[str, float]
) -> list[ServiceHarm]:
    """The service that most likely hands its harm up to this one, where no call graph is recorded.

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


def _subtract_callee_harm(harm: ServiceHarm, callees: Sequence[ServiceHarm]) -> float:
    """Harm that the callees do not explain, period by period, so that gaps in one series do not look like harm."""
    hurting = [callee for callee in callees if callee.total > 0]
    means = [fmean(callee.extra.values()) for callee in hurting]
    left = [
        extra - math.fsum(callee.extra.get(time, mean) for callee, mean in zip(hurting, means, strict=True))
        for time, extra in harm.extra.items()
    ]
    scale = harm.total / total if (total := math.fsum(harm.extra.values())) > 0 else 0.0
    return min(harm.total, scale * max(0.0, math.fsum(left)))


def _infer_alert_complaint(recording: Recording) -> str | None:
    """Which of the two the alert complains about, if its metric says so."""
    role = find_metric_role(recording.alert.metric or "", "")
    names = {"latency": "waiting", "success": "failures", "failures": "failures"}
    return names.get(role.name) if role else None


def _rank_harm_findings(
    recording: Recording, respect: str, harms: Mapping[str, ServiceHarm]
) -> list[Finding]:
    entry = _find_entry_harm(recording, harms)
    if respect == "waiting" and entry is not None and not _has_harm_to_explain(entry, harms):
        return []
    harms = _drop_unfelt_failures(respect, harms, entry)
    all_own = math.fsum(harm.own for harm in harms.values())
    noticed = [harm for harm in harms.values() if harm.total > NOTICEABLE * harm.noise]
    ordered = sorted(noticed, key=lambda harm: (-harm.own, harm.service))
    # One yardstick for all, so that sizes compare: the usual fluctuation of the one that costs most.
    scale = ordered[0].noise if ordered else 1.0
    return [_build_harm_finding(respect, harm, all_own, scale) for harm in ordered]


def _has_harm_to_explain(entry: ServiceHarm, harms: Mapping[str, ServiceHarm]) -> bool:
    """Whether what the alert complains about left its usual level.

    It is enough that it leans to the slow side, if somebody behind it stands out who costs as much.
    """
    if entry.peak >= NOTICEABLE:
        return True
    behind = [harm for harm in harms.values() if harm.peak >= NOTICEABLE]
    return entry.peak >= LEANING and any(harm.own >= SAME * entry.total for harm in behind)


def _drop_unfelt_failures(
    respect: str, harms: Mapping[str, ServiceHarm], entry: ServiceHarm | None
) -> Mapping[str, ServiceHarm]:
    """Leaves out failures that do not reach the users: many more than an entry that is almost as usual has itself.

    Less than one request in a thousand is left out as well: no alert is sent for that.
    """
    if respect == "failures":
        harms = {n: h for n, h in harms.items() if not h.shares or h.incident - h.usual >= LEAST_FAILING}
    if respect != "failures" or entry is None or entry.total > NOTICEABLE * entry.noise:
        return harms
    seen = entry.incident * entry.requests
    return {name: harm for name, harm in harms.items() if OWN_SHARE * harm.own <= seen}


def _find_entry_harm(recording: Recording, harms: Mapping[str, ServiceHarm]) -> ServiceHarm | None:
    """The alerting service; failing that, of those that nobody calls the one whose requests take the most time."""
    alerting = harms.get(recording.alert.service or "")
    if alerting is not None:
        return alerting
    called = {edge.callee for edge in recording.topology or ()}
    roots = [harm for harm in harms.values() if harm.service not in called]
    return max(roots, key=lambda harm: (harm.requests * harm.incident, harm.service), default=None)


def _build_harm_finding(respect: str, harm: ServiceHarm, all_own: float, scale: float) -> Finding:
    share = harm.own / all_own if all_own > 0 else 0.0
    cause = harm.own > OWN_SHARE * harm.total and harm.own > NOTICEABLE * harm.noise
    figures = {
        "usual": harm.usual,
        "incident": harm.incident,
        "unit": "s" if respect == "waiting" else "share",
        **_sum_figures(respect, harm, share),
    }
    if respect == "failures" and harm.shares:
        figures |= {"usual_percent": to_percent(harm.usual), "incident_percent": to_percent(harm.incident)}
    return Finding(
        detector=f"harm.{respect}",
        signal="metrics",
        service=harm.service,
        kind=_KIND[respect],
        size=share * harm.own / scale,
        text=_describe_harm(respect, harm, share),
        figures=figures,
        onset=harm.onset,
        direction="cause" if cause else "victim",
        metric=harm.metric,
    )


def _sum_figures(respect: str, harm: ServiceHarm, share: float) -> dict[str, float]:
    """The sums over the requests; only those that somebody counted, and of what adds up."""
    figures = {"requests": harm.requests} if harm.counted else {"samples": harm.requests}
    if respect == "failures" or (harm.additive and harm.counted):
        figures |= {"total": harm.total, "own": harm.own}
        figures |= {"share": share, "share_percent": to_percent(share)}
    return figures


def _describe_waiting(harm: ServiceHarm, own: str, part: str) -> str:
    level, usual = format_number(harm.incident), format_number(harm.usual)
    if not harm.additive:
        return f"{harm.metric} of {harm.service} was {level} s, usually {usual} s."
    took = f"{harm.service} took {level} s a request, usually {usual} s"
    if not harm.counted:
        return f"{took}."
    return (
        f"{took}, over {harm.requests:,.0f} requests; {own} extra request-seconds are its own, "
        f"{part} begins anywhere."
    )


def describe_harm_level(respect: str, harm: ServiceHarm) -> str:
    """`12 % of the 300 requests to web failed, usually 0 %`, without whose harm it is and without the end of the sentence."""
    return _describe_harm(respect, harm, 0.0).partition(";")[0].rstrip(".")


def _describe_harm(respect: str, harm: ServiceHarm, share: float) -> str:
    own = f"{format_number(harm.own)} of {format_number(harm.total)}"
    part = f"{format_number(to_percent(share))} % of all that"
    if respect == "waiting":
        return _describe_waiting(harm, own, part)
    if not harm.shares:
        return (
            f"{harm.service} had {format_number(harm.incident)} failures a period, usually {format_number(harm.usual)}, over "
            f"{harm.requests:,.0f} periods; {own} extra failures are its own, {part} begin anywhere."
        )
    requests = f"{harm.requests:,.0f} requests" if harm.counted else "requests"
    where = f"in {harm.service}.log" if is_access_log(harm.service) else f"to {harm.service}"
    failed = (
        f"{format_number(to_percent(harm.incident))} % of the {requests} {where} failed, usually "
        f"{format_number(to_percent(harm.usual))} %"
    )
    if not harm.counted:
        return f"{failed}; {format_number(to_percent(share))} % of all failures begin there."
    return f"{failed}; {own} extra failures are its own, {part} begin anywhere."

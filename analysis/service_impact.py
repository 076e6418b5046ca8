"""What the users of one service feel: its share of failing requests and its latency, before the onset and since."""

from dataclasses import dataclass, replace

from opsleuth.analysis.harm_attribution import describe_harm_level
from opsleuth.analysis.harm_measures import (
    NOTICEABLE,
    ServiceHarm,
    collect_traffic_comparisons,
    measure_extra_failures,
    measure_extra_waiting,
)
from opsleuth.analysis.number_format import to_percent
from opsleuth.analysis.onset import with_detected_onset
from opsleuth.analysis.records import Recording


@dataclass(frozen=True, slots=True)
class ServiceImpact:
    """One measure of a service: `usual` before the onset and `now` since, in `unit`; `onset` where it left the usual level.

    `respect` is failures or waiting; shares are in per cent. `text` says it in a sentence without its end.
    """

    respect: str
    measure: str
    usual: float
    now: float
    unit: str
    onset: float | None
    text: str


def measure_service_impact(recording: Recording, service: str) -> list[ServiceImpact]:
    """The failing requests and the latency of the service, as far as they are measured before the onset and since."""
    started = with_detected_onset(recording)
    own = replace(
        started,
        metrics=[s for s in started.metrics or () if s.service == service],
        metrics_baseline=[s for s in started.metrics_baseline or () if s.service == service],
    )
    part = collect_traffic_comparisons(own).get(service)
    if part is None:
        return []
    failures, waiting = measure_extra_failures(part), measure_extra_waiting(part)
    return [
        *([_build_impact("failures", failures)] if failures else ()),
        *([_build_impact("waiting", waiting)] if waiting else ()),
    ]


def _build_impact(respect: str, harm: ServiceHarm) -> ServiceImpact:
    in_percent = respect == "failures" and harm.shares
    moved = harm.total > NOTICEABLE * harm.noise
    return ServiceImpact(
        respect=respect,
        measure="failed requests" if respect == "failures" else harm.metric or "waiting time",
        usual=to_percent(harm.usual) if in_percent else harm.usual,
        now=to_percent(harm.incident) if in_percent else harm.incident,
        unit="%" if in_percent else "s" if respect == "waiting" else "",
        onset=harm.onset if moved else None,
        text=describe_harm_level(respect, harm),
    )

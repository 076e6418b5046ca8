"""The strength of findings: sizes from different detectors on one scale, combined."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from opsleuth.analysis.fault_kinds import SYMPTOMS, drop_explained_kinds, explains_symptom
from opsleuth.analysis.records import Finding

# The size at which a finding is worth half of what an overwhelming one is: just noticeable (three spreads).
HALF = 3.0
# "It is slow" and "it fails" are what any fault looks like; "its CPU is full" names one.
SYMPTOM_WEIGHT = 0.7
# Detectors that see work break off inside the service: they locate a fault, whatever kind it goes by.
LOCATING = frozenset({"lost_steps"})
# Ways to fail that turn into each other from one service to the next.
FAILING = SYMPTOMS - {"latency"}
# Whoever sends a statement notices what is wrong with it as well as the database does.
_OF_DATABASES = frozenset({"slow_query", "locks"})
# Errors that a caller passes on as its callee words them.
_RELAYED = frozenset({"permission", "certificate", "quota", "out_of_memory", "storage_full"})
# What is a hundredth of an overwhelming finding makes nobody a suspect.
NEGLIGIBLE = 0.01
# Another kind on the same service is weighed beside the strongest if it is at least half as strong.
COMPARABLE = 0.5


def score_cause_findings(
    findings: Iterable[Finding], discounts: Mapping[str, float] | None = None
) -> dict[int, float]:
    """Strength in (0, 1) of each cause finding by its place in `findings`.

    Size against `HALF`, times size against the largest of the same detector: among many that deviate, the one
    that deviates most is meant. `discounts` weigh single kinds down.
    """
    discounts = discounts or {}
    causes = [(place, f) for place, f in enumerate(findings) if f.direction == "cause" and f.size > 0]
    peaks: dict[str, float] = defaultdict(float)
    for _, finding in causes:
        peaks[finding.detector] = max(peaks[finding.detector], finding.size)
    scored = {
        place: _weigh_finding(f)
        * discounts.get(f.kind, 1.0)
        * f.size
        / (f.size + HALF)
        * f.size
        / peaks[f.detector]
        for place, f in causes
    }
    return {place: strength for place, strength in scored.items() if strength >= NEGLIGIBLE}


def _weigh_finding(finding: Finding) -> float:
    return SYMPTOM_WEIGHT if finding.kind in SYMPTOMS and finding.detector not in LOCATING else 1.0


def combine_strengths(parts: Iterable[tuple[Finding, float]]) -> float:
    """Noisy-or over detectors, each with its strongest finding: what two see counts for more, never over 1."""
    best: dict[str, float] = defaultdict(float)
    for finding, strength in parts:
        best[finding.detector] = max(best[finding.detector], strength)
    together = 1.0 - prod(1.0 - strength for strength in best.values())
    return max(together, *best.values())  # not 0 where a strength is so small that 1 minus it is 1


def combine_strengths_by_kind(parts: Sequence[tuple[Finding, float]]) -> dict[str, float]:
    """Joined strength per kind, strongest first."""
    kinds: dict[str, list[tuple[Finding, float]]] = defaultdict(list)
    for finding, strength in parts:
        kinds[finding.kind].append((finding, strength))
    scores = {kind: combine_strengths(group) for kind, group in kinds.items()}
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def select_leading_kinds(scores: Mapping[str, float]) -> list[str]:
    """Kinds that no other comparably strong kind on the same service explains, strongest first."""
    top = max(scores.values(), default=0.0)
    return drop_explained_kinds([kind for kind, score in scores.items() if score >= COMPARABLE * top])


def is_visible_in_caller(cause: str, symptom: str, *, direct: bool) -> bool:
    """Whether a fault of kind `cause` shows itself as `symptom` in a service that calls the faulty one.

    Symptoms travel any distance: slowness as slowness, failing as failing, and a named fault as either. What is no
    symptom (a replica that lags) is the work of a direct callee or its own.
    """
    if symptom not in SYMPTOMS:
        alike = cause == symptom and cause in _OF_DATABASES | _RELAYED
        return direct and (explains_symptom(cause, symptom) or alike)
    if cause not in SYMPTOMS or cause == symptom or explains_symptom(cause, symptom):
        return True
    return cause in FAILING and symptom in FAILING

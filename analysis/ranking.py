"""From the findings of all detectors to ranked suspects, causes before victims, with the reasons in words."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from opsleuth.analysis import harm
from opsleuth.analysis.records import Finding, Ranking, Recording, Suspect

Detector = Callable[[Recording], list[Finding]]

DETECTORS: tuple[Detector, ...] = (harm.find,)


def detect(recording: Recording) -> list[Finding]:
    """What every detector says about the recording, strongest first inside each detector."""
    return [finding for find in DETECTORS for finding in find(recording)]


def rank(_recording: Recording, findings: Sequence[Finding]) -> Ranking:
    """Suspects by the strength of what points at them as a cause."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    peaks: dict[str, float] = {}
    for finding in findings:
        if finding.direction == "cause":
            groups[finding.service, finding.kind].append(finding)
            peaks[finding.detector] = max(peaks.get(finding.detector, 0.0), finding.size)
    suspects = [
        Suspect(
            service,
            kind,
            sum(f.size / (peaks[f.detector] or 1.0) for f in group),
            group,
            group[0].metric,
            group[0].onset,
        )
        for (service, kind), group in groups.items()
    ]
    suspects.sort(key=lambda s: (-s.score, s.service, s.kind))
    verdict = "cause_found" if suspects else "inconclusive"
    return Ranking(verdict, suspects, min(1, len(suspects)), (), ())

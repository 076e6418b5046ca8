"""Spans that fail by their own status, told apart from those that only pass a failure on."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.records import Finding
from opsleuth.analysis.spans import Members, Traffic
from opsleuth.analysis.steps import Tally, gain
from opsleuth.analysis.windows import Windows, arrange

# Standard deviations from which more failures are worth a word.
MORE = 2.0
# `ERROR`, `STATUS_CODE_ERROR`, HTTP 5xx, the names and numbers of gRPC (14 is UNAVAILABLE). A 4xx is the caller's.
_FAILED = re.compile(
    r"error|fail|exception|fault|unavailable|deadline|aborted|internal|data_?loss|unknown|^5\d\d$|^(2|4|10|13|14|15)$",
    re.IGNORECASE,
)


def failed(status: str | None) -> bool:
    """Whether a status says that the operation failed."""
    return status is not None and _FAILED.search(status.strip()) is not None


@dataclass(frozen=True, slots=True)
class Failures:
    """Spans of one service by window: all, and those that failed with no failed child to blame."""

    spans: Mapping[str, int]
    own: Mapping[str, int]
    worst: str


def failures(members: Members, windows: Windows) -> dict[str, Failures]:
    """Counts by service. `worst` is the operation that fails most often by itself in the incident."""
    spans: dict[str, Counter[str]] = {}
    own: dict[str, Counter[str]] = {}
    operations: dict[str, Counter[str]] = {}
    for member, window in members:
        service = member.span.service
        spans.setdefault(service, Counter())[window] += 1
        if failed(member.span.status) and not any(failed(child.status) for child in member.children):
            own.setdefault(service, Counter())[window] += 1
            operations.setdefault(service, Counter())[member.span.operation] += window in windows.incident
    return {
        service: Failures(
            spans[service], counts, max(operations[service], key=lambda o: (operations[service][o], o))
        )
        for service, counts in own.items()
    }


def find(seen: Traffic) -> list[Finding]:
    """Services at which more spans fail by themselves than usual."""
    windows = arrange((window for _, window in seen.members), seen.onset)
    found = []
    for service, counts in failures(seen.members, windows).items():
        usual = _tally(counts, (*windows.reference, *windows.earlier))
        now = _tally(counts, windows.incident)
        size = gain(usual, now)
        if size >= MORE:
            found.append(_finding(service, counts.worst, usual, now, size))
    return found


def _tally(counts: Failures, windows: Sequence[str]) -> Tally:
    return Tally(sum(counts.own.get(w, 0) for w in windows), sum(counts.spans.get(w, 0) for w in windows))


def _finding(service: str, worst: str, usual: Tally, now: Tally, size: float) -> Finding:
    return Finding(
        detector="span_status",
        signal="traces",
        service=service,
        kind="errors",
        size=size,
        text=(
            f"{now.step:.0f} of {now.anchor:.0f} spans of {service} fail with no failed call below them, "
            f"usually {usual.step:.0f} of {usual.anchor:.0f}; most often {worst}"
        ),
        figures={
            "baseline": usual.step,
            "baseline_spans": usual.anchor,
            "incident": now.step,
            "incident_spans": now.anchor,
            "unit": "spans",
            "operation": worst,
        },
    )

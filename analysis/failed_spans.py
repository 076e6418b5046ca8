"""Spans that fail by their own status, distinguished from those that only pass a failure on."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.missing_steps import StepTally, measure_step_gain
from opsleuth.analysis.records import Finding
from opsleuth.analysis.span_statistics import Members, SpanStatistics
from opsleuth.analysis.time_windows import ComparisonWindows, classify_windows

# Standard deviations from which more failures are worth a word.
MORE = 2.0
# `ERROR`, `STATUS_CODE_ERROR`, HTTP 5xx, the names and numbers of gRPC (14 is UNAVAILABLE). A 4xx is the caller's.
_FAILED = re.compile(
    r"error|fail|exception|fault|unavailable|deadline|aborted|internal|data_?loss|unknown|^5\d\d$|^(2|4|10|13|14|15)$",
    re.IGNORECASE,
)


def is_failed_status(status: str | None) -> bool:
    """Whether a status says that the operation failed."""
    return status is not None and _FAILED.search(status.strip()) is not None


@dataclass(frozen=True, slots=True)
class SpanFailures:
    """Spans of one service by window: all, and those that failed with no failed child to blame."""

    spans: Mapping[str, int]
    own: Mapping[str, int]
    worst: str


def count_own_failures(members: Members, windows: ComparisonWindows) -> dict[str, SpanFailures]:
    """Counts by service. `worst` is the operation that fails most often by itself in the incident."""
    spans: dict[str, Counter[str]] = {}
    own: dict[str, Counter[str]] = {}
    operations: dict[str, Counter[str]] = {}
    for member, window in members:
        service = member.span.service
        spans.setdefault(service, Counter())[window] += 1
        if is_failed_status(member.span.status) and not any(
            is_failed_status(child.status) for child in member.children
        ):
            own.setdefault(service, Counter())[window] += 1
            operations.setdefault(service, Counter())[member.span.operation] += window in windows.incident
    return {
        service: SpanFailures(
            spans[service], counts, max(operations[service], key=lambda o: (operations[service][o], o))
        )
        for service, counts in own.items()
    }


def find_failing_spans(seen: SpanStatistics) -> list[Finding]:
    """Services at which more spans fail by themselves than usual."""
    windows = classify_windows((window for _, window in seen.members), seen.onset)
    found = []
    for service, counts in count_own_failures(seen.members, windows).items():
        usual = _tally_windows(counts, (*windows.reference, *windows.earlier))
        now = _tally_windows(counts, windows.incident)
        size = measure_step_gain(usual, now)
        if size >= MORE:
            found.append(_build_failed_span_finding(service, counts.worst, usual, now, size))
    return found


def _tally_windows(counts: SpanFailures, windows: Sequence[str]) -> StepTally:
    return StepTally(sum(counts.own.get(w, 0) for w in windows), sum(counts.spans.get(w, 0) for w in windows))


def _build_failed_span_finding(
    service: str, worst: str, usual: StepTally, now: StepTally, size: float
) -> Finding:
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

"""Traces from inside an outage, with no quiet part: which service's own spans fail, and how many of them."""

from collections import Counter

from opsleuth.analysis.log_series import is_failed
from opsleuth.analysis.records import Finding, Recording

ENOUGH_SPANS = 20
LEAST_SHARE = 0.2
_LARGEST = 10.0


def find_failing_span_shares(recording: Recording) -> list[Finding]:
    """The services whose spans fail without a failing span below them; nothing where an onset is known."""
    alert, spans = recording.alert, recording.spans or ()
    if alert.onset is not None or alert.fired is not None or recording.spans_baseline:
        return []
    relayed = {(span.trace_id, span.parent_id) for span in spans if is_failed(span)}
    total = Counter(span.service for span in spans)
    deepest = [span for span in spans if is_failed(span) and (span.trace_id, span.span_id) not in relayed]
    failing = Counter(span.service for span in deepest)
    firsts = {span.service: span.start for span in sorted(deepest, key=lambda span: -span.start)}
    return [
        Finding(
            detector="failing_spans",
            signal="traces",
            service=service,
            kind="errors",
            size=2.0 + _LARGEST * count / total[service],
            text=f"{count} of {total[service]} spans of {service} fail, and no span below them does.",
            figures={"failed": count, "spans": total[service]},
            onset=firsts[service],
        )
        for service, count in failing.most_common()
        if total[service] >= ENOUGH_SPANS and count >= LEAST_SHARE * total[service]
    ]

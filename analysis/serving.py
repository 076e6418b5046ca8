"""How requests are served: what spans and the lines written on the way say together."""

from opsleuth.analysis import edges, logdiff, losses, operations, span_status
from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.spans import traffic


def find(recording: Recording) -> list[Finding]:
    """Services that lose time or steps, strongest first inside each detector.

    `span_time` compares milliseconds (on the way and in the operations), `lost_steps` counts of child spans
    and log lines against what they belong to, `span_status` failed spans, `new_failures` lines of failure that the reference does not know.
    """
    seen, onset = traffic(recording), recording.alert.onset
    found = [*edges.find(seen, onset), *operations.find(seen, onset), *losses.find(seen, onset)]
    found += span_status.find(seen)
    found += logdiff.find(recording, seen)
    return sorted(found, key=lambda f: (f.detector, -f.size, f.service, f.kind, f.text))

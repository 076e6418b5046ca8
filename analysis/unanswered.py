"""Client spans without a server span: requests sent to a service that it never saw.

Needs the kind of spans and the peer of client spans; where a recording has neither, nothing is said.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.fault_phrases import ACTS
from opsleuth.analysis.number_format import to_percent
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, Recording, TraceSpan

ENOUGH_CALLS = 10
# Sampling loses some of the servers' spans: most must have been there before, and next to none since.
SEEN_SHARE = 0.5
LOST_SHARE = 0.1
_SENDS = frozenset({"client", "producer"})


@dataclass(frozen=True, slots=True)
class CallCount:
    """Calls that clients made to one service, and how many of them its own spans answer."""

    asked: int
    answered: int

    @property
    def share(self) -> float:
        return self.answered / self.asked if self.asked else 0.0


def find_unanswered_calls(recording: Recording) -> list[Finding]:
    """A finding for each service whose own spans vanished while its callers go on to ask it."""
    onset = assumed_onset_of(recording)
    spans = [*(recording.spans_baseline or ()), *(recording.spans or ())]
    at_rest = {id(span) for span in recording.spans_baseline or ()}
    services = {span.service for span in spans}
    before = count_calls([s for s in spans if id(s) in at_rest or s.start < onset], services)
    after = count_calls([s for s in spans if id(s) not in at_rest and s.start >= onset], services)
    found = []
    for service, now in sorted(after.items()):
        usual = before.get(service, CallCount(0, 0))
        vanished = usual.asked >= ENOUGH_CALLS and usual.share >= SEEN_SHARE and now.share <= LOST_SHARE
        if vanished and now.asked >= ENOUGH_CALLS:
            found.append(_report_unanswered_calls(service, usual, now, onset))
    return found


def count_calls(spans: Sequence[TraceSpan], services: Collection[str]) -> Mapping[str, CallCount]:
    """Calls by the one of `services` that they were sent to; an answer is a span of it right below the client's."""
    below: dict[tuple[str, str], set[str]] = defaultdict(set)
    for span in spans:
        if span.parent_id:
            below[span.trace_id, span.parent_id].add(span.service)
    asked: dict[str, int] = defaultdict(int)
    answered: dict[str, int] = defaultdict(int)
    for span in spans:
        peer = _find_peer(span, services)
        if peer is not None:
            asked[peer] += 1
            answered[peer] += peer in below.get((span.trace_id, span.span_id), ())
    return {peer: CallCount(count, answered[peer]) for peer, count in asked.items()}


def _find_peer(span: TraceSpan, services: Collection[str]) -> str | None:
    """The service that a client's span names, by name, or by a host whose first label is one."""
    if span.kind not in _SENDS or not span.peer:
        return None
    host = span.peer.rpartition(":")[0] or span.peer
    name = next((n for n in (span.peer, host, host.partition(".")[0]) if n in services), None)
    return name if name != span.service else None


def _report_unanswered_calls(service: str, usual: CallCount, now: CallCount, onset: float) -> Finding:
    return Finding(
        detector="unanswered",
        signal="traces",
        service=service,
        kind="dependency",
        size=2.0 * ACTS,
        text=(
            f"{service} answers {now.answered} of {now.asked} calls that are sent to it since the onset, "
            f"before {to_percent(usual.share)} %"
        ),
        figures={"asked": now.asked, "answered": now.answered, "usual_percent": to_percent(usual.share)},
        onset=onset,
    )

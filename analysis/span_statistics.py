"""Spans summed up by operation, from rows that came summed up or from the spans themselves."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from opsleuth.analysis.latency_levels import CallTimeLevel
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import EdgeLatency, Recording, SpanStat, TraceSpan
from opsleuth.analysis.time_windows import BASELINE, ComparisonWindows, classify_windows, window_name_at

# Share of a whole request that somebody who waits for it would notice.
NOTICED = 0.05

Key = tuple[str, str]
WindowOf = Callable[[TraceSpan], str]


@dataclass(frozen=True, slots=True)
class SpanFamily:
    """A span, its parent and its children, as far as they were recorded."""

    span: TraceSpan
    parent: TraceSpan | None
    children: Sequence[TraceSpan]

    @property
    def self_ms(self) -> float:
        """Milliseconds of the span in which no child of its was running."""
        begin, end = self.span.start, self.span.start + self.span.duration_ms / 1000
        busy, reached = 0.0, begin
        for child in sorted(self.children, key=lambda child: child.start):
            last = min(end, child.start + child.duration_ms / 1000)
            busy += max(0.0, last - max(reached, child.start))
            reached = max(reached, last)
        return max(0.0, self.span.duration_ms - 1000 * busy)

    @property
    def only_remote_child(self) -> TraceSpan | None:
        """The server's span, where this one is the client's side of one call to another service."""
        if len(self.children) == 1 and self.children[0].service != self.span.service:
            return self.children[0]
        return None


def link_span_families(spans: Iterable[TraceSpan]) -> list[SpanFamily]:
    """Each span with its relatives in the same trace. A repeated span counts once."""
    known = {(span.trace_id, span.span_id): span for span in spans}
    children: dict[Key, list[TraceSpan]] = defaultdict(list)
    for span in known.values():
        if span.parent_id and span.parent_id != span.span_id:
            children[span.trace_id, span.parent_id].append(span)
    return [
        SpanFamily(
            span,
            known.get((trace, span.parent_id)) if span.parent_id else None,
            children.get((trace, own), ()),
        )
        for (trace, own), span in known.items()
    ]


def sum_up_operations(members: Sequence[SpanFamily], window_of: WindowOf) -> list[SpanStat]:
    """Counts, medians and self times of each operation in each window."""
    groups: dict[tuple[str, str, str], list[SpanFamily]] = defaultdict(list)
    traces: dict[str, set[str]] = defaultdict(set)
    for member in members:
        window = window_of(member.span)
        groups[window, member.span.service, member.span.operation].append(member)
        traces[window].add(member.span.trace_id)
    return [_summarize_operation(key, group, len(traces[key[0]])) for key, group in sorted(groups.items())]


def _summarize_operation(key: tuple[str, str, str], group: Sequence[SpanFamily], traces: int) -> SpanStat:
    own = [member.self_ms for member in group]
    return SpanStat(
        window=key[0],
        service=key[1],
        operation=key[2],
        count=len(group),
        traces_in_window=traces,
        duration_ms_p50=median(member.span.duration_ms for member in group),
        self_ms_p50=median(own),
        self_ms_mean=fmean(own),
        children_mean=fmean(len(member.children) for member in group),
    )


def measure_network_gaps(members: Sequence[SpanFamily], window_of: WindowOf) -> list[EdgeLatency]:
    """Client span minus server span of every call that has both, by pair of services and window."""
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for member in members:
        server = member.only_remote_child
        if server is not None:
            pair = window_of(member.span), member.span.service, server.service
            groups[pair].append(member.span.duration_ms - server.duration_ms)
    return [
        EdgeLatency(*key, count=len(group), network_gap_ms_p50=median(group))
        for key, group in sorted(groups.items())
    ]


# Spans with their relatives, and the window of each.
Members = Sequence[tuple[SpanFamily, str]]


@dataclass(frozen=True, slots=True)
class SpanStatistics:
    """Sums over the spans of a recording, and the windows that they are compared in.

    `parents` holds, for each (service, operation), the operations of the same service that it was seen under
    (None: called from outside). `ways` are operations that wait for another service's span, with that service.
    `members` are the spans themselves, each with its window; the incident begins at `onset`.
    """

    stats: Sequence[SpanStat]
    edges: Sequence[EdgeLatency]
    windows: ComparisonWindows
    parents: Mapping[Key, frozenset[str | None]] = field(default_factory=dict)
    ways: Mapping[Key, str] = field(default_factory=dict)
    members: Members = ()
    onset: float = 0.0

    def noticeable_share(self, level: CallTimeLevel) -> float:
        """How much of an excess per call those who wait for a whole request would notice: from 0 to 1, all of it.

        1 where the rows do not tell how many calls and how much time a request takes.
        """
        usual, now = self._traces(self.windows.reference), self._traces(self.windows.incident)
        if not usual or not now:
            return 1.0
        rows = (stat for stat in self.stats if stat.window in self.windows.reference)
        request_ms = sum((stat.self_ms_p50 or 0.0) * stat.count for stat in rows) / usual
        extra_ms = level.excess * level.calls / now
        return min(1.0, max(0.0, extra_ms) / max(NOTICED * request_ms, 1e-9))

    def _traces(self, windows: Sequence[str]) -> int:
        traces = {stat.window: stat.traces_in_window or 0 for stat in self.stats if stat.window in windows}
        return sum(traces.values())


def estimate_call_noise_ms(stat: SpanStat) -> float:
    """How far a call strays from the usual, ms: a mean far from the median reveals a long tail."""
    if stat.self_ms_mean is None or stat.self_ms_p50 is None:
        return 0.0
    return abs(stat.self_ms_mean - stat.self_ms_p50)


def _assign_spans_to_windows(recording: Recording, onset: float) -> Members:
    """The spans themselves with their relatives, each with its window."""
    usual = ((member, BASELINE) for member in link_span_families(recording.spans_baseline or ()))
    current = (
        (member, window_name_at(member.span.start, onset))
        for member in link_span_families(recording.spans or ())
    )
    return [*usual, *current]


def summarize_spans(recording: Recording) -> SpanStatistics:
    """Sums as recorded over all traces where there are such, else over the spans at hand."""
    onset = assumed_onset_of(recording)
    seen = _assign_spans_to_windows(recording, onset)
    own = [member for member, _ in seen]
    names = {(member.span.trace_id, member.span.span_id): window for member, window in seen}

    def window_of(span: TraceSpan) -> str:
        return names[span.trace_id, span.span_id]

    stats = recording.span_stats if recording.span_stats is not None else sum_up_operations(own, window_of)
    edges = recording.edges if recording.edges is not None else measure_network_gaps(own, window_of)
    windows = classify_windows([*(stat.window for stat in stats), *(edge.window for edge in edges)], onset)
    return SpanStatistics(
        stats, edges, windows, _collect_parent_operations(own), _map_client_operations(own), seen, onset
    )


def _collect_parent_operations(seen: Iterable[SpanFamily]) -> dict[Key, frozenset[str | None]]:
    parents: dict[Key, set[str | None]] = defaultdict(set)
    for member in seen:
        span, parent = member.span, member.parent
        inside = parent is not None and parent.service == span.service
        parents[span.service, span.operation].add(parent.operation if parent and inside else None)
    return {key: frozenset(names) for key, names in parents.items()}


def _map_client_operations(seen: Iterable[SpanFamily]) -> dict[Key, str]:
    """In order of the services' names, so that one operation that calls two is the same one always."""
    found = {
        (member.span.service, member.span.operation, child.service)
        for member in seen
        if (child := member.only_remote_child) is not None
    }
    return {(service, operation): callee for service, operation, callee in sorted(found)}

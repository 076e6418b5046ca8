"""Time lost between services: the client's span minus the server's, pair by pair.

A slow network at one service shows at all who call it. A process that is starved, or that has a slow network
itself, shows at all whom it calls, however fast they answer.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.latency_levels import CallTimeLevel, compute_call_time_level
from opsleuth.analysis.records import Finding
from opsleuth.analysis.span_statistics import SpanStatistics, estimate_call_noise_ms
from opsleuth.state.plurals import format_count

# Standard deviations from which a pair counts as slower: the usual bound for an outlier.
SLOWER = 3.0
# Share of the calls that makes "most".
MOST = 0.5
# Of the largest excess, the share from which another counts as of the same cause.
ALIKE = 0.25

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class NetworkGap:
    """The gap of one pair; a single call strays by `noise_ms`."""

    caller: str
    callee: str
    level: CallTimeLevel
    noise_ms: float

    @property
    def slower(self) -> bool:
        """Whether the pair lost more time than it would by itself."""
        return self.level.size(self.noise_ms) >= SLOWER


def compare_network_gaps(seen: SpanStatistics) -> list[NetworkGap]:
    """Every pair that was measured both in the reference and in the incident."""
    noise = _estimate_pair_noise(seen)
    points: dict[Pair, dict[str, tuple[float, int]]] = defaultdict(dict)
    for edge in seen.edges:
        if edge.network_gap_ms_p50 is not None and edge.count > 0:
            points[edge.caller, edge.callee][edge.window] = (edge.network_gap_ms_p50, edge.count)
    levels = (
        (pair, compute_call_time_level(by_window, seen.windows)) for pair, by_window in sorted(points.items())
    )
    return [NetworkGap(*pair, found, noise.get(pair, 0.0)) for pair, found in levels if found is not None]


def _estimate_pair_noise(seen: SpanStatistics) -> dict[Pair, float]:
    """How far single calls of a pair stray in the reference, read from the clients' side of them."""
    noise: dict[Pair, float] = {}
    for stat in seen.stats:
        callee = seen.ways.get((stat.service, stat.operation))
        if callee is not None and stat.window in seen.windows.reference:
            pair = stat.service, callee
            noise[pair] = max(noise.get(pair, 0.0), estimate_call_noise_ms(stat))
    return noise


def _share_slower(gaps: Sequence[NetworkGap]) -> float:
    """Share of the calls that go over slower pairs; 0 without calls."""
    calls = sum(gap.level.calls for gap in gaps)
    return sum(gap.level.calls for gap in gaps if gap.slower) / calls if calls else 0.0


def find_starved_callers(gaps: Sequence[NetworkGap]) -> dict[str, list[NetworkGap]]:
    """Services that lose time towards several whom they call, with the slower pairs.

    Two callees at least lose about as much (one slow pair alone says nothing about which end is slow), and are
    reached as usual by most calls of others: one fault at the caller is likelier than one at each of them.
    """
    into = _group_by_callee(gaps)
    outgoing: dict[str, list[NetworkGap]] = defaultdict(list)
    for gap in gaps:
        others = [other for other in into[gap.callee] if other.caller != gap.caller]
        if gap.slower and _share_slower(others) < MOST:
            outgoing[gap.caller].append(gap)
    found = {caller: _select_similar_gaps(slow) for caller, slow in outgoing.items()}
    return {caller: slow for caller, slow in found.items() if len(slow) > 1}


def _select_similar_gaps(slow: Sequence[NetworkGap]) -> list[NetworkGap]:
    largest = max(gap.level.excess for gap in slow)
    return [gap for gap in slow if gap.level.excess >= ALIKE * largest]


def _group_by_callee(gaps: Sequence[NetworkGap]) -> Mapping[str, list[NetworkGap]]:
    incoming: dict[str, list[NetworkGap]] = defaultdict(list)
    for gap in gaps:
        incoming[gap.callee].append(gap)
    return incoming


def find_slowly_reached_callees(gaps: Sequence[NetworkGap]) -> dict[str, list[NetworkGap]]:
    """Services that most calls reach slowly, with the slower pairs."""
    found = {}
    for callee, into in _group_by_callee(gaps).items():
        if _share_slower(into) >= MOST:
            found[callee] = [gap for gap in into if gap.slower]
    return found


def find_network_time_loss(seen: SpanStatistics) -> list[Finding]:
    """Services whose network, or whose process, loses time between client and server."""
    gaps = compare_network_gaps(seen)
    callers = find_starved_callers(gaps)
    explained = {(gap.caller, gap.callee) for out in callers.values() for gap in out}
    rest = [gap for gap in gaps if (gap.caller, gap.callee) not in explained]
    found = [_build_outgoing_finding(seen, caller, out) for caller, out in callers.items()]
    reached = find_slowly_reached_callees(rest)
    found += [
        _build_incoming_finding(seen, callee, into, rest)
        for callee, into in reached.items()
        if not all(_is_caller_slow_itself(gap, reached) for gap in into)
    ]
    return [finding for finding in found if finding.size >= SLOWER]


def _is_caller_slow_itself(gap: NetworkGap, reached: Mapping[str, Sequence[NetworkGap]]) -> bool:
    """Whether the caller is reached about as slowly as it reaches the callee: then the slow end is the caller's."""
    into = reached.get(gap.caller, ())
    return any(other.level.excess >= ALIKE * gap.level.excess for other in into)


def _build_outgoing_finding(seen: SpanStatistics, caller: str, slow: Sequence[NetworkGap]) -> Finding:
    together = _merge_gap_levels(slow)
    text = (
        f"{caller} loses {together.now:.1f} ms per call outside the spans of those whom it calls, usually "
        f"{together.usual:.1f} ms, towards {len(slow)} services alike ({format_count(together.calls, 'call')})"
    )
    return _build_gap_finding(seen, caller, "latency", slow, text)


def _build_incoming_finding(
    seen: SpanStatistics, callee: str, slow: Sequence[NetworkGap], others: Sequence[NetworkGap]
) -> Finding:
    """A slow way in is the network's, unless the service also loses time on its own calls."""
    together = _merge_gap_levels(slow)
    kind = "latency" if any(gap.caller == callee and gap.slower for gap in others) else "network_delay"
    text = (
        f"calls to {callee} spend {together.now:.1f} ms between client and server, usually "
        f"{together.usual:.1f} ms ({format_count(together.calls, 'call')}, callers: {len(slow)})"
    )
    return _build_gap_finding(seen, callee, kind, slow, text)


def _merge_gap_levels(gaps: Sequence[NetworkGap]) -> CallTimeLevel:
    """The pairs as one, each weighing as much as it has calls."""
    calls = sum(gap.level.calls for gap in gaps)
    return CallTimeLevel(
        usual=sum(gap.level.usual * gap.level.calls for gap in gaps) / calls,
        now=sum(gap.level.now * gap.level.calls for gap in gaps) / calls,
        calls=calls,
        onset=min((gap.level.onset for gap in gaps if gap.level.onset is not None), default=None),
        already=all(gap.level.already for gap in gaps),
        wobble=_widest_wobble([gap.level.wobble for gap in gaps]),
    )


def _widest_wobble(wobbles: Sequence[float | None]) -> float | None:
    known = [wobble for wobble in wobbles if wobble is not None]
    return max(known) if len(known) == len(wobbles) else None


def _build_gap_finding(
    seen: SpanStatistics, service: str, kind: str, gaps: Sequence[NetworkGap], text: str
) -> Finding:
    together = _merge_gap_levels(gaps)
    return Finding(
        detector="span_time",
        signal="traces",
        service=service,
        kind=kind,
        size=together.size(max(gap.noise_ms for gap in gaps)) * seen.noticeable_share(together),
        text=text,
        figures={
            "baseline": together.usual,
            "incident": together.now,
            "unit": "ms",
            "calls": together.calls,
            "pairs": len(gaps),
        },
        onset=together.onset,
    )

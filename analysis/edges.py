"""Time lost between services: the client's span minus the server's, pair by pair.

A slow network at one service shows at all who call it. A process that is starved, or that has a slow network
itself, shows at all whom it calls, however fast they answer.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opsleuth.analysis.records import EdgeLatency, Finding, Recording
from opsleuth.analysis.spans import traffic
from opsleuth.analysis.windows import Windows, arrange, start_of

# Share of itself that the gap of a healthy pair moves with load: under this nothing is called a change.
FLOOR_SHARE = 0.25
# Spreads from which a pair counts as slower, the usual bound for an outlier.
SLOWER = 3.0
# Share of the calls that makes "most".
MOST = 0.5
# Of the largest excess, the share from which another counts as of the same cause.
ALIKE = 0.25


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap of one pair, usual and now, in milliseconds, over `count` calls in the incident."""

    caller: str
    callee: str
    usual: float
    now: float
    count: int
    onset: float | None
    floor_ms: float

    @property
    def excess(self) -> float:
        """Milliseconds more than usual."""
        return self.now - self.usual

    @property
    def score(self) -> float:
        """Excess in spreads of a healthy pair."""
        return self.excess / max(self.floor_ms, FLOOR_SHARE * self.usual)

    @property
    def slower(self) -> bool:
        """Whether the pair lost more time than it would by itself."""
        return self.score >= SLOWER


def compare(edges: Sequence[EdgeLatency], onset: float | None, floor_ms: float) -> list[Gap]:
    """Every pair that was measured both in the reference and in the incident; less than `floor_ms` is nothing."""
    windows = arrange((edge.window for edge in edges), onset)
    rows: dict[tuple[str, str], dict[str, EdgeLatency]] = defaultdict(dict)
    for edge in edges:
        if edge.network_gap_ms_p50 is not None and edge.count > 0:
            rows[edge.caller, edge.callee][edge.window] = edge
    found = (_gap(pair, by_window, windows, floor_ms) for pair, by_window in sorted(rows.items()))
    return [gap for gap in found if gap is not None]


def _gap(
    pair: tuple[str, str], rows: dict[str, EdgeLatency], windows: Windows, floor_ms: float
) -> Gap | None:
    usual, now = _mean(rows, windows.reference), _mean(rows, windows.incident)
    if usual is None or now is None:
        return None
    usual = max(0.0, usual)  # below 0 where the server works on after its answer: no time to gain on
    count = sum(rows[name].count for name in windows.incident if name in rows)
    half = (usual + now) / 2
    late = [
        n
        for n in (*windows.before, *windows.incident)
        if n in rows and (rows[n].network_gap_ms_p50 or 0) >= half
    ]
    return Gap(
        *pair, usual=usual, now=now, count=count, onset=start_of(late[0]) if late else None, floor_ms=floor_ms
    )


def _mean(rows: dict[str, EdgeLatency], names: Iterable[str]) -> float | None:
    chosen = [rows[name] for name in names if name in rows]
    calls = sum(row.count for row in chosen)
    return sum((row.network_gap_ms_p50 or 0.0) * row.count for row in chosen) / calls if calls else None


def _share_slower(gaps: Sequence[Gap]) -> float:
    """Share of the calls that go over slower pairs; 0 without calls."""
    calls = sum(gap.count for gap in gaps)
    return sum(gap.count for gap in gaps if gap.slower) / calls if calls else 0.0


def starved(gaps: Sequence[Gap]) -> dict[str, list[Gap]]:
    """Services that lose time towards several whom they call, with the slower pairs.

    Two callees at least lose about as much (one slow pair alone says nothing about which end is slow), and are
    reached as usual by most calls of others: one fault at the caller is likelier than one at each of them.
    """
    into = _by_callee(gaps)
    outgoing: dict[str, list[Gap]] = defaultdict(list)
    for gap in gaps:
        others = [other for other in into[gap.callee] if other.caller != gap.caller]
        if gap.slower and _share_slower(others) < MOST:
            outgoing[gap.caller].append(gap)
    found = {caller: _alike(slow) for caller, slow in outgoing.items()}
    return {caller: slow for caller, slow in found.items() if len(slow) > 1}


def _alike(slow: Sequence[Gap]) -> list[Gap]:
    largest = max(gap.excess for gap in slow)
    return [gap for gap in slow if gap.excess >= ALIKE * largest]


def _by_callee(gaps: Sequence[Gap]) -> dict[str, list[Gap]]:
    incoming: dict[str, list[Gap]] = defaultdict(list)
    for gap in gaps:
        incoming[gap.callee].append(gap)
    return incoming


def reached_slowly(gaps: Sequence[Gap]) -> dict[str, list[Gap]]:
    """Services that most calls reach slowly, with the slower pairs."""
    into = _by_callee(gaps)
    return {
        callee: [g for g in pairs if g.slower]
        for callee, pairs in into.items()
        if _share_slower(pairs) >= MOST
    }


def find(recording: Recording) -> list[Finding]:
    """Services whose network, or whose process, loses time between client and server."""
    seen = traffic(recording)
    gaps = compare(seen.edges, recording.alert.onset, seen.floor_ms)
    callers = starved(gaps)
    explained = {(gap.caller, gap.callee) for out in callers.values() for gap in out}
    rest = [gap for gap in gaps if (gap.caller, gap.callee) not in explained]
    found = [_outgoing(caller, out) for caller, out in callers.items()]
    found += [_incoming(callee, into, rest) for callee, into in reached_slowly(rest).items()]
    return sorted(found, key=lambda finding: (-finding.size, finding.service))


def _size(gaps: Sequence[Gap]) -> float:
    """Spreads of the mean excess over all calls: one slow call is weaker evidence than hundreds."""
    calls = sum(gap.count for gap in gaps)
    return sum(gap.score * gap.count for gap in gaps) / calls * math.sqrt(calls)


def _figures(gaps: Sequence[Gap]) -> dict[str, float | str]:
    calls = sum(gap.count for gap in gaps)
    return {
        "baseline": sum(gap.usual * gap.count for gap in gaps) / calls,
        "incident": sum(gap.now * gap.count for gap in gaps) / calls,
        "unit": "ms",
        "calls": calls,
        "pairs": len(gaps),
        "extra_ms": sum(gap.excess * gap.count for gap in gaps),
    }


def _onset(gaps: Sequence[Gap]) -> float | None:
    return min((gap.onset for gap in gaps if gap.onset is not None), default=None)


def _finding(
    service: str, kind: str, gaps: Sequence[Gap], text: str, figures: dict[str, float | str]
) -> Finding:
    return Finding(
        detector="span_time",
        signal="traces",
        service=service,
        kind=kind,
        size=_size(gaps),
        text=text,
        figures=figures,
        onset=_onset(gaps),
    )


def _outgoing(caller: str, slow: Sequence[Gap]) -> Finding:
    figures = _figures(slow)
    text = (
        f"{caller} loses {figures['incident']:.1f} ms per call outside the spans of those whom it calls, usually "
        f"{figures['baseline']:.1f} ms, towards {figures['pairs']} services alike ({figures['calls']} calls)"
    )
    return _finding(caller, "latency", slow, text, figures)


def _incoming(callee: str, slow: Sequence[Gap], others: Sequence[Gap]) -> Finding:
    """A slow way in is the network's, unless the service also loses time on its own calls."""
    figures = _figures(slow)
    kind = "latency" if any(gap.caller == callee and gap.slower for gap in others) else "network_delay"
    text = (
        f"calls to {callee} spend {figures['incident']:.1f} ms between client and server, usually "
        f"{figures['baseline']:.1f} ms ({figures['calls']} calls from {figures['pairs']} services)"
    )
    return _finding(callee, kind, slow, text, figures)

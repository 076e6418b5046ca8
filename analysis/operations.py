"""Operations that take longer by themselves: time in which none of their child spans was running."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opsleuth.analysis import edges
from opsleuth.analysis.records import Finding, Recording, SpanStat
from opsleuth.analysis.spans import Key, traffic
from opsleuth.analysis.windows import Windows, arrange, start_of

# Share of itself that the own time of a healthy operation moves with load.
FLOOR_SHARE = 0.25
# Standard deviations from which a slowdown is worth a word.
SLOWER = 3.0
# What counts of an excess that was there before the onset: more often drift since the reference than the
# first seconds of the fault.
DRIFTED = 0.25


@dataclass(frozen=True, slots=True)
class OwnTime:
    """Own time of one operation per call, usual and now, in milliseconds; `noise_ms` is how restless it is."""

    service: str
    operation: str
    usual: float
    now: float
    noise_ms: float
    calls: int
    onset: float | None
    already: bool

    @property
    def excess(self) -> float:
        """Milliseconds more than usual."""
        return self.now - self.usual

    @property
    def size(self) -> float:
        """Excess in standard deviations of its mean over the calls."""
        noise = max(FLOOR_SHARE * self.usual, self.noise_ms)
        return self.excess / noise * math.sqrt(self.calls) * (DRIFTED if self.already else 1.0)


def compare(stats: Sequence[SpanStat], onset: float | None, floor_ms: float) -> list[OwnTime]:
    """Every operation that was measured both in the reference and in the incident; less than `floor_ms` is nothing."""
    windows = arrange((stat.window for stat in stats), onset)
    rows: dict[Key, dict[str, SpanStat]] = defaultdict(dict)
    for stat in stats:
        if stat.self_ms_p50 is not None and stat.count > 0:
            rows[stat.service, stat.operation][stat.window] = stat
    found = (_own_time(key, by_window, windows, floor_ms) for key, by_window in sorted(rows.items()))
    return [own for own in found if own is not None]


def _own_time(key: Key, rows: dict[str, SpanStat], windows: Windows, floor_ms: float) -> OwnTime | None:
    usual, now = _mean(rows, windows.reference), _mean(rows, windows.incident)
    if usual is None or now is None:
        return None
    calls = sum(rows[name].count for name in windows.incident if name in rows)
    earlier = _mean(rows, windows.before)
    noise = max(_restless(rows[name]) for name in windows.reference if name in rows)
    half = (usual + now) / 2
    late = [
        n for n in (*windows.before, *windows.incident) if n in rows and (rows[n].self_ms_p50 or 0) >= half
    ]
    return OwnTime(
        *key,
        usual=usual,
        now=now,
        noise_ms=max(floor_ms, noise),
        calls=calls,
        onset=start_of(late[0]) if late else None,
        already=earlier is not None and earlier >= half,
    )


def _restless(row: SpanStat) -> float:
    """A mean far from the median tells of a long tail: such an operation varies by nature."""
    if row.self_ms_mean is None or row.self_ms_p50 is None:
        return 0.0
    return abs(row.self_ms_mean - row.self_ms_p50)


def _mean(rows: dict[str, SpanStat], names: Iterable[str]) -> float | None:
    chosen = [rows[name] for name in names if name in rows]
    calls = sum(row.count for row in chosen)
    return sum((row.self_ms_p50 or 0.0) * row.count for row in chosen) / calls if calls else None


def find(recording: Recording) -> list[Finding]:
    """For each service, the operation whose own time grew most.

    The client's side of a call is left out: its own time is the way to the other service and back.
    """
    seen = traffic(recording)
    gaps = edges.compare(seen.edges, recording.alert.onset, seen.floor_ms)
    worst: dict[str, OwnTime] = {}
    for own in compare(seen.stats, recording.alert.onset, seen.floor_ms):
        if own.size < SLOWER or own.excess < seen.floor_ms:
            continue
        if (own.service, own.operation) in seen.clients or any(_is_way(own, gap) for gap in gaps):
            continue
        if own.service not in worst or own.size > worst[own.service].size:
            worst[own.service] = own
    return sorted(map(_finding, worst.values()), key=lambda finding: (-finding.size, finding.service))


def _is_way(own: OwnTime, gap: edges.Gap) -> bool:
    """Whether the own time is nothing but the way to another service: as long as that, usually and now."""
    return (
        gap.slower
        and own.service == gap.caller
        and math.isclose(own.excess, gap.excess, rel_tol=FLOOR_SHARE)
        and abs(own.usual - gap.usual) <= max(gap.floor_ms, FLOOR_SHARE * gap.usual)
    )


def _finding(own: OwnTime) -> Finding:
    return Finding(
        detector="span_time",
        signal="traces",
        service=own.service,
        kind="latency",
        size=own.size,
        text=(
            f"{own.operation} of {own.service} takes {own.now:.1f} ms by itself, callees left out, "
            f"usually {own.usual:.1f} ms ({own.calls} calls)"
        ),
        figures={
            "baseline": own.usual,
            "incident": own.now,
            "unit": "ms",
            "calls": own.calls,
            "extra_ms": own.excess * own.calls,
        },
        onset=own.onset,
    )

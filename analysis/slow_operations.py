"""Operations that take longer by themselves: time in which none of their child spans was running."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from opsleuth.analysis import network_gaps
from opsleuth.analysis.latency_levels import DRIFT, CallTimeLevel, compute_call_time_level
from opsleuth.analysis.records import Finding, SpanStat
from opsleuth.analysis.span_statistics import Key, SpanStatistics, estimate_call_noise_ms
from opsleuth.analysis.time_windows import ComparisonWindows

# Standard deviations from which a slowdown is worth a word: the usual bound for an outlier.
SLOWER = 3.0
# What counts of an excess that was there before the onset: more often drift since the reference than the
# first seconds of the fault.
DRIFTED = 0.25


@dataclass(frozen=True, slots=True)
class OperationSelfTime:
    """Own time of one operation; `noise_ms` is how far a call strays from the usual."""

    service: str
    operation: str
    level: CallTimeLevel
    noise_ms: float

    @property
    def size(self) -> float:
        """Excess in standard deviations."""
        return self.level.size(self.noise_ms) * (DRIFTED if self.level.already else 1.0)


def compare_self_times(seen: SpanStatistics) -> list[OperationSelfTime]:
    """Every operation that was measured both in the reference and in the incident."""
    rows: dict[Key, dict[str, SpanStat]] = defaultdict(dict)
    for stat in seen.stats:
        if stat.self_ms_p50 is not None and stat.count > 0:
            rows[stat.service, stat.operation][stat.window] = stat
    found = (_measure_self_time(key, by_window, seen.windows) for key, by_window in sorted(rows.items()))
    return [own for own in found if own is not None]


def _measure_self_time(
    key: Key, rows: Mapping[str, SpanStat], windows: ComparisonWindows
) -> OperationSelfTime | None:
    found = compute_call_time_level(
        {name: (row.self_ms_p50 or 0.0, row.count) for name, row in rows.items()}, windows
    )
    if found is None:
        return None
    noise = max(estimate_call_noise_ms(rows[name]) for name in windows.reference if name in rows)
    return OperationSelfTime(*key, found, noise)


def find_slow_operations(seen: SpanStatistics) -> list[Finding]:
    """For each service, the operation whose own time grew most.

    The client's side of a call is left out: its own time is the way to the other service and back.
    """
    gaps = network_gaps.compare_network_gaps(seen)
    worst: dict[str, tuple[float, OperationSelfTime]] = {}
    for own in compare_self_times(seen):
        size = own.size * seen.noticeable_share(own.level)
        if size < max(SLOWER, worst.get(own.service, (0.0,))[0]):
            continue
        if (own.service, own.operation) not in seen.ways and not any(
            _is_call_to_other_service(own, gap) for gap in gaps
        ):
            worst[own.service] = size, own
    return [_build_self_time_finding(own, size) for size, own in worst.values()]


def _is_call_to_other_service(own: OperationSelfTime, gap: network_gaps.NetworkGap) -> bool:
    """Whether the own time is nothing but the way to another service: as long as that, usually and now."""
    return (
        gap.slower
        and own.service == gap.caller
        and math.isclose(own.level.excess, gap.level.excess, rel_tol=DRIFT)
        and abs(own.level.usual - gap.level.usual) <= gap.level.drift
    )


def _build_self_time_finding(own: OperationSelfTime, size: float) -> Finding:
    return Finding(
        detector="span_time",
        signal="traces",
        service=own.service,
        kind="latency",
        size=size,
        text=(
            f"{own.operation} of {own.service} takes {own.level.now:.1f} ms by itself, callees left out, "
            f"usually {own.level.usual:.1f} ms ({own.level.calls} calls)"
        ),
        figures={
            "baseline": own.level.usual,
            "incident": own.level.now,
            "unit": "ms",
            "calls": own.level.calls,
            "operation": own.operation,
        },
        onset=own.level.onset,
    )

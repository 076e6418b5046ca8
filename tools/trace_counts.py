"""Calls, failures and times of services and of the ways between them, usual and now: what no longer happens is a row too."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opsleuth.analysis.failed_spans import is_failed_status
from opsleuth.analysis.robust_statistics import quantile
from opsleuth.analysis.span_statistics import SpanFamily, SpanStatistics
from opsleuth.analysis.time_windows import ComparisonWindows, classify_windows
from opsleuth.tools.recordings import round_figure, without_empty


@dataclass(slots=True)
class _SideTotals:
    """One side of the comparison: calls, failed ones (None where no status is recorded), and milliseconds of each."""

    calls: int = 0
    failed: int | None = None
    times: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _PairTotals:
    usual: _SideTotals = field(default_factory=_SideTotals)
    now: _SideTotals = field(default_factory=_SideTotals)


Name = tuple[str, ...]


def count_by_service(seen: SpanStatistics, *, summed: bool) -> list[dict[str, Any]]:
    """A row for each service that has spans usually or now; those that are gone come first.

    `summed` where the source counted all spans: its counts are taken, which have no failures and no times.
    """
    totals: dict[Name, _PairTotals] = defaultdict(_PairTotals)
    if summed:
        _add_counts(totals, seen.windows, (((s.service,), s.window, s.count) for s in seen.stats))
    else:
        _add_spans(totals, seen, lambda member: (member.span.service,))
    return _list_rows(totals, ("service",))


def count_by_edge(seen: SpanStatistics, *, summed: bool) -> list[dict[str, Any]]:
    """The same for each pair of services of which one calls the other."""
    totals: dict[Name, _PairTotals] = defaultdict(_PairTotals)
    if summed:
        _add_counts(totals, seen.windows, (((e.caller, e.callee), e.window, e.count) for e in seen.edges))
    else:
        _add_spans(totals, seen, _name_edge)
    return _list_rows(totals, ("caller", "callee"))


def _name_edge(member: SpanFamily) -> Name | None:
    parent = member.parent
    if parent is None or parent.service == member.span.service:
        return None
    return parent.service, member.span.service


def _choose_side(pair: _PairTotals, windows: ComparisonWindows, window: str) -> _SideTotals | None:
    if window in windows.incident:
        return pair.now
    return pair.usual if window in windows.reference else None


def _add_spans(
    totals: dict[Name, _PairTotals], seen: SpanStatistics, name_of: Callable[[SpanFamily], Name | None]
) -> None:
    windows = classify_windows((window for _, window in seen.members), seen.onset)
    for member, window in seen.members:
        name = name_of(member)
        side = _choose_side(totals[name], windows, window) if name is not None else None
        if side is not None:
            side.calls += 1
            side.times.append(member.span.duration_ms)
            if member.span.status is not None:
                side.failed = (side.failed or 0) + is_failed_status(member.span.status)


def _add_counts(
    totals: dict[Name, _PairTotals], windows: ComparisonWindows, counts: Iterable[tuple[Name, str, int]]
) -> None:
    for name, window, count in counts:
        side = _choose_side(totals[name], windows, window)
        if side is not None:
            side.calls += count


def _list_rows(totals: Mapping[Name, _PairTotals], keys: Name) -> list[dict[str, Any]]:
    compared = {name: pair for name, pair in totals.items() if pair.usual.calls or pair.now.calls}
    ordered = sorted(compared.items(), key=lambda item: (_rank_pair(item[1]), item[0]))
    return [_pair_record(dict(zip(keys, name, strict=True)), pair) for name, pair in ordered]


def _rank_pair(pair: _PairTotals) -> tuple[bool, float, float]:
    """What is gone first, then what fails more often than usual, then what lasts longer."""
    usual, now = pair.usual, pair.now
    share = (now.failed or 0) / max(now.calls, 1) - (usual.failed or 0) / max(usual.calls, 1)
    longer = quantile(now.times, 0.5) - quantile(usual.times, 0.5) if now.times and usual.times else 0.0
    return now.calls > 0, -share, -longer


def _pair_record(named: Mapping[str, str], pair: _PairTotals) -> dict[str, Any]:
    record: dict[str, Any] = {**named, "calls_usual": pair.usual.calls, "calls_now": pair.now.calls}
    for word, side in (("usual", pair.usual), ("now", pair.now)):
        record[f"errors_{word}"] = side.failed
        if side.times:
            record[f"p50_ms_{word}"] = round_figure(quantile(side.times, 0.5))
            record[f"p95_ms_{word}"] = round_figure(quantile(side.times, 0.95))
    return without_empty(record)

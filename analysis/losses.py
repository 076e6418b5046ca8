"""Child spans that no longer come: work that breaks off half way, even where nothing is reported as an error."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.failure_words import speaks_of_failure
from opsleuth.analysis.records import Finding, SpanStat
from opsleuth.analysis.spans import Key, Traffic
from opsleuth.analysis.steps import Loss, Tally, loss
from opsleuth.analysis.windows import Windows, arrange

# An operation seen less often than this in the reference is no rule to hold anything against.
ENOUGH = 3
# Standard deviations from which a loss is worth a word (one in twenty by chance).
LOST = 2.0

Counts = Mapping[str, Counter[str]]


@dataclass(frozen=True, slots=True)
class LostSpan:
    """`operation` no longer follows `anchor` of the same service as often as it did."""

    service: str
    operation: str
    anchor: str
    usual: Tally
    now: Tally
    loss: Loss


def counts_by_service(stats: Iterable[SpanStat]) -> dict[str, dict[str, Counter[str]]]:
    """Calls by service, operation and window."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for stat in stats:
        counts[stat.service][stat.operation][stat.window] += stat.count
    return counts


def total(counts: Mapping[str, int], windows: Iterable[str]) -> int:
    """Sum over the named windows."""
    return sum(counts.get(name, 0) for name in windows)


def anchors(operation: str, parents: frozenset[str | None] | None, usual: Mapping[str, int]) -> list[str]:
    """Operations that `operation` is bound to: its one parent, or, where none was seen, those just as frequent."""
    if parents is not None:
        return [name for name in parents if name is not None and name in usual] if len(parents) == 1 else []
    return [name for name, count in usual.items() if name != operation and count == usual[operation]]


def lost_spans(
    service: str, counts: Counts, windows: Windows, parents: Mapping[Key, frozenset[str | None]]
) -> list[LostSpan]:
    """What is missing inside one service, against the anchor that leaves most open."""
    usual = {name: total(by_window, windows.reference) for name, by_window in counts.items()}
    now = {name: total(by_window, windows.incident) for name, by_window in counts.items()}
    found = []
    for name, count in usual.items():
        if count < ENOUGH or speaks_of_failure(name):
            continue
        held = [
            LostSpan(service, name, anchor, Tally(count, usual[anchor]), Tally(now[name], now[anchor]), lost)
            for anchor in anchors(name, parents.get((service, name)), usual)
            if (lost := loss(Tally(count, usual[anchor]), Tally(now[name], now[anchor]))) is not None
        ]
        if held:
            found.append(max(held, key=lambda lost: (lost.loss.size, lost.anchor)))
    return found


def find(seen: Traffic, onset: float | None) -> list[Finding]:
    """For each service, the child span that is missing most."""
    windows = arrange((stat.window for stat in seen.stats), onset)
    found = []
    for service, counts in counts_by_service(seen.stats).items():
        lost = [one for one in lost_spans(service, counts, windows, seen.parents) if one.loss.size >= LOST]
        if lost:
            found.append(_finding(max(lost, key=lambda one: (one.loss.size, one.operation)), lost))
    return found


def _finding(worst: LostSpan, lost: Sequence[LostSpan]) -> Finding:
    usual, now = worst.usual, worst.now
    return Finding(
        detector="lost_steps",
        signal="traces",
        service=worst.service,
        kind="errors",
        size=worst.loss.size,
        text=(
            f"{worst.service} does {worst.operation} {now.step:.0f} times for {now.anchor:.0f} {worst.anchor}, "
            f"usually {usual.step:.0f} for {usual.anchor:.0f}; {worst.loss.missing:.0f} are missing "
            f"({len(lost)} operations fall short)"
        ),
        figures={
            "baseline": usual.step,
            "baseline_anchor": usual.anchor,
            "incident": now.step,
            "incident_anchor": now.anchor,
            "missing": worst.loss.missing,
            "operations": len(lost),
            "unit": "spans",
            "step": worst.operation,
            "anchor": worst.anchor,
        },
    )

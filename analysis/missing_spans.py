"""Child spans that no longer come: work that breaks off half way, even where nothing is reported as an error."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from opsleuth.analysis.failure_words import speaks_of_failure
from opsleuth.analysis.missing_steps import (
    LostStep,
    StepCompanions,
    WindowCounts,
    compare_step_to_anchor,
)
from opsleuth.analysis.records import Finding, SpanStat
from opsleuth.analysis.span_statistics import Key, SpanStatistics
from opsleuth.analysis.time_windows import ComparisonWindows
from opsleuth.state.plurals import format_count

# Standard deviations from which a loss is worth a word (one in twenty by chance).
LOST = 2.0

Parents = Mapping[Key, frozenset[str | None]]


def count_operations(stats: Iterable[SpanStat]) -> dict[str, list[WindowCounts]]:
    """How often the operations of each service were called, by window."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for stat in stats:
        counts[stat.service][stat.operation][stat.window] += stat.count
    return {
        service: [WindowCounts(name, by_window) for name, by_window in sorted(operations.items())]
        for service, operations in sorted(counts.items())
    }


def find_lost_spans(
    service: str, operations: Sequence[WindowCounts], windows: ComparisonWindows, parents: Parents
) -> list[LostStep]:
    """What is missing inside one service.

    Each operation is compared with its one parent, or, where none was seen, against those that are just as
    frequent: of these the one that leaves most open.
    """
    by_name = {one.name: one for one in operations}
    companions = StepCompanions(operations, windows)
    found = []
    for step in operations:
        if speaks_of_failure(step.name):
            continue
        above = parents.get((service, step.name))
        usual = step.total(windows.reference)
        if above is None:
            anchors = [(one, companions.is_part_of_flow(one)) for one in companions.of(step, usual, usual)]
        else:
            anchors = [(one, True) for one in _single_known_parent(above, by_name)]
        compared = (compare_step_to_anchor(step, anchor, windows, bound=bound) for anchor, bound in anchors)
        held = [lost for lost in compared if lost is not None]
        if held:
            found.append(max(held, key=lambda lost: lost.order))
    return found


def _single_known_parent(
    parents: frozenset[str | None], by_name: Mapping[str, WindowCounts]
) -> list[WindowCounts]:
    if len(parents) != 1:
        return []
    return [by_name[name] for name in parents if name is not None and name in by_name]


def find_missing_child_spans(seen: SpanStatistics) -> list[Finding]:
    """For each service, the child span that is missing most."""
    found = []
    for service, operations in count_operations(seen.stats).items():
        lost = [
            one
            for one in find_lost_spans(service, operations, seen.windows, seen.parents)
            if one.loss.size >= LOST
        ]
        if lost:
            found.append(_build_lost_span_finding(service, max(lost, key=lambda one: one.order), len(lost)))
    return found


def _build_lost_span_finding(service: str, worst: LostStep, short: int) -> Finding:
    usual, now = worst.usual, worst.now
    return Finding(
        detector="lost_steps",
        signal="traces",
        service=service,
        kind="errors",
        size=worst.loss.size,
        text=(
            f"{service} does {worst.step.name} {now.step:.0f} times for {now.anchor:.0f} {worst.anchor.name}, "
            f"usually {usual.step:.0f} for {usual.anchor:.0f}; {worst.loss.missing:.0f} are missing "
            f"({format_count(short, 'operation falls short', 'operations fall short')})"
        ),
        figures={
            "baseline": usual.step,
            "baseline_anchor": usual.anchor,
            "incident": now.step,
            "incident_anchor": now.anchor,
            "missing": worst.loss.missing,
            "operations": short,
            "unit": "spans",
            "step": worst.step.name,
            "anchor": worst.anchor.name,
        },
        onset=worst.onset,
    )

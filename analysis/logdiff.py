"""What logs say more or less often than usual, by statement.

A service whose code breaks off half way goes on writing the lines before the break and no longer those behind
it; the loud errors are often its callers'.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.failure_words import speaks_of_exception, speaks_of_failure
from opsleuth.analysis.losses import counts_by_service, total
from opsleuth.analysis.records import Dependency, Finding, PatternCount, Recording
from opsleuth.analysis.spans import Traffic
from opsleuth.analysis.steps import Loss, Tally, loss
from opsleuth.analysis.templates import mine
from opsleuth.analysis.topology import callees_of
from opsleuth.analysis.windows import BASELINE, Windows, arrange, place

# A statement seen less often than this in the reference is no rule to hold anything against.
ENOUGH = 3
# How far the counts of a line and of what it belongs to may differ at the edges of a window.
AGREEMENT = 0.97
# Standard deviations from which a loss is worth a word. Among hundreds of pairs, some agree by chance.
LOST = 2.5
QUOTED = 120


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a service: how often it was written by window, whether it tells of failure, an example."""

    service: str
    counts: Mapping[str, int]
    failure: bool
    example: str


@dataclass(frozen=True, slots=True)
class LostLine:
    """A usual line that no longer follows its anchor (another line, or an operation of the same service)."""

    line: Statement
    anchor: str
    usual: Tally
    now: Tally
    loss: Loss


def pattern_counts(recording: Recording) -> list[PatternCount]:
    """Counts of lines by window: as recorded over all lines where there are such, else of the lines at hand."""
    if recording.patterns is not None:
        return list(recording.patterns)
    onset = recording.alert.onset
    start = onset if onset is not None else recording.window.start
    counts: Counter[tuple[str, str, str | None, str]] = Counter()
    for line in recording.logs_baseline or ():
        counts[BASELINE, line.service, line.level, line.message] += 1
    for line in recording.logs or ():
        if line.time is not None:
            counts[place(line.time, start), line.service, line.level, line.message] += 1
    return [PatternCount(*key, count=count, traces_in_window=None) for key, count in counts.items()]


def statements(rows: Sequence[PatternCount]) -> dict[str, list[Statement]]:
    """Statements by service: rows of one template, or of one place in the code, together."""
    template = mine(row.pattern for row in rows)
    groups: dict[tuple[str, str], list[PatternCount]] = defaultdict(list)
    for row in rows:
        groups[row.service, template[row.pattern]].append(row)
    found: dict[str, list[Statement]] = defaultdict(list)
    for (service, _), group in sorted(groups.items()):
        found[service].append(_statement(service, group))
    return found


def _statement(service: str, rows: Sequence[PatternCount]) -> Statement:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.window] += row.count
    failure = any(speaks_of_failure(row.pattern, row.level) for row in rows)
    return Statement(service, counts, failure, min(row.pattern for row in rows))


def lost_lines(
    lines: Sequence[Statement], operations: Mapping[str, Mapping[str, int]], windows: Windows
) -> list[LostLine]:
    """Usual lines of one service that no longer come, each against the anchor that leaves most open."""
    usual_lines = [line for line in lines if not line.failure]
    candidates = [(line.example, line.counts) for line in usual_lines]
    candidates += [(name, counts) for name, counts in operations.items() if not speaks_of_failure(name)]
    found = []
    for line in usual_lines:
        held = [
            lost
            for name, counts in candidates
            if counts is not line.counts and (lost := _lost(line, name, counts, windows)) is not None
        ]
        if held:
            found.append(max(held, key=lambda lost: (lost.loss.size, lost.anchor)))
    return found


def _lost(line: Statement, name: str, anchor: Mapping[str, int], windows: Windows) -> LostLine | None:
    usual = Tally(total(line.counts, windows.reference), total(anchor, windows.reference))
    if usual.step < ENOUGH or not usual.step <= usual.anchor <= usual.step / AGREEMENT:
        return None
    now = Tally(total(line.counts, windows.incident), total(anchor, windows.incident))
    lost = loss(usual, now)
    if lost is None or not _bound(line.counts, anchor, lost, windows.before):
        return None
    return LostLine(line, name, usual, now, lost)


def _bound(line: Mapping[str, int], anchor: Mapping[str, int], lost: Loss, before: Iterable[str]) -> bool:
    """Whether the two went together in the minutes before the onset as well.

    There the fault may already have begun, so that a line that is gone by now may already have been rarer.
    """
    for name in before:
        step, calls = line.get(name, 0), anchor.get(name, 0)
        if step > calls + 1 or (not lost.complete and step < AGREEMENT * calls - 1):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Written:
    """Statements by service, and which windows they are compared in. Without a reference there are none."""

    by_service: Mapping[str, Sequence[Statement]]
    windows: Windows


def read(recording: Recording) -> Written:
    """What the logs of a recording hold."""
    rows = pattern_counts(recording)
    windows = arrange([row.window for row in rows], recording.alert.onset)
    return Written(statements(rows) if windows.reference else {}, windows)


def lost_steps(written: Written, seen: Traffic) -> list[Finding]:
    """For each service, the usual line that is missing most."""
    windows = written.windows
    operations = counts_by_service(seen.stats)
    found = []
    for service, lines in written.by_service.items():
        new = _new_failures(lines, windows)
        lost = [
            one for one in lost_lines(lines, operations.get(service, {}), windows) if one.loss.size >= LOST
        ]
        if lost:
            worst = max(lost, key=lambda one: (_with_failures(one, new, windows), one.line.example))
            found.append(_lost_finding(worst, new, windows))
    return found


def new_failures(written: Written, topology: Sequence[Dependency] | None) -> list[Finding]:
    """For each service, its lines of failure that the reference does not know; those of callers are victims'."""
    found = {service: _new_failures(lines, written.windows) for service, lines in written.by_service.items()}
    new = {service: lines for service, lines in found.items() if lines}
    callees = callees_of(topology)
    return [
        _new_finding(lines, written.windows, victim=not callees.get(service, set()).isdisjoint(new))
        for service, lines in new.items()
    ]


def _new_failures(lines: Sequence[Statement], windows: Windows) -> list[Statement]:
    """Lines of failure that the reference does not know."""
    return [
        line
        for line in lines
        if line.failure and not total(line.counts, windows.reference) and total(line.counts, windows.incident)
    ]


def _with_failures(lost: LostLine, new: Sequence[Statement], windows: Windows) -> float:
    """Size of the loss, up to doubled where new lines of failure stand in the place of the missing ones."""
    instead = sum(total(line.counts, windows.incident) for line in new)
    return lost.loss.size * (1 + min(1.0, instead / lost.loss.missing))


def _lost_finding(lost: LostLine, new: Sequence[Statement], windows: Windows) -> Finding:
    usual, now = lost.usual, lost.now
    instead = max(new, key=lambda line: (total(line.counts, windows.incident), line.example), default=None)
    text = (
        f"{lost.line.service} writes {_quote(lost.line.example)} {now.step:.0f} times for {now.anchor:.0f} "
        f"{_quote(lost.anchor)}, usually {usual.step:.0f} for {usual.anchor:.0f}"
    )
    figures: dict[str, float | str] = {
        "step": _quote(lost.line.example),
        "anchor": _quote(lost.anchor),
        "baseline": usual.step,
        "baseline_anchor": usual.anchor,
        "incident": now.step,
        "incident_anchor": now.anchor,
        "missing": lost.loss.missing,
        "unit": "lines",
    }
    if instead is not None:
        figures["new_failures"] = total(instead.counts, windows.incident)
        figures["failure"] = _quote(instead.example)
        text += f"; new, {figures['new_failures']} times: {_quote(instead.example)}"
    return Finding(
        detector="lost_steps",
        signal="logs",
        service=lost.line.service,
        kind="exception" if instead is None or speaks_of_exception(instead.example) else "errors",
        size=_with_failures(lost, new, windows),
        text=text,
        figures=figures,
    )


def _new_finding(new: Sequence[Statement], windows: Windows, *, victim: bool) -> Finding:
    loudest = max(new, key=lambda line: (total(line.counts, windows.incident), line.example))
    count = total(loudest.counts, windows.incident)
    everything = sum(total(line.counts, windows.incident) for line in new)
    return Finding(
        detector="new_failures",
        signal="logs",
        service=loudest.service,
        kind="exception" if speaks_of_exception(loudest.example) else "errors",
        size=everything**0.5,
        text=(
            f"{loudest.service} writes {everything} lines of failure that are new, "
            f"{count} of them {_quote(loudest.example)}"
        ),
        figures={
            "baseline": 0,
            "incident": everything,
            "loudest": count,
            "unit": "lines",
            "failure": _quote(loudest.example),
        },
        direction="victim" if victim else "cause",
    )


def _quote(text: str) -> str:
    return f'"{text[:QUOTED]}"'

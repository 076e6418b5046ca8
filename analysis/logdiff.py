"""What logs say more or less often than usual, by statement.

A service whose code breaks off half way goes on writing the lines before the break and no longer those behind
it; the loud errors are often its callers'.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import NormalDist

from opsleuth.analysis.failure_words import (
    speaks_of_exception,
    speaks_of_failure,
    speaks_of_slowness,
    warns,
)
from opsleuth.analysis.losses import counted_operations
from opsleuth.analysis.onset import moment_of
from opsleuth.analysis.records import Dependency, Finding, PatternCount, Recording
from opsleuth.analysis.spans import Traffic
from opsleuth.analysis.steps import ENOUGH, Companions, Counted, LostStep, Tally, compare, rise
from opsleuth.analysis.templates import mine
from opsleuth.analysis.topology import callees_of
from opsleuth.analysis.windows import BASELINE, Windows, arrange, place
from opsleuth.state.words import counted, often

# How far the counts of a line and of what it belongs to may differ at the edges of a window.
AGREEMENT = 0.97
# Standard deviations from which a loss is worth a word. Among hundreds of pairs, some agree by chance.
LOST = 2.5
# Standard deviations from which a line of failure counts as more frequent: rare ones come by chance, two or three
# at a time, among the many statements of a system.
RISEN = 2.5
# Share of systems in which some line of failure becomes frequent, or some usual line goes missing, by chance.
BY_CHANCE = 0.02
# A callee's failures explain a caller's if they are at least half as sure.
COMPARABLE = 0.5
QUOTED = 120


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a service (named by an example), and how often it was written.

    `failure` tells that it speaks of one; `usual` that it neither does nor warns.
    """

    counted: Counted
    failure: bool
    usual: bool


@dataclass(frozen=True, slots=True)
class Rise:
    """A line of failure that came `usual` times in the reference and `now` times in the incident."""

    line: Counted
    usual: int
    now: int
    size: float


@dataclass(frozen=True)
class Written:
    """Statements by service, and which windows they are compared in. Without a reference there are none."""

    by_service: Mapping[str, Sequence[Statement]]
    windows: Windows

    def new_failures(self, service: str) -> list[Rise]:
        """Lines of failure of a service that came more often, by its other lines, than usual; the surest first."""
        return [rise for rise in self.failures(service) if rise.size >= self.needed]

    @cached_property
    def needed(self) -> float:
        """Standard deviations that one of all lines of failure reaches by chance in so few systems."""
        return max(RISEN, _beyond_chance(line.failure for line in self._lines))

    @cached_property
    def missed(self) -> float:
        """The same of all usual lines that are frequent enough to be missed."""
        counts = (line.counted.total(self.windows.reference) for line in self._lines if line.usual)
        return max(LOST, _beyond_chance(count >= ENOUGH for count in counts))

    @property
    def _lines(self) -> Iterator[Statement]:
        return chain.from_iterable(self.by_service.values())

    def failures(self, service: str) -> list[Rise]:
        """The same, those included that may have become so by chance."""
        lines = self.by_service[service]
        written = self._others(lines)
        if 0 in written:  # a service that writes nothing else is held against all that is written
            written = self._others([line for each in self.by_service.values() for line in each])
        found = []
        for line in (line.counted for line in lines if line.failure):
            usual, now = (Tally(line.total(n), w) for n, w in zip(self._compared, written, strict=True))
            size = rise(usual, now)
            if size > 0:
                found.append(Rise(line, int(usual.step), int(now.step), size))
        return sorted(found, key=lambda rise: (-rise.size, rise.line.name))

    def _others(self, lines: Sequence[Statement]) -> list[int]:
        return [
            sum(line.counted.total(names) for line in lines if not line.failure) for names in self._compared
        ]

    @property
    def _compared(self) -> tuple[Sequence[str], Sequence[str]]:
        return (*self.windows.reference, *self.windows.earlier), self.windows.incident


def mostly_name(rises: Sequence[Rise], others: Collection[str]) -> bool:
    """Whether most of the lines name one of the `others`."""
    if not others:
        return False
    names = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(others)))})(?![\w-])")
    pointing = sum(rise.now for rise in rises if names.search(rise.line.name))
    return 2 * pointing > sum(rise.now for rise in rises)


def _beyond_chance(tried: Iterable[bool]) -> float:
    """Standard deviations that one of all that were tried reaches by chance in a share `BY_CHANCE` (Bonferroni)."""
    return NormalDist().inv_cdf(1 - BY_CHANCE / max(1, sum(tried)))


def read(recording: Recording) -> Written:
    """What the logs of a recording hold."""
    rows = pattern_counts(recording)
    windows = arrange((row.window for row in rows), moment_of(recording))
    return Written(statements(rows) if windows.reference else {}, windows)


def pattern_counts(recording: Recording) -> list[PatternCount]:
    """Counts of lines by window: as recorded over all lines where there are such, else of the lines at hand."""
    if recording.patterns is not None:
        return list(recording.patterns)
    onset = moment_of(recording)
    counts: Counter[tuple[str, str, str | None, str]] = Counter()
    for line in recording.logs_baseline or ():
        counts[BASELINE, line.service, line.level, line.message] += 1
    for line in recording.logs or ():
        if line.time is not None:
            counts[place(line.time, onset), line.service, line.level, line.message] += 1
    return [PatternCount(*key, count=count, traces_in_window=None) for key, count in counts.items()]


def statements(rows: Sequence[PatternCount]) -> dict[str, list[Statement]]:
    """Statements by service: rows of one template, or of one place in the code, together."""
    template = mine(row.pattern for row in rows)
    groups: dict[tuple[str, str], list[PatternCount]] = defaultdict(list)
    for row in rows:
        groups[row.service, template[row.pattern]].append(row)
    found: dict[str, list[Statement]] = defaultdict(list)
    for (service, _), group in sorted(groups.items()):
        found[service].append(_statement(group))
    return found


def _speaks_of_trouble(row: PatternCount) -> bool:
    """Failure by level or wording; slowness in a warning (elsewhere "slow" may be a name or a figure's label)."""
    if speaks_of_failure(row.pattern, row.level):
        return True
    return warns(row.level) and speaks_of_slowness(row.pattern)


def _statement(rows: Sequence[PatternCount]) -> Statement:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.window] += row.count
    failure = any(_speaks_of_trouble(row) for row in rows)
    usual = not failure and not any(warns(row.level) for row in rows)
    return Statement(Counted(min(row.pattern for row in rows), counts), failure, usual)


def lost_lines(lines: Sequence[Statement], operations: Sequence[Counted], windows: Windows) -> list[LostStep]:
    """Usual lines of one service that no longer come.

    Each is held against the other lines and the operations of the service that were as frequent: of those that
    it went together with, the one that leaves most open.
    """
    usual_lines = [line.counted for line in lines if line.usual]
    work = [one for one in operations if not speaks_of_failure(one.name)]
    companions = Companions([*usual_lines, *work], windows)
    found = []
    for line in usual_lines:
        usual = line.total(windows.reference)
        anchors = companions.of(line, usual, math.floor(usual / AGREEMENT))
        compared = (compare(line, anchor, windows, bound=companions.firm(anchor)) for anchor in anchors)
        held = [lost for lost in compared if lost is not None and _together(lost, windows)]
        if held:
            found.append(max(held, key=lambda lost: lost.order))
    return found


def _together(lost: LostStep, windows: Windows) -> bool:
    """Whether the two went together in the rest of the recording as well.

    In the last minutes before the onset the fault may already have begun, so that a line that is gone by now may
    already have been rarer.
    """
    begun = windows.before if lost.loss.complete else ()
    for names in (windows.earlier, windows.before):
        step, calls = lost.step.total(names), lost.anchor.total(names)
        if step > calls / AGREEMENT + 1 or (names is not begun and step < AGREEMENT * calls - 1):
            return False
    return True


def lost_steps(written: Written, seen: Traffic) -> list[Finding]:
    """For each service, the usual line that is missing most."""
    windows, operations = written.windows, counted_operations(seen.stats)
    found = []
    for service, lines in written.by_service.items():
        missing = lost_lines(lines, operations.get(service, ()), windows)
        lost = [one for one in missing if one.loss.size >= written.missed]
        if lost:
            new = [rise for rise in written.failures(service) if not rise.usual]
            found.append(_lost_finding(service, max(lost, key=lambda one: one.order), new))
    return found


def new_failures(written: Written, topology: Sequence[Dependency] | None) -> list[Finding]:
    """For each service, its lines of failure that became frequent.

    They are a victim's where such lines of a callee are as sure, or where most of them name a callee that writes
    lines at all: it speaks for itself.
    """
    found = {service: written.new_failures(service) for service in written.by_service}
    risen = {service: rises for service, rises in found.items() if rises}
    findings = []
    for service, rises in risen.items():
        heard = callees_of(topology).get(service, set()) & written.by_service.keys()
        below = [risen[callee][0].size for callee in heard if callee in risen]
        passed_on = any(size >= COMPARABLE * rises[0].size for size in below)
        findings.append(_new_finding(service, rises, victim=passed_on or mostly_name(rises, heard)))
    return findings


def _lost_finding(service: str, lost: LostStep, new: Sequence[Rise]) -> Finding:
    usual, now = lost.usual, lost.now
    text = (
        f"{service} writes {_quote(lost.step)} {now.step:.0f} times for {now.anchor:.0f} "
        f"{_quote(lost.anchor)}, usually {usual.step:.0f} for {usual.anchor:.0f}"
    )
    figures: dict[str, float | str] = {
        "baseline": usual.step,
        "baseline_anchor": usual.anchor,
        "incident": now.step,
        "incident_anchor": now.anchor,
        "missing": lost.loss.missing,
        "unit": "lines",
        "step": _quote(lost.step),
        "anchor": _quote(lost.anchor),
    }
    kind, instead = "exception", sum(rise.now for rise in new)
    if new:
        kind = _kind(new[0].line)
        figures |= {"failures": new[0].now, "failure": _quote(new[0].line)}
        text += f"; instead {often(new[0].now)} {_quote(new[0].line)}, usually never"
    return Finding(
        detector="lost_steps",
        signal="logs",
        service=service,
        kind=kind,
        # Surer, up to double, where new lines of failure stand in the place of the missing ones.
        size=lost.loss.size * (1 + min(1.0, instead / lost.loss.missing)),
        text=text,
        figures=figures,
        onset=lost.onset,
    )


def _new_finding(service: str, rises: Sequence[Rise], *, victim: bool) -> Finding:
    surest = rises[0]
    return Finding(
        detector="new_failures",
        signal="logs",
        service=service,
        kind=_kind(surest.line),
        size=surest.size,
        text=(
            f"{service} writes {_quote(surest.line)} {often(surest.now)}, usually {often(surest.usual)} "
            f"({counted(len(rises), 'line')} of failure became frequent)"
        ),
        figures={
            "baseline": surest.usual,
            "incident": surest.now,
            "lines": len(rises),
            "unit": "lines",
            "failure": _quote(surest.line),
        },
        direction="victim" if victim else "cause",
    )


def _kind(line: Counted) -> str:
    if speaks_of_exception(line.name):
        return "exception"
    return "errors" if speaks_of_failure(line.name) or not speaks_of_slowness(line.name) else "latency"


def _quote(counted: Counted) -> str:
    return f'"{counted.name[:QUOTED]}"'

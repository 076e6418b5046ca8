"""What logs say more or less often than usual, by statement.

A service whose code breaks off half way goes on writing the lines before the break and no longer those behind
it; the loud errors are often its callers'.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from statistics import NormalDist

from opsleuth.analysis.failure_words import (
    is_warning_level,
    speaks_of_exception,
    speaks_of_failure,
    speaks_of_slowness,
)
from opsleuth.analysis.log_templates import mine_log_templates
from opsleuth.analysis.missing_spans import count_operations
from opsleuth.analysis.missing_steps import (
    ENOUGH,
    LostStep,
    StepCompanions,
    StepTally,
    WindowCounts,
    compare_step_to_anchor,
    measure_rate_rise,
)
from opsleuth.analysis.onset import assumed_onset_of
from opsleuth.analysis.records import Finding, LogLine, LogPatternCount, Recording, ServiceDependency
from opsleuth.analysis.span_statistics import SpanStatistics
from opsleuth.analysis.template_counts import TemplateCounter
from opsleuth.analysis.time_windows import BASELINE, ComparisonWindows, classify_windows, window_name_at
from opsleuth.analysis.topology import callees_by_caller
from opsleuth.state.plurals import format_count, format_times

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
# So many lines are counted by statement at once, without a look at each message.
MANY_LINES = 20_000


@dataclass(frozen=True, slots=True)
class LogStatement:
    """One statement of a service (named by an example), and how often it was written.

    `failure` says that it is about one; `usual` that it neither does nor warns.
    """

    counted: WindowCounts
    failure: bool
    usual: bool


@dataclass(frozen=True, slots=True)
class FailureLineRise:
    """A line of failure that came `usual` times in the reference and `now` times in the incident."""

    line: WindowCounts
    usual: int
    now: int
    size: float


@dataclass(frozen=True)
class LogStatements:
    """Statements by service, and which windows they are compared in. Without a reference there are none."""

    by_service: Mapping[str, Sequence[LogStatement]]
    windows: ComparisonWindows

    def new_failures(self, service: str) -> list[FailureLineRise]:
        """Lines of failure of a service that came more often, by its other lines, than usual; the surest first."""
        return [rise for rise in self.failures(service) if rise.size >= self.required_deviations]

    @cached_property
    def required_deviations(self) -> float:
        """Standard deviations that one of all lines of failure reaches by chance in so few systems."""
        return max(RISEN, _sigma_reached_by_chance(line.failure for line in self._lines))

    @cached_property
    def missed(self) -> float:
        """The same of all usual lines that are frequent enough to be missed."""
        counts = (line.counted.total(self.windows.reference) for line in self._lines if line.usual)
        return max(LOST, _sigma_reached_by_chance(count >= ENOUGH for count in counts))

    @property
    def _lines(self) -> Iterator[LogStatement]:
        return chain.from_iterable(self.by_service.values())

    def failures(self, service: str) -> list[FailureLineRise]:
        """The same, those included that may have become so by chance."""
        lines = self.by_service[service]
        written = self._count_other_lines(lines)
        if 0 in written:  # a service that writes nothing else is compared with all that is written
            written = self._count_other_lines([line for each in self.by_service.values() for line in each])
        found = []
        for line in (line.counted for line in lines if line.failure):
            usual, now = (
                StepTally(line.total(n), w) for n, w in zip(self._compared_windows, written, strict=True)
            )
            size = measure_rate_rise(usual, now)
            if size > 0:
                found.append(FailureLineRise(line, int(usual.step), int(now.step), size))
        return sorted(found, key=lambda rise: (-rise.size, rise.line.name))

    def _count_other_lines(self, lines: Sequence[LogStatement]) -> list[int]:
        return [
            sum(line.counted.total(names) for line in lines if not line.failure)
            for names in self._compared_windows
        ]

    @property
    def _compared_windows(self) -> tuple[Sequence[str], Sequence[str]]:
        return (*self.windows.reference, *self.windows.earlier), self.windows.incident


def mostly_name_callees(rises: Sequence[FailureLineRise], others: Collection[str]) -> bool:
    """Whether most of the lines name one of the `others`."""
    if not others:
        return False
    names = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(others)))})(?![\w-])")
    pointing = sum(rise.now for rise in rises if names.search(rise.line.name))
    return 2 * pointing > sum(rise.now for rise in rises)


def _sigma_reached_by_chance(tried: Iterable[bool]) -> float:
    """Standard deviations that one of all that were tried reaches by chance in a share `BY_CHANCE` (Bonferroni)."""
    return NormalDist().inv_cdf(1 - BY_CHANCE / max(1, sum(tried)))


def read_log_statements(recording: Recording) -> LogStatements:
    """What the logs of a recording hold."""
    rows = count_log_patterns(recording)
    windows = compared_windows(rows, recording)
    return LogStatements(group_log_statements(rows) if windows.reference else {}, windows)


def compared_windows(rows: Iterable[LogPatternCount], recording: Recording) -> ComparisonWindows:
    """What is compared with what. Without an onset, and without a baseline, nothing is: the last minutes are not an incident."""
    windows = classify_windows((row.window for row in rows), assumed_onset_of(recording))
    alert = recording.alert
    if alert.onset is not None or alert.fired is not None or BASELINE in windows.reference:
        return windows
    names = (*windows.reference, *windows.earlier, *windows.before, *windows.incident)
    return ComparisonWindows((), (), (), names, windows.starts)


def count_log_patterns(recording: Recording) -> list[LogPatternCount]:
    """Counts of lines by window: as recorded over all lines where there are such, else of the lines at hand."""
    if recording.patterns is not None:
        return list(recording.patterns)
    onset = assumed_onset_of(recording)
    name = _statement_names(len(recording.logs or ()) + len(recording.logs_baseline or ()))
    counts: Counter[tuple[str, str, str | None, str]] = Counter()
    for line in recording.logs_baseline or ():
        counts[BASELINE, line.service, line.level, name(line)] += 1
    for line in recording.logs or ():
        if line.time is not None:
            counts[window_name_at(line.time, onset), line.service, line.level, name(line)] += 1
    return [LogPatternCount(*key, count=count, traces_in_window=None) for key, count in counts.items()]


def _statement_names(lines: int) -> Callable[[LogLine], str]:
    """What a line is counted under: its message, or of many lines the first message of its statement."""
    if lines <= MANY_LINES:
        return lambda line: line.message
    counter = TemplateCounter()
    return lambda line: counter.add(line).samples[0]


def group_log_statements(rows: Sequence[LogPatternCount]) -> dict[str, list[LogStatement]]:
    """Statements by service: rows of one template, or of one place in the code, together."""
    template = mine_log_templates(row.pattern for row in rows)
    groups: dict[tuple[str, str], list[LogPatternCount]] = defaultdict(list)
    for row in rows:
        groups[row.service, template[row.pattern]].append(row)
    found: dict[str, list[LogStatement]] = defaultdict(list)
    for (service, _), group in sorted(groups.items()):
        found[service].append(_merge_statement_rows(group))
    return found


def _speaks_of_trouble(row: LogPatternCount) -> bool:
    """Failure by level or wording; slowness in a warning (elsewhere "slow" may be a name or a figure's label)."""
    if speaks_of_failure(row.pattern, row.level):
        return True
    return is_warning_level(row.level) and speaks_of_slowness(row.pattern)


def _merge_statement_rows(rows: Sequence[LogPatternCount]) -> LogStatement:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.window] += row.count
    failure = any(_speaks_of_trouble(row) for row in rows)
    usual = not failure and not any(is_warning_level(row.level) for row in rows)
    return LogStatement(WindowCounts(min(row.pattern for row in rows), counts), failure, usual)


def find_lost_lines(
    lines: Sequence[LogStatement], operations: Sequence[WindowCounts], windows: ComparisonWindows
) -> list[LostStep]:
    """Usual lines of one service that no longer come.

    Each is compared with the other lines and the operations of the service that were as frequent: of those that
    it went together with, the one that leaves most open.
    """
    usual_lines = [line.counted for line in lines if line.usual]
    work = [one for one in operations if not speaks_of_failure(one.name)]
    companions = StepCompanions([*usual_lines, *work], windows)
    found = []
    for line in usual_lines:
        usual = line.total(windows.reference)
        anchors = companions.of(line, usual, math.floor(usual / AGREEMENT))
        compared = (
            compare_step_to_anchor(line, anchor, windows, bound=companions.is_part_of_flow(anchor))
            for anchor in anchors
        )
        held = [lost for lost in compared if lost is not None and _went_together_before(lost, windows)]
        if held:
            found.append(max(held, key=lambda lost: lost.order))
    return found


def _went_together_before(lost: LostStep, windows: ComparisonWindows) -> bool:
    """Whether the two went together in the rest of the recording as well.

    In the last minutes before the onset the fault may already have begun, so that a line that is gone by now may
    already have been rarer.
    """
    begun = windows.before if lost.loss.is_complete else ()
    for names in (windows.earlier, windows.before):
        step, calls = lost.step.total(names), lost.anchor.total(names)
        if step > calls / AGREEMENT + 1 or (names is not begun and step < AGREEMENT * calls - 1):
            return False
    return True


def find_lost_log_steps(written: LogStatements, seen: SpanStatistics) -> list[Finding]:
    """For each service, the usual line that is missing most."""
    windows, operations = written.windows, count_operations(seen.stats)
    found = []
    for service, lines in written.by_service.items():
        missing = find_lost_lines(lines, operations.get(service, ()), windows)
        lost = [one for one in missing if one.loss.size >= written.missed]
        if lost:
            new = [rise for rise in written.failures(service) if not rise.usual]
            found.append(_build_lost_line_finding(service, max(lost, key=lambda one: one.order), new))
    return found


def find_new_failure_lines(
    written: LogStatements, topology: Sequence[ServiceDependency] | None
) -> list[Finding]:
    """For each service, its lines of failure that became frequent.

    They are a victim's where such lines of a callee are as sure, or where most of them name a callee that writes
    lines at all: it speaks for itself.
    """
    found = {service: written.new_failures(service) for service in written.by_service}
    risen = {service: rises for service, rises in found.items() if rises}
    findings = []
    for service, rises in risen.items():
        heard = callees_by_caller(topology).get(service, set()) & written.by_service.keys()
        below = [risen[callee][0].size for callee in heard if callee in risen]
        passed_on = any(size >= COMPARABLE * rises[0].size for size in below)
        findings.append(
            _build_new_failure_finding(service, rises, victim=passed_on or mostly_name_callees(rises, heard))
        )
    return findings


def _build_lost_line_finding(service: str, lost: LostStep, new: Sequence[FailureLineRise]) -> Finding:
    usual, now = lost.usual, lost.now
    text = (
        f"{service} writes {_quote_line(lost.step)} {now.step:.0f} times for {now.anchor:.0f} "
        f"{_quote_line(lost.anchor)}, usually {usual.step:.0f} for {usual.anchor:.0f}"
    )
    figures: dict[str, float | str] = {
        "baseline": usual.step,
        "baseline_anchor": usual.anchor,
        "incident": now.step,
        "incident_anchor": now.anchor,
        "missing": lost.loss.missing,
        "unit": "lines",
        "step": _quote_line(lost.step),
        "anchor": _quote_line(lost.anchor),
    }
    kind, instead = "exception", sum(rise.now for rise in new)
    if new:
        kind = _classify_failure_line(new[0].line)
        figures |= {"failures": new[0].now, "failure": _quote_line(new[0].line)}
        text += f"; instead {format_times(new[0].now)} {_quote_line(new[0].line)}, usually never"
    return Finding(
        detector="lost_steps",
        signal="logs",
        service=service,
        kind=kind,
        # Surer, up to double, where new lines of failure replace the missing ones.
        size=lost.loss.size * (1 + min(1.0, instead / lost.loss.missing)),
        text=text,
        figures=figures,
        onset=lost.onset,
    )


def _build_new_failure_finding(service: str, rises: Sequence[FailureLineRise], *, victim: bool) -> Finding:
    surest = rises[0]
    return Finding(
        detector="new_failures",
        signal="logs",
        service=service,
        kind=_classify_failure_line(surest.line),
        size=surest.size,
        text=(
            f"{service} writes {_quote_line(surest.line)} {format_times(surest.now)}, usually {format_times(surest.usual)} "
            f"({format_count(len(rises), 'line')} of failure became frequent)"
        ),
        figures={
            "baseline": surest.usual,
            "incident": surest.now,
            "lines": len(rises),
            "unit": "lines",
            "failure": _quote_line(surest.line),
        },
        direction="victim" if victim else "cause",
    )


def _classify_failure_line(line: WindowCounts) -> str:
    if speaks_of_exception(line.name):
        return "exception"
    return "errors" if speaks_of_failure(line.name) or not speaks_of_slowness(line.name) else "latency"


def _quote_line(counted: WindowCounts) -> str:
    return f'"{counted.name[:QUOTED]}"'

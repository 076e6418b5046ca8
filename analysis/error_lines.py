"""Error lines that no phrase explains: who logs them first-hand, and who only passes on what another service did.

An error line that names another known service is about that one. A service with error lines of its own stands at
the end of such a chain, and so does one that is named and logs nothing itself. The findings accuse nobody as long as
anything plainer does; but a system in which error lines are new is not healthy.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from opsleuth.analysis.failure_words import is_error_level, speaks_of_exception
from opsleuth.analysis.log_templates import mine_log_templates
from opsleuth.analysis.message_meaning import reports_end
from opsleuth.analysis.object_owners import ObjectOwners, collect_object_owners
from opsleuth.analysis.records import Finding, LogLine, Recording
from opsleuth.analysis.topology import callees_by_caller
from opsleuth.state.plurals import format_count

DETECTOR = "error_lines"

# Most lines whose templates are compared; services that log more errors than this have a plainer sign of it.
_MOST_LINES = 2000
_QUOTE = 160
# As strong as a figure that just leaves its usual level.
_SIZE = 3.0
_MANY = 10


class _ErrorLine(NamedTuple):
    line: LogLine
    target: str | None


def find_new_error_lines(recording: Recording) -> list[Finding]:
    """One finding for each service at the end of a chain of new error lines, most lines first."""
    lines = [line for line in recording.logs or () if _is_error(line)]
    if not lines or len(lines) > _MOST_LINES:
        return []
    known = collect_object_owners(recording)
    calls = callees_by_caller(recording.topology)
    spoken = [
        _ErrorLine(line, _find_named_service(line, known, calls))
        for line in _drop_usual_lines(recording, lines)
    ]
    usual = _usual_error_counts(recording, lines)
    groups = {
        service: group
        for service, group in _group_by_blamed_service(spoken).items()
        if len(group) > _enough_lines(usual[service])
    }
    naming = {service: {one.line.service for one in spoken if one.target == service} for service in groups}
    new = _has_stretch_at_rest(recording)
    findings = [
        _build_error_finding(service, group, len(naming[service]), new=new)
        for service, group in groups.items()
    ]
    return sorted(findings, key=lambda f: (-f.figures["lines"], f.service))


def _is_error(line: LogLine) -> bool:
    return is_error_level(line.level) and not reports_end(line.message)


def _drop_usual_lines(recording: Recording, lines: Sequence[LogLine]) -> list[LogLine]:
    """Those whose like was not written at rest: in the fault-free recording, or in the first half before the onset."""
    onset, start = recording.alert.onset, recording.window.start
    quiet = start if onset is None else (start + onset) / 2
    at_rest = [line for line in recording.logs_baseline or () if _is_error(line)][:_MOST_LINES]
    early = [line for line in lines if line.time is not None and line.time < quiet]
    template = mine_log_templates(line.message for line in (*lines, *at_rest))
    usual = {(line.service, template[line.message]) for line in (*early, *at_rest)}
    return [line for line in lines if (line.service, template[line.message]) not in usual]


def _has_stretch_at_rest(recording: Recording) -> bool:
    """Whether anything was read from before the trouble: only then is a line known to be new."""
    onset, start = recording.alert.onset, recording.window.start
    quiet = start if onset is None else (start + onset) / 2
    early = any(line.time is not None and line.time < quiet for line in recording.logs or ())
    return early or bool(recording.logs_baseline)


def _usual_error_counts(recording: Recording, lines: Sequence[LogLine]) -> Counter[str]:
    """How many error lines of any words each service wrote at rest: in the fault-free recording, or early in this one."""
    onset, start = recording.alert.onset, recording.window.start
    quiet = start if onset is None else (start + onset) / 2
    at_rest = [line for line in recording.logs_baseline or () if _is_error(line)]
    early = [line for line in lines if line.time is not None and line.time < quiet]
    return Counter(line.service for line in (*at_rest, *early))


def _enough_lines(usual: int) -> float:
    """Who logs errors every day logs new ones every day; three times as many, and three more, are more than that."""
    return 3.0 * usual + 3.0 if usual else 0.0


def _find_named_service(line: LogLine, known: ObjectOwners, calls: Mapping[str, Iterable[str]]) -> str | None:
    """The other service that the line is about; one that the writer does not call is only mentioned."""
    named = known.mentioned_service(line.message, besides=line.service)
    return named if named and (not calls or named in calls.get(line.service, ())) else None


def _group_by_blamed_service(spoken: Sequence[_ErrorLine]) -> dict[str, list[_ErrorLine]]:
    """The lines by whom they are about; what a service says of another that complains itself is left to that one."""
    own = {one.line.service for one in spoken if one.target is None}
    passing = {one.line.service for one in spoken} - own
    groups: dict[str, list[_ErrorLine]] = defaultdict(list)
    for one in spoken:
        if one.target is None:
            groups[one.line.service].append(one)
        elif one.target not in own | passing:
            groups[one.target].append(one)
    return dict(groups)


def _build_error_finding(service: str, group: Sequence[_ErrorLine], named_by: int, *, new: bool) -> Finding:
    """`size` is 0 for a few lines that no other service complains about: every service writes some occasionally."""
    messages = Counter(" ".join(one.line.message.split())[:_QUOTE] for one in group)
    message = min(messages, key=lambda text: (-messages[text], text))
    writers = sorted({one.line.service for one in group})
    lines = format_count(len(group), "new error line" if new else "error line")
    named = "" if writers == [service] else f" that name {service}"
    return Finding(
        detector=DETECTOR,
        signal="logs",
        service=service,
        kind="exception" if any(speaks_of_exception(one.line.message) for one in group) else "errors",
        size=_SIZE if named_by or len(group) >= _MANY else 0.0,
        text=f'{lines} of {", ".join(writers)}{named}: "{message}".',
        figures={"lines": len(group), "message": message},
        onset=min((one.line.time for one in group if one.line.time is not None), default=None),
        direction="victim",
    )

"""When a new failure line was first written, which findings from counts per minute cannot show."""

import re
from collections.abc import Sequence
from dataclasses import replace

from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.time_windows import CLEAR_BEFORE_ONSET

_ENOUGH_CHARACTERS = 40


def add_first_times(recording: Recording, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; those about lines that were never written at rest begin with the first such line near the onset."""
    return [_with_first_time(recording, finding) for finding in findings]


def _with_first_time(recording: Recording, finding: Finding) -> Finding:
    quoted = finding.figures.get("failure")
    if finding.signal != "logs" or finding.onset is not None or finding.figures.get("baseline") or not quoted:
        return finding
    onset = recording.alert.onset
    begin = recording.window.start if onset is None else onset - CLEAR_BEFORE_ONSET
    alike = _compile_form(str(quoted).strip('"')[:_ENOUGH_CHARACTERS])
    times = (
        line.time
        for line in recording.logs or ()
        if line.time is not None
        and begin <= line.time < recording.window.end
        and line.service == finding.service
        and alike.match(line.message)
    )
    return replace(finding, onset=min(times, default=None))


def _compile_form(text: str) -> re.Pattern[str]:
    """What begins like the text, with any number where it has one: the quoted line is one of many."""
    parts = re.split(r"(\d+|\s+)", text)
    return re.compile(
        "".join(r"\d+" if p.isdigit() else r"\s+" if p.isspace() else re.escape(p) for p in parts)
    )

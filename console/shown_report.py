"""Reports as they are shown: what a stored report leaves empty is said in words, and so are the names that only code uses."""

import re
from collections.abc import Mapping
from typing import Any

from opsleuth.state.json_types import JSON
from opsleuth.state.plurals import format_count

MISSING = "(not recorded)"
"""Stands where a text that is always shown is missing."""

_SHOWN_TEXTS = frozenset(
    [
        "id",
        "kind",
        "service",
        "why",
        "confidence",
        "text",
        "tool",
        "reason",
        "status",
        "title",
        "name",
        "fits_by",
        "measure",
        "cause",
        "began",
        "run",
        "turn",
        "hypothesis",
        "time",
    ]
)
"""Fields of a report that stand in a sentence wherever they occur."""
_SENTENCES = frozenset({"text", "answer", "headline"})
_MEASURE_WORDS: Mapping[str, str] = {
    "lines_matching": "matching log lines",
    "log_line": "log line",
    "failed_share": "failed share",
    "time_a_request": "time per request",
    "own_time": "own time",
    "network_time": "network time",
}
_MEASURE = re.compile(rf"(?<![\w`\"./-])({'|'.join(_MEASURE_WORDS)})(?![\w`\"./-])")

_TWO_STRETCHES = re.compile(
    r"(?P<now>[\d,]+ times|once), usually (?P<usual>[\d,]+ times|once) \((?P<kinds>\d+) lines? of failure became frequent\)"
)
_WHOLE_WINDOW = re.compile(r"(?P<lines>[\d,]+ log lines of \S+) say (?=\")")


def prepare_for_reading(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the report in which each text that is shown has a value, in words that people use."""
    return {name: _prepare_field(name, value) for name, value in document.items()}


def _prepare_field(name: str, value: JSON) -> JSON:
    if value is None and name in _SHOWN_TEXTS:
        return MISSING
    if isinstance(value, str) and name in _SENTENCES:
        return _say_what_is_counted(_MEASURE.sub(lambda found: _MEASURE_WORDS[found[1]], value))
    if isinstance(value, Mapping):
        return prepare_for_reading(value)
    return [_prepare_field("", item) for item in value] if isinstance(value, list) else value


def _say_what_is_counted(text: str) -> str:
    """Counts of one message differ by their stretch of time: each says which it is of."""
    text = _WHOLE_WINDOW.sub(r"\g<lines> in the whole window say ", text)
    return _TWO_STRETCHES.sub(_name_both_stretches, text)


def _name_both_stretches(found: re.Match[str]) -> str:
    kinds = int(found["kinds"])
    others = f"; {format_count(kinds - 1, 'other failure message')} became frequent too" if kinds > 1 else ""
    return f"{found['now']} in the incident, {found['usual']} in the baseline before it{others}"

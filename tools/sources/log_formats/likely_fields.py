"""Which fields of an object of no known logger hold its time, level, message and service: by words in their names.

A time must look like one as well: many names mention time and hold durations.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_WORD = re.compile(r"[_\-.\s@$]+|(?<=[a-z\d])(?=[A-Z])")
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_EPOCH = re.compile(r"\d{10}(?:\.\d+|\d{3}|\d{6}|\d{9})?")
_EARLIEST, _LATEST = 9e8, 4e9
_NAMES: Mapping[str, frozenset[str]] = {
    "time": frozenset(("time", "ts", "timestamp", "date", "datetime", "stamp", "when", "at", "dt", "epoch", "utc", "logged", "occurred")),
    "level": frozenset(("level", "lvl", "lev", "sev", "severity", "prio", "loglevel")),
    "message": frozenset(("message", "msg", "text", "txt", "desc", "description")),
    "service": frozenset(("service", "svc", "app", "application", "component")),
}  # fmt: skip
_LONGEST_LEVEL = 12
_LONGEST_NAME = 60


def find_likely_fields(row: Mapping[str, Any], what: str) -> Iterator[str]:
    """The names of fields that may hold `what` (time, level, message or service), in the order of the object."""
    for name, value in row.items():
        words = {word.lower() for word in _WORD.split(name) if word}
        if words & _NAMES[what] and _may_hold(what, value):
            yield name


def _may_hold(what: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    text = str(value)
    if what == "time":
        return bool(_ISO.match(text)) or (_EPOCH.fullmatch(text) is not None and _is_recent(text))
    if what == "level":
        return 0 < len(text) <= _LONGEST_LEVEL
    if what == "service":
        return isinstance(value, str) and 0 < len(text) <= _LONGEST_NAME and not re.search(r"\s", text)
    return isinstance(value, str) and bool(text.strip())


def _is_recent(text: str) -> bool:
    """Whether the first ten digits are seconds of this century's first decades."""
    return _EARLIEST < float(text[:10]) < _LATEST

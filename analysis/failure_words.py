"""Whether a line or the name of an operation speaks of failure, in the words that runtimes share."""

import re

_WARNINGS = frozenset({"warn", "warning"})
_LEVELS = frozenset({"error", "err", "severe", "fatal", "critical", "crit", "alert", "emerg", "panic"})
_WORDS = re.compile(
    r"(?<![a-z])(errors?|exceptions?|fail(ed|ure|ures|s)?|fatal|panic|traceback|refused|timed?[ _-]?out|unavailable)(?![a-z])",
    re.IGNORECASE,
)
# `BasicErrorController`, `NullPointerException`: the same words inside a name in camel case.
_NAMES = re.compile(r"(Error|Exception|Failure|Fault)(?![a-z])")
_SLOW = re.compile(
    r"(?<![a-z])(slow|slower|slowly|took too long|too slow|lagging|delayed|deadline|high latency)(?![a-z])",
    re.IGNORECASE,
)
_RAISED = re.compile(
    r"[A-Z]\w*(?:Exception|Error)\b|Traceback|(?<![a-z])(?:panic|exception)(?![a-z])", re.IGNORECASE
)


def speaks_of_failure(text: str, level: str | None = None) -> bool:
    """Whether the level or the wording says that something went wrong."""
    if (level or "").strip().lower() in _LEVELS:
        return True
    return _WORDS.search(text) is not None or _NAMES.search(text) is not None


def warns(level: str | None) -> bool:
    """Whether the level is that of a warning: it may or may not tell of failure."""
    return (level or "").strip().lower() in _WARNINGS


def speaks_of_exception(text: str) -> bool:
    """Whether the line reports an exception or a panic, not merely an error."""
    return _RAISED.search(text) is not None


def speaks_of_slowness(text: str) -> bool:
    """Whether the wording says that something took too long."""
    return _SLOW.search(text) is not None

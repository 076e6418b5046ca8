"""Whether a line or the name of an operation reports failure, in the words that runtimes share."""

import re

_WARNINGS = frozenset({"warn", "warning", "wrn"})
_LEVELS = frozenset({"error", "err", "severe", "fatal", "critical", "crit", "alert", "emerg", "panic", "ftl"})
_PLAIN_LEVELS = frozenset(
    {"info", "information", "inf", "notice", "debug", "dbg", "trace", "verbose", "fine"}
)
_WORDS = re.compile(
    r"(?<![a-z])(errors?|exceptions?|fail(ed|ure|ures|s)?|fatal|panic|traceback|refused|timed?[ _-]?out|unavailable)(?![a-z])",
    re.IGNORECASE,
)
# `BasicErrorController`, `NullPointerException`: the same words inside a name in camel case.
_NAMES = re.compile(r"(Error|Exception|Failure|Fault)(?![a-z])")
# Words of failure that the text itself denies: "0 errors", "no new failures", "failed: 0", "error rate 0.0%", "err=null".
_NOUNS = r"(?:errors?|failures?|exceptions?|time-?outs?|faults?|panics?)"
_DENIED = re.compile(
    rf"\b(?:no|zero|without(?: an?| any)?|free of|(?<![\w.:/#-])0(?![\w.:/-]))[ _](?:[a-z0-9-]{{1,20}} ){{0,1}}{_NOUNS}(?![a-z])"
    r"|(?:\b(?:not|never|none|nothing|zero|no \w{1,20}|(?:did|does|do|has|have|is)n[’']t)"
    r"|(?:^|[,;:=(/|]|\band|\bwith)\s*0)(?: been| ever)? (?:fail(?:ed|s|ures?)?|timed[ _-]?out|refused|unavailable)(?![a-z])"
    rf"|(?<![a-z]){_NOUNS}[ -]free\b"
    r"|(?<![a-z])(?:err|errors?|exceptions?|fail(?:ed|ures?|s)?|fatals?|panics?|refused|timed?[ _-]?outs?|unavailable)"
    r"(?:[A-Z_.-]\w{0,24})?(?:\{[^{}]{0,200}\})?(?: (?:rate|count|ratio|total|percentage|percent|budget burn))?[\"']?"
    r"(?:\s{0,3}[=:]\s{0,3}|\s(?:is |was |of |at )?)[\"']?"
    r"(?:0+(?:\.0+)?\s?%?(?![\w.%:-])(?!\s+(?!in\b|of\b|out\b|since\b|during\b|per\b|so\b|for\b|and\b)[a-z]+(?![\w.]*\s*[=:\d]))"
    r"|(?<=[=:\s\"'])(?:null|nil|<nil>|none|false)(?![\w.-])(?! [a-z]+(?![\w.]*\s*[=:]))|(?<=[=:])\"\")",
    re.IGNORECASE,
)
_SLOW = re.compile(
    r"(?<![a-z])(slow|slower|slowly|took too long|too slow|lagging|delayed|deadline|high latency)(?![a-z])",
    re.IGNORECASE,
)
_RAISED = re.compile(
    r"(?<=\w)(?:Exception|Error)\b|Traceback|(?<![a-z])(?:panic|exception)(?![a-z])", re.IGNORECASE
)


def is_error_level(level: str | None) -> bool:
    """Whether the level is one that programs give to failures."""
    return (level or "").strip().lower() in _LEVELS


def speaks_of_failure(text: str, level: str | None = None) -> bool:
    """Whether the level or the wording says that something went wrong; a wording that denies it ("0 errors") does not."""
    if is_error_level(level):
        return True
    return _has_failure_word(text) and _has_failure_word(_DENIED.sub(" ", text))


def _has_failure_word(text: str) -> bool:
    return _WORDS.search(text) is not None or _NAMES.search(text) is not None


def is_plain_level(level: str | None) -> bool:
    """Whether the level is one of ordinary work: a line at it may mention failure, and report none."""
    return (level or "").strip().lower() in _PLAIN_LEVELS


def is_warning_level(level: str | None) -> bool:
    """Whether the level is that of a warning: it may or may not report failure."""
    return (level or "").strip().lower() in _WARNINGS


def speaks_of_exception(text: str) -> bool:
    """Whether the line reports an exception or a panic, not merely an error."""
    return _RAISED.search(text) is not None


def speaks_of_slowness(text: str) -> bool:
    """Whether the wording says that something took too long."""
    return _SLOW.search(text) is not None

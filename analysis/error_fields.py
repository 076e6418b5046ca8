"""The error that a structured line carries beside its message: `msg="charge failed" error="x509: …"`."""

from collections.abc import Mapping

from opsleuth.analysis.records import LogLine

_NAMES = ("error", "err", "exception", "cause", "reason", "error_message", "errorMessage", "exc_info", "stack_trace", "stacktrace", "stack", "detail")  # fmt: skip
_INNER = ("message", "msg", "reason", "type", "detail", "stack")
_LONGEST = 4_000


def text_with_error(line: LogLine) -> str:
    """The message, and behind it the text of the error's fields; the message alone where there are none."""
    if not line.extra:
        return line.message
    found = [text for name in _NAMES if (text := _text_of(line.extra.get(name))) and text not in line.message]
    return ": ".join((line.message, *found))[: len(line.message) + _LONGEST] if found else line.message


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ": ".join(text for name in _INNER if isinstance(text := value.get(name), str) and text)
    return ""

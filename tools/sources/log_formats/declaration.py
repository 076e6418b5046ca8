"""What a log format is: one declaration, from which recognition, reading and the documentation are made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opsleuth.analysis.records import LogLine
from opsleuth.analysis.zone_offsets import ANY_ZONE, ZONE

DIGITS = "0123456789"
DATE_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
FRACTION = r"(?:[.,](?P<frac>\d{1,9}))?"
ISO_TIME = rf"(?P<time>{DATE_TIME}){FRACTION}(?: ?(?P<zone>{ZONE}))?"
"""An ISO time with comma or point, with or without a zone; groups `time`, `frac`, `zone`."""
ISO_TIME_IN_ZONE = rf"(?P<time>{DATE_TIME}){FRACTION} ?(?P<zone>{ANY_ZONE})"
"""The same where a zone is always written, even one that is unknown."""

Finish = Callable[[LogLine, str], LogLine]
"""Reads the whole text of a record of several lines into the line that its first one gave."""

Levels = Mapping[str, str] | Callable[[str], str | None]
"""From a level as it is written to one as it is shown."""
WORDS = {
    "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL", "C": "CRITICAL", "D": "DEBUG", "V": "VERBOSE", "T": "TRACE",
    "A": "FATAL",
}  # fmt: skip
"""Levels of one letter."""
JAVA_LEVELS = {
    "SCHWERWIEGEND": "SEVERE", "WARNUNG": "WARNING", "INFORMATION": "INFO", "GRAVE": "SEVERE", "AVERTISSEMENT": "WARNING", "INFOS": "INFO",
    "ADVERTENCIA": "WARNING", "INFORMACIÓN": "INFO", "AVVERTENZA": "WARNING", "INFORMAZIONI": "INFO", "AVISO": "WARNING", "INFORMAÇÕES": "INFO",
    "严重": "SEVERE", "警告": "WARNING", "信息": "INFO", "致命的": "SEVERE", "情報": "INFO",
}  # fmt: skip
"""Levels of java.util.logging as it writes them in the language of its machine."""
SYSLOG_SEVERITIES = ("emerg", "alert", "crit", "error", "warning", "notice", "info", "debug")


@dataclass(frozen=True, slots=True)
class LogFormat:
    """One format of text lines.

    `start` matches the first line of a record. Its groups `time` (whole seconds, written as `form` says), `frac`, `zone`,
    `level`, `service`, `message`, `pod`, `namespace`, `host`, `trace` are the line's; `inner` is a line of another format
    in an envelope; what other groups hold becomes `extra` and can be searched. Without a group `message` all of the
    line is the message. `begins` are the characters that a record may begin with (empty: any). Lines of the levels in
    `continuing` belong to the record before. `levels` maps what is written to what is shown. `finish` reads a whole record
    of several lines.
    """

    name: str
    title: str
    start: str
    examples: tuple[str, str, str]
    form: str = "iso"
    begins: str = ""
    levels: Levels | None = None
    continuing: frozenset[str] = frozenset()
    finish: Finish | None = None
    verbatim: bool = True


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """One format of JSON objects, one to a line.

    An object is of this format if it has all keys of `marks`, and one of `any_of` where there are some. Of each list of
    fields the first that has a value counts; parts of a name are parted by dots, in the name or by nesting. `level_if_absent`
    is that of objects without one. `inner` names fields whose text is a line of another format.
    """

    name: str
    title: str
    examples: tuple[str, str, str]
    marks: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    time: tuple[str, ...] = ()
    level: tuple[str, ...] = ()
    message: tuple[str, ...] = ()
    service: tuple[str, ...] = ()
    pod: tuple[str, ...] = ()
    level_if_absent: str | None = None
    levels: Levels | None = None
    envelope: bool = False
    only: bool = False


def read_priority(text: str) -> str | None:
    """The severity in a syslog priority, or a severity by its number."""
    return SYSLOG_SEVERITIES[int(text) % 8] if text.isdigit() else None


def read_numeric_level(text: str) -> str | None:
    """The level of pino and bunyan: 10 is trace, 60 is fatal; other words stay as they are."""
    if not text.isdigit():
        return text
    names = ("trace", "debug", "info", "warn", "error", "fatal")
    return names[min(max(int(text) // 10, 1), 6) - 1] if len(text) > 1 else read_priority(text)


def read_priority_or_word(text: str) -> str | None:
    """The severity by its number; a word stays as it is."""
    return read_priority(text) if text.isdigit() else text


def read_otlp_severity(text: str) -> str | None:
    """The name of an OTLP severity number: 1 to 4 is TRACE, 21 to 24 FATAL; a word stays as it is."""
    if not text.isdigit():
        return text
    names = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
    return names[min((int(text) - 1) // 4, 5)] if int(text) else None

"""Lines of no declared format: a time in a usual spelling near the beginning, and a level among the first words."""

import re

from opsleuth.analysis.log_times import TimeReader, read_epoch
from opsleuth.analysis.zone_offsets import ZONE

_TIME_WITHIN = 60
_ISO = re.compile(
    rf"\[?(\d{{4}}[-/.]\d\d[-/.]\d\d[T_ ]\d\d:\d\d:\d\d)(?:[.,](\d{{1,9}}))?(?:\s?({ZONE}))?(?:\[[A-Z]\w+/[\w/]+\])?"
)
_OTHER_TIMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("day_first", re.compile(r"\[?(\d\d/[A-Z][a-z]{2}/\d{4}[: ]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?: ([+-]\d{4}))?\]?")),
    ("day_first", re.compile(rf"\[?(?:[A-Z][a-z]{{2}}, )?(\d{{1,2}}[ -][A-Z][a-z]{{2}}[ -]\d{{4}} \d\d:\d\d:\d\d)(?:[.,](\d{{1,9}}))?(?: ({ZONE}))?")),
    ("syslog", re.compile(r"\[?((?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?)(?:[.,](\d{1,9}))?()")),
    ("epoch", re.compile(r"\[?(\d{10})(?:\.(\d{1,9}))?()(?=[\s\]:])")),
    ("epoch", re.compile(r"\[?(\d{13}|\d{16}|\d{19})()()(?=[\s\]:])")),
)  # fmt: skip
_LEVEL = re.compile(
    r"\b(TRACE|DEBUG|INFO|NOTICE|LOG|WARN|WARNING|ERROR|ERR|SEVERE|FATAL|CRITICAL|PANIC|EMERG)\b"
    r"|[\[<](debug|info|notice|warn|warning|error|crit|alert|emerg|Trace|Debug|Information|Notice|Warning|Error|Critical|Fatal) *[\]>]"
)
_LEVEL_BEFORE_COLON = re.compile(
    r"(?:\A|(?<=[\dZ\]] ))(debug|info|notice|warn|warning|error|fail|fatal|crit|critical|alert|emerg): "
)
_LEVEL_FIELD = re.compile(r"\b(?:level|lvl|severity)=\"?(\w+)")


def find_time(times: TimeReader, head: str, year_of: float) -> tuple[float | None, int]:
    """A time near the beginning, and where it ends if it is the head of the message that is cut off."""
    if found := _ISO.match(head) or _ISO.search(head, 0, _TIME_WITHIN):
        return times.read("iso", found[1], found[2], found[3] or None, year_of), found.end()
    for form, pattern in _OTHER_TIMES:
        found = pattern.match(head) or (None if form == "epoch" else pattern.search(head))
        if found is None:
            continue
        if form == "epoch":
            return read_epoch(float(f"{found[1]}.{found[2] or 0}")), found.end()
        time = times.read(form, found[1], found[2], found[3] or None, year_of)
        return time, found.end() if found.start() == 0 and form != "day_first" else 0
    return None, 0


def find_level(head: str) -> str | None:
    """The level as it is written; None where no word is one."""
    if found := _LEVEL.search(head):
        return found[1] or found[2]
    found = _LEVEL_FIELD.search(head) if "l=" in head or "severity=" in head else None
    found = found or _LEVEL_BEFORE_COLON.search(head)
    return found[1] if found else None

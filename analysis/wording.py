"""What a message says in plain words, by the phrases of `phrases`, unless the message itself denies it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opsleuth.analysis.phrases import RULES


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one message says: the kind of fault, how plainly (`weight`), its words, and whom it names."""

    kind: str
    weight: float
    quote: str
    target: str | None = None


# What takes a phrase back: it is over.
_OVER = re.compile(
    r"\b(resolved|recovered|back to normal|returned to normal|within normal|(has|have) since|subsequently|caught up"
    r"|retried successfully|(auto(matically)?[- ])?rolled back|restored to|no longer (firing|active|failing)|cleared"
    r"|successfully (promoted|assigned|started|completed|restored|recovered|resumed)"
    r"|(maintenance|upgrade|failover|backup|recovery|promotion|rollback|restart|reboot|(auto)?scaling|modification)"
    r"\b.{0,40}\b(completed?|finished|successful(ly)?)"
    r"|finished (a |an |the )?\S*( \S+)? ?(failover|maintenance|upgrade|recovery)"
    r"|is (now |again )?(available|healthy|ready|running(?! (out|low|slow|hot))))\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(no|not|without|zero|0|never|any|if|avoid|prevent\w*)\s+(\w+\s+)?$", re.IGNORECASE)
# "12 GB free of 200 GB", "4.1 GiB remaining of 20 GiB".
_ROOM = re.compile(
    r"([\d.]+) ?([KMGT]i?B) (?:free|remaining|left|available) (?:out )?of ([\d.]+) ?\2", re.IGNORECASE
)
_ROOMY = 0.2  # common monitors warn at a tenth to a fifth left; above it a volume is not short of space
# A message says what it has to say at its beginning; a dump may go on for megabytes.
_LONGEST = 16_000
# How far from the phrase the host that it is about may stand, in characters.
_QUOTE = 160
_NEAR = 240
_HOST = re.compile(
    r"(?:https?|tcp|grpc|amqp|redis|postgres(?:ql)?|mysql|mongodb)://(?:[^@/\s]*@)?([\w.-]+)"
    r"|(?:resolve host|lookup|resolve|ENOTFOUND|EAI_AGAIN)[:\s]+['\"]?([\w-]+(?:\.[\w-]+)*)"
    r"|\b([a-z][\w-]*(?:\.[\w-]+)*):\d{2,5}\b",
    re.IGNORECASE,
)


def over(text: str) -> bool:
    """Whether the text says that what it tells of has ended."""
    return _OVER.search(text) is not None


def read(text: str) -> Meaning | None:
    """What `text` says, or None where no phrase is known, or where the text itself denies it."""
    text = text[:_LONGEST]
    lowered = text.lower()
    for rule in RULES:
        if not any(anchor in lowered for anchor in rule.anchors):
            continue
        found = rule.pattern.search(text)
        if found and not _denied(rule.kind, text, found.start()):
            near = text[max(0, found.start() - _NEAR) : found.end() + _NEAR]
            return Meaning(rule.kind, rule.weight, _around(text, found), next(targets(near), None))
    return None


def targets(text: str) -> Iterator[str]:
    """The hosts that the text names as URL, `host:port`, or object of a failed lookup."""
    for found in _HOST.finditer(text):
        yield next(group for group in found.groups() if group)


def _denied(kind: str, text: str, at: int) -> bool:
    """Whether the words before the phrase negate it, or a figure in the text contradicts it."""
    if _NEGATED.search(text, max(0, at - 24), at):
        return True
    room = _ROOM.search(text) if kind == "storage_full" else None
    return room is not None and float(room[1]) > _ROOMY * float(room[3])


def _around(text: str, found: re.Match[str]) -> str:
    """The phrase with the rest of its sentence, one line, at most 160 characters, cut between words."""
    start = max(0, found.start() - 40)
    if start and (space := text.find(" ", start, found.start())) != -1:
        start = space + 1
    end = start + _QUOTE
    if end < len(text) and (space := text.rfind(" ", found.end(), end + 1)) != -1:
        end = space
    quote = " ".join(text[start:end].split())
    return f"{'…' * (start > 0)}{quote}{'…' * (end < len(text))}"

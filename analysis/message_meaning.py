"""What a message says in plain words, by the phrases of `phrases`, unless the message itself denies it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

from opsleuth.analysis.fault_phrases import PHRASE_RULES, PhraseRule


@dataclass(frozen=True, slots=True)
class MessageMeaning:
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
    r"(?<![\d.])([\d.]{1,30}+) ?([KMGT]i?B) (?:free|remaining|left|available) (?:out )?of ([\d.]+) ?\2",
    re.IGNORECASE,
)
_ROOMY = 0.2  # common monitors warn at a tenth to a fifth left; above it a volume is not short of space
# "slow_query_log = ON", "max_connections: 200", "slow query threshold set to 1 s": a setting, not its result.
_SETTING = re.compile(
    r"[ _]?(log\w*|threshold|limit|detection|monitor\w*|collector|plugin)\s*([=:]|(is |was )?(set|on\b|off\b|enabled|disabled))"
    r"|\s*(is |was )?(set|changed|configured) (to|at|from)\b|\s*(is |was )?(enabled|disabled)\b|\s*=\s*\d",
    re.IGNORECASE,
)
_NAMED_SETTING = re.compile(r"\s*[=:]\s*['\"]?\d")
_SETTABLE = frozenset({"slow_query", "connections", "quota", "replication_lag", "latency"})
# Whoever tries the doors of every address on the internet is not a user with a right to be granted.
_STRANGER = re.compile(
    r"\b(invalid|illegal) user\b|\bssh2\b|\bsshd\b|\bpreauth\b|\bpam_unix\b|\brhost=|failed password for",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3})(?![\d.])")
_LOG_IN = re.compile(
    r"password|authentication|log-?in|log in|credentials|access denied for user", re.IGNORECASE
)
# A message says what it has to say at its beginning; a dump may go on for megabytes.
_LONGEST = 16_000
# How far from the phrase the host that it is about may stand, in characters.
_QUOTE = 160
_NEAR = 240
_HOST = re.compile(
    r"(?:https?|tcp|grpc|amqp|redis|postgres(?:ql)?|mysql|mongodb)://(?:[^@/\s]{0,200}@)?([\w.-]+)"
    r"|(?:resolve host|lookup(?! address)|resolve|ENOTFOUND|EAI_AGAIN|UnknownHost(?:Exception|Error)?|unknown host|host name"
    r"|getaddrinfo for|not known(?: for|(?=:))|not found in upstream)[:\s]+['\"]?(?!failed\b)([\w-]+(?:\.[\w-]+)*)"
    r"|\b([a-z][\w-]*(?:\.[\w-]+)*):\d{2,5}\b",
    re.IGNORECASE,
)


def reports_end(text: str) -> bool:
    """Whether the text says that what it reports has ended."""
    return _OVER.search(text) is not None


def read_message_meaning(text: str) -> MessageMeaning | None:
    """What `text` says, or None where no phrase is known, or where the text itself denies it."""
    text = text[:_LONGEST]
    for rule in _look_up_candidates(text):
        found = rule.pattern.search(text)
        if found and not _is_phrase_denied(rule.kind, text, found):
            near = text[max(0, found.start() - _NEAR) : found.end() + _NEAR]
            return MessageMeaning(
                rule.kind, rule.weight, _quote_sentence(text, found), next(find_named_hosts(near), None)
            )
    return None


def _look_up_candidates(text: str) -> Sequence[PhraseRule]:
    """The rules of which an anchor appears in the text, or would with other digits."""
    lowered = text.lower().translate(_ONE_DIGIT)
    return _known_candidates(lowered) if len(lowered) <= _LONGEST_KNOWN else _find_candidates(lowered)


def _find_candidates(lowered: str) -> Sequence[PhraseRule]:
    return tuple(rule for rule, anchors in _ANCHORS if any(anchor in lowered for anchor in anchors))


# Lines of one statement differ in their digits most of all: what may be said in them is found once.
_ONE_DIGIT = str.maketrans("123456789", "000000000")
_LONGEST_KNOWN = 600
_ANCHORS = tuple(
    (rule, tuple(anchor.translate(_ONE_DIGIT) for anchor in rule.anchors)) for rule in PHRASE_RULES
)
_known_candidates = lru_cache(maxsize=8_192)(_find_candidates)


def find_named_hosts(text: str) -> Iterator[str]:
    """The hosts that the text names as URL, `host:port`, or object of a failed lookup."""
    for found in _HOST.finditer(text):
        yield next(group for group in found.groups() if group)


def _is_phrase_denied(kind: str, text: str, found: re.Match[str]) -> bool:
    """Whether the words before the phrase negate it, or a figure or the rest of the line contradicts it."""
    at = found.start()
    if _NEGATED.search(text, max(0, at - 24), at):
        return True
    if kind in _SETTABLE and (
        _SETTING.match(text, found.end())
        or ("_" in found.group() and _NAMED_SETTING.match(text, found.end()))
    ):
        return True
    if kind == "permission":
        return _is_log_in_of_stranger(text)
    room = _ROOM.search(text) if kind == "storage_full" else None
    return room is not None and float(room[1]) > _ROOMY * float(room[3])


def _is_log_in_of_stranger(text: str) -> bool:
    """Whether somebody from outside failed to log in: the lock did its work."""
    if _STRANGER.search(text):
        return True
    if not _LOG_IN.search(text):
        return False
    return any(_is_public_address(found) for found in _ADDRESS.findall(text))


def _is_public_address(text: str) -> bool:
    try:
        return ip_address(text).is_global
    except ValueError:
        return False


def find_called_host(text: str) -> str | None:
    """The first label of a host inside the system that the text calls: a bare name, or one of a cluster."""
    found = next((part for match in _INSIDE.finditer(text) for part in match.groups() if part), None)
    return found if found and found.lower() != "localhost" else None


_INSIDE = re.compile(
    r"(?<![a-z+])[a-z+]{1,30}://(?:[^@/\s]{0,200}@)?([a-z][a-z0-9-]{0,100})(?:\.[\w-]{1,100}\.svc[\w.-]{0,200})?(?::\d+)?(?=[/?\"'\s,;)\]]|$)"
    r"|host=['\"]([a-z][a-z0-9-]*)(?:\.[\w-]+\.svc[\w.-]*)?['\"]",
    re.IGNORECASE,
)


def _quote_sentence(text: str, found: re.Match[str]) -> str:
    """The phrase with the rest of its sentence, one line, at most 160 characters, cut between words."""
    start = max(0, found.start() - 40)
    if start and (space := text.find(" ", start, found.start())) != -1:
        start = space + 1
    end = start + _QUOTE
    if end < len(text) and (space := text.rfind(" ", found.end(), end + 1)) != -1:
        end = space
    quote = " ".join(text[start:end].split())
    return f"{'…' * (start > 0)}{quote}{'…' * (end < len(text))}"

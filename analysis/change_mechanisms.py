"""How a change can cause the symptoms: typed rules that read the diff on one side and the symptoms on the other.

Each rule is knowledge of programs in general: a time limit that shrank meets calls that run out of time, a guard
that went meets a null, a bound that went meets a database at work. None knows a system. A rule that fires says how
strongly, and in which words.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from opsleuth.analysis.change_diffs import ChangeDiff, pair_changed_lines, split_words

# A name that appears in the failing line as well, or the very line of a stack trace, leaves little to chance.
EXACT, NAMED, TYPED, WEAK = 1.0, 0.9, 0.8, 0.6
# What shrank to less than half is not a fine adjustment.
HALVED = 0.5
_RARE = 2


@dataclass(frozen=True, slots=True)
class IncidentSymptoms:
    """What is seen of the incident, as text and in parts that a diff can meet.

    `text` holds failing lines, the alert and the findings in lower case; `quoted` the names that failing lines put
    in quotes, `names` their identifiers, `frames` (file, line) of stack traces, `kinds` the kinds of fault found.
    """

    text: str
    quoted: frozenset[str]
    names: frozenset[str]
    frames: frozenset[tuple[str, int]]
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class ChangeMechanism:
    """Why a change can be the cause: `strength` in (0, 1], `why` in words; `place` is file:line where a trace meets it."""

    strength: float
    why: str
    place: str | None = None


_TIME_TROUBLE = re.compile(
    r"deadline|timed? ?-?out|expired|cancell?ed|not yet valid|cache miss|stale|too slow|slow|latency|probe failed"
    r"|unhealthy|invalid token|saturat|cpu"
)
_NULL_TROUBLE = re.compile(
    r"nil pointer|null ?pointer|nullreference|nonetype|of undefined|of null|keyerror|indexerror|attributeerror|typeerror"
    r"|panic|segmentation|sigsegv|index out of (range|bounds)|unwrap|unhandled|nosuchelement|exception|divi\w{1,20} by zero"
)
_LOAD_TROUBLE = re.compile(
    r"slow quer|slow request|slow_query|rows|latency|quer(y|ies)|throttl|capacity|throughput|quota|\bcpu\b|exceeded"
    r"|statement|memory|out_of_memory|oom|disk|duration|too many"
)
_LIMIT_TROUBLE = re.compile(
    r"pool|connection|exhaust|queue|timed? ?out|oom|memory|throttl|latency|evict|too many|reject|overload|saturat|disk"
    r"|storage|slow|quota|5xx|restart"
)
_ACCESS_TROUBLE = re.compile(
    r"forbidden|denied|unauthori[sz]ed|certificate|x509|tls|handshake|\b40[13]\b|credential|permission|token"
)
_NAME_TROUBLE = re.compile(r"no such host|resolve|resolution|\bdns\b|nxdomain|servfail|lookup|enotfound")
_SQL_TROUBLE = re.compile(r"slow quer|statement|slow_query|lock|db |database|quer(y|ies)|duration|latency")

_DURATION = re.compile(
    r"(?<!\d)(\d{1,30}+(?:\.\d{1,30}+)?)\s{0,8}\*?\s{0,8}(?:time\.|Duration\.of|TimeUnit\.|timedelta\()?\s{0,8}"
    r"(nanoseconds?|microseconds?|milliseconds?|seconds?|minutes?|hours?|days?|ns|us|ms|s|m|h|d)\b",
    re.IGNORECASE,
)
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT_OF = {
    "nano": "ns",
    "micr": "us",
    "mill": "ms",
    "seco": "s",
    "minu": "m",
    "hour": "h",
    "days": "d",
    "day": "d",
}
_TIME_KEY = re.compile(
    r"time_?out|deadline|ttl|expir|leeway|skew|toleran|grace|keep_?alive|lease|max_?age|validity|period|interval|budget|patience",
    re.IGNORECASE,
)
_LIMIT_KEY = re.compile(
    r"max|pool|limit|size|conn|memory|mem\b|cpu|replica|worker|thread|concurren|quota|capacity|buffer|retention|cache|heap|rate|burst",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([KMGT]i?B?|m)?\b")
_SIZES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_GUARD = re.compile(
    r"[!=]==?\s*(nil|null|None|undefined)|\bis (not )?None\b|\bif not \w|\blen\(\w+\)\s*[<>=!]|\.(isEmpty|isPresent|orElse\w*"
    r"|getOrDefault|unwrap_or\w*|get)\(|\?\.|\?\?|\b(try|catch|except|rescue)\b|\bensure\b|\bassert\b|\bif\b.{0,60}\b(return|throw|raise)\b"
)
_BOUND = re.compile(
    r"\blimit\b|\bbatch\w*|\bchunk\w*|\bpage_?size\b|\bbulk\w*|\btop \d|\bfetch first\b|\bwhere\b",
    re.IGNORECASE,
)
_LOOP = re.compile(r"\bfor\b|\bforeach\b|\.each\b|\.map\(|\bwhile\b", re.IGNORECASE)
_REMOTE_CALL = re.compile(
    r"\bselect\b.{0,80}\bfrom\b|(query|fetch|lookup|find|load|put_?item|get_?item|request|rpc|execute)\w{0,60}\s{0,60}\(|\.(get|post|put|send|exec)\w*\(",
    re.IGNORECASE,
)
_SQL = re.compile(
    r"\b(select|update|delete|insert|from|where|join|order by|group by|index|alter table|create table)\b",
    re.IGNORECASE,
)
_ACCESS_KEY = re.compile(
    r"role|policy|scope|permission|\biam\b|secret|token|cert|\btls\b|\bca\b|allow|deny|principal|audience|auth|credential|arn:",
    re.IGNORECASE,
)
_NAME_KEY = re.compile(r"dns|resolv|nameserver|ndots|\bhost(name)?\b|endpoint|_url\b|address", re.IGNORECASE)


def find_mechanism(
    diff: ChangeDiff, symptoms: IncidentSymptoms, commonness: Mapping[str, int]
) -> ChangeMechanism | None:
    """The strongest way in which the diff can bring about the symptoms, or None. `commonness` counts words over diffs."""
    found = [mechanism for rule in _RULES if (mechanism := rule(diff, symptoms))]
    if named := _match_names(diff, symptoms, commonness):
        found.append(named)
    return max(found, key=lambda mechanism: mechanism.strength, default=None)


def _match_frames(diff: ChangeDiff, symptoms: IncidentSymptoms) -> ChangeMechanism | None:
    """The file of a stack trace is one that the change touched; best on the very lines."""
    best: ChangeMechanism | None = None
    for file, line in sorted(symptoms.frames):
        for touched in diff.files:
            if not _is_same_file(file, touched):
                continue
            spans = [(a, b) for name, a, b in diff.spans if name == touched]
            exact = any(a <= line <= b for a, b in spans)
            if exact or best is None:
                strength = EXACT if exact else TYPED
                why = f"the stack trace ends at {touched}:{line}, which the change touches"
                best = ChangeMechanism(strength, why, f"{touched}:{line}")
    return best


def _is_same_file(traced: str, touched: str) -> bool:
    a, b = traced.strip("/").split("/"), touched.strip("/").split("/")
    shared = min(len(a), len(b), 2)
    return a[-shared:] == b[-shared:]


def _match_names(
    diff: ChangeDiff, symptoms: IncidentSymptoms, commonness: Mapping[str, int]
) -> ChangeMechanism | None:
    """A name that the change took away or brought appears in the failing lines, and hardly in other changes."""
    changed = {w for w in diff.gone | diff.came if commonness.get(w, 1) <= _RARE}
    quoted = sorted((w for w in changed & symptoms.quoted if len(w) > 2), key=len)
    if quoted:
        side = "took away" if quoted[-1] in diff.gone else "brought"
        return ChangeMechanism(NAMED, f"the failing lines name '{quoted[-1]}', which the change {side}")
    named = sorted((w for w in changed & symptoms.names if _is_identifier(w)), key=len)
    if named:
        side = "took away" if named[-1] in diff.gone else "brought"
        return ChangeMechanism(TYPED, f"the failing lines name {named[-1]}, which the change {side}")
    return None


def _is_identifier(word: str) -> bool:
    """Whether a word is one that people give to things: mixed case, or with underscores or figures, and long enough."""
    return len(word) > 4 and (
        "_" in word
        or any(c.isdigit() for c in word)
        or (word != word.lower() and word[1:] != word[1:].lower())
    )


def _match_time_limits(diff: ChangeDiff, symptoms: IncidentSymptoms) -> ChangeMechanism | None:
    if not _TIME_TROUBLE.search(symptoms.text):
        return None
    for old, new in pair_changed_lines(diff):
        before, after = _read_seconds(old), _read_seconds(new)
        about = _TIME_KEY.search(old) or _TIME_KEY.search(new)
        if before and after and after <= HALVED * before and about:
            return ChangeMechanism(
                TYPED,
                f"the change cut a time limit from {_format_short(before)} s to {_format_short(after)} s",
            )
        if about and before and not new and not any(_read_seconds(line) for line in diff.added):
            return ChangeMechanism(TYPED, f"the change removed a tolerance of {_format_short(before)} s")
    return None


def _format_short(value: float) -> str:
    return f"{value:.10g}"


def _read_seconds(line: str) -> float | None:
    """The first time that a line states; a bare figure after a key of seconds or milliseconds counts."""
    found = _DURATION.search(line)
    if found:
        word = found[2].lower()
        return float(found[1]) * _UNITS[_UNIT_OF.get(word[:4], word)]
    bare = _NUMBER.search(line)
    if bare and _TIME_KEY.search(line):
        return float(bare[1]) * (1e-3 if re.search(r"_?(ms|millis)\b", line, re.IGNORECASE) else 1.0)
    return None


def _match_guards(diff: ChangeDiff, symptoms: IncidentSymptoms) -> ChangeMechanism | None:
    if not _NULL_TROUBLE.search(symptoms.text):
        return None
    lost = _count_matches(_GUARD, diff.removed) - _count_matches(_GUARD, diff.added)
    return (
        ChangeMechanism(NAMED, "the change removed a check, and what it checked now fails")
        if lost > 0
        else None
    )


def _match_bounds(diff: ChangeDiff, symptoms: IncidentSymptoms) -> ChangeMechanism | None:
    if not _LOAD_TROUBLE.search(symptoms.text):
        return None
    if _count_matches(_BOUND, diff.removed) > _count_matches(_BOUND, diff.added):
        return ChangeMechanism(TYPED, "the change removed what bounded or batched the work")
    brought = _count_matches(_REMOTE_CALL, diff.added) > _count_matches(_REMOTE_CALL, diff.removed)
    looped = any(_LOOP.search(line) for line in (*diff.added, *diff.context))
    return (
        ChangeMechanism(TYPED, "the change makes a call for each item of a loop")
        if brought and looped
        else None
    )


def _match_limits(diff: ChangeDiff, symptoms: IncidentSymptoms) -> ChangeMechanism | None:
    if not _LIMIT_TROUBLE.search(symptoms.text):
        return None
    for old, new in pair_changed_lines(diff):
        if not new or not _LIMIT_KEY.search(old) or _read_seconds(old):
            continue
        before, after = _read_size(old), _read_size(new)
        if before and after is not None and after <= HALVED * before:
            return ChangeMechanism(
                TYPED, f"the change cut a limit from {_format_short(before)} to {_format_short(after)}"
            )
    return None


def _read_size(line: str) -> float | None:
    found = _NUMBER.search(line)
    if not found:
        return None
    unit = (found[2] or "").lower()
    # `500m` of a CPU is half of one; `512M` of memory are megabytes.
    scale = 1e-3 if found[2] == "m" else _SIZES.get(unit[:1], 1.0)
    return float(found[1]) * scale


def _match_sql(diff: ChangeDiff, symptoms: IncidentSymptoms) -> ChangeMechanism | None:
    if not _SQL_TROUBLE.search(symptoms.text):
        return None
    lines = [line for line in (*diff.removed, *diff.added) if _SQL.search(line)]
    words = {w.lower() for line in lines for w in split_words(line) if len(w) > 3 and not _SQL.fullmatch(w)}
    shared = sorted((w for w in words if w in symptoms.text), key=lambda w: (-len(w), w))
    if len({m.lower() for line in lines for m in _SQL.findall(line)}) < 1 or not shared:
        return None
    return ChangeMechanism(
        WEAK, f"the change alters a statement on {shared[0]}, which also appears in the symptoms"
    )


def _match_access(diff: ChangeDiff, symptoms: IncidentSymptoms) -> ChangeMechanism | None:
    if not ({"permission", "certificate"} & symptoms.kinds) or not _ACCESS_TROUBLE.search(symptoms.text):
        return None
    changed = any(_ACCESS_KEY.search(line) for line in (*diff.removed, *diff.added))
    return ChangeMechanism(WEAK, "the change alters who may do what, and access fails") if changed else None


def _match_name_resolution(diff: ChangeDiff, symptoms: IncidentSymptoms) -> ChangeMechanism | None:
    if "dns" not in symptoms.kinds or not _NAME_TROUBLE.search(symptoms.text):
        return None
    pairs = [
        (old, new) for old, new in pair_changed_lines(diff) if "".join(old.split()) != "".join(new.split())
    ]
    changed = any(old and new and _NAME_KEY.search(old) for old, new in pairs)
    return (
        ChangeMechanism(WEAK, "the change alters how names are resolved, and names fail") if changed else None
    )


def _count_matches(pattern: re.Pattern[str], lines: Iterable[str]) -> int:
    return sum(len(pattern.findall(line)) for line in lines)


_RULES: tuple[Callable[[ChangeDiff, IncidentSymptoms], ChangeMechanism | None], ...] = (
    _match_frames,
    _match_time_limits,
    _match_guards,
    _match_bounds,
    _match_limits,
    _match_sql,
    _match_access,
    _match_name_resolution,
)

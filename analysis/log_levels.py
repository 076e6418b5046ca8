"""How much fails and how long things take, by what log lines state: statuses, durations, pauses.

With a quiet part the trouble is compared with it; without one the absolute figures are reported.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import NormalDist, median

from opsleuth.analysis.called_endpoints import name_endpoints
from opsleuth.analysis.line_numbers import NumberReader
from opsleuth.analysis.log_series import status_of, thin_out
from opsleuth.analysis.log_templates import Masker
from opsleuth.analysis.logdiff import BY_CHANCE
from opsleuth.analysis.number_format import format_number
from opsleuth.analysis.records import Finding, LogLine, Recording, TimeRange
from opsleuth.analysis.request_fields import (
    describe_counts,
    find_request_path,
    find_upstream,
    find_upstream_of_error,
    name_requests,
)
from opsleuth.analysis.robust_statistics import measure_rank_rise

MOST_LINES = 60_000
ENOUGH_REQUESTS = 20
LEAST_SHARE = 0.05
LEAST_RATIO = 3.0
ENOUGH_DURATIONS = 5
SLOW_STATEMENT_MS = 1_000.0
LONG_PAUSE_MS = 500.0
_LARGEST = 12.0
_GATEWAY = frozenset((502, 503, 504))
_FIRST_SERVER_ERROR = 500
_SQL = re.compile(r"\b(?:select|insert\s+into|update|delete\s+from|with|call|commit|alter|create)\b.*", re.IGNORECASE | re.DOTALL)  # fmt: skip
_PLAIN_STATEMENT = re.compile(r"\binsert\s+into\b|\bdelete\s+from\b|\bcommit\b", re.IGNORECASE)
_STATEMENT_PARTS = tuple(
    (re.compile(rf"\b{first}\b.", re.IGNORECASE | re.DOTALL), re.compile(rf"\b{then}\b", re.IGNORECASE))
    for first, then in (("select", "from"), ("update", "set"))
)
_PAUSE = re.compile(r"\bpause\b|\bfull gc\b|\bstopped for\b|\bgc\(\d+\)", re.IGNORECASE)
_HEADER = re.compile(r"(?s)^.*?SET timestamp=\d+;\s*")
_QUOTED = 120
# Times the usual distance of two failures: after a longer pause they are another stretch.
_LONGEST_PAUSE = 5.0


@dataclass(slots=True)
class _Requests:
    answered: int = 0
    failed: Counter[int] = field(default_factory=Counter)
    paths: Counter[str] = field(default_factory=Counter)
    upstreams: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        return self.failed.total() / self.answered if self.answered else 0.0


@dataclass(slots=True)
class _Statement:
    """Durations of one form of line, in ms, before the onset and since."""

    sample: str
    first: float
    before: list[float] = field(default_factory=list)
    since: list[float] = field(default_factory=list)


def find_log_levels(recording: Recording) -> list[Finding]:
    """Findings from statuses and durations in lines, the largest first."""
    window, onset = recording.window, recording.alert.onset
    lines = [line for line in recording.logs or () if line.time is not None and window.start - 3_600 <= line.time < window.end]  # fmt: skip
    turn = onset if onset is not None and window.start < onset < window.end else None
    found = [*_failing_requests(lines, turn, window), *_long_durations(thin_out(lines, MOST_LINES), turn)]
    return sorted(found, key=lambda finding: (-finding.size, finding.service, finding.text))


def _failing_requests(lines: Sequence[LogLine], turn: float | None, window: TimeRange) -> Iterator[Finding]:
    before: dict[str, _Requests] = defaultdict(_Requests)
    since: dict[str, _Requests] = defaultdict(_Requests)
    failed_at: dict[str, list[float]] = defaultdict(list)
    for line in lines:
        status = status_of(line)
        if status is None or line.time is None:
            continue
        if status >= _FIRST_SERVER_ERROR and (turn is None or line.time >= turn):
            failed_at[line.service].append(line.time)
        if turn is None and line.time < window.start:
            continue
        tally = (before if turn is not None and line.time < turn else since)[line.service]
        tally.answered += 1
        if status >= _FIRST_SERVER_ERROR:
            tally.failed[status] += 1
            tally.paths.update(filter(None, [find_request_path(line)]))
            tally.upstreams.update(filter(None, [find_upstream(line)]))
    for service, now in since.items():
        if not now.upstreams and len(since) == 1:
            now.upstreams = _upstreams_of_errors(lines, turn)
        usual = before[service] if turn is not None and before[service].answered >= ENOUGH_REQUESTS else None
        if now.answered >= ENOUGH_REQUESTS and now.share - (usual.share if usual else 0.0) >= LEAST_SHARE:
            counted = TimeRange(window.start if turn is None else turn, window.end)
            yield _build_failing_finding(
                service, now, usual, _find_first_failure(failed_at[service], window.start), counted
            )


def _find_first_failure(times: Iterable[float], start: float) -> float:
    """The first failure of the stretch that goes on at `start`: trouble may have begun before it was reported."""
    ordered = sorted(times)
    inside = [time for time in ordered if time >= start]
    pause = _LONGEST_PAUSE * (inside[-1] - inside[0]) / len(inside)
    first = inside[0]
    for time in reversed(ordered[: len(ordered) - len(inside)]):
        if first - time > pause:
            break
        first = time
    return first


def _upstreams_of_errors(lines: Sequence[LogLine], turn: float | None) -> Counter[str]:
    """The upstreams that a proxy's own errors name, which appear in another file than its requests."""
    return Counter(
        name
        for line in lines
        if (turn is None or (line.time or 0.0) >= turn) and (name := find_upstream_of_error(line))
    )


def _build_failing_finding(
    service: str, now: _Requests, usual: _Requests | None, first: float, counted: TimeRange
) -> Finding:
    """The share of failed requests in the stretch that was `counted`, which the sentence names."""
    status, count = min(now.failed.items(), key=lambda item: (-item[1], item[0]))
    text = (
        f"{now.failed.total()} of {now.answered} {name_requests(service)} ended in a 5xx status "
        f"({100 * now.share:.0f} %; {status}: {count}) from {_clock_text(counted.start)} to {_clock_text(counted.end)}"
    )
    if usual:
        text += f", before {usual.failed.total()} of {usual.answered}"
    if paths := describe_counts(now.paths, now.failed.total()):
        text += f": {paths}"
    if upstreams := describe_counts(now.upstreams, now.failed.total()):
        text += f"; upstream {upstreams.removeprefix('all of them ')}"
    behind = now.failed.total() and sum(now.failed[s] for s in _GATEWAY) > now.failed.total() / 2
    rise = now.share - (usual.share if usual else 0.0)
    return Finding(
        detector="log_statuses",
        signal="logs",
        service=service,
        kind="dependency" if behind else "errors",
        size=min(_LARGEST, 2.0 + 15.0 * rise),
        text=f"{text}.",
        figures={"failed": now.failed.total(), "requests": now.answered, "status": status, "count": count}
        | ({"host": host} if (host := name_endpoints(now.upstreams)) else {})
        | ({"baseline": usual.failed.total(), "baseline_requests": usual.answered} if usual else {}),
        onset=first,
    )


def _long_durations(lines: Sequence[LogLine], turn: float | None) -> Iterator[Finding]:
    by_service: dict[str, list[_Statement]] = defaultdict(list)
    for service, statement in _find_duration_statements(lines, turn):
        by_service[service].append(statement)
    for service, statements in by_service.items():
        usual = [value for statement in statements for value in statement.before]
        rated = [(size, s) for s in statements if (size := _rate_statement(s, usual, turn)) > 0]
        if rated:
            size, worst = max(rated, key=lambda pair: (pair[0] * math.log1p(sum(pair[1].since)), pair[1].sample))  # fmt: skip
            yield _build_duration_finding(service, worst, usual, size, turn)


def _find_duration_statements(
    lines: Iterable[LogLine], turn: float | None
) -> Iterator[tuple[str, _Statement]]:
    """Each service's forms of lines that hold a duration."""
    masker, reader = Masker(), NumberReader()
    found: dict[tuple[str, str], _Statement] = {}
    for line in lines:
        form = masker.form(line.message)
        durations = [
            n.value for n in reader.read(line, form) if n.unit == "ms" and not n.name.startswith("lock")
        ]
        if not durations or line.time is None:
            continue
        key = (line.service, masker.mask_form(form, line.message))
        statement = found.setdefault(key, _Statement(line.message, line.time))
        if turn is not None and line.time < turn:
            statement.before.append(max(durations))
        else:
            statement.first = line.time if not statement.since else statement.first
            statement.since.append(max(durations))
    for (service, _), statement in found.items():
        yield service, statement


def _rate_statement(statement: _Statement, usual: Sequence[float], turn: float | None) -> float:
    """How far the durations since the onset are beyond those before; without a quiet part, beyond what is fine anywhere."""
    if len(statement.since) < ENOUGH_DURATIONS:
        return 0.0
    now = median(statement.since)
    held = statement.before if len(statement.before) >= ENOUGH_DURATIONS else list(usual)
    if statement.before and now < LEAST_RATIO * median(statement.before):
        return 0.0  # a line that is written when something is slow was as slow before
    if len(statement.before) >= ENOUGH_DURATIONS and _is_mixed_as_before(statement):
        return 0.0
    if turn is not None and len(held) >= ENOUGH_DURATIONS:
        level = max(median(held), 1e-3)
        return (
            min(_LARGEST, 3.0 * math.log2(now / level)) if now >= LEAST_RATIO * level and now >= 1.0 else 0.0
        )
    if turn is None and _is_slow_anywhere(statement.sample, now):
        return min(_LARGEST, 3.0 + math.log2(now / LONG_PAUSE_MS))
    return 0.0


def _is_mixed_as_before(statement: _Statement) -> bool:
    """Whether chance moves so much: the median of fast and slow requests of one line jumps between the two."""
    return measure_rank_rise(statement.before, statement.since) < NormalDist().inv_cdf(1 - BY_CHANCE)


def _holds_statement(text: str) -> bool:
    """Whether an SQL statement stands in the text. Two searches for its two words: one for both takes quadratic time."""
    if _PLAIN_STATEMENT.search(text):
        return True
    return any(
        (begun := first.search(text)) and then.search(text, begun.end()) for first, then in _STATEMENT_PARTS
    )


def _is_slow_anywhere(sample: str, now: float) -> bool:
    if _holds_statement(sample):
        return now >= SLOW_STATEMENT_MS
    return bool(_PAUSE.search(sample)) and now >= LONG_PAUSE_MS


def _build_duration_finding(
    service: str, statement: _Statement, usual: Sequence[float], size: float, turn: float | None
) -> Finding:
    now = median(statement.since)
    held = statement.before if len(statement.before) >= ENOUGH_DURATIONS else list(usual)
    text = f'"{quote_statement(statement.sample)}" of {service} takes {_duration_text(now)} ({len(statement.since)} times)'
    figures: dict[str, float | str] = {"incident": round(now, 3), "unit": "ms", "count": len(statement.since)}
    if turn is not None and held:
        what = "it took" if len(statement.before) >= ENOUGH_DURATIONS else "the others took"
        text += f" since {_clock_text(turn)}; before, {what} {_duration_text(median(held))}"
        figures["baseline"] = round(median(held), 3)
    return Finding(
        detector="log_durations",
        signal="logs",
        service=service,
        kind=_kind_of_statement(statement.sample),
        size=size,
        text=f"{text}.",
        figures=figures,
        onset=statement.first,
    )


def _kind_of_statement(sample: str) -> str:
    if _holds_statement(sample):
        return "slow_query"
    return "memory" if _PAUSE.search(sample) else "latency"


def quote_statement(sample: str) -> str:
    """The telling part of a line: of a slow log's record its statement."""
    text = _HEADER.sub("", sample)
    if _holds_statement(text) and (found := _SQL.search(text)):
        text = found[0]
    return " ".join(text.split())[:_QUOTED]


def _clock_text(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%H:%M}Z"


def _duration_text(milliseconds: float) -> str:
    if milliseconds >= 1_000:
        return f"{format_number(milliseconds / 1_000)} s"
    return f"{format_number(milliseconds)} ms"

"""Which SQL statements load a database, what they wait for, and what changed about them.

Load is counted in average active sessions: how many sessions, at any moment, were busy with the statement
(Little's law: load = calls per second x seconds per call, which also gives one of the three from the others).
Where a database was read before the onset, a statement is compared with its own past; else it is judged as it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from opsleuth.analysis.number_format import format_number
from opsleuth.analysis.records import Finding, Recording, StatementLoad

DETECTOR = "statements"
_WITHOUT_HISTORY = frozenset({"idle", "waiting", "working"})
"""Figures of a statement that was judged by itself."""
# Less than one session always busy with a statement leaves every other session its turn.
ONE_SESSION = 1.0
# A call that a person notices (Nielsen's tenth of a second); a lookup by index takes a hundredth of it.
SLOW_MS = 100.0
# Sessions that clients hold while they do something else; one or two are somebody's export.
HELD_IDLE = 3.0
# A device in good health answers a write, a free lock is granted, well within this.
WAIT_MS = 10.0
# Against its past: half as much again is beyond the drift of a working day, and three spreads beyond its own.
GROWN = 1.5
SPREADS = 3.0
# The least spread that a mean over some minutes has.
LEAST_SPREAD = 0.1
# A tenth of a session more is nothing, however little a database usually has to do.
LEAST_EXTRA = 0.1
# Onsets are known to a sample or two: what came up so long before one came with it.
JUST_BEFORE_SECONDS = 60.0
# Size of extra load that equals all the load the database usually has; a third of that is just noticeable.
DOUBLE_LOAD = 10.0

# The first class that has a part in the wait event's name: names nest (`Lock:`, `LWLock:`, `IO:WALWrite`).
_WAITS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("idle", ("client:", "clientread", "activity:", "timeout:", "idle", "sql*net")),
    (
        "disk",
        ("wal", "bufferm", "buffercontent", "buffer_mapping", "buffer_content", "log file sync", "writelog"),
    ),
    ("locks", ("lock:", "lck_", "enq:", "/lock/", "row lock", "lock_manager", "lockmanager", "bufferpin")),
    ("work", ("cpu", "read", "ipc:", "sorting", "executing", "sending data")),
    ("disk", ("write", "sync", "extend", "flush", "truncate", "checkpoint", "io:", "/io/")),
)

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SessionLoad:
    """One statement at one time: `sessions` busy with it, `mean_ms` per call, sessions by class of wait.

    None where the row does not say and nothing follows from Little's law.
    """

    database: str
    statement: str
    time: float | None
    sessions: float | None
    mean_ms: float | None
    per_second: float | None
    waits: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class JudgedStatement:
    """A statement that matters: why (`kind`), how much (`size`), in which words, by which figures."""

    load: SessionLoad
    kind: str
    size: float
    because: str
    figures: Mapping[str, float]


def find_heavy_statements(recording: Recording) -> list[Finding]:
    """One finding for each database and kind, on its heaviest statement.

    `size` is average active sessions, or ten times the share by which a statement adds to the usual load.
    """
    earlier, now = _split_at_onset(
        _loads_by_statement(recording.statements or ()),
        recording.alert.onset,
        find_first_seen_times(recording),
    )
    groups: dict[Key, list[JudgedStatement]] = defaultdict(list)
    for key, later in now.items():
        load = later[-1]
        past = {other: loads for other, loads in earlier.items() if other[0] == load.database}
        judged = (
            _compare_with_past(past.get(key, ()), later, _usual_total_load(past))
            if past
            else _judge_without_history(load)
        )
        if judged is not None:
            groups[load.database, judged.kind].append(judged)
    findings = [_build_statement_finding(kind, group) for (_, kind), group in groups.items()]
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind))


def is_judged_without_history(findings: Sequence[Finding]) -> bool:
    """Whether all there is against a suspect are statements that nobody saw before, so that they may be as heavy as ever."""
    return all(f.detector == DETECTOR and bool(_WITHOUT_HISTORY & f.figures.keys()) for f in findings)


def find_first_seen_times(recording: Recording) -> dict[Key, float]:
    """When each statement was first busy, of those that were not when their database was first read."""
    readings = _loads_by_statement(recording.statements or ())
    busy = {
        key: [load.time for load in loads if load.time is not None and load.sessions]
        for key, loads in readings.items()
    }
    begun: dict[str, float] = {}
    for (database, _), loads in readings.items():
        for load in loads:  # a row without a time says nothing of when its database was first read
            if load.time is not None:
                begun[database] = min(load.time, begun.get(database, load.time))
    return {key: times[0] for key, times in busy.items() if times and times[0] > begun[key[0]]}


def classify_wait(name: str) -> str:
    """What a wait event stands for: `work` (processor and reads), `disk` (writes), `locks`, `idle`, or `other`."""
    lowered = name.lower()
    return next((kind for kind, parts in _WAITS if any(part in lowered for part in parts)), "other")


def session_load_from_row(row: StatementLoad) -> SessionLoad:
    """The load of one row, with what is missing filled in by Little's law."""
    mean, rate, sessions = row.mean_ms, row.calls_per_sec, row.load
    if mean is None and row.total_ms is not None and row.calls:
        mean = row.total_ms / row.calls
    if mean is None and sessions is not None and rate:
        mean = sessions / rate * 1000.0
    if sessions is None and mean is not None and rate is not None:
        sessions = rate * mean / 1000.0
    waits: dict[str, float] = defaultdict(float)
    for name, value in row.waits.items():
        waits[classify_wait(name)] += value
    return SessionLoad(row.database, row.statement, row.time, sessions, mean, rate, dict(waits))


def _loads_by_statement(rows: Iterable[StatementLoad]) -> dict[Key, list[SessionLoad]]:
    """The loads of each statement in order of time; running totals become the load between two readings."""
    by_key: dict[Key, list[StatementLoad]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (r.time or 0.0, r.calls or 0.0)):
        by_key[row.database, row.statement].append(row)
    return {key: _loads_from_rows(group) for key, group in by_key.items()}


def _loads_from_rows(rows: Sequence[StatementLoad]) -> list[SessionLoad]:
    """Running totals that were kept, and what was measured besides."""
    totals = [row for row in rows if row.load is None and row.calls_per_sec is None]
    if len(totals) < 2:
        return [session_load_from_row(row) for row in rows]
    measured = [
        session_load_from_row(row) for row in rows if row.load is not None or row.calls_per_sec is not None
    ]
    loads = [_load_between_totals(before, row) for before, row in pairwise(totals)]
    return sorted([*loads, *measured], key=lambda load: load.time or 0.0)


def _load_between_totals(before: StatementLoad, row: StatementLoad) -> SessionLoad:
    calls, total = (
        (row.calls or 0.0) - (before.calls or 0.0),
        (row.total_ms or 0.0) - (before.total_ms or 0.0),
    )
    seconds = (row.time or 0.0) - (before.time or 0.0)
    if calls == 0 and total == 0 and seconds > 0:  # nothing ran
        return replace(session_load_from_row(row), sessions=0.0, mean_ms=None, per_second=0.0)
    if calls <= 0 or total < 0 or seconds <= 0:  # the counters were reset
        return session_load_from_row(row)
    return replace(
        session_load_from_row(row),
        sessions=total / 1000.0 / seconds,
        mean_ms=total / calls,
        per_second=calls / seconds,
    )


def _split_at_onset(
    readings: Mapping[Key, Sequence[SessionLoad]], onset: float | None, seen: Mapping[Key, float]
) -> tuple[dict[Key, list[SessionLoad]], dict[Key, Sequence[SessionLoad]]]:
    """The readings before the onset (one first seen just before it began with it), and those of each statement from then on (or the last of all, if there is none)."""
    earlier: dict[Key, list[SessionLoad]] = {}
    later: dict[Key, Sequence[SessionLoad]] = {}
    for key, loads in readings.items():
        cut = onset
        if onset is not None and 0.0 < onset - seen.get(key, onset) <= JUST_BEFORE_SECONDS:
            cut = seen[key]
        before = [load for load in loads if cut is not None and load.time is not None and load.time < cut]
        if before:
            earlier[key] = before
        if len(before) < len(loads):
            later[key] = loads[len(before) :]
    return (earlier, later) if later else ({}, {key: loads[-1:] for key, loads in earlier.items()})


def _usual_total_load(past: Mapping[Key, Sequence[SessionLoad]]) -> float:
    """The load that all statements of a database usually make together, in sessions."""
    return sum(_median_of_known(load.sessions for load in loads) for loads in past.values())


def _median_of_known(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return median(known) if known else 0.0


def _judge_without_history(load: SessionLoad) -> JudgedStatement | None:
    """A statement by itself: heavy, and slow for its own work, or held up by locks or the device."""
    if load.sessions is None or load.sessions < ONE_SESSION:
        return None
    held = {kind: load.waits.get(kind, 0.0) for kind in ("disk", "locks")}
    kind = max(held, key=lambda k: (held[k], k))
    idle = load.waits.get("idle", 0.0)
    work = load.sessions - sum(held.values()) - idle
    if idle >= HELD_IDLE and idle > load.sessions / 2.0 and _reaches_limit_per_call(load, idle, SLOW_MS):
        return JudgedStatement(
            load, "connections", idle, "holds sessions that wait for their clients", {"idle": idle}
        )
    if held[kind] >= max(ONE_SESSION, work) and _reaches_limit_per_call(load, held[kind], WAIT_MS):
        what = "locks" if kind == "locks" else "writes and their log"
        return JudgedStatement(load, kind, held[kind], f"waits for {what}", {"waiting": held[kind]})
    if work >= ONE_SESSION and _reaches_limit_per_call(load, work, SLOW_MS):
        return JudgedStatement(load, "slow_query", work, "is slow by its own work", {"working": work})
    return None


def _reaches_limit_per_call(load: SessionLoad, sessions: float, limit_ms: float) -> bool:
    """Whether `sessions` come to `limit_ms` or more for each call; calls that never end do."""
    if load.per_second is None:
        return load.mean_ms is None or load.mean_ms >= limit_ms
    return sessions * 1000.0 >= limit_ms * load.per_second


def _compare_with_past(
    past: Sequence[SessionLoad], later: Sequence[SessionLoad], usual: float
) -> JudgedStatement | None:
    """A statement against its own past: new, slower, or called more often."""
    now = later[-1]
    if now.sessions is None or usual <= 0.0:
        return None
    extra = now.sessions - _median_of_known(load.sessions for load in past)
    size = DOUBLE_LOAD * extra / usual
    if size <= SPREADS / 3.0 or extra < LEAST_EXTRA:
        return None
    if not any(load.sessions is None or load.sessions > 0.0 for load in past):
        return JudgedStatement(
            now, _kind_of_added_time(past, now), size, "was not there before the onset", {}
        )
    for name, kind, unit in (
        ("mean_ms", _kind_of_added_time(past, now), "ms a call"),
        ("per_second", "traffic", "calls a second"),
    ):
        history = [value for load in past if (value := getattr(load, name)) is not None]
        value = getattr(now, name)
        if history and value is not None and _has_grown(history, value):
            before = median(history)
            return JudgedStatement(
                now, kind, size, f"went up from {format_number(before)} {unit}", {f"usual {unit}": before}
            )
    return None


def _has_grown(history: Sequence[float], value: float) -> bool:
    middle = median(history)
    # 1.4826 makes the median of distances comparable to a standard deviation.
    spread = max(1.4826 * median(abs(v - middle) for v in history), LEAST_SPREAD * middle)
    return value > GROWN * middle and value > middle + SPREADS * spread


def _kind_of_added_time(past: Sequence[SessionLoad], now: SessionLoad) -> str:
    """What the time went into that was added: waiting for locks, for the device, or work."""
    added = {
        kind: now.waits.get(kind, 0.0) - _median_of_known(load.waits.get(kind, 0.0) for load in past)
        for kind in ("work", "locks", "disk")
    }
    leading = max(added, key=lambda kind: added[kind])
    return "slow_query" if leading == "work" or added[leading] <= 0.0 else leading


def _build_statement_finding(kind: str, group: Sequence[JudgedStatement]) -> Finding:
    worst = max(group, key=lambda judged: (judged.size, judged.load.statement))
    load = worst.load
    shown = {"sessions": load.sessions, "ms a call": load.mean_ms, "calls a second": load.per_second}
    known = {name: value for name, value in shown.items() if value is not None}
    told = ", ".join(f"{format_number(value)} {name}" for name, value in known.items())
    return Finding(
        detector=DETECTOR,
        signal="statements",
        service=load.database,
        kind=kind,
        size=sum(judged.size for judged in group),
        text=f'On {load.database} the statement "{shorten_statement(load.statement)}" {worst.because}: {told}.',
        figures={
            **known,
            **worst.figures,
            "statement": load.statement,
            "statements": len(group),
        },
        # Whoever calls more often sits upstream of the database.
        direction="victim" if kind == "traffic" else "cause",
    )


def shorten_statement(statement: str, limit: int = 120) -> str:
    """The statement on one line, at most `limit` characters."""
    line = " ".join(statement.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"

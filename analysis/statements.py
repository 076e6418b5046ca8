"""Which SQL statements load a database, what they wait for, and what changed about them.

Load is counted in average active sessions: how many sessions, at any moment, were busy with the statement
(Little's law: load = calls per second x seconds per call, which also gives one of the three from the others).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsleuth.analysis.records import Finding, Recording, StatementLoad

# Less than one session always busy with a statement leaves every other session its turn.
ONE_SESSION = 1.0
# A call that a person notices (Nielsen's tenth of a second); a lookup by index takes a hundredth of it.
SLOW_MS = 100.0
# A device in good health answers a write, a free lock is granted, well within this.
WAIT_MS = 10.0
# A statement that became twice as slow, or as frequent, has changed beyond the drift of a working day.
DOUBLED = 2.0

_WAITS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("idle", ("client:", "clientread", "activity:", "timeout:", "idle", "sql*net")),
    (
        "disk",
        (
            "wal",
            "bufferm",
            "buffercontent",
            "buffer_mapping",
            "buffer_content",
            "log file sync",
            "writelog",
            "redo",
        ),
    ),
    (
        "locks",
        (
            "lock:",
            "lck_",
            "enq:",
            "/lock/",
            "row lock",
            "lock_manager",
            "lockmanager",
            "bufferpin",
            "metadata lock",
        ),
    ),
    ("work", ("cpu", "read", "ipc:", "sorting", "executing", "sending data")),
    ("disk", ("write", "sync", "extend", "flush", "truncate", "checkpoint", "io:", "/io/")),
)


@dataclass(frozen=True, slots=True)
class Load:
    """One statement at one time: `sessions` busy with it, `mean_ms` per call, sessions by what they wait for.

    None where the row does not say and nothing follows from Little's law.
    """

    database: str
    statement: str
    sessions: float | None
    mean_ms: float | None
    per_second: float | None
    waits: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Judged:
    """A statement that matters: why (`kind`), with how many sessions, and in which words."""

    load: Load
    kind: str
    sessions: float
    because: str
    figures: Mapping[str, float]


def find(recording: Recording) -> list[Finding]:
    """One finding for each database and kind, on its heaviest statement; `size` in average active sessions."""
    earlier, later = _split(recording)
    groups: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for key, load in later.items():
        judged = (
            _compare(earlier[key], load)
            if key in earlier
            else _judge(load, fresh=_known(earlier, load.database))
        )
        if judged is not None:
            groups[load.database, judged.kind].append(judged)
    findings = [_finding(kind, group) for (_, kind), group in groups.items()]
    return sorted(findings, key=lambda f: (-f.size, f.service, f.kind))


def wait_class(name: str) -> str:
    """What a wait event stands for: `work` (processor and reads), `disk` (writes), `locks`, `idle`, or `other`."""
    lowered = name.lower()
    return next((kind for kind, parts in _WAITS if any(part in lowered for part in parts)), "other")


def load_of(row: StatementLoad) -> Load:
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
        waits[wait_class(name)] += value
    return Load(row.database, row.statement, sessions, mean, rate, dict(waits))


def _split(recording: Recording) -> tuple[dict[tuple[str, str], Load], dict[tuple[str, str], Load]]:
    """The last row of each statement before the onset, and the last one at all if it is not the same."""
    onset = recording.alert.onset
    rows = sorted(recording.statements or (), key=lambda row: row.time or 0.0)
    earlier: dict[tuple[str, str], StatementLoad] = {}
    later: dict[tuple[str, str], StatementLoad] = {}
    for row in rows:
        key = row.database, row.statement
        before = onset is not None and row.time is not None and row.time < onset
        (earlier if before else later)[key] = row
    now = {key: _since(earlier.get(key), row) for key, row in (later or earlier).items()}
    return {key: load_of(row) for key, row in earlier.items()} if later else {}, now


def _since(earlier: StatementLoad | None, row: StatementLoad) -> Load:
    """The load between two readings where both are running totals, else that of the reading itself."""
    if earlier is None or earlier.time is None or row.time is None or row.load is not None:
        return load_of(row)
    if None in (earlier.calls, row.calls, earlier.total_ms, row.total_ms) or row.time <= earlier.time:
        return load_of(row)
    calls, total = (
        (row.calls or 0.0) - (earlier.calls or 0.0),
        (row.total_ms or 0.0) - (earlier.total_ms or 0.0),
    )
    if calls <= 0 or total < 0:
        return load_of(row)
    elapsed = row.time - earlier.time
    return Load(row.database, row.statement, total / 1000.0 / elapsed, total / calls, calls / elapsed, {})


def _known(earlier: Mapping[tuple[str, str], Load], database: str) -> bool:
    return any(name == database for name, _ in earlier)


def _judge(load: Load, *, fresh: bool) -> Judged | None:
    """A statement by itself: heavy, and slow for its own work, or held up by locks or the device."""
    if load.sessions is None or load.sessions < ONE_SESSION:
        return None
    held = {kind: load.waits.get(kind, 0.0) for kind in ("disk", "locks")}
    kind = max(held, key=lambda k: (held[k], k))
    work = load.sessions - sum(held.values()) - load.waits.get("idle", 0.0)
    new = " and was not there before the onset" if fresh else ""
    if held[kind] >= max(ONE_SESSION, work) and _per_call(load, held[kind], WAIT_MS):
        what = "locks" if kind == "locks" else "writes and their log"
        return Judged(load, kind, held[kind], f"waits for {what}{new}", {"waiting": held[kind]})
    if work >= ONE_SESSION and _per_call(load, work, SLOW_MS):
        return Judged(load, "slow_query", work, f"is slow by its own work{new}", {"working": work})
    return None


def _per_call(load: Load, sessions: float, limit_ms: float) -> bool:
    """Whether `sessions` of the statement's load come to `limit_ms` or more for each call; a call that never ends does."""
    if load.per_second is None:
        return load.mean_ms is None or load.mean_ms >= limit_ms
    return sessions * 1000.0 >= limit_ms * load.per_second


def _compare(before: Load, now: Load) -> Judged | None:
    """A statement against its own past: slower, or called more often, with at least half a session more of load."""
    if before.sessions is None or now.sessions is None:
        return _slower(before, now, 0.0)
    extra = now.sessions - before.sessions
    if extra < ONE_SESSION / 2 or now.sessions < DOUBLED * before.sessions:
        return None
    return _slower(before, now, extra) or _busier(before, now, extra)


def _slower(before: Load, now: Load, extra: float) -> Judged | None:
    if before.mean_ms is None or now.mean_ms is None or now.mean_ms < max(DOUBLED * before.mean_ms, WAIT_MS):
        return None
    held = {
        kind: now.waits.get(kind, 0.0) - before.waits.get(kind, 0.0) for kind in ("work", "disk", "locks")
    }
    leading = max(held, key=lambda k: (held[k], k))
    kind = leading if leading != "work" and held[leading] > 0.0 else "slow_query"
    because = f"became slower, {before.mean_ms:.4g} ms a call before"
    sessions = extra or now.mean_ms / before.mean_ms
    return Judged(now, kind, sessions, because, {"before_ms": before.mean_ms})


def _busier(before: Load, now: Load, extra: float) -> Judged | None:
    if not before.per_second or now.per_second is None or now.per_second < DOUBLED * before.per_second:
        return None
    because = f"is called more often, {before.per_second:.4g} calls a second before"
    return Judged(now, "traffic", extra, because, {"before_per_second": before.per_second})


def _finding(kind: str, group: Sequence[Judged]) -> Finding:
    worst = max(group, key=lambda j: (j.sessions, j.load.statement))
    load = worst.load
    shown = {"sessions": load.sessions, "ms a call": load.mean_ms, "calls a second": load.per_second}
    told = ", ".join(f"{value:.4g} {name}" for name, value in shown.items() if value is not None)
    figures = {name.replace(" ", "_"): value for name, value in shown.items() if value is not None}
    return Finding(
        detector="statements",
        signal="statements",
        service=load.database,
        kind=kind,
        size=sum(judged.sessions for judged in group),
        text=f'On {load.database} the statement "{shortened(load.statement)}" {worst.because}: {told}.',
        figures={**figures, **worst.figures, "statement": load.statement, "statements": len(group)},
    )


def shortened(statement: str, limit: int = 120) -> str:
    """The statement on one line, at most `limit` characters."""
    line = " ".join(statement.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"

"""The trace of a run: an append-only log in which every line's hash covers the line before it."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.db import NO_LIMIT, Parameters, Row
from opsleuth.checkpoints.errors import Unreadable
from opsleuth.state.canonical import canonical

VERSION = 1
"""Version of the record's form; it changes only on a break."""

_FIRST = "0" * 64


class Event(TypedDict):
    """One line of the trace, in the form in which it is also streamed. `hash` covers all before it.

    `trace` is the run's, the same in every attempt; it follows from `run`, so that it is not stored.
    """

    v: int
    seq: int
    ts: str
    run: str
    trace: str
    attempt: int
    turn: int
    ckpt: str
    step: int
    node: str
    type: str
    data: dict[str, Any]
    hash: str


@lru_cache(maxsize=100)
def trace_of(run: str) -> str:
    """The trace id of a run: `t-` and the 32 hex digits under which a collector of traces knows it."""
    return "t-" + hashlib.sha256(f"opsleuth {run}".encode()).hexdigest()[:32]


class Record(NamedTuple):
    """What an event will say. `at` is when it happened, by `now`, where that was not the moment of storing."""

    type: str
    data: Mapping[str, Any]
    attempt: int = 0
    turn: int = 0
    node: str = ""
    step: int = 0
    checkpoint: str = ""
    at: str | None = None


class Verification(NamedTuple):
    """What `verify` found. `broken_at` is the first sequence number that does not fit, None if all do."""

    lines: int
    broken_at: int | None = None
    problem: str = ""


_INSERT = """
INSERT INTO events (run, seq, ts, type, attempt, turn, node, step, checkpoint, data, hash)
VALUES (:run, :seq, :ts, :type, :attempt, :turn, :node, :step, :ckpt, :data, :hash)
"""
_HEAD = """
INSERT INTO event_heads (run, seq, hash) VALUES (:run, :seq, :hash)
ON CONFLICT (run) DO UPDATE SET seq = :seq, hash = :hash
"""
_STANDS = "UPDATE runs SET turn = :turn, node = :node WHERE id = :run"
_READ = """
SELECT seq, ts, run, attempt, turn, checkpoint, step, node, type, data, hash FROM events
WHERE run = :run AND seq > :after AND {of_types}
ORDER BY seq LIMIT :limit
"""


class Events:
    """The table of events."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._db = backing, backing.db

    def append(
        self,
        run: str,
        type: str,  # noqa: A002 - the record's own word
        data: Mapping[str, Any],
        **place: Any,  # noqa: ANN401 - the other fields of a record
    ) -> Event:
        """Store one event; returns it as stored. `place` are the other fields of a `Record`."""
        return self.append_all(run, [Record(type, data, **place)])[0]

    def append_all(self, run: str, records: Sequence[Record]) -> list[Event]:
        """Store events in order, redacted and with control characters made visible; returns them as stored.

        A step that starts is where the run stands from then on, also for those who ask while it runs or after it
        was killed.
        """
        texts = [canonical(self._backing.redactor.for_display(record.data)) for record in records]
        with self._db.write(run):
            head = self._db.row("SELECT seq, hash FROM event_heads WHERE run = ?", (run,))
            seq, before = (head["seq"], head["hash"]) if head else (0, _FIRST)
            events, changes = list[Event](), list[tuple[str, Parameters]]()
            for record, text in zip(records, texts, strict=True):
                seq += 1
                event = self._event(run, seq, record, text, before)
                before = event["hash"]
                events.append(event)
                changes.append((_INSERT, {**event, "data": text}))
                if record.type == "step.started":
                    changes.append((_STANDS, {"run": run, "turn": record.turn, "node": record.node}))
            self._db.change_all([*changes, (_HEAD, {"run": run, "seq": seq, "hash": before})])
        return events

    def _event(self, run: str, seq: int, record: Record, text: str, before: str) -> Event:
        event = Event(
            v=VERSION,
            seq=seq,
            ts=record.at or self._backing.now(),
            run=run,
            trace=trace_of(run),
            attempt=record.attempt,
            turn=record.turn,
            ckpt=record.checkpoint,
            step=record.step,
            node=record.node,
            type=record.type,
            data=json.loads(text),
            hash="",
        )
        event["hash"] = _chain(before, event)
        return event

    def now(self) -> str:
        """The present moment, as events carry it."""
        return self._backing.now()

    def read(
        self, run: str, after: int = 0, types: Collection[str] | None = None, limit: int | None = None
    ) -> list[Event]:
        """Events with a sequence number above `after`, in order, at most `limit`, of the given types or of all."""
        rows = self._rows(run, after, types, NO_LIMIT if limit is None else limit)
        try:
            documents = json.loads(f"[{','.join(row['data'] for row in rows)}]")
        except ValueError as error:
            raise Unreadable(
                f"the log of {run} is damaged: `opsleuth log {run} --verify` says where"
            ) from error
        return [_event(row, data) for row, data in zip(rows, documents, strict=True)]

    def last(self, run: str) -> int:
        """The number of the run's last event, 0 where there is none."""
        head = self._db.row("SELECT seq FROM event_heads WHERE run = ?", (run,))
        return int(head["seq"]) if head else 0

    def count(self, run: str, type: str) -> int:  # noqa: A002 - the record's own word
        """How many events of one type a run has."""
        row = self._db.row("SELECT count(*) AS total FROM events WHERE run = ? AND type = ?", (run, type))
        return int(row["total"]) if row else 0

    def verify(self, run: str) -> Verification:
        """Recompute the chain. Finds a changed, removed, inserted or cut-off line."""
        before, count = _FIRST, 0
        rows = self._rows(run, after=-1)
        for count, row in enumerate(rows, 1):
            if row["seq"] != count:
                return Verification(count - 1, count, f"line {count} is missing")
            if not _fits(before, row):
                return Verification(count - 1, count, f"line {count} was changed: its hash does not fit")
            before = row["hash"]
        head = self._db.row("SELECT seq, hash FROM event_heads WHERE run = ?", (run,))
        if (head["seq"], head["hash"]) != (count, before) if head else count:
            return Verification(count, count + 1, "lines are missing at the end, or were added")
        return Verification(count)

    def _rows(
        self, run: str, after: int, types: Collection[str] | None = None, limit: int = NO_LIMIT
    ) -> Sequence[Row]:
        wanted = {f"type{number}": kind for number, kind in enumerate(sorted(types or ()))}
        marks = ", ".join(f":{name}" for name in wanted) or "NULL"
        sql = _READ.format(of_types="1 = 1" if types is None else f"type IN ({marks})")
        return self._db.rows(sql, {"run": run, "after": after, "limit": limit, **wanted})


def _event(row: Row, data: dict[str, Any]) -> Event:
    seq, ts, run, attempt, turn, checkpoint, step, node, kind, _, line_hash = row
    return Event(
        v=VERSION,
        seq=seq,
        ts=ts,
        run=run,
        trace=trace_of(run),
        attempt=attempt,
        turn=turn,
        ckpt=checkpoint,
        step=step,
        node=node,
        type=kind,
        data=data,
        hash=line_hash,
    )


def _fits(before: str, row: Row) -> bool:
    try:
        event = _event(row, json.loads(row["data"]))
    except ValueError:
        return False
    return (canonical(event["data"]), _chain(before, event)) == (row["data"], row["hash"])


def _chain(before: str, event: Event) -> str:
    line = {name: value for name, value in event.items() if name not in ("hash", "trace")}
    return hashlib.sha256(f"{before}{canonical(line)}".encode()).hexdigest()

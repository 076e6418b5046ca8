"""The trace of a run: an append-only log in which every line's hash covers the line before it."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict

from opsleuth.checkpoints.chain import FIRST, describe_misfit, digest_link, read_log_key
from opsleuth.checkpoints.database import NO_LIMIT, Parameters, Row
from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.row_digests import adopt_rows
from opsleuth.checkpoints.seals import UNSEALED, head_changes, read_heads
from opsleuth.checkpoints.table_context import Table
from opsleuth.state.canonical_json import to_canonical_json

VERSION = 1
"""Version of the record's form; it changes only on a break."""


class TraceEvent(TypedDict):
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
def trace_id_of_run(run: str) -> str:
    """The trace id of a run: `t-` and the 32 hex digits under which a collector of traces knows it."""
    return "t-" + hashlib.sha256(f"opsleuth {run}".encode()).hexdigest()[:32]


class PendingEvent(NamedTuple):
    """What an event will say. `at` is when it happened, by `now`, where that was not the moment of storing."""

    type: str
    data: Mapping[str, Any]
    attempt: int = 0
    turn: int = 0
    node: str = ""
    step: int = 0
    checkpoint: str = ""
    at: str | None = None


class ChainVerification(NamedTuple):
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


class EventsTable(Table):
    """The table of events."""

    def append(
        self,
        run: str,
        type: str,  # noqa: A002 - the record's own word
        data: Mapping[str, Any],
        **place: Any,  # noqa: ANN401 - the other fields of a record
    ) -> TraceEvent:
        """Store one event; returns it as stored. `place` are the other fields of a `Record`."""
        return self.append_all(run, [PendingEvent(type, data, **place)])[0]

    def append_all(self, run: str, records: Sequence[PendingEvent]) -> list[TraceEvent]:
        """Store events in order, redacted and with control characters made visible; returns them as stored.

        A step that starts is where the run is from then on, also for readers while it runs or after it
        was killed.
        """
        texts = [to_canonical_json(self._backing.redactor.for_display(record.data)) for record in records]
        with self._db.write(run):
            heads = read_heads(self._db, run)
            if heads.seals == UNSEALED:
                adopt_rows(self._backing, run)
                heads = read_heads(self._db, run)
            seq, before = heads.events or (0, FIRST)
            events, changes = list[TraceEvent](), list[tuple[str, Parameters]]()
            for record, text in zip(records, texts, strict=True):
                seq += 1
                event = self._event(run, seq, record, text, before)
                before = event["hash"]
                events.append(event)
                changes.append((_INSERT, {**event, "data": text}))
                if record.type == "step.started":
                    changes.append((_STANDS, {"run": run, "turn": record.turn, "node": record.node}))
            ends = [(_HEAD, {"run": run, "seq": seq, "hash": before}), *head_changes(run, heads)]
            self._db.change_all([*changes, *ends])
        return events

    def _event(self, run: str, seq: int, record: PendingEvent, text: str, before: str) -> TraceEvent:
        at, place = record.at or self._backing.now(), (record.attempt, record.turn, record.checkpoint)
        row = (seq, at, run, *place, record.step, record.node, record.type, text, "")
        event = _event_from_row(row, json.loads(text))
        event["hash"] = digest_link(before, _line_of(event), read_log_key())
        return event

    def now(self) -> str:
        """The present moment, as events carry it."""
        return self._backing.now()

    def read(
        self, run: str, after: int = 0, types: Collection[str] | None = None, limit: int | None = None
    ) -> list[TraceEvent]:
        """Events with a sequence number above `after`, in order, at most `limit`, of the given types or of all."""
        rows = self._rows(run, after, types, NO_LIMIT if limit is None else limit)
        try:
            documents = json.loads(f"[{','.join(row['data'] for row in rows)}]")
        except ValueError as error:
            raise UnreadableStoreError(
                f"the log of {run} is damaged: `opsleuth log {run} --verify` says where"
            ) from error
        return [_event_from_row(row, data) for row, data in zip(rows, documents, strict=True)]

    def last(self, run: str) -> int:
        """The number of the run's last event, 0 where there is none."""
        head = self._db.row("SELECT seq FROM event_heads WHERE run = ?", (run,))
        return int(head["seq"]) if head else 0

    def count(self, run: str, type: str) -> int:  # noqa: A002 - the record's own word
        """How many events of one type a run has."""
        row = self._db.row("SELECT count(*) AS total FROM events WHERE run = ? AND type = ?", (run, type))
        return int(row["total"]) if row else 0

    def verify(self, run: str) -> ChainVerification:
        """Recompute the chain. Finds a changed, removed, inserted or cut-off line."""
        before, count, key = FIRST, 0, read_log_key()
        rows = self._rows(run, after=-1)
        for count, row in enumerate(rows, 1):
            if row["seq"] != count:
                return ChainVerification(count - 1, count, f"line {count} is missing")
            if problem := _problem_of(before, row, key):
                return ChainVerification(count - 1, count, f"line {count} {problem}")
            before = row["hash"]
        head = self._db.row("SELECT seq, hash FROM event_heads WHERE run = ?", (run,))
        if (head["seq"], head["hash"]) != (count, before) if head else count:
            return ChainVerification(count, count + 1, "lines are missing at the end, or were added")
        return ChainVerification(count)

    def _rows(
        self, run: str, after: int, types: Collection[str] | None = None, limit: int = NO_LIMIT
    ) -> Sequence[Row]:
        wanted = {f"type{number}": kind for number, kind in enumerate(sorted(types or ()))}
        marks = ", ".join(f":{name}" for name in wanted) or "NULL"
        sql = _READ.format(of_types="1 = 1" if types is None else f"type IN ({marks})")
        return self._db.rows(sql, {"run": run, "after": after, "limit": limit, **wanted})


def _event_from_row(row: Iterable[Any], data: dict[str, Any]) -> TraceEvent:
    """The event of one row, whose columns appear in the order of `_READ`."""
    seq, ts, run, attempt, turn, checkpoint, step, node, kind, _, line_hash = row
    return TraceEvent(
        v=VERSION,
        seq=seq,
        ts=ts,
        run=run,
        trace=trace_id_of_run(run),
        attempt=attempt,
        turn=turn,
        ckpt=checkpoint,
        step=step,
        node=node,
        type=kind,
        data=data,
        hash=line_hash,
    )


def _problem_of(before: str, row: Row, key: str) -> str:
    """What is wrong with a stored line; empty when it fits the line before it."""
    try:
        event = _event_from_row(row, json.loads(row["data"]))
    except ValueError:
        return "was changed: its data is not JSON"
    if to_canonical_json(event["data"]) != row["data"]:
        return "was changed: its data is not written as events are"
    return describe_misfit(row["hash"], before, _line_of(event), key)


def _line_of(event: TraceEvent) -> str:
    """What the hash of an event covers besides the line before it."""
    return to_canonical_json({name: value for name, value in event.items() if name not in ("hash", "trace")})

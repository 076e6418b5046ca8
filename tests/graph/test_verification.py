"""`log --verify` on a real run: every column of every row that the log points to is changed once, and each change is found."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, concludes, looks
from nonempty import nonempty

from opsleuth.checkpoints.approvals import ApprovalAnswer, ApprovalRequest
from opsleuth.checkpoints.chain import LOG_KEY
from opsleuth.checkpoints.database import Database, Row
from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.seals import mark_unsealed
from opsleuth.checkpoints.verification import (
    ANCHORS,
    RecordCheck,
    append_anchor,
    current_head,
    note_end,
    read_anchors,
    verify_record,
)

RUN = "inv-20240501-test"
DIGEST = "ab" * 32
SCRIPT = [
    looks("a", "b"),
    looks({"thing": "x"}, tool="change"),
    looks("c"),
    concludes("a, b and c were looked at.", "E1", "E2", "E4"),
]
OWNERS = {
    "checkpoints": "thread_id",
    "writes": "thread_id",
    "checkpoint_blobs": "thread_id",
    "checkpoint_writes": "thread_id",
}
"""The column that names the run, where it is not `run`."""
KEYS = {
    "events": ("seq",), "results": ("call_id",), "observations": ("number",), "evidence": ("number",), "approvals": ("id",), "effects": ("key",),
    "reports": (), "checkpoints": ("checkpoint_id",), "writes": ("checkpoint_id", "task_id", "idx"), "checkpoint_writes": ("checkpoint_id", "task_id", "idx"),
    "checkpoint_blobs": ("channel", "version"), "seals": ("seq",), "seal_heads": (), "event_heads": (), "snapshots": ("id",),
}  # fmt: skip
CHOICES = {
    "approvals.about": ("call", "effect"),
    "approvals.status": ("denied", "approved"),
    "effects.status": ("unknown", "done"),
    "effects.outcome": ("happened", "absent"),
    "effects.tries": (2, 1),
}
"""Columns that the database holds to a few values."""
FREE = {"task_path", "checkpoint_ns", "rowid"}
"""Columns of the framework that say nothing of a run: its order of tasks, a namespace that is always empty; and our order of insertion."""


class RollBackError(Exception):
    """Ends a transaction whose changes shall not stay."""


@pytest.fixture
def loop(tmp_path: Path, place: Place) -> Iterator[Loop]:
    """A run with everything that a run can have: an effect, an answered approval, a question, a flushed write."""
    loop = Loop(tmp_path, place=place)
    loop.start(*SCRIPT)
    approvals, snapshots = loop.store.approvals, loop.store.snapshots
    asked = approvals.request(
        RUN,
        ApprovalRequest(
            about="call", subject="t9c1", digest=DIGEST, policy_version="p1", document={"tool": "restart"}
        ),
    )
    approvals.answer(
        RUN,
        asked.id,
        ApprovalAnswer(decision="approved", by="jane", via="tty", digest=DIGEST, reason="it helps"),
    )
    approvals.request(
        RUN, ApprovalRequest(about="effect", subject="t9c2", digest=DIGEST, document={"key": "k"})
    )
    snapshots.put(RUN, {"role": "user", "content": "what is the matter"})
    asyncio.run(store_write(loop))
    loop.store.events.append(RUN, "run.noted", {"text": "all of it is stored"})
    yield loop
    loop.store.close()


async def store_write(loop: Loop) -> None:
    """What a node leaves behind that stops for a question: a write that no checkpoint follows."""
    with loop.store.saver() as saver:
        newest = await saver.aget_tuple({"configurable": {"thread_id": RUN, "checkpoint_ns": ""}})
        assert newest is not None
        await saver.aput_writes(newest.config, [("__error__", "it stopped here")], "task-1")


def check(loop: Loop, anchor: str | None = None) -> RecordCheck:
    return verify_record(loop.store.events, loop.store.database, RUN, anchor)


def rows_of(db: Database, table: str) -> list[Row]:
    sql = f"SELECT * FROM {table} WHERE {OWNERS.get(table, 'run')} = ?"
    return list(db.rows(sql, (RUN,)))


def changed(table: str, column: str, value: Any) -> Any:
    """Another value of the same type: one character, one bit, one more."""
    if f"{table}.{column}" in CHOICES:
        first, second = CHOICES[f"{table}.{column}"]
        return second if value == first else first
    if value is None:
        return 1 if column == "verified" else "2027-01-01T00:00:00.000Z"
    if isinstance(value, bytes | memoryview):
        raw = bytearray(value)
        raw[len(raw) // 2] ^= 1
        return bytes(raw)
    if isinstance(value, bool | int):
        return value + 1000
    if isinstance(value, Mapping | list):
        return json.dumps({**value, "ts": "2027"} if isinstance(value, Mapping) else [*value, 1])
    middle = len(value) // 2
    return f"{value[:middle]}{'y' if value[middle : middle + 1] == 'x' else 'x'}{value[middle + 1 :]}"


def tampered(loop: Loop, sql: str, parameters: Mapping[str, Any]) -> RecordCheck:
    """What the check finds after this change, which is undone."""
    found: list[RecordCheck] = []

    def change_and_check() -> None:
        with loop.store.database.write():
            assert loop.store.database.change(sql, parameters) >= 1, sql
            found.append(check(loop))
            raise RollBackError

    with pytest.raises(RollBackError):
        change_and_check()
    return found[0]


def changes_of(db: Database, table: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A name, a statement and its parameters for a change of each column of the first and the last row of a table."""
    rows = rows_of(db, table)
    for number in sorted({0, len(rows) - 1}):
        row = rows[number]
        where = " AND ".join(f"{name} = :{name}" for name in KEYS[table])
        owner = OWNERS.get(table, "run")
        at = {name: row[name] for name in KEYS[table]} | {"owner": RUN}
        where = f"{owner} = :owner{' AND ' if where else ''}{where}"
        for column in set(row.keys()) - FREE - {owner}:
            if (table, column, row[column]) == ("checkpoints", "type", None):
                continue  # a server leaves it empty: the form of a value is with the value
            value = changed(table, column, row[column])
            cast = "CAST(:value_ AS jsonb)" if isinstance(row[column], Mapping) else ":value_"
            yield (
                f"{table}.{column} {number}",
                f"UPDATE {table} SET {column} = {cast} WHERE {where}",
                {**at, "value_": value},
            )
        yield f"{table} removed {number}", f"DELETE FROM {table} WHERE {where}", at


def test_a_run_is_intact_and_says_what_cannot_be_seen(loop: Loop) -> None:
    found = check(loop)
    assert found.problems == ()
    assert found.rows.keys() >= {
        "results",
        "observations",
        "evidence",
        "approvals",
        "effects",
        "reports",
        "checkpoints",
        "writes",
    }
    assert any("no head was given" in warning for warning in found.warnings)
    assert any(LOG_KEY in warning for warning in found.warnings)
    assert found.head == current_head(loop.store.database, RUN)


def test_every_change_of_a_column_and_every_removal_is_found(loop: Loop) -> None:
    db = loop.store.database
    missed, made = [], 0
    for table in sorted(db.tables() & KEYS.keys()):
        for name, sql, parameters in changes_of(db, table):
            made += 1
            if table == "snapshots" and "removed" in name:
                continue
            if tampered(loop, sql, parameters).is_intact:
                missed.append(name)
    assert not missed
    assert made >= 100
    assert check(loop).is_intact


def test_every_change_of_a_body_is_found(loop: Loop) -> None:
    db = loop.store.database
    for row in nonempty(db.rows("SELECT * FROM bodies")):
        for column in ("size", "left_out", "data"):
            sql = f"UPDATE bodies SET {column} = :value WHERE sha256 = :sha256"
            assert not tampered(
                loop, sql, {"value": changed("bodies", column, row[column]), "sha256": row["sha256"]}
            ).is_intact, column
        assert not tampered(
            loop, "DELETE FROM bodies WHERE sha256 = :sha256", {"sha256": row["sha256"]}
        ).is_intact
        longer = {"value": bytes(row["data"]) + b"x", "sha256": row["sha256"]}
        assert not tampered(loop, "UPDATE bodies SET data = :value WHERE sha256 = :sha256", longer).is_intact


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            "UPDATE approvals SET answered_by = 'mallory', via = 'api' WHERE run = :run AND id = 'A1'",
            "approval A1 was changed",
        ),
        ("UPDATE evidence SET number = 77 WHERE run = :run AND number = 2", "E2 was removed"),
        (
            "INSERT INTO observations SELECT run, 99, fields, body FROM observations WHERE run = :run AND number = 1",
            "O99 was added",
        ),
        ("DELETE FROM effects WHERE run = :run", "effect"),
        ("UPDATE reports SET document = '{}' WHERE run = :run", "the report was changed"),
        ("DELETE FROM seals WHERE run = :run AND seq > 3", "seals are missing"),
        ("DELETE FROM seal_heads WHERE run = :run", "head of the seals is missing"),
    ],
)
def test_what_was_changed_is_named(loop: Loop, sql: str, told: str) -> None:
    assert told in " ".join(tampered(loop, sql, {"run": RUN}).problems)


def cut_at_a_head(loop: Loop, events: int, seals: int) -> None:
    """Remove the end of both chains and make the heads fit again, as whoever can write the database can."""
    db, rows = loop.store.database, loop.store.database.rows
    db.change("DELETE FROM events WHERE run = ? AND seq > ?", (RUN, events))
    last = rows("SELECT hash FROM events WHERE run = ? AND seq = ?", (RUN, events))[0]["hash"]
    db.change("UPDATE event_heads SET seq = ?, hash = ? WHERE run = ?", (events, last, RUN))
    for row in rows("SELECT kind, key FROM seals WHERE run = ? AND seq > ?", (RUN, seals)):
        if row["kind"] in KEYS and row["kind"] not in OWNERS and row["kind"] != "reports":
            db.change(
                f"DELETE FROM {row['kind']} WHERE run = ? AND CAST({KEYS[row['kind']][0]} AS TEXT) = ?",
                (RUN, row["key"]),
            )
    db.change("DELETE FROM reports WHERE run = ?", (RUN,))
    db.change("DELETE FROM seals WHERE run = ?", (RUN,))
    db.change("DELETE FROM seal_heads WHERE run = ?", (RUN,))
    loop.store.adopt_rows(RUN)
    loop.store.events.append(RUN, "run.noted", {})


def test_a_removed_end_shows_against_the_head_and_only_there(loop: Loop) -> None:
    head = check(loop).head
    assert check(loop, head).is_intact
    cut_at_a_head(loop, events=10, seals=12)
    assert check(loop).is_intact
    found = check(loop, head)
    assert not found.is_intact
    assert found.problems[0].startswith("events were removed: the run had ")


def test_a_run_that_went_on_still_fits_its_earlier_head(loop: Loop) -> None:
    head = check(loop).head
    loop.store.events.append(RUN, "run.noted", {"text": "more"})
    loop.store.reports.put(RUN, {"answer": "another"})
    assert check(loop, head).is_intact
    assert not check(loop, head[:-1] + ("0" if head[-1] != "0" else "1")).is_intact
    assert "is not a head" in check(loop, "84").problems[0]


def test_the_newest_line_of_an_anchor_file_counts(tmp_path: Path) -> None:
    for number in (1, 2):
        append_anchor(tmp_path / "anchors", RUN, f"{number}-1-{'0' * 32}", "2026-01-01T00:00:00Z")
    assert read_anchors(tmp_path / "anchors") == {RUN: f"2-1-{'0' * 32}"}


def test_a_run_of_an_earlier_version_verifies_and_is_covered_when_it_goes_on(loop: Loop) -> None:
    db = loop.store.database
    for table in ("seals", "seal_heads"):
        db.change(f"DELETE FROM {table} WHERE run = ?", (RUN,))
    assert "the head of the seals is missing" in check(loop).problems
    mark_unsealed(db, RUN)
    assert check(loop).is_intact
    loop.store.approvals.stale(RUN, "Q1", "nobody knows")
    old = check(loop)
    assert old.is_intact
    assert any("not covered" in warning and "evidence" in warning for warning in old.warnings)
    loop.store.events.append(RUN, "run.resumed", {})
    assert check(loop).is_intact
    assert not any("not covered" in warning for warning in check(loop).warnings)
    assert not tampered(loop, "UPDATE evidence SET fetched = 'x' WHERE run = :run", {"run": RUN}).is_intact


def test_under_a_key_nobody_else_can_make_the_chain_anew(
    tmp_path: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOG_KEY, "correct horse battery")
    loop = Loop(tmp_path, place=place)
    loop.start(*SCRIPT)
    assert check(loop).is_intact
    assert check(loop).keyed
    monkeypatch.setenv(LOG_KEY, "another key")
    assert not check(loop).is_intact
    monkeypatch.delenv(LOG_KEY)
    assert LOG_KEY in check(loop).problems[0]
    assert len(check(loop).problems) == 1
    loop.store.database.change("UPDATE reports SET document = '{}' WHERE run = ?", (RUN,))
    for table in ("seals", "seal_heads"):
        loop.store.database.change(f"DELETE FROM {table} WHERE run = ?", (RUN,))
    loop.store.adopt_rows(RUN)
    loop.store.events.append(RUN, "run.noted", {})
    monkeypatch.setenv(LOG_KEY, "correct horse battery")
    assert "was not written under" in " ".join(check(loop).problems)
    loop.store.close()


def test_the_end_of_a_run_is_noted_where_the_environment_says(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchors = tmp_path / "anchors"
    monkeypatch.setenv(ANCHORS, str(anchors))
    head, problem = note_end(loop.store.database, RUN, "2026-01-01T00:00:00Z")
    assert (head, problem) == (read_anchors(anchors)[RUN], "")
    monkeypatch.setenv(ANCHORS, str(tmp_path))
    assert head in note_end(loop.store.database, RUN, "2026-01-01T00:00:00Z")[1]

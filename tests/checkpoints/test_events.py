"""The trace: order, filters, and a chain that shows any change."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.trace.events import TraceEvent
from opsleuth.state.calls import Risk


def fill(store: Store, run: str, count: int = 5) -> list[TraceEvent]:
    return [
        store.events.append(run, "step.completed", {"number": n}, turn=n, node="act") for n in range(count)
    ]


def test_a_later_read_equals_the_live_stream(store: Store, second: Store, run: str) -> None:
    live = store.events.append(
        run,
        "tool.completed",
        {"risk": Risk.READ, "values": (1.0, 2.5), "text": "a\x1b[2Jb", "gap": float("nan")},
        attempt=1,
        turn=4,
        node="act",
        step=9,
        checkpoint="c9",
    )
    assert json.dumps(live) == json.dumps(second.events.read(run)[0])
    assert live["ckpt"] == "c9"
    assert live["data"] == {"risk": "read", "values": [1, 2.5], "text": "a\\x1b[2Jb", "gap": None}


def test_a_step_that_starts_is_where_the_run_stands(store: Store, second: Store, run: str) -> None:
    store.events.append(run, "step.started", {}, turn=3, node="act")
    store.events.append(run, "tool.started", {}, turn=4, node="plan")
    stands = second.runs.get(run)
    assert stands is not None
    assert (stands.turn, stands.node) == (3, "act")


def test_sequence_is_per_run_over_all_writers(store: Store, second: Store, run: str) -> None:
    events = [
        store.events.append(run, "a", {}),
        second.events.append(run, "b", {}),
        store.events.append(run, "c", {}),
    ]
    store.events.append("another", "a", {})
    assert [e["seq"] for e in events] == [1, 2, 3]
    assert store.events.verify(run) == (3, None, "")
    assert store.events.verify("another").lines == 1
    assert store.events.verify("nobody") == (0, None, "")


def test_read_after_of_types_and_limited(store: Store, run: str) -> None:
    for kind in "abcab":
        store.events.append(run, kind, {})

    def read(**asked: Any) -> list[int]:
        return [e["seq"] for e in store.events.read(run, **asked)]

    assert read() == [1, 2, 3, 4, 5]
    assert read(after=3) == [4, 5]
    assert read(types=["a", "c"]) == [1, 3, 4]
    assert read(types=[]) == []
    assert read(after=1, types={"b"}, limit=1) == [2]


@pytest.mark.parametrize(
    ("damage", "broken_at"),
    [
        ("UPDATE events SET data = '{\"number\":7}' WHERE seq = 3", 3),
        ("UPDATE events SET data = '{' WHERE seq = 3", 3),
        ("UPDATE events SET ts = '2027-01-01T00:00:00.000Z' WHERE seq = 2", 2),
        ("UPDATE events SET node = 'plan' WHERE seq = 1", 1),
        ("DELETE FROM events WHERE seq = 3", 3),
        ("DELETE FROM events WHERE seq = 5", 5),
        ("DELETE FROM events WHERE seq >= 1", 1),
        ("DELETE FROM event_heads", 6),
        ("UPDATE events SET hash = '" + "0" * 64 + "' WHERE seq = 5", 5),
        ("INSERT INTO events SELECT run, 6, ts, type, attempt, turn, node, step, checkpoint, data, hash FROM events LIMIT 1", 6),
        ("UPDATE events SET data = (SELECT data FROM events WHERE seq = 5) WHERE seq = 4", 4),
    ],
)  # fmt: skip
def test_any_change_breaks_the_chain(store: Store, run: str, damage: str, broken_at: int) -> None:
    fill(store, run)
    assert store.events.verify(run).broken_at is None
    store.database.change(damage)
    found = store.events.verify(run)
    assert found.broken_at == broken_at
    assert found.problem


def test_a_damaged_line_names_the_way_to_look(store: Store, run: str) -> None:
    fill(store, run)
    store.database.change("UPDATE events SET data = '{' WHERE seq = 3")
    with pytest.raises(UnreadableStoreError, match="--verify"):
        store.events.read(run)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(), st.lists
        ),
        max_size=4,
    )
)
def test_whatever_is_appended_is_read_and_verified(store: Store, run: str, data: dict[str, object]) -> None:
    event = store.events.append(run, "x", data)
    assert store.events.read(run, after=event["seq"] - 1) == [event]
    assert store.events.verify(run).broken_at is None


COLUMNS = ("run", "seq", "ts", "type", "attempt", "turn", "node", "step", "checkpoint", "data", "hash")


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    column=st.sampled_from(COLUMNS), seq=st.integers(1, 5), where=st.integers(0, 400), by=st.integers(1, 93)
)
def test_any_changed_byte_is_found(
    store: Store, run: str, column: str, seq: int, where: int, by: int
) -> None:
    """Also one that leaves the JSON's meaning as it is, such as a space between two of its tokens."""
    if not store.events.read(run):
        fill(store, run)
    db = store.database
    (row,) = db.rows(f"SELECT hash, {column} FROM events WHERE run = ? AND seq = ?", (run, seq))
    line, before = row
    changed: object = before + 5 * by if isinstance(before, int) else _with_byte(before, where, by)
    for value, intact in ((changed, False), (before, True)):
        db.change(f"UPDATE events SET {column} = ? WHERE hash = ?", (value, line))
        line = value if column == "hash" else line
        assert (store.events.verify(run).broken_at is None) is intact


def _with_byte(text: str, where: int, by: int) -> str:
    place = where % (len(text) + 1)
    if place == len(text):
        return text + " "
    return text[:place] + chr((ord(text[place]) - 32 + by) % 95 + 32) + text[place + 1 :]


def test_the_trace_is_the_runs_in_every_attempt(store: Store, run: str) -> None:
    first = store.events.append(run, "run.started", {}, attempt=1)
    second = store.events.append(run, "run.resumed", {}, attempt=2)
    other = store.events.append("another", "run.started", {}, attempt=1)
    assert first["trace"] == second["trace"] != other["trace"]
    assert first["trace"].startswith("t-")
    assert len(bytes.fromhex(first["trace"][2:])) == 16

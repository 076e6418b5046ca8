"""Results, observations and evidence: stored once by content, read along the lineage, bounded with a marked hole."""

import json
import tracemalloc
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.checkpoints.bodies import CAP, bound_record, cut_middle
from opsleuth.checkpoints.errors import NotFoundError, RunBusyError, UnreadableStoreError
from opsleuth.checkpoints.evidence import EvidenceMeta
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import FakeClock
from opsleuth.state.results import CallResult, Observation, ResultStatus


def result(call_id: str, value: object = 1) -> CallResult:
    return CallResult(
        call_id=call_id,
        status=ResultStatus.NONE_MATCHED,
        record={"value": value},
        headline="412 pts",
        source="prom",
        query="rate(x)",
        scanned=14_200,
        matched=0,
        spark=(0.5, 1.5),
        tries=2,
        ms=31,
        redactions=1,
    )


def observation(number: int, value: object = 1) -> Observation:
    return Observation(
        number=number,
        call_id=f"r/t{number}c1",
        turn=number,
        tool="metrics_query",
        arguments={"q": "x"},
        purpose="why",
        status=ResultStatus.OK,
        evidence=f"E{number}",
        headline="h",
        record={"value": value},
        target="prod-1",
        source="prom",
    )


META = EvidenceMeta(call_id="r/t1c1", tool="metrics_query", status=ResultStatus.OK, source="prom", scanned=3)


def fork(store: Store, run: str, at: int) -> str:
    return store.runs.create(RunRow(id=f"{run}-f", question="q", parent=run, forked_at_observation=at)).id


def test_a_result_is_stored_once(store: Store, second: Store, run: str) -> None:
    first = result("r/t1c1")
    assert store.results.get(run, "r/t1c1") is None
    assert store.results.put(run, "r/t1c1", first)
    assert not second.results.put(run, "r/t1c1", result("r/t1c1", "another"))
    assert second.results.get(run, "r/t1c1") == first
    assert store.results.discard(run, "r/t1c1")
    assert store.results.get(run, "r/t1c1") is None


def test_a_fork_replays_its_parents_results(store: Store, run: str) -> None:
    store.results.put(run, "r/t9c1", result("r/t9c1"))
    child = fork(store, run, at=2)
    assert store.results.get(child, "r/t9c1") == result("r/t9c1")
    store.results.put(child, "r/t9c1", result("r/t9c1", "by hand"), origin="operator")
    found = store.results.get(child, "r/t9c1")
    assert found is not None
    assert found.record == {"value": "by hand"}
    assert store.results.get(run, "r/t9c1") == result("r/t9c1")


def test_observations_are_read_along_the_lineage(store: Store, run: str) -> None:
    for number in (3, 1, 2, 4):
        assert store.observations.add(run, observation(number))
    assert not store.observations.add(run, observation(2, "another"))
    child = fork(store, run, at=3)
    store.observations.add(child, observation(3, "mine"))
    store.observations.add(child, observation(4, "mine"))
    assert store.observations.list(run) == tuple(observation(n) for n in (1, 2, 3, 4))
    assert store.observations.list(run, 2) == (observation(1), observation(2))
    assert [(o.number, o.record["value"]) for o in store.observations.list(child)] == [
        (1, 1), (2, 1), (3, "mine"), (4, "mine"),
    ]  # fmt: skip
    assert [o.number for o in store.observations.list(child, 3)] == [1, 2, 3]


def test_evidence_is_found_along_the_lineage(store: Store, run: str, clock: FakeClock) -> None:
    row = store.evidence.put(run, 1, META, {"rows": [1, 2]})
    assert (row.id, row.tool, row.scanned, row.left_out) == ("E1", "metrics_query", 3, 0)
    assert row.size == len('{"rows":[1,2]}')
    clock.advance(60)
    assert store.evidence.put(run, 1, META, {"rows": [9]}) == row
    store.evidence.put(run, 2, META, {"late": True})
    child = fork(store, run, at=1)
    assert store.evidence.get(child, "E1") == row
    assert store.evidence.record(child, "E1") == {"rows": [1, 2]}
    assert [r.id for r in store.evidence.list(child)] == ["E1"]
    with pytest.raises(NotFoundError, match=r"'E2'.*near: E1"):
        store.evidence.get(child, "E2")


@pytest.mark.parametrize("wrong", ["E0", "E", "7", "e1", "E1; DROP", "E99999999999", ""])
def test_evidence_needs_its_id(store: Store, run: str, wrong: str) -> None:
    with pytest.raises(NotFoundError):
        store.evidence.get(run, wrong)


@pytest.mark.slow
def test_equal_records_are_stored_once(store: Store, run: str) -> None:
    for number in range(1, 25):
        body = {"text": f"{number % 4} " + "x" * 50_000}
        store.results.put(run, f"r/t{number}c1", result(f"r/t{number}c1", body))
        store.observations.add(run, observation(number, body))
        store.evidence.put(run, number, META, {"value": body})
    assert store.database.rows("SELECT count(*) FROM bodies")[0][0] == 4
    assert store.database.rows("SELECT sum(length(data)) FROM bodies")[0][0] < 10_000


def test_a_body_that_was_changed_is_refused(store: Store, run: str) -> None:
    row = store.evidence.put(run, 1, META, {"rows": 1})
    store.database.change("UPDATE bodies SET data = ?", (b"broken",))
    with pytest.raises(UnreadableStoreError, match=row.sha256[:12]):
        store.evidence.record(run, "E1")


@pytest.mark.slow
def test_ten_megabytes_keep_head_and_tail(store: Store, run: str) -> None:
    lines = {"output": "first line\n" + "0123456789" * 1_000_000 + "\nlast line", "rows": 3}
    tracemalloc.start()
    row = store.evidence.put(run, 1, META, lines)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    stored = store.evidence.record(run, "E1")
    assert peak < 5 * 10_000_000
    assert row.size <= CAP
    assert row.left_out > 9_000_000
    assert stored["output"].startswith("first line\n0123")
    assert stored["output"].endswith("9\nlast line")
    assert f"[… {row.left_out} characters left out …]" in stored["output"]
    assert stored["rows"] == 3


@given(st.lists(st.text(max_size=300) | st.integers(-99, 99), max_size=60), st.integers(400, 3000))
def test_a_bounded_record_is_json_within_the_cap(items: list[object], cap: int) -> None:
    text, left_out = bound_record({"items": items}, cap)
    found = json.loads(text)
    assert len(text.encode()) <= cap
    if left_out == 0:
        assert found == {"items": items}
    elif "left_out" in found:
        assert found["left_out"] == left_out
        assert found["head"].startswith('{"items":[')


@given(st.text(), st.integers(1, 50))
def test_cut_counts_what_it_leaves_out(text: str, limit: int) -> None:
    short, left_out = cut_middle(text, limit)
    if not left_out:
        assert short == text
        return
    head, tail = short.split(f"\n[… {left_out} characters left out …]\n")
    assert len(head) + len(tail) + left_out == len(text)
    assert len(head) + len(tail) == limit * 2 // 3 + limit // 3
    assert text.startswith(head)
    assert text.endswith(tail)


def test_reports_and_requests(store: Store, second: Store, run: str) -> None:
    assert store.reports.get(run) is None
    store.reports.put(run, {"verdict": "healthy"})
    store.reports.put(run, {"verdict": "cause_found"})
    assert second.reports.get(run) == {"verdict": "cause_found"}

    second.control.set(run, "pause")
    second.control.set(run, "note", "look at the pool")
    seen = store.control.pending(run)
    assert [(r.kind, r.text) for r in seen] == [("pause", ""), ("note", "look at the pool")]
    second.control.set(run, "note", "and at dns")
    store.control.clear(run, "note", upto=seen[-1].id)
    store.control.clear(run, "pause")
    assert [r.text for r in store.control.pending(run)] == ["and at dns"]
    with pytest.raises(NotFoundError):
        store.control.set("inv-nobody", "pause")


def test_several_operations_are_one(store: Store, second: Store, run: str) -> None:
    def fail() -> None:
        with store.transaction():
            store.results.put(run, "r/t1c1", result("r/t1c1"))
            store.events.append(run, "tool.completed", {})
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert second.results.get(run, "r/t1c1") is None
    assert second.events.read(run) == []
    with store.transaction():
        store.results.put(run, "r/t1c1", result("r/t1c1"))
        store.events.append(run, "tool.completed", {})
    assert second.events.verify(run).lines == 1


def test_prune_keeps_what_a_fork_reads(store: Store, run: str, clock: FakeClock) -> None:
    lone = store.runs.create(RunRow(id="inv-lone", question="q")).id
    for member in (run, lone):
        store.evidence.put(member, 1, META, {"shared": 1})
        store.evidence.put(member, 2, META, {"own": member})
        store.events.append(member, "x", {})
    clock.advance(3600)
    child = fork(store, run, at=1)
    assert store.prune.candidates(clock.now()) == (lone,)
    with store.lock(lone), pytest.raises(RunBusyError):
        store.prune.remove(lone, clock.now())
    assert store.prune.remove(lone, clock.now())
    assert store.prune.reclaim() == 1
    assert store.runs.get(lone) is None
    assert store.events.read(lone) == []
    assert store.evidence.record(child, "E1") == {"shared": 1}
    later = clock.now() + timedelta(days=1)
    assert store.prune.candidates(later) == (child, run)


def test_what_came_after_prune_had_looked_stays(store: Store, run: str, clock: FakeClock) -> None:
    store.evidence.put(run, 1, META, {"seen": 1})
    clock.advance(3600)
    before = clock.now()
    assert store.prune.candidates(before) == (run,)
    child = fork(store, run, at=1)
    assert not store.prune.remove(run, before)
    assert store.evidence.record(child, "E1") == {"seen": 1}
    assert store.prune.remove(child, clock.now() + timedelta(1))
    store.runs.update(run, turn=7)
    assert not store.prune.remove(run, before)
    assert store.prune.remove(run, clock.now() + timedelta(1))
    with pytest.raises(NotFoundError, match="removed meanwhile"):
        fork(store, run, at=1)

"""The index of runs: finding one, listing many, lineage, and rows that are damaged."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from opsleuth.checkpoints.errors import (
    AmbiguousIdError,
    ConflictError,
    NotFoundError,
    UnreadableStoreError,
)
from opsleuth.checkpoints.processes import this_process
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import ExitCode, Status, StopReason, Verdict


def make(store: Store, run_id: str, **fields: object) -> str:
    return store.runs.create(RunRow(id=run_id, question="q", **fields)).id  # type: ignore[arg-type]


def test_a_run_comes_back_as_it_was_stored(store: Store, clock: FakeClock) -> None:
    run = RunRow(
        id="inv-20261129-7k3f",
        question="排查订单接口 [/db]",
        name="orders",
        project="shop",
        status=Status.QUEUED,
        tokens=12,
        cost=Decimal("0.31"),
        settings={"case": "/cases/1", "limits": {"turns": 30}},
    )
    stored = store.runs.create(run)
    assert stored == store.runs.get(run.id)
    assert (stored.question, stored.cost, stored.settings) == (run.question, run.cost, run.settings)
    assert stored.created == stored.updated == clock.now()

    clock.advance(60)
    store.runs.update(
        run.id, status=Status.COMPLETED, stop_reason=StopReason.CONCLUDED, verdict=Verdict.HEALTHY, turn=4
    )
    changed = store.runs.get(run.id)
    assert changed is not None
    assert (changed.status, changed.stop_reason, changed.verdict, changed.turn) == (
        Status.COMPLETED,
        StopReason.CONCLUDED,
        Verdict.HEALTHY,
        4,
    )
    assert changed.updated - changed.created == timedelta(seconds=60)
    assert not changed.resumable


def test_an_id_is_taken_once(store: Store, run: str) -> None:
    with pytest.raises(ConflictError, match="taken"):
        make(store, run)


def test_update_names_what_it_does_not_know(store: Store, run: str) -> None:
    with pytest.raises(KeyError, match="verdickt"):
        store.runs.update(run, verdickt="x")
    with pytest.raises(NotFoundError, match=run):
        store.runs.update("inv-20261129-7k3g", turn=1)


def test_find_by_a_few_letters(store: Store, clock: FakeClock) -> None:
    first = make(store, "inv-20261129-7k3f", project="shop")
    clock.advance(1)
    second = make(store, "inv-20261129-7k9x", project="bank")
    assert store.runs.find("-").id == second
    assert store.runs.find("-", project="shop").id == first
    assert (
        store.runs.find(first).id
        == store.runs.find("7k3").id
        == store.runs.find("inv-20261129-7k3").id
        == first
    )
    assert store.runs.find("7k", project="bank").id == second
    assert store.runs.find(first, project="bank").id == first
    with pytest.raises(AmbiguousIdError) as raised:
        store.runs.find("inv-2026")
    assert raised.value.near == (second, first)
    assert raised.value.exit_code is ExitCode.NOT_FOUND


def test_a_whole_id_is_found_without_a_look_at_the_other_ids(
    store: Store, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(store, f"{run}2")
    database = type(store.database)
    asked, read = list[str](), database.rows

    def rows(self: Any, sql: str, parameters: Any = ()) -> Any:
        asked.append(sql)
        return read(self, sql, parameters)

    monkeypatch.setattr(database, "rows", rows)
    assert store.runs.find(run).id == run
    assert [sql for sql in asked if "LIKE" in sql or "substr" in sql] == []
    store.runs.find("7k3f2")
    assert [sql for sql in asked if "LIKE" in sql or "substr" in sql]


@pytest.mark.parametrize("wrong", ["inv-20261129-7k3g", "zzzz", "", "%", "_", "inv-20261129-7k3f2"])
def test_an_unknown_run_names_those_near(store: Store, run: str, wrong: str) -> None:
    with pytest.raises(NotFoundError) as raised:
        store.runs.find(wrong)
    assert raised.value.near == (run,)
    assert [r.id for r in store.runs.list()] == [run]


def test_an_empty_store_says_how_to_begin(store: Store) -> None:
    with pytest.raises(NotFoundError, match="opsleuth run"):
        store.runs.find("-")


def test_list_filters(store: Store, clock: FakeClock) -> None:
    make(store, "inv-a", status=Status.WAITING)
    clock.advance(60)
    middle = clock.now()
    make(store, "inv-b", status=Status.COMPLETED, project="shop")
    clock.advance(60)
    make(store, "inv-c", status=Status.COMPLETED)

    def ids(**asked: Any) -> list[str]:
        return [r.id for r in store.runs.list(**asked)]

    assert ids() == ["inv-c", "inv-b", "inv-a"]
    assert ids(limit=2) == ["inv-c", "inv-b"]
    assert ids(status=Status.WAITING) == ["inv-a"]
    assert ids(since=middle) == ["inv-c", "inv-b"]
    assert ids(project="shop") == ["inv-b"]


def test_running_without_a_process_is_interrupted(store: Store) -> None:
    me = this_process()
    make(store, "inv-live", pid=me.pid, host=me.host, process_start=me.start)
    make(store, "inv-dead", pid=me.pid, host=me.host, process_start="another start")
    make(store, "inv-left")
    make(store, "inv-away", pid=1, host="another-host", process_start="x")
    assert {r.id for r in store.runs.list(status=Status.RUNNING)} == {"inv-live", "inv-away"}
    assert {r.id for r in store.runs.list(status=Status.INTERRUPTED)} == {"inv-dead", "inv-left"}


@pytest.mark.parametrize(
    "damage",
    [
        "status = 'exploded'",
        "settings = '{'",
        "created = 'yesterday'",
        "cost = 'much'",
        "verdict = CAST(x'ff00fe' AS TEXT)",
        "stop_reason = 'x'",
    ],
)
def test_a_damaged_row_does_not_hide_the_others(store: Store, run: str, damage: str) -> None:
    make(store, "inv-20261129-good")
    store.database.change(f"UPDATE runs SET {damage} WHERE id = ?", (run,))
    listing = store.runs.list()
    assert [r.id for r in listing] == ["inv-20261129-good"]
    assert len(listing.warnings) == 1
    assert run in listing.warnings[0]
    with pytest.raises(UnreadableStoreError):
        store.runs.get(run)
    assert store.runs.find("good").id == "inv-20261129-good"


def test_lineage_goes_up_to_the_nearest_fork(store: Store) -> None:
    make(store, "inv-a")
    make(store, "inv-b", parent="inv-a", forked_at_observation=7)
    make(store, "inv-c", parent="inv-b", forked_at_observation=9)
    make(store, "inv-d", parent="inv-c", forked_at_observation=3)
    assert store.runs.lineage("inv-a") == (("inv-a", None),)
    assert store.runs.lineage("inv-c") == (("inv-c", None), ("inv-b", 9), ("inv-a", 7))
    assert store.runs.lineage("inv-d") == (("inv-d", None), ("inv-c", 3), ("inv-b", 3), ("inv-a", 3))
    assert store.runs.children("inv-a") == ("inv-b",)


def test_lineage_of_a_run_that_is_made_later(store: Store) -> None:
    assert store.runs.lineage("inv-b") == (("inv-b", None),)
    make(store, "inv-a")
    make(store, "inv-b", parent="inv-a", forked_at_observation=2)
    assert store.runs.lineage("inv-b") == (("inv-b", None), ("inv-a", 2))


def test_a_circle_of_parents_ends(store: Store) -> None:
    make(store, "inv-a")
    make(store, "inv-b", parent="inv-a", forked_at_observation=1)
    store.runs.update("inv-a", parent="inv-b", forked_at_observation=1)
    assert store.runs.lineage("inv-a") == (("inv-a", None), ("inv-b", 1))

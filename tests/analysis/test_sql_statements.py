"""Statements: heavy and slow, held up, changed; and busy databases in good health."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platform_rows import END, ONSET, recording

from opsleuth.analysis import sql_statements
from opsleuth.analysis.records import StatementLoad


def at(time: float, statement: str = "SELECT a FROM t", **fields: Any) -> StatementLoad:
    return StatementLoad(time=time, database="db", statement=statement, **fields)


def find(*rows: StatementLoad) -> list[tuple[str, str]]:
    return [(f.service, f.kind) for f in sql_statements.find_heavy_statements(recording(statements=rows))]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("CPU:user", "work"),
        ("IO:DataFileRead", "work"),
        ("IO:DataFileWrite", "disk"),
        ("IO:WALSync", "disk"),
        ("WAL:Lock", "disk"),
        ("LWLock:BufferMapping", "disk"),
        ("LWLock:WALWrite", "disk"),
        ("LWLock:lock_manager", "locks"),
        ("Lock:transactionid", "locks"),
        ("LCK_M_X", "locks"),
        ("enq: TX - row lock contention", "locks"),
        ("db file sequential read", "work"),
        ("Client:ClientRead", "idle"),
        ("unheard of", "other"),
    ],
)
def test_classes_of_waits(name: str, kind: str) -> None:
    assert sql_statements.classify_wait(name) == kind


def test_a_statement_that_scans_is_slow_by_its_own_work() -> None:
    assert find(at(END, load=7.2, calls_per_sec=3.8, waits={"CPU:user": 5.9, "IO:DataFileRead": 1.3})) == [
        ("db", "slow_query")
    ]


def test_a_statement_that_waits_for_locks() -> None:
    assert find(at(END, load=9.0, calls_per_sec=0.0, waits={"Lock:relation": 8.0})) == [("db", "locks")]


def test_a_statement_that_waits_for_the_device() -> None:
    assert find(at(END, load=5.0, calls_per_sec=2.0, waits={"IO:DataFileWrite": 4.0})) == [("db", "disk")]


@pytest.mark.parametrize(
    ("load", "rate", "waits"),
    [
        (6.0, 5000.0, {"CPU": 6.0}),  # 1.2 ms a call: busy, and quick
        (4.0, 3000.0, {"IO:WALSync": 3.0}),  # a commit in one millisecond
        (0.8, 1.0, {"CPU": 0.8}),  # slow, but less than one session
        (2.0, 1.0, {"Client:ClientRead": 2.0}),  # two clients think
        (5.0, 500.0, {"Client:ClientRead": 5.0}),  # ten milliseconds between client and server
    ],
)
def test_databases_in_good_health(load: float, rate: float, waits: dict[str, float]) -> None:
    assert find(at(END, load=load, calls_per_sec=rate, waits=waits)) == []


def test_sessions_that_wait_for_their_clients() -> None:
    waits = {"Client:ClientRead": 40.0, "CPU": 1.0}
    assert find(at(END, load=41.0, calls_per_sec=2.0, waits=waits)) == [("db", "connections")]


def test_a_statement_that_became_slower_than_itself() -> None:
    before = at(ONSET - 60, calls_per_sec=40.0, mean_ms=5.0)
    after = at(END, calls_per_sec=40.0, mean_ms=900.0)
    found = sql_statements.find_heavy_statements(recording(statements=[before, after]))
    assert [(f.kind, f.figures["usual ms a call"]) for f in found] == [("slow_query", 5.0)]


def test_a_statement_that_is_called_more_often() -> None:
    assert find(
        at(ONSET - 60, calls_per_sec=40.0, mean_ms=5.0), at(END, calls_per_sec=400.0, mean_ms=5.0)
    ) == [("db", "traffic")]


def test_a_statement_as_heavy_as_ever_is_not_the_cause() -> None:
    rows = [at(time, load=8.0, calls_per_sec=2.0, waits={"CPU": 8.0}) for time in (ONSET - 60, END)]
    assert find(*rows) == []


def test_a_new_heavy_statement_is_called_new() -> None:
    rows = [
        at(ONSET - 60, load=0.1, calls_per_sec=9.0),
        at(END, "SELECT b", load=6.0, calls_per_sec=2.0, waits={"CPU": 6.0}),
    ]
    (found,) = sql_statements.find_heavy_statements(recording(statements=rows))
    assert "not there before" in found.text


def test_running_totals_are_taken_apart() -> None:
    rows = [
        at(ONSET - 600, calls=1000.0, total_ms=5_000.0),
        at(ONSET - 300, calls=2000.0, total_ms=10_000.0),
        at(END, calls=2500.0, total_ms=2_010_000.0),
    ]
    assert find(*rows) == [("db", "slow_query")]


@given(st.floats(0.01, 100), st.floats(0.1, 10_000))
def test_littles_law_fills_in_what_is_missing(sessions: float, rate: float) -> None:
    by_load = sql_statements.session_load_from_row(at(END, load=sessions, calls_per_sec=rate))
    assert by_load.mean_ms == pytest.approx(sessions / rate * 1000.0)
    by_mean = sql_statements.session_load_from_row(at(END, mean_ms=by_load.mean_ms, calls_per_sec=rate))
    assert by_mean.sessions == pytest.approx(sessions)


@given(
    st.permutations(
        [at(END, f"SELECT {n}", load=n, calls_per_sec=1.0, waits={"CPU": n}) for n in range(2, 7)]
    )
)
def test_the_order_of_rows_does_not_matter(mixed: list[StatementLoad]) -> None:
    in_order = sorted(mixed, key=lambda row: row.statement)
    assert sql_statements.find_heavy_statements(
        recording(statements=mixed)
    ) == sql_statements.find_heavy_statements(recording(statements=in_order))


def test_nothing_recorded_finds_nothing() -> None:
    assert find() == []
    assert find(at(END)) == []
    assert sql_statements.find_heavy_statements(recording()) == []


def test_long_statements_are_shown_on_one_line() -> None:
    assert sql_statements.shorten_statement("SELECT\n   a,\n b", 40) == "SELECT a, b"
    assert len(sql_statements.shorten_statement("x" * 500)) == 120


@pytest.mark.parametrize("untimed_first", [True, False])
def test_a_row_without_a_time_makes_no_statement_new(untimed_first: bool) -> None:
    timed = [
        at(ONSET - 600.0, "SELECT 1", load=1.0),
        at(ONSET - 600.0, "SELECT 2", load=1.0),
        at(ONSET, "SELECT 1", load=1.0),
    ]
    untimed = StatementLoad(time=None, database="db", statement="SELECT 3", load=1.0)
    rows = [untimed, *timed] if untimed_first else [*timed, untimed]
    assert sql_statements.find_first_seen_times(recording(statements=rows)) == {}

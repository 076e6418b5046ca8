"""Several stores over one connection: each with its own lease and fence, by turns."""

from collections.abc import Iterator

import psycopg
import pytest

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import RunLostError, StoreFailedError
from opsleuth.checkpoints.postgres.database import PostgresDatabase
from opsleuth.checkpoints.postgres.migration import open_database
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock

ONE, OTHER = "inv-20261129-one", "inv-20261129-other"


@pytest.fixture
def database(server: PostgresServer) -> Iterator[PostgresDatabase]:
    with open_database(server) as opened:
        yield opened


@pytest.fixture
def pair(database: PostgresDatabase, clock: FakeClock) -> tuple[Store, Store]:
    one, other = (Store.over(database.beside(), clock, Redactor()) for _ in range(2))
    for run in (ONE, OTHER):
        one.runs.create(RunRow(id=run, question="checkout 5xx"))
    return one, other


def connections(server: PostgresServer) -> int:
    with psycopg.connect(server.url) as looking:
        row = looking.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    return int(row[0]) if row else 0


def test_they_share_a_connection_and_hold_their_own_runs(
    server: PostgresServer, pair: tuple[Store, Store]
) -> None:
    one, other = pair
    with one.lock(ONE), other.lock(OTHER):
        one.events.append(ONE, "x", {})
        other.events.append(OTHER, "x", {})
        assert connections(server) == 1
    assert [len(one.events.read(run)) for run in (ONE, OTHER)] == [1, 1]


def test_who_lost_one_run_keeps_the_other(server: PostgresServer, pair: tuple[Store, Store]) -> None:
    one, other = pair
    with one.lock(ONE), other.lock(OTHER):
        with psycopg.connect(server.url) as thief:
            thief.execute("UPDATE opsleuth.runs SET fence = fence + 1 WHERE id = %s", (ONE,))
        with pytest.raises(RunLostError):
            one.events.append(ONE, "late", {})
        other.events.append(OTHER, "x", {})
    assert other.events.read(ONE) == []
    assert len(other.events.read(OTHER)) == 1


def test_none_slips_into_the_transaction_of_another(pair: tuple[Store, Store]) -> None:
    one, other = pair
    with one.transaction():
        one.events.append(ONE, "x", {})
        with pytest.raises(RuntimeError, match="transaction of another store"):
            other.events.append(OTHER, "x", {})
        with pytest.raises(RuntimeError, match="transaction of another store"):
            other.events.read(ONE)
    other.events.append(OTHER, "y", {})
    assert [len(one.events.read(run)) for run in (ONE, OTHER)] == [1, 1]


def test_a_connection_that_was_cut_is_made_anew_for_all(
    server: PostgresServer, pair: tuple[Store, Store]
) -> None:
    one, other = pair
    with psycopg.connect(server.url, autocommit=True) as cutting:
        cutting.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )
    with pytest.raises(StoreFailedError, match="resume"):
        one.events.append(ONE, "x", {})
    other.events.append(OTHER, "y", {})
    one.events.append(ONE, "z", {})
    assert connections(server) == 1


def test_one_that_is_closed_leaves_the_connection_to_the_others(pair: tuple[Store, Store]) -> None:
    one, other = pair
    one.close()
    other.events.append(OTHER, "y", {})
    assert len(other.events.read(OTHER)) == 1

"""A store behind a real PgBouncer: refused where sessions are shared, before anything is set; at home in session mode."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import servers
from pgbouncer import Pool, application, pgbouncer
from stored_runs import Program

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import NotWritableError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import ExitCode

SET = """
SELECT current_setting('search_path'), current_setting('lock_timeout'), current_setting('default_transaction_read_only'),
       current_setting('idle_in_transaction_session_timeout')
"""


@contextmanager
def pooled(postgres: servers.Postgres, mode: str, size: int, settings: str = "") -> Iterator[Pool]:
    """A new database behind a pooler in this mode."""
    with pgbouncer(postgres.database(), mode=mode, size=size, settings=settings) as pool:
        yield pool


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("size", "settings"),
    [(1, ""), (2, ""), (5, ""), (2, "server_round_robin = 1"), (3, "ignore_startup_parameters = options")],
)
def test_a_pool_in_transaction_mode_is_refused(
    postgres: servers.Postgres, clock: FakeClock, tmp_path: Path, size: int, settings: str, *, read_only: bool
) -> None:
    with pooled(postgres, "transaction", size, settings) as pool:
        before = set_in_all(pool, size)
        with pytest.raises(NotWritableError, match="pooler in transaction mode") as raised:
            Store.open(PostgresServer(pool.url, tmp_path), clock, Redactor(), read_only=read_only)
        assert set_in_all(pool, size) == before
    assert raised.value.exit_code is ExitCode.CONFIG
    assert "pool in session mode" in str(raised.value)


def test_a_busy_pool_in_transaction_mode_is_refused(
    postgres: servers.Postgres, clock: FakeClock, tmp_path: Path
) -> None:
    with pooled(postgres, "transaction", 2) as pool, application(pool.dsn, tmp_path, pause=0) as writer:
        for _ in range(5):
            with pytest.raises(NotWritableError, match="pooler in transaction mode"):
                Store.open(PostgresServer(pool.url, tmp_path), clock, Redactor())
    assert writer.end().startswith("0 of ")


def test_a_pool_of_single_statements_is_refused(
    postgres: servers.Postgres, clock: FakeClock, tmp_path: Path
) -> None:
    with (
        pooled(postgres, "statement", 2) as pool,
        pytest.raises(NotWritableError, match="pooler in transaction mode"),
    ):
        Store.open(PostgresServer(pool.url, tmp_path), clock, Redactor())


def test_checkpoints_behind_a_pool_in_transaction_mode_are_refused(
    postgres: servers.Postgres, clock: FakeClock, tmp_path: Path
) -> None:
    with (
        pooled(postgres, "transaction", 2) as pool,
        pytest.raises(NotWritableError, match="transaction mode"),
    ):
        Store.open(PostgresServer(postgres.database(), tmp_path, checkpoints=pool.url), clock, Redactor())


@pytest.mark.parametrize("size", [1, 3])
def test_a_pool_in_session_mode_carries_a_store(
    postgres: servers.Postgres, clock: FakeClock, tmp_path: Path, size: int
) -> None:
    with pooled(postgres, "session", size) as pool:
        server = PostgresServer(pool.url, tmp_path)
        with Store.open(server, clock, Redactor()) as store:
            run = store.runs.create(RunRow(id="inv-a", question="checkout 5xx")).id
            with store.lock(run):
                store.runs.get(run)
        with Store.open(server, clock, Redactor(), read_only=True) as store:
            assert [row.id for row in store.runs.list()] == ["inv-a"]


@pytest.mark.slow
def test_the_command_line_says_what_to_do(postgres: servers.Postgres, tmp_path: Path) -> None:
    with pooled(postgres, "transaction", 2) as pool:
        ended = Program(Path("unused"), tmp_path, {"OPSLEUTH_DB": pool.url})("list")
    assert ended.returncode == ExitCode.CONFIG
    assert "pool in session mode" in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr


def set_in_all(pool: Pool, size: int) -> list[object]:
    """The settings of every session that the pool has."""
    clients = [psycopg.connect(pool.dsn, prepare_threshold=None) for _ in range(size)]
    found: list[object] = [client.execute(SET).fetchone() for client in clients]
    for client in clients:
        client.close()
    return found

"""A role that owns nothing but the schema `opsleuth` suffices: for the tables, for the queue, and for what is stored."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.intake import IntakeRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.queue import create_queue_tables
from opsleuth.state.clock import FakeClock

SETUP = """
CREATE ROLE opsleuth_least LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE SCHEMA opsleuth AUTHORIZATION opsleuth_least;
"""


@pytest.fixture
def owned(empty_server: PostgresServer) -> PostgresServer:
    """The database as the role sees it that owns the schema and nothing else."""
    with psycopg.connect(empty_server.url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS opsleuth_least")
        connection.execute(SETUP)
    parts = conninfo_to_dict(empty_server.url)
    url = f"postgresql://opsleuth_least@{parts['host']}:{parts['port']}/{parts['dbname']}"
    return PostgresServer(url, empty_server.folder)


@pytest.fixture(autouse=True)
def _dropped(empty_server: PostgresServer) -> Iterator[None]:
    """Leave no role behind: the next test would find its schema's owner taken."""
    yield
    with psycopg.connect(empty_server.url, autocommit=True) as connection:
        connection.execute("DROP OWNED BY opsleuth_least CASCADE")
        connection.execute("DROP ROLE opsleuth_least")


def test_role_that_owns_only_its_schema_can_do_everything(owned: PostgresServer, clock: FakeClock) -> None:
    create_queue_tables(owned)
    create_queue_tables(owned)
    with Store.open(owned, clock, Redactor()) as store:
        store.make_checkpoint_tables()
        store.runs.create(RunRow(id="inv-20261129-aaaa", question="q", project="shop"))
        taken = IntakeRow(
            run="inv-20261129-aaaa", team="shop", severity=2, sender="s", request=None, digest="d"
        )
        with store.transaction():
            store.intake.put(taken)
            store.jobs.put(taken)
        with store.lock("inv-20261129-aaaa"):
            store.runs.update("inv-20261129-aaaa", turn=1)
        assert store.runs.counts("shop") == {"running": 1}
        assert store.jobs.counts() == {"todo": 1}

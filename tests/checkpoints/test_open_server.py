"""Opening a place on a server: an empty one, an older one, a newer one, another's, one that is not there; no password."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import servers

from opsleuth.checkpoints import migrations
from opsleuth.checkpoints.database_urls import PostgresServer, url_without_password
from opsleuth.checkpoints.errors import (
    NotFoundError,
    NotWritableError,
    StoreFailedError,
    UnreadableStoreError,
)
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import ExitCode

SHAPE = """
SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
WHERE table_schema = 'opsleuth' ORDER BY 1, 2
"""


@pytest.fixture
def server(empty_server: PostgresServer) -> PostgresServer:
    return empty_server


def raw(server: PostgresServer, sql: str) -> list[Any]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize("version", range(1, migrations.SCHEMA_VERSION))
def test_an_older_schema_becomes_the_current_one(
    server: PostgresServer,
    postgres: servers.Postgres,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
) -> None:
    every = migrations.read_migrations
    with monkeypatch.context() as older:
        older.setattr(migrations, "SCHEMA_VERSION", version)
        older.setattr(
            migrations, "read_migrations", lambda *a, **k: [s for s in every(*a, **k) if s[0] <= version]
        )
        with Store.open(server, clock, Redactor()) as store:
            store.runs.create(RunRow(id="inv-a", question="q"))
    with pytest.raises(UnreadableStoreError, match="db migrate"):
        Store.open(server, clock, Redactor(), read_only=True)
    with Store.open(server, clock, Redactor()) as store:
        assert [run.id for run in store.runs.list()] == ["inv-a"]
    fresh = replace(server, url=postgres.database())
    Store.open(fresh, clock, Redactor()).close()
    assert raw(server, SHAPE) == raw(fresh, SHAPE)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_left_alone(server: PostgresServer, clock: FakeClock, *, read_only: bool) -> None:
    Store.open(server, clock, Redactor()).close()
    raw(server, "UPDATE opsleuth.schema_version SET version = version + 1")
    before = raw(server, SHAPE)
    with pytest.raises(UnreadableStoreError, match="newer opsleuth") as raised:
        Store.open(server, clock, Redactor(), read_only=read_only)
    assert raised.value.exit_code is ExitCode.UNREADABLE
    assert raw(server, SHAPE) == before


def test_a_migration_that_fails_changes_nothing(
    server: PostgresServer, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrations.read_migrations
    broken = [(1, "CREATE TABLE broken (x TEXT); INSERT INTO nowhere VALUES (1);")]
    monkeypatch.setattr(migrations, "read_migrations", lambda *a, **k: broken if a else every(*a, **k))
    with pytest.raises(UnreadableStoreError, match="nowhere"):
        Store.open(server, clock, Redactor())
    assert raw(server, SHAPE) == []


def test_another_programs_schema_is_left_alone(server: PostgresServer, clock: FakeClock) -> None:
    raw(server, "CREATE SCHEMA opsleuth")
    raw(server, "CREATE TABLE opsleuth.bookmarks (url TEXT)")
    with pytest.raises(UnreadableStoreError, match="another program"):
        Store.open(server, clock, Redactor())
    assert len(raw(server, SHAPE)) == 1


def test_nothing_to_read(server: PostgresServer, clock: FakeClock) -> None:
    with pytest.raises(NotFoundError, match="opsleuth run"):
        Store.open(server, clock, Redactor(), read_only=True)
    assert raw(server, "SELECT 1 FROM pg_namespace WHERE nspname = 'opsleuth'") == []


def test_a_reader_reads_and_cannot_write(server: PostgresServer, clock: FakeClock) -> None:
    with Store.open(server, clock, Redactor()) as store:
        run = store.runs.create(RunRow(id="inv-a", question="q")).id
    with Store.open(server, clock, Redactor(), read_only=True) as reader:
        assert reader.runs.find("-").id == run
        with pytest.raises(NotWritableError, match="read-only"):
            reader.control.set(run, "pause")


def test_a_user_without_rights(server: PostgresServer, clock: FakeClock) -> None:
    raw(server, "DROP ROLE IF EXISTS guest")
    raw(server, "CREATE ROLE guest LOGIN")
    guest = replace(server, url=server.url.replace("postgres@", "guest:s3cret-word@"))
    with pytest.raises(NotWritableError, match="grant this user") as raised:
        Store.open(guest, clock, Redactor())
    assert "s3cret-word" not in str(raised.value)
    assert str(guest) in str(raised.value)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        (("/opsleuth_", "/nobodys_"), NotWritableError, "createdb"),
        (("127.0.0.1:", "127.0.0.1:1"), StoreFailedError, "cannot be reached|invalid port"),
        (("postgres@", "postgres:pa/ss%word@"), StoreFailedError, "%2F"),
        (("127.0.0.1", "pg.invalid"), StoreFailedError, "cannot be reached"),
    ],
)
def test_a_server_that_cannot_be_used(
    server: PostgresServer, clock: FakeClock, change: tuple[str, str], kind: type[Exception], text: str
) -> None:
    wrong = replace(server, url=server.url.replace(*change))
    with pytest.raises(kind, match=text) as raised:
        Store.open(wrong, clock, Redactor())
    assert "pa/ss" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql://ann:se/cr@t@db:5432/ops?sslmode=require", "postgresql://ann@db:5432/ops"),
        ("postgres://db/ops?password=secret&user=ann", "postgres://db/ops"),
        ("postgresql://ann@one:1,two:2/ops#x", "postgresql://ann@one:1,two:2/ops"),
        ("postgresql:///ops", "postgresql:///ops"),
    ],
)
def test_a_password_is_not_shown(url: str, text: str) -> None:
    assert url_without_password(url) == text
    assert repr(PostgresServer(url, Path())) == f"PostgresServer(folder={Path()!r})"


def test_the_password_is_a_secret_of_the_run(server: PostgresServer, clock: FakeClock) -> None:
    given = replace(server, url=server.url.replace("postgres@", "postgres:p%40ssw0rd-long@"))
    with Store.open(given, clock, Redactor()) as store:
        run = store.runs.create(RunRow(id="inv-a", question="with p@ssw0rd-long and p%40ssw0rd-long"))
    assert "ssw0rd" not in run.question


def test_commits_are_on_disk_whatever_the_servers_default(server: PostgresServer, clock: FakeClock) -> None:
    raw(server, f"ALTER DATABASE {server.url.rpartition('/')[2]} SET synchronous_commit = off")
    with Store.open(server, clock, Redactor()) as store:
        assert store.database.rows("SHOW synchronous_commit")[0][0] == "on"


def test_text_with_a_nul_is_stored(server: PostgresServer, clock: FakeClock) -> None:
    with Store.open(server, clock, Redactor()) as store:
        run = store.runs.create(RunRow(id="inv-a", question="a\0b", settings={"x": "c\0d"}))
    assert run.question == "a\N{SYMBOL FOR NULL}b"

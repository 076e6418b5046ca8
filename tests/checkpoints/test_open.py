"""Opening: a new file, an older one, a newer one, somebody else's, a damaged one, and one that cannot be written."""

import sqlite3
import stat
from pathlib import Path

import pytest

from opsleuth.checkpoints import migrations
from opsleuth.checkpoints.errors import NotFoundError, NotWritableError, StoreError, UnreadableStoreError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock, SystemClock
from opsleuth.state.run_status import ExitCode

AS_OF = range(migrations.SCHEMA_VERSION)


ON_FILE = pytest.mark.parametrize("place", ["sqlite"], indirect=True)


def older(path: Path, version: int) -> None:
    """A database as the given version left it, with a run in it where there was a table for it."""
    path.parent.mkdir(parents=True)
    own = dict(migrations.read_migrations(0, migrations.SCRIPTS / "sqlite"))
    with sqlite3.connect(path) as connection:
        for number, sql in migrations.read_migrations(after=0):
            if number <= version:
                connection.executescript(sql + own.get(number, ""))
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def tables(path: Path) -> dict[str, str]:
    connection = sqlite3.connect(path)
    found = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))
    connection.close()
    return found


def test_every_script_is_numbered_without_a_gap() -> None:
    assert [n for n, _ in migrations.read_migrations(after=0)] == list(
        range(1, migrations.SCHEMA_VERSION + 1)
    )


@pytest.mark.parametrize("version", AS_OF)
def test_an_older_schema_becomes_the_current_one(path: Path, clock: FakeClock, version: int) -> None:
    older(path, version)
    with Store.open(path, clock, Redactor()) as store:
        store.runs.create(RunRow(id="inv-20261129-aaaa", question="q"))
    fresh = path.with_name("fresh.db")
    Store.open(fresh, clock, Redactor()).close()
    assert tables(path) == tables(fresh)


def test_the_saver_may_have_been_there_first(path: Path, clock: FakeClock) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE checkpoints (x)")
    connection.close()
    with Store.open(path, clock, Redactor()) as store:
        assert store.runs.list() == []


def test_a_migration_that_fails_changes_nothing(
    path: Path, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(path, clock, Redactor()) as store:
        store.runs.create(RunRow(id="inv-20261129-aaaa", question="q"))
    before = tables(path)
    scripts, newer = tmp_path / "sql", migrations.SCHEMA_VERSION + 1
    scripts.mkdir()
    (scripts / f"{newer:04d}_more.sql").write_text("CREATE TABLE more (x); INSERT INTO nowhere VALUES (1);")
    monkeypatch.setattr(migrations, "SCRIPTS", scripts)
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", newer)
    with pytest.raises(StoreError):
        Store.open(path, clock, Redactor())
    assert tables(path) == before

    (scripts / f"{newer:04d}_more.sql").write_text("CREATE TABLE more (x);")
    with Store.open(path, clock, Redactor()) as store:
        assert [run.id for run in store.runs.list()] == ["inv-20261129-aaaa"]
    assert "more" in tables(path)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_left_alone(path: Path, clock: FakeClock, *, read_only: bool) -> None:
    Store.open(path, clock, Redactor()).close()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {migrations.SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UnreadableStoreError, match="newer opsleuth") as raised:
        Store.open(path, clock, Redactor(), read_only=read_only)
    assert raised.value.exit_code is ExitCode.UNREADABLE
    assert path.read_bytes() == before


def test_an_older_schema_is_not_migrated_by_a_reader(path: Path, clock: FakeClock) -> None:
    older(path, 0)
    with pytest.raises(UnreadableStoreError, match="db migrate"):
        Store.open(path, clock, Redactor(), read_only=True)
    assert tables(path) == {}


def test_another_programs_database_is_left_alone(path: Path, clock: FakeClock) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(UnreadableStoreError, match="another program"):
        Store.open(path, clock, Redactor())
    assert path.read_bytes() == before


def test_a_file_that_is_no_database(path: Path, clock: FakeClock) -> None:
    path.parent.mkdir()
    path.write_bytes(b"dear diary " * 1000)
    before = path.read_bytes()
    with pytest.raises(UnreadableStoreError, match="not an SQLite database") as raised:
        Store.open(path, clock, Redactor())
    assert str(path) in str(raised.value)
    assert path.read_bytes() == before


def test_nothing_to_read(path: Path, clock: FakeClock) -> None:
    with pytest.raises(NotFoundError, match="opsleuth run"):
        Store.open(path, clock, Redactor(), read_only=True)
    assert not path.parent.exists()


def test_a_place_that_cannot_be_written(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWritableError) as raised:
        Store.open(tmp_path / "file" / "x.db", clock, Redactor())
    assert raised.value.exit_code is ExitCode.CONFIG
    with pytest.raises(NotWritableError, match="is not a file"):
        Store.open(tmp_path, clock, Redactor())


@ON_FILE
def test_a_reader_reads_and_cannot_write(store: Store, path: Path, clock: FakeClock, run: str) -> None:
    with Store.open(path, clock, Redactor(), read_only=True) as reader:
        assert reader.runs.find("-").id == run
        with pytest.raises(NotWritableError, match="no permission to write"):
            reader.control.set(run, "pause")


@ON_FILE
def test_only_the_owner_can_read(store: Store, path: Path, run: str) -> None:
    with store.lock(run):
        modes = {
            p.relative_to(path.parent.parent): stat.S_IMODE(p.stat().st_mode) for p in path.parent.rglob("*")
        }
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {mode for p, mode in modes.items() if p.suffix != ".locks"} == {0o600}
    assert modes[Path("data/opsleuth.db.locks")] == 0o700


@ON_FILE
def test_every_commit_reaches_the_disk(store: Store) -> None:
    database = store.database
    assert database.rows("PRAGMA journal_mode")[0][0] == "wal"
    assert database.rows("PRAGMA synchronous")[0][0] == 2


def test_a_planted_trigger_is_refused_until_it_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Store.open(path, SystemClock(), Redactor()).close()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TRIGGER sly AFTER INSERT ON approvals BEGIN UPDATE approvals SET status = 'approved'; END"
        )
    with pytest.raises(UnreadableStoreError, match=r"code that opsleuth did not make \(trigger sly\)"):
        Store.open(path, SystemClock(), Redactor())
    Store.open(path, SystemClock(), Redactor(), read_only=True).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER sly")
    connection.close()
    Store.open(path, SystemClock(), Redactor()).close()

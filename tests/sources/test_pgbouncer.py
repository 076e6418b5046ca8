"""Reading through a pooler that lends each connection for one transaction: nobody else notices."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from live_rig import SPAN, one
from pgbouncer import Pool, application, pgbouncer
from servers import until
from stored_elsewhere import HISTORY
from stored_runs import Program

from opsleuth.analysis.records import TimeRange
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.spec import UnavailableError

SESSION = """
SELECT current_setting('default_transaction_read_only'), current_setting('statement_timeout'), current_setting('lock_timeout'),
       current_setting('idle_in_transaction_session_timeout'), current_setting('application_name'),
       (SELECT count(*) FROM pg_prepared_statements), pg_backend_pid()
"""
READ = """
import asyncio, sys
from live_rig import SPAN, one
from opsleuth.tools.spec import ToolError
source = one(kind="postgres", dsn=sys.argv[1], name="db", statement_seconds=20, history="SELECT pg_sleep(20), 4711 AS mark")
while True:
    try:
        asyncio.run(source.read(["statements"], SPAN))
    except ToolError as failed:
        print("read again after:", failed, file=sys.stderr)
"""
"""Reads until it is killed: on a busy machine a read may give up before anybody saw it."""


@pytest.fixture(scope="module")
def pool(postgres: str) -> Iterator[Pool]:
    """One server connection for all clients: whatever one of them leaves behind meets the next."""
    with pgbouncer(postgres) as started:
        yield started


@pytest.fixture
def program(tmp_path: Path, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The command line with a source behind the pooler."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / ".config" / "opsleuth" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[environments.shop.sources.orders-db]\nkind = "postgres"\ndsn = "{pool.dsn}"\nsample = 0.4\nhistory = """{HISTORY}"""\n'
    )
    return Program(tmp_path / "db" / "opsleuth.db", tmp_path)


def now() -> TimeRange:
    at = datetime.now(UTC).timestamp()
    return TimeRange(at - 600, at + 60)


def seen(pool: Pool, words: str) -> int:
    """How many server processes run a statement with these words."""
    with psycopg.connect(pool.direct) as watching:
        found = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s AND pid <> pg_backend_pid()"
        row = watching.execute(found, (f"%{words}%",)).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.slow
def test_writes_while_doctor_looks(program: Program, pool: Pool, tmp_path: Path) -> None:
    with application(pool.dsn, tmp_path) as writer:
        ended = [program("doctor") for _ in range(2)]
    assert {one.returncode for one in ended} == {ExitCode.OK}, ended[0].stdout
    assert_none_hurt(writer.end())


@pytest.mark.slow
def test_writes_while_a_run_reads(program: Program, pool: Pool, tmp_path: Path) -> None:
    with application(pool.dsn, tmp_path) as writer:
        ended = program("run", "-q", "--planner", "offline", "Why is orders-db slow?", "--since", "now-30m")
    assert ended.returncode in (ExitCode.OK, ExitCode.INCONCLUSIVE), ended.stderr
    assert_none_hurt(writer.end())


@pytest.mark.slow
def test_writes_while_a_reader_is_killed_in_mid_read(pool: Pool, tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with application(pool.dsn, tmp_path) as writer:
        for _ in range(3):
            reader = subprocess.Popen([sys.executable, "-c", READ, pool.dsn], env=environment)
            until(lambda: seen(pool, "4711 AS mark") > 0)
            reader.send_signal(signal.SIGKILL)
            reader.wait()
    assert_none_hurt(writer.end())


async def test_a_read_that_is_given_up_leaves_nothing_behind(pool: Pool, tmp_path: Path) -> None:
    with application(pool.dsn, tmp_path, writes=100) as writer:
        source = one(
            kind="postgres", dsn=pool.dsn, name="db", statement_seconds=20, history="SELECT pg_sleep(20)"
        )
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await source.read(["statements"], SPAN)
    assert writer.end().startswith("0 of ")
    with psycopg.connect(pool.dsn, autocommit=True, prepare_threshold=None) as other:
        assert other.execute(SESSION).fetchone()[:4] == ("off", "0", "0", "0")  # type: ignore[index]


def assert_none_hurt(last_words: str) -> None:
    hurt, _, written = last_words.rpartition("\n")[2].partition(" of ")
    assert (int(hurt), int(written) >= 1_000) == (0, True), last_words[:2_000]


async def test_a_session_is_left_as_it_was(pool: Pool) -> None:
    with psycopg.connect(pool.dsn, autocommit=True, prepare_threshold=None) as other:
        before = other.execute(SESSION).fetchone()
        source = one(kind="postgres", dsn=pool.dsn, name="db", sample=0.2, history=HISTORY)
        await source.read(["statements", "objects", "events"], now())
        await source.read(["statements"], SPAN)
        assert other.execute(SESSION).fetchone() == before


@contextmanager
def dozing(pool: Pool) -> Iterator[None]:
    """Another client, whose statement runs for four seconds."""
    doze = "import psycopg, sys; psycopg.connect(sys.argv[1]).execute('SELECT pg_sleep(4), 1 AS dozing')"
    sleeper = subprocess.Popen([sys.executable, "-c", doze, pool.dsn])
    until(lambda: seen(pool, "dozing") > 0)
    yield
    sleeper.wait()


@pytest.mark.slow
async def test_statements_of_others_are_seen_through_the_pool(postgres: str) -> None:
    with pgbouncer(postgres, size=3) as wide, dozing(wide):
        found = await one(kind="postgres", dsn=wide.dsn, name="db", sample=1.0).read(["statements"], now())
    assert any("dozing" in load.statement for load in found.statements or ())


async def test_a_pool_of_single_statements_is_refused(postgres: str) -> None:
    with pgbouncer(postgres, mode="statement") as narrow:
        source = one(kind="postgres", dsn=narrow.dsn, name="db")
        with pytest.raises(UnavailableError, match="pool in transaction or session mode"):
            await source.read(["objects"], now())


async def test_options_in_the_address_are_refused_with_a_remedy(pool: Pool) -> None:
    source = one(kind="postgres", dsn=f"{pool.dsn} options='-c work_mem=8MB'", name="db")
    with pytest.raises(UnavailableError, match="remove options from the dsn"):
        await source.read(["objects"], now())


async def test_a_history_cannot_end_its_transaction(pool: Pool) -> None:
    ends = "SELECT 1) AS a; COMMIT; CREATE TABLE escaped (i int); SELECT * FROM (SELECT 1"
    source = one(kind="postgres", dsn=pool.dsn, name="db", history=ends)
    with pytest.raises(UnavailableError, match="multiple commands"):
        await source.read(["statements"], SPAN)
    with psycopg.connect(pool.direct) as direct:
        assert direct.execute("SELECT to_regclass('escaped')").fetchone() == (None,)

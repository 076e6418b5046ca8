"""A schema on a server in which somebody left code that runs at our statements: it is refused, named, and nothing is written."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from package_path import PACKAGE_PATH

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.queue import create_queue_tables
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode

TOP = Path(__file__).resolve().parents[2]
APPROVES = "BEGIN UPDATE opsleuth.approvals SET status = 'approved'; RETURN NULL; END"
OUTSIDE = f"CREATE FUNCTION public.sly() RETURNS trigger LANGUAGE plpgsql AS $${APPROVES}$$;"
PLANTS = {
    "trigger sly": f"{OUTSIDE} CREATE TRIGGER sly AFTER INSERT ON approvals FOR EACH ROW EXECUTE FUNCTION public.sly()",
    "trigger runs_count_sly": "CREATE TRIGGER runs_count_sly AFTER INSERT ON approvals FOR EACH ROW EXECUTE FUNCTION count_runs()",
    "trigger runs_count_new": (
        f"{OUTSIDE} DROP TRIGGER runs_count_new ON runs; "
        "CREATE TRIGGER runs_count_new AFTER INSERT ON runs FOR EACH ROW EXECUTE FUNCTION public.sly()"
    ),
    "function count_runs": f"CREATE OR REPLACE FUNCTION count_runs() RETURNS trigger LANGUAGE plpgsql AS $${APPROVES}$$",
    "function begin_writing": "ALTER FUNCTION begin_writing SECURITY DEFINER",
    "function hashtext": "CREATE FUNCTION hashtext(varchar) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "function procrastinate_finish_job_v9": "CREATE FUNCTION procrastinate_finish_job_v9() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "rule sly": "CREATE RULE sly AS ON INSERT TO effects DO INSTEAD NOTHING",
    "rule also": "CREATE RULE also AS ON INSERT TO approvals DO ALSO UPDATE approvals SET status = 'approved'",
    "policy sly": "CREATE POLICY sly ON effects USING (false)",
    "view effects": "DROP TABLE effects; CREATE VIEW effects AS SELECT 1 AS run",
    "view seen_runs": (
        "CREATE FUNCTION public.sly(text) RETURNS text LANGUAGE sql AS 'SELECT $1'; ALTER TABLE runs RENAME TO real_runs; "
        "DROP VIEW seen_runs; CREATE VIEW seen_runs AS SELECT public.sly(id) AS id FROM real_runs"
    ),
    "table heir": "CREATE TABLE heir () INHERITS (approvals)",
    "default of runs.question": "ALTER TABLE runs ALTER question SET DEFAULT set_config('search_path', 'public', false)",
    "check sly": "ALTER TABLE runs ADD CONSTRAINT sly CHECK (set_config('search_path', 'public', false) <> '')",
    "index sly": (
        "CREATE FUNCTION public.sly(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1'; CREATE INDEX sly ON runs (public.sly(id))"
    ),
    "operator ===": "CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = texteq)",
    "domain sly": "CREATE DOMAIN sly AS text CHECK (set_config('search_path', 'public', false) <> '')",
}  # fmt: skip
"""What the error names, and how it gets there."""


def execute_sql(server: PostgresServer, sql: str) -> None:
    with psycopg.connect(server.url, autocommit=True, options="-c search_path=opsleuth") as connection:
        connection.execute(sql)


@pytest.fixture
def server(empty_server: PostgresServer) -> PostgresServer:
    Store.open(empty_server, SystemClock(), Redactor()).close()
    create_queue_tables(empty_server)
    return empty_server


def test_what_we_and_the_queue_made_is_accepted(server: PostgresServer) -> None:
    with Store.open(server, SystemClock(), Redactor()) as store:
        store.runs.create(RunRow(id="inv-a", question="q"))
    with Store.open(server, SystemClock(), Redactor(), read_only=True) as store:
        assert [run.id for run in store.runs.list()] == ["inv-a"]


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("named", PLANTS)
def test_planted_code_is_refused(server: PostgresServer, named: str, *, read_only: bool) -> None:
    execute_sql(server, PLANTS[named])
    with pytest.raises(UnreadableStoreError, match="did not make") as raised:
        Store.open(server, SystemClock(), Redactor(), read_only=read_only)
    assert named in str(raised.value)
    assert raised.value.exit_code is ExitCode.UNREADABLE


def test_a_store_opens_again_when_the_code_is_removed(server: PostgresServer) -> None:
    execute_sql(server, PLANTS["trigger sly"])
    with pytest.raises(UnreadableStoreError, match="trigger sly"):
        Store.open(server, SystemClock(), Redactor())
    execute_sql(server, "DROP TRIGGER sly ON approvals")
    Store.open(server, SystemClock(), Redactor()).close()


def test_an_empty_schema_with_a_function_in_it_is_not_filled(empty_server: PostgresServer) -> None:
    execute_sql(empty_server, "CREATE SCHEMA opsleuth")
    execute_sql(
        empty_server,
        "CREATE FUNCTION opsleuth.count_runs() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    )
    with pytest.raises(UnreadableStoreError, match="function count_runs"):
        Store.open(empty_server, SystemClock(), Redactor())


@pytest.mark.slow
def test_a_command_says_what_was_planted(server: PostgresServer) -> None:
    execute_sql(server, PLANTS["trigger sly"])
    argv = [sys.executable, "-m", "opsleuth", "list", "--db", server.url]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE_PATH)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == ExitCode.UNREADABLE
    assert "(trigger sly)" in done.stderr

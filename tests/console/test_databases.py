"""`db move` from a file to a real PostgreSQL: whole, checked, and begun again where it was interrupted."""

import json
from pathlib import Path

import pytest
import servers
from loop_rig import Loop
from step_rig import RUN, begun
from stored_runs import DONE, Program

from opsleuth.checkpoints.copy_runs import copy_runs
from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode


def opened(place: Path | PostgresServer) -> Store:
    return Store.open(place, SystemClock(), Redactor())


def test_a_file_moves_to_a_server_and_its_runs_go_on_there(
    program: Program, postgres: servers.Postgres, tmp_path: Path
) -> None:
    url = postgres.database()
    done = program("db", "move", str(program.database), url, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["runs"]) == 3
    assert "every trace verified" in done.stderr
    there = Program(program.database, program.home, {"OPSLEUTH_DB": url})
    for words in (("list", "--json"), ("show", DONE, "--json"), ("log", DONE), ("evidence", DONE, "E1")):
        assert there(*words).stdout == program(*words).stdout
    again = json.loads(program("db", "move", str(program.database), url, "--json").stdout)
    assert (again["runs"], sorted(again["there_before"])) == ([], sorted(told["runs"]))
    assert there("db", "migrate").returncode == 0


def test_checkpoints_move_and_the_run_ends_there_as_it_would_have_here(
    tmp_path: Path, server: PostgresServer
) -> None:
    begun(tmp_path).store.close()
    with opened(tmp_path / "store.db") as source, opened(server) as target:
        moved = copy_runs(source, target)
        assert moved.runs == (RUN,)
        assert [p.values for p in target.history.list(RUN)] == [p.values for p in source.history.list(RUN)]
        assert moved.rows["checkpoints"] == len(source.history.list(RUN)) + 1  # the input's besides
        assert target.redactor.text("x").value == "x"
    loop = Loop(tmp_path, place=server)
    assert loop.resume(RUN).exit_code is ExitCode.OK
    loop.store.close()


def test_a_run_that_is_held_is_passed_over_and_one_that_was_changed_is_refused(
    tmp_path: Path, server: PostgresServer
) -> None:
    begun(tmp_path).store.close()
    with opened(tmp_path / "store.db") as source, opened(server) as target:
        with source.lock(RUN):
            assert copy_runs(source, target).held == (RUN,)
        source.database.change("UPDATE events SET node = 'elsewhere' WHERE seq = 2")
        with pytest.raises(UnreadableStoreError, match="does not hold"):
            copy_runs(source, target)
        assert target.runs.get(RUN) is None
        assert target.database.rows("SELECT 1 FROM events") == []

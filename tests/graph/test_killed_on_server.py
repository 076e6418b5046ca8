"""The loop on a real PostgreSQL: processes killed, stopped and taken over, the server restarted in mid-run."""

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import servers
from loop_rig import Loop, World, concludes, looks

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import RunLostError, StoreFailedError
from opsleuth.checkpoints.postgres import lease
from opsleuth.state.run_status import ExitCode

RUN = "inv-20240501-test"
GUARD = 120
"""Seconds after which a hang is a failure."""
FORK = multiprocessing.get_context("fork")
SCRIPT = [
    looks("a", "b"),
    looks({"thing": "x"}, tool="change"),
    looks("c"),
    concludes("a, b and c were looked at.", "E1", "E2", "E4"),
]


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a forked process that did `work`: minus the signal's number if it was killed."""
    process = FORK.Process(target=work)
    process.start()
    process.join(GUARD)
    assert process.exitcode is not None, "the child hangs"
    return process.exitcode


def kill_at_message(number: int) -> None:
    """From now on in this process, die just before the n-th message to the server that may change something."""
    execute, sent = psycopg.Cursor.execute, 0

    def counted(self: Any, query: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal sent
        if "begin_writing" in str(query) or str(query) == "COMMIT":
            sent += 1
            if sent == number:
                os.kill(os.getpid(), signal.SIGKILL)
        return execute(self, query, *arguments, **named)

    psycopg.Cursor.execute = counted  # type: ignore[method-assign]


def _go_on(folder: Path, place: PostgresServer) -> int:
    loop = Loop(folder, place=place)
    known = loop.store.runs.get(RUN) is not None
    return int((loop.resume() if known else loop.start()).exit_code)


@pytest.mark.chaos
@pytest.mark.parametrize("step", [10, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_killed_at_messages_to_the_server(tmp_path: Path, postgres: servers.Postgres, step: int) -> None:
    """The effect is made once, or the run says that it does not know."""
    codes: dict[int, int] = {}
    # Not every message, so that the whole course is walked through in reasonable time.
    for number in range(1, 400, step):
        folder = tmp_path / str(number)
        folder.mkdir()
        World(folder).write(*SCRIPT)
        place = PostgresServer(postgres.database(), folder)
        Loop(folder, place=place).store.close()

        def start(folder: Path = folder, place: PostgresServer = place, number: int = number) -> None:
            kill_at_message(number)
            sys.exit(int(Loop(folder, place=place).start().exit_code))

        if in_child(start) != -signal.SIGKILL:
            break
        codes[number] = in_child(lambda folder=folder, place=place: sys.exit(_go_on(folder, place)))  # type: ignore[misc]
        made = World(folder).lines("done")
        assert made in (["x"], []), f"the effect happened twice, killed at message {number}"
        assert made == ["x"] or codes[number] != ExitCode.OK, f"lost silently, killed at message {number}"
    assert len(codes) * step > 25
    assert set(codes.values()) <= {ExitCode.OK, ExitCode.EFFECT_UNKNOWN}


@pytest.mark.slow
def test_a_stopped_run_that_was_taken_over_ends_in_words_and_does_nothing_twice(
    tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "SECONDS", 0.6)
    World(tmp_path).write(*SCRIPT)

    def stopped() -> None:
        loop = Loop(tmp_path, place=server)

        def stop(event: Mapping[str, Any]) -> None:
            if event["type"] == "effect.started":
                os.kill(os.getpid(), signal.SIGSTOP)

        loop.listen(stop)
        try:
            loop.start()
        except RunLostError as lost:
            sys.exit(int(lost.exit_code) if "was taken over" in str(lost) else 99)

    process = FORK.Process(target=stopped)
    process.start()
    assert process.pid is not None
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)

    def expired() -> bool:
        with psycopg.connect(server.url) as connection:
            row = connection.execute("SELECT leased < clock_timestamp() FROM opsleuth.runs").fetchone()
        return bool(row and row[0])

    servers.until(expired)
    with_another = in_child(lambda: sys.exit(_go_on(tmp_path, server)))
    os.kill(process.pid, signal.SIGCONT)
    process.join(GUARD)
    assert process.exitcode == ExitCode.BUSY
    assert with_another == ExitCode.EFFECT_UNKNOWN
    assert World(tmp_path).lines("done") == []  # it never sent what it was about to send
    loop = Loop(tmp_path, place=server)
    assert loop.store.events.verify(RUN).broken_at is None
    loop.store.close()


def test_a_server_that_restarts_in_mid_run_stops_it_and_it_goes_on(tmp_path: Path) -> None:
    World(tmp_path).write(*SCRIPT)
    with servers.postgres() as own:
        loop = Loop(tmp_path, place=PostgresServer(own.database(), tmp_path))

        def restart(event: Mapping[str, Any]) -> None:
            if event["type"] == "tool.completed" and event["data"].get("tool") == "change":
                own.stop()

        loop.listen(restart)
        with pytest.raises(StoreFailedError, match="what was stored is safe"):
            loop.start()
        own.start()
        loop.listen(loop.events.append)
        assert loop.resume().exit_code is ExitCode.OK
        assert loop.store.events.verify(RUN).broken_at is None
        loop.store.close()
    assert World(tmp_path).lines("done") == ["x"]
    assert World(tmp_path).lines("looked") == ["a", "b", "c"]


def test_checkpoints_on_another_server_of_their_own(tmp_path: Path, postgres: servers.Postgres) -> None:
    runs, checkpoints = postgres.database(), postgres.database()
    World(tmp_path).write(*SCRIPT)
    loop = Loop(tmp_path, place=PostgresServer(runs, tmp_path, checkpoints))
    assert loop.start(turns=1).exit_code is not ExitCode.OK
    assert loop.resume(turns=9).exit_code is ExitCode.OK
    assert len(loop.store.history.list(RUN)) > 8
    stored = (
        "SELECT to_regclass('opsleuth.checkpoints') IS NOT NULL, to_regclass('opsleuth.runs') IS NOT NULL"
    )
    for url, tables in ((runs, (False, True)), (checkpoints, (True, False))):
        with psycopg.connect(url) as connection:
            assert connection.execute(stored).fetchone() == tables
    assert loop.store.prune.remove(RUN, loop.clock.now() + timedelta(days=1))
    assert loop.store.history.list(RUN) == ()
    loop.store.close()

"""The lease of a run on a server: who was taken for dead does nothing more, whatever it was about to do."""

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace

import psycopg
import pytest
import servers
from places import told
from programs import line, program, say

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.effects import Effect
from opsleuth.checkpoints.errors import NotFoundError, RunBusyError, RunLostError, StoreFailedError
from opsleuth.checkpoints.postgres import lease
from opsleuth.checkpoints.processes import status_to_show
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode, Status

RUN = "inv-20261129-7k3f"
EFFECT = Effect(call_id="r/t1c1", tool="restart", arguments={}, target="orders", risk="low")
PRELUDE = """
import sys
from places import place_of
from opsleuth.checkpoints.effects import Effect
from opsleuth.checkpoints.errors import StoreError
from opsleuth.checkpoints.postgres import lease
from opsleuth.redaction.redactor import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import SystemClock
lease.SECONDS = float(sys.argv[3])
store = Store.open(place_of(sys.argv[1]), SystemClock(), Redactor())
run = sys.argv[2]
"""
HOLD = (
    PRELUDE
    + """
with store.lock(run):
    print('held', flush=True)
    for work in sys.stdin:
        try:
            exec(work)
        except StoreError as error:
            print(type(error).__name__, int(error.exit_code), error, flush=True)
        else:
            print('done', flush=True)
"""
)
WORK = {
    "effect": "store.effects.start(run, Effect(call_id='r/t1c1', tool='restart', arguments={}, target='orders', risk='low'), attempt=1)",
    "event": "store.events.append(run, 'step.completed', {})",
    "row": "store.runs.update(run, turn=7)",
    "result": "store.control.clear(run, 'pause')",
    "certain": "store.ensure_still_held()",
    "transaction": "[store.events.append(run, 'x', {}) for _ in [store.transaction().__enter__()]]",
}
CHECKPOINT = """
import asyncio
from langgraph.checkpoint.base import empty_checkpoint
def put():
    with store.saver() as saver:
        config = {'configurable': {'thread_id': run, 'checkpoint_ns': ''}}
        asyncio.run(saver.aput(config, empty_checkpoint(), {}, {}))
"""


@pytest.fixture
def opened(server: PostgresServer) -> Iterator[Store]:
    with Store.open(server, SystemClock(), Redactor()) as store:
        store.runs.create(RunRow(id=RUN, question="q"))
        with store.saver():
            """The framework's tables are made."""
        yield store


def expired(server: PostgresServer) -> Callable[[], bool]:
    """Whether the run's lease has run out, by the server's clock."""

    def look() -> bool:
        with psycopg.connect(server.url) as connection:
            row = connection.execute("SELECT leased < clock_timestamp() FROM opsleuth.runs").fetchone()
        return bool(row and row[0])

    return look


@pytest.mark.parametrize("work", [*WORK.values(), "put()"], ids=[*WORK, "checkpoint"])
def test_who_wakes_up_after_another_took_over_writes_nothing(
    server: PostgresServer, opened: Store, work: str
) -> None:
    """A process is stopped for longer than its lease lasts, another takes the run, the first goes on."""
    before = _rows(server)
    with program(CHECKPOINT + HOLD, told(server), RUN, "0.5") as holder:
        assert line(holder) == "held"
        holder.send_signal(signal.SIGSTOP)
        servers.until(expired(server))
        with opened.lock(RUN):
            opened.effects.start(RUN, EFFECT, attempt=2)
            holder.send_signal(signal.SIGCONT)
            say(holder, work)
            told_so = line(holder)
            assert told_so.startswith(f"RunLostError {int(ExitCode.BUSY)} {RUN} was taken over"), told_so
            assert f"process {os.getpid()} on" in told_so
            assert opened.effects.get(RUN, EFFECT.key).attempt == 2
        assert opened.events.read(RUN) == []
    row = opened.runs.get(RUN)
    assert row is not None
    assert (row.turn, row.pid) == (0, None)
    assert _rows(server) == before


def _rows(server: PostgresServer) -> int:
    with psycopg.connect(server.url) as connection:
        row = connection.execute("SELECT count(*) FROM opsleuth.checkpoints").fetchone()
    return int(row[0]) if row else -1


def test_a_holder_that_lives_keeps_its_run_for_longer_than_a_lease(
    server: PostgresServer, opened: Store
) -> None:
    renewed = "SELECT leased FROM opsleuth.runs"
    with program(HOLD, told(server), RUN, "0.3") as holder, psycopg.connect(server.url) as connection:
        assert line(holder) == "held"
        first = connection.execute(renewed).fetchone()
        connection.commit()

        def later() -> bool:
            now = connection.execute(renewed).fetchone()
            connection.commit()
            assert now is not None
            assert first is not None
            return bool((now[0] - first[0]).total_seconds() > 0.6)

        servers.until(later)
        with pytest.raises(RunBusyError, match=f"process {holder.pid} on"), opened.lock(RUN):
            pass
        say(holder, WORK["event"])
        assert line(holder) == "done"


def test_a_lease_that_ran_out_holds_as_long_as_nobody_took_the_run(
    server: PostgresServer, opened: Store
) -> None:
    with program(HOLD, told(server), RUN, "0.3") as holder:
        assert line(holder) == "held"
        holder.send_signal(signal.SIGSTOP)
        servers.until(expired(server))
        row = opened.runs.get(RUN)
        assert row is not None
        assert status_to_show(row) is Status.INTERRUPTED
        holder.send_signal(signal.SIGCONT)
        say(holder, WORK["event"])
        assert line(holder) == "done"


def test_a_dead_holder_on_another_host_is_succeeded_when_its_lease_has_run_out(
    server: PostgresServer, opened: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "SECONDS", 0.4)
    with psycopg.connect(server.url) as connection:
        connection.execute(
            "UPDATE opsleuth.runs SET pid = 1, host = 'elsewhere', process_start = 'x', locked = '2026-01-01T00:00:00.000Z',"
            " fence = 4, leased = clock_timestamp() + interval '0.5 s'"
        )
    with pytest.raises(RunBusyError, match="process 1 on elsewhere since 2026-01-01"), opened.lock(RUN):
        pass
    servers.until(expired(server))
    with opened.lock(RUN):
        assert opened.database.rows("SELECT fence FROM runs")[0][0] == 5


def test_a_run_that_is_not_there(opened: Store) -> None:
    with pytest.raises(NotFoundError), opened.lock("inv-none"):
        pass


def test_a_stopped_process_in_the_middle_of_a_transaction_does_not_keep_others_out_for_long(
    server: PostgresServer, opened: Store
) -> None:
    with program(HOLD, told(server), RUN, "0.3") as holder:
        assert line(holder) == "held"
        say(
            holder,
            "with store.database.using() as c: c.execute('SET idle_in_transaction_session_timeout = 300')",
        )
        assert line(holder) == "done"
        say(holder, "t = store.transaction(); t.__enter__(); store.events.append(run, 'half', {})")
        assert line(holder) == "done"
        holder.send_signal(signal.SIGSTOP)
        servers.until(expired(server))
        with opened.lock(RUN):
            opened.events.append(RUN, "whole", {})
        holder.send_signal(signal.SIGCONT)
        say(holder, "t.__exit__(None, None, None)")
        assert line(holder).startswith("StoreFailedError 1")
    assert [event["type"] for event in opened.events.read(RUN)] == ["whole"]


def test_a_cut_connection_fails_in_words_and_the_next_operation_connects_again(
    server: PostgresServer, opened: Store
) -> None:
    with opened.lock(RUN):
        with psycopg.connect(server.url, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        with pytest.raises(StoreFailedError, match="what was stored is safe"):
            opened.events.append(RUN, "x", {})
        opened.events.append(RUN, "y", {})
    assert [event["type"] for event in opened.events.read(RUN)] == ["y"]
    assert RunLostError("inv-a", None, None, None).exit_code is ExitCode.BUSY


def test_who_waits_for_another_writer_gives_up_after_the_seconds_that_the_place_says(
    server: PostgresServer,
) -> None:
    with (
        Store.open(server, SystemClock(), Redactor()) as store,
        Store.open(replace(server, lock_seconds=0.1), SystemClock(), Redactor()) as hasty,
    ):
        with (
            store.database.write(RUN),
            pytest.raises(StoreFailedError, match="for too long"),
            hasty.lock(RUN),
        ):
            pytest.fail("another one holds it")
        hasty.runs.create(RunRow(id="inv-other", question="q"))

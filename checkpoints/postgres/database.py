"""The connection to a PostgreSQL server: short transactions, fenced where a run is held, errors in plain words."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg

from opsleuth.checkpoints.database import Parameters
from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import RunLostError
from opsleuth.checkpoints.postgres import checkpoint_exchange, history
from opsleuth.checkpoints.postgres.connection import SCHEMA
from opsleuth.checkpoints.postgres.dialect import PostgresRow, translate_placeholders
from opsleuth.checkpoints.postgres.error_messages import LOST
from opsleuth.checkpoints.postgres.lease import FencedDatabase, RunLease
from opsleuth.checkpoints.postgres.shared_connection import SharedConnection
from opsleuth.state.clock import Clock

_BEGIN = "SELECT begin_writing(?, ?::text[], ?::bigint[], ?)"
_HOLDER = "SELECT pid, host, locked FROM runs WHERE id = ?"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = ?"
_COLUMNS = """
SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ?
"""
_MOMENT = "SELECT extract(epoch FROM clock_timestamp())::float8"
_OWN = {"rowid", "fence", "leased"}
"""Columns that a file does not have."""


class PostgresDatabase(FencedDatabase):
    """A connection to the server, for one thread and the renewal of its leases.

    While a run is held every write looks first whether it still is, in its own transaction: who was considered dead
    writes nothing more. A connection that was lost between two operations is made again.
    """

    runs = "seen_runs"

    def __init__(
        self,
        place: PostgresServer,
        url: str,
        *,
        read_only: bool = False,
        guarded: bool = True,
        line: SharedConnection | None = None,
    ) -> None:
        """`guarded` is False for a server with checkpoints alone: the runs, and so the fences, lie elsewhere."""
        self._guarded = guarded
        self.place: PostgresServer = place
        self.read_only = read_only
        self.fences = {}
        self.lost = None
        self._url, self._is_beside = url, line is not None
        self._checkpoints: PostgresDatabase | None = None
        self.line = line or SharedConnection(place, url, read_only=read_only)

    def beside(self) -> "PostgresDatabase":
        """Another one over the same connection, with fences of its own, for a program that has several runs in progress.

        They take turns: none has a transaction open while another one asks. Whoever made the first closes it last.
        """
        kinds = {"read_only": self.read_only, "guarded": self._guarded}
        other = PostgresDatabase(self.place, self._url, **kinds, line=self.line)
        if self.checkpoint_db is not self:
            other._checkpoints = self.checkpoint_db.beside()
        return other

    @property
    def checkpoint_db(self) -> "PostgresDatabase":
        if self.place.checkpoints in (None, self._url):
            return self
        if self._checkpoints is None:
            self._checkpoints = PostgresDatabase(
                self.place, self.place.checkpoints, read_only=self.read_only, guarded=False
            )
        return self._checkpoints

    def close(self) -> None:
        if self._is_beside:
            return
        self.line.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def rows(self, sql: str, parameters: Parameters = ()) -> list[PostgresRow]:
        if self.lost is not None:
            raise self.lost
        with self.using() as connection:
            cursor = self.line.send_statement(_fill_statement(connection, sql, parameters))
            return cursor.fetchall() if cursor.pgresult and cursor.pgresult.nfields else []

    def change(self, sql: str, parameters: Parameters = ()) -> int:
        with self.using() as connection, self._fenced():
            if self.line.owner is not None:
                return self.line.send_statement(_fill_statement(connection, sql, parameters)).rowcount
            # One message, and so one transaction.
            self.line.later.append(self._beginning(connection, None))
            return self.line.send_statement(_fill_statement(connection, sql, parameters)).rowcount

    def change_later(self, sql: str, parameters: Parameters = ()) -> None:
        if self.line.owner is None:
            self.change(sql, parameters)
            return
        with self.using() as connection:
            self.line.later.append(_fill_statement(connection, sql, parameters))

    def change_all(self, changes: Sequence[tuple[str, Parameters]]) -> None:
        """As one message: each one waits for the server."""
        with self.write(), self.using() as connection:
            self.line.send_statement(
                "; ".join(_fill_statement(connection, sql, parameters) for sql, parameters in changes)
            )

    def write(self, run: str | None = None) -> AbstractContextManager[None]:
        return self._write(run, exclusive=False)

    def exclusive(self) -> AbstractContextManager[None]:
        return self._write(None, exclusive=True)

    @contextmanager
    def _write(self, run: str | None, *, exclusive: bool) -> Iterator[None]:
        with self.using() as connection, self._fenced():
            if self.line.owner is not None:
                if exclusive or run not in self.line.named:
                    self.line.send_statement(self._beginning(connection, run, exclusive=exclusive))
                    self.line.named.add(run)
                yield
                return
            self.line.owner, self.line.named = self, {None, run, *self.fences}
            try:
                connection.execute(f"BEGIN; {self._beginning(connection, run, exclusive=exclusive)}")
                yield
                self.line.send_statement("COMMIT")
            finally:
                self.line.owner = None
                self.line.roll_back()

    def using(self) -> AbstractContextManager[psycopg.Connection[PostgresRow]]:
        """The connection, for this thread alone. Between two transactions a broken one is replaced."""
        return self.line.using(self)

    def tables(self) -> set[str]:
        return {row[0] for row in self.rows(_TABLES, (SCHEMA,))}

    def columns(self, table: str) -> set[str]:
        return {row[0] for row in self.rows(_COLUMNS, (SCHEMA, table))} - _OWN

    def checkpoints(self, run: str) -> list[tuple[str, Mapping[str, Any]]]:
        return history.read_checkpoint_documents(self, run) if "checkpoints" in self.tables() else []

    def saved_rows(self, run: str) -> Iterator[tuple[str, dict[str, Any]]]:
        return checkpoint_exchange.saved_rows(self, run) if "checkpoints" in self.tables() else iter(())

    def put_saved(self, table: str, values: Mapping[str, Any], origin: object) -> int:
        return checkpoint_exchange.put_saved(self, table, values, origin)

    def lock(self, run: str, now: str) -> RunLease:
        return RunLease(self, run, now)

    def vacuum(self) -> None:
        """The server does that by itself."""

    def moment(self, clock: Clock) -> float:  # noqa: ARG002 - this server's clock instead
        row = self.row(_MOMENT)
        return float(row[0]) if row else 0.0

    def make_durable(self) -> None:
        """The server has synced what it confirmed: see `synchronous_commit` in `connection`."""

    def ensure_still_held(self) -> None:
        with self.using() as connection, self._fenced():
            connection.execute(self._beginning(connection, None))

    def _beginning(
        self, connection: psycopg.Connection[PostgresRow], run: str | None, *, exclusive: bool = False
    ) -> str:
        if not self._guarded:
            return "SELECT 1"
        held = list(self.fences)
        parameters: Sequence[Any] = (run, held, [self.fences[name] for name in held], exclusive)
        return psycopg.ClientCursor(connection).mogrify(translate_placeholders(_BEGIN), parameters)

    @contextmanager
    def _fenced(self) -> Iterator[None]:
        """Say who has taken a run over, where a write was refused for that."""
        try:
            yield
        except psycopg.Error as error:
            if error.sqlstate != LOST:
                raise
            run = str(error.diag.message_primary)
            self.line.roll_back()
            row = self.row(_HOLDER, (run,))
            raise RunLostError(run, *(tuple(row) if row else (None, None, None))) from None


def _fill_statement(connection: psycopg.Connection[PostgresRow], sql: str, parameters: Parameters) -> str:
    """A statement with its values in it, as the driver writes them."""
    return psycopg.ClientCursor(connection).mogrify(translate_placeholders(sql), parameters)

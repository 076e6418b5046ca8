"""The connection to a PostgreSQL server: short transactions, fenced where a run is held, errors in plain words."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

from opsleuth.checkpoints import db
from opsleuth.checkpoints.db import Parameters
from opsleuth.checkpoints.errors import Lost
from opsleuth.checkpoints.places import Server
from opsleuth.checkpoints.postgres import exchange, history
from opsleuth.checkpoints.postgres.connecting import SCHEMA
from opsleuth.checkpoints.postgres.dialect import Row, native
from opsleuth.checkpoints.postgres.lease import Lease
from opsleuth.checkpoints.postgres.line import Line
from opsleuth.checkpoints.postgres.plain import LOST
from opsleuth.state.clock import Clock

if TYPE_CHECKING:
    from opsleuth.checkpoints.saving import Saver

# ruff: noqa: PLC0415 - the framework is loaded by those who drive a graph, not by those who read our tables

_BEGIN = "SELECT begin_writing(?, ?::text[], ?::bigint[], ?)"
_HOLDER = "SELECT pid, host, locked FROM runs WHERE id = ?"
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = ?"
_COLUMNS = """
SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ?
"""
_MOMENT = "SELECT extract(epoch FROM clock_timestamp())::float8"
_OWN = {"rowid", "fence", "leased"}
"""Columns that a file does not have."""


class Database(db.Database):
    """A connection to the server, for one thread and the renewal of its leases.

    While a run is held every write looks first whether it still is, in its own transaction: who was taken for dead
    writes nothing more. A connection that was lost between two operations is made anew.
    """

    runs = "seen_runs"

    def __init__(
        self,
        place: Server,
        url: str,
        *,
        read_only: bool = False,
        guarded: bool = True,
        line: Line | None = None,
    ) -> None:
        """`guarded` is False for a server with checkpoints alone: the runs, and so the fences, lie elsewhere."""
        self._guarded = guarded
        self.place: Server = place
        self.read_only = read_only
        self.fences: dict[str, int] = {}
        self.lost: Lost | None = None
        self._url, self._is_beside = url, line is not None
        self._checkpoints: Database | None = None
        self.line = line or Line(place, url, read_only=read_only)

    def beside(self) -> "Database":
        """Another one over the same connection, with fences of its own, for a program that has several runs in work.

        They take turns: none has a transaction open while another one asks. Whoever made the first closes it last.
        """
        kinds = {"read_only": self.read_only, "guarded": self._guarded}
        other = Database(self.place, self._url, **kinds, line=self.line)
        if self.checkpoint_db is not self:
            other._checkpoints = self.checkpoint_db.beside()
        return other

    @property
    def checkpoint_db(self) -> "Database":
        if self.place.checkpoints in (None, self._url):
            return self
        if self._checkpoints is None:
            self._checkpoints = Database(
                self.place, self.place.checkpoints, read_only=self.read_only, guarded=False
            )
        return self._checkpoints

    def close(self) -> None:
        if self._is_beside:
            return
        self.line.close()
        if self._checkpoints is not None:
            self._checkpoints.close()

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        if self.lost is not None:
            raise self.lost
        with self.using() as connection:
            cursor = connection.execute(native(sql), parameters)
            return cursor.fetchall() if cursor.description else []

    def change(self, sql: str, parameters: Parameters = ()) -> int:
        with self.using() as connection, self._fenced():
            if self.line.owner is not None:
                return connection.execute(native(sql), parameters).rowcount
            # One message, and so one transaction.
            cursor = psycopg.ClientCursor(connection)
            cursor.execute(f"{self._beginning(connection, None)}; {cursor.mogrify(native(sql), parameters)}")
            while cursor.nextset():
                pass
            return cursor.rowcount

    def change_all(self, changes: Sequence[tuple[str, Parameters]]) -> None:
        """As one message: each one waits for the server."""
        with self.write(), self.using() as connection:
            cursor = psycopg.ClientCursor(connection)
            cursor.execute("; ".join(cursor.mogrify(native(sql), parameters) for sql, parameters in changes))

    def write(self, run: str | None = None) -> AbstractContextManager[None]:
        return self._write(run, exclusive=False)

    def exclusive(self) -> AbstractContextManager[None]:
        return self._write(None, exclusive=True)

    @contextmanager
    def _write(self, run: str | None, *, exclusive: bool) -> Iterator[None]:
        with self.using() as connection, self._fenced():
            if self.line.owner is not None:
                if exclusive or run not in self.line.named:
                    connection.execute(self._beginning(connection, run, exclusive=exclusive))
                    self.line.named.add(run)
                yield
                return
            self.line.owner, self.line.named = self, {None, run, *self.fences}
            try:
                connection.execute(f"BEGIN; {self._beginning(connection, run, exclusive=exclusive)}")
                yield
                connection.execute("COMMIT")
            finally:
                self.line.owner = None
                self.line.roll_back()

    def using(self) -> AbstractContextManager[psycopg.Connection[Row]]:
        """The connection, for this thread alone. Between two transactions a broken one is replaced."""
        return self.line.using(self)

    def tables(self) -> set[str]:
        return {row[0] for row in self.rows(_TABLES, (SCHEMA,))}

    def columns(self, table: str) -> set[str]:
        return {row[0] for row in self.rows(_COLUMNS, (SCHEMA, table))} - _OWN

    def checkpoints(self, run: str) -> list[tuple[str, Mapping[str, Any]]]:
        return history.documents(self, run) if "checkpoints" in self.tables() else []

    def saved_rows(self, run: str) -> Iterator[tuple[str, dict[str, Any]]]:
        return exchange.saved_rows(self, run) if "checkpoints" in self.tables() else iter(())

    def put_saved(self, table: str, values: Mapping[str, Any], origin: object) -> int:
        return exchange.put_saved(self, table, values, origin)

    def saver(self) -> "AbstractContextManager[Saver]":
        from opsleuth.checkpoints.postgres.saver import open_saver

        return open_saver(self)

    def lock(self, run: str, now: str) -> Lease:
        return Lease(self, run, now)

    def vacuum(self) -> None:
        """The server does that by itself."""

    def moment(self, clock: Clock) -> float:  # noqa: ARG002 - this server's clock instead
        row = self.row(_MOMENT)
        return float(row[0]) if row else 0.0

    def ensure_still_held(self) -> None:
        with self.using() as connection, self._fenced():
            connection.execute(self._beginning(connection, None))

    def _beginning(
        self, connection: psycopg.Connection[Row], run: str | None, *, exclusive: bool = False
    ) -> str:
        if not self._guarded:
            return "SELECT 1"
        held = list(self.fences)
        parameters: Sequence[Any] = (run, held, [self.fences[name] for name in held], exclusive)
        return psycopg.ClientCursor(connection).mogrify(native(_BEGIN), parameters)

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
            raise Lost(run, *(tuple(row) if row else (None, None, None))) from None

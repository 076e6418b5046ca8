"""One connection to a server, shared in turns: a store, the renewal of its leases, the stores beside it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.pq import TransactionStatus

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.postgres.connection import open_connection
from opsleuth.checkpoints.postgres.dialect import PostgresRow
from opsleuth.checkpoints.postgres.error_messages import plain_errors


class SharedConnection:
    """Lost between two transactions, it is made again by the next one who needs it.

    `owner` is who has a transaction open, `named` the runs that others are kept out of until it ends, `later` the statements
    that go with its next one.
    """

    def __init__(self, place: PostgresServer, url: str, *, read_only: bool) -> None:
        self.place, self.url, self.read_only = place, url, read_only
        self.owner: object | None = None
        self.named: set[str | None] = set()
        self.later: list[str] = []
        self.framework_is_ready = False
        self._mutex = threading.RLock()
        self._connection = open_connection(place, url, read_only=read_only)

    @contextmanager
    def using(self, user: object) -> Iterator[psycopg.Connection[PostgresRow]]:
        """The connection, for this thread and this user alone."""
        with self._mutex, plain_errors(self.place):
            if self.owner not in (None, user):
                raise RuntimeError("a transaction of another store is open on this connection")
            if self._connection.closed and self.owner is None:
                self._connection = open_connection(self.place, self.url, read_only=self.read_only)
            yield self._connection

    def send_statement(self, statement: str) -> psycopg.Cursor[PostgresRow]:
        """The result of a complete statement, after those that wait for it: all of them are one message."""
        statements = [*self.later, statement]
        self.later.clear()
        cursor = self._connection.cursor()
        cursor.execute("; ".join(statements))
        while cursor.nextset():
            pass
        return cursor

    def roll_back(self) -> None:
        """Undo what a failure left open; after a commit there is nothing to undo."""
        self.later.clear()
        state = self._connection.info.transaction_status
        if state in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()

"""One connection to a server, for all who use it by turns: a store, the renewal of its leases, the stores beside it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg.pq import TransactionStatus

from opsleuth.checkpoints.places import Server
from opsleuth.checkpoints.postgres.connecting import connected
from opsleuth.checkpoints.postgres.dialect import Row
from opsleuth.checkpoints.postgres.plain import plain_errors


class Line:
    """Lost between two transactions, it is made anew by the next one who needs it.

    `owner` is who has a transaction open, `named` the runs that others are kept out of until it ends.
    """

    def __init__(self, place: Server, url: str, *, read_only: bool) -> None:
        self.place, self.url, self.read_only = place, url, read_only
        self.owner: object | None = None
        self.named: set[str | None] = set()
        self.framework_is_ready = False
        self._mutex = threading.RLock()
        self._connection = connected(place, url, read_only=read_only)

    @contextmanager
    def using(self, user: object) -> Iterator[psycopg.Connection[Row]]:
        """The connection, for this thread and this user alone."""
        with self._mutex, plain_errors(self.place):
            if self.owner not in (None, user):
                raise RuntimeError("a transaction of another store is open on this connection")
            if self._connection.closed and self.owner is None:
                self._connection = connected(self.place, self.url, read_only=self.read_only)
            yield self._connection

    def roll_back(self) -> None:
        """Undo what a failure left open; after a commit there is nothing to undo."""
        state = self._connection.info.transaction_status
        if state in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()

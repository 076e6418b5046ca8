"""The interface that the tables need from any database. The SQL of the tables is written once, for all of them.

Statements use `:name` or `?` for parameters, standard SQL otherwise, and `ON CONFLICT` as both databases know it.
What they do not agree on is a method here, and in the room of one database: `sqlite`, `postgres`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

from opsleuth.checkpoints.database_urls import Place
from opsleuth.state.clock import Clock

Parameters = Sequence[Any] | Mapping[str, Any]

NO_LIMIT = 2**62
"""A LIMIT that no table reaches."""


class Row(Protocol):
    """One row: by position, by name, or unpacked."""

    def __getitem__(self, key: int | str, /) -> Any: ...  # noqa: ANN401 - any column
    def __iter__(self) -> Iterator[Any]: ...
    def keys(self) -> Sequence[str]:
        """The names of the columns."""
        ...


class Database(ABC):
    """One connection, for one thread. Each statement outside of `write` is a transaction of its own."""

    place: Place
    read_only: bool
    runs: str = "runs"
    """The table, or a view, that runs are read from."""
    sound: Callable[[], bool] = staticmethod(lambda: True)
    """Whether the program that holds runs here still gets on with them; where not, a lease is not renewed."""

    @property
    def checkpoint_db(self) -> "Database":
        """Where the framework's checkpoints lie."""
        return self

    @abstractmethod
    def rows(self, sql: str, parameters: Parameters = ()) -> Sequence[Row]:
        """All rows of a query."""

    @abstractmethod
    def change(self, sql: str, parameters: Parameters = ()) -> int:
        """Execute one writing statement; returns how many rows it changed."""

    def change_later(self, sql: str, parameters: Parameters = ()) -> None:
        """Within `write`: execute a writing statement with the next one, or with the commit, so that nobody waits for it alone."""
        self.change(sql, parameters)

    def change_all(self, changes: Sequence[tuple[str, Parameters]]) -> None:
        """Execute several writing statements as one transaction."""
        with self.write():
            for sql, parameters in changes:
                self.change(sql, parameters)

    @abstractmethod
    def write(self, run: str | None = None) -> AbstractContextManager[None]:
        """One transaction: all of it or nothing. Inside another one it is part of that.

        Until it ends, other writers wait that named the same run: what is read in it is still so when it commits.
        """

    @abstractmethod
    def exclusive(self) -> AbstractContextManager[None]:
        """As `write`, while every other writer waits. Keep it short."""

    @abstractmethod
    def tables(self) -> set[str]:
        """The names of the tables that there are."""

    @abstractmethod
    def columns(self, table: str) -> set[str]:
        """The names of a table's columns."""

    @abstractmethod
    def checkpoints(self, run: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Id and document of the framework's checkpoints of a run, oldest first. Raises UnreadableStoreError."""

    @abstractmethod
    def saved_rows(self, run: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The framework's checkpoints of a run in the form of the file: rows of `checkpoints` and `writes`."""

    @abstractmethod
    def put_saved(self, table: str, values: Mapping[str, Any], origin: object) -> int:
        """Store one such row; 0 where it was there before. Raises UnreadableStoreError for a form that is unknown."""

    @abstractmethod
    def lock(self, run: str, now: str) -> AbstractContextManager[object]:
        """The lock of a run for one attempt; entering raises RunBusyError if it is held. `now` is when, for people."""

    @abstractmethod
    def ensure_still_held(self) -> None:
        """Raises RunLostError if a run that is held here has been taken over by another process."""

    @abstractmethod
    def make_durable(self) -> None:
        """Before something is done outside: what is committed shall be there after a loss of power."""

    def moment(self, clock: Clock) -> float:
        """Seconds since the epoch, the same for all who use the database: of a file by this machine's clock."""
        return clock.now().timestamp()

    @abstractmethod
    def vacuum(self) -> None:
        """Give the space of removed rows back, as far as that is cheap."""

    @abstractmethod
    def close(self) -> None:
        """End the connection."""

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row of a query, or None."""
        return next(iter(self.rows(sql, parameters)), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

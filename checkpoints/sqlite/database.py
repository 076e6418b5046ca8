"""The connection to the one database file: WAL, full sync, short immediate transactions, errors in plain words."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from opsleuth.checkpoints import database
from opsleuth.checkpoints.checkpoint_values import damaged_checkpoint_error, unpack_value
from opsleuth.checkpoints.database import Parameters
from opsleuth.checkpoints.run_rows import insert_row
from opsleuth.checkpoints.sqlite.errors import BUSY_TIMEOUT, plain_errors
from opsleuth.checkpoints.sqlite.lock import RunLock

STEP = """CASE WHEN json_valid(CAST(metadata AS TEXT))
     THEN coalesce(json_extract(CAST(metadata AS TEXT), '$.step'), -2) ELSE -2 END"""
"""The number of a checkpoint's step, which only grows; the time in its id follows a clock that may go back."""
_CHECKPOINTS = f"""
SELECT checkpoint_id, type, checkpoint FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY {STEP}, checkpoint_id
"""

_PATIENCE_MS = 1000
"""How long the log waits for readers before an effect."""


class SqliteDatabase(database.Database):
    """One connection to the file. A second writer waits for the first, whatever runs they name."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.place = self.path = path
        self.read_only = read_only
        mode = "ro" if read_only else "rw"
        with plain_errors(path):
            self._connection = sqlite3.connect(
                f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT, isolation_level=None
            )
            self._connection.row_factory = sqlite3.Row
            self._connection.execute("PRAGMA synchronous = FULL")

    def close(self) -> None:
        self._connection.close()

    def rows(self, sql: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        with plain_errors(self.path):
            try:
                return self._connection.execute(sql, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                return self._damaged(sql, parameters)

    def change(self, sql: str, parameters: Parameters = ()) -> int:
        with self.write(), plain_errors(self.path):
            return self._connection.execute(sql, parameters).rowcount

    def script(self, sql: str) -> None:
        """Execute several statements, which hold their own BEGIN and COMMIT: all of them or none."""
        with plain_errors(self.path):
            try:
                self._connection.executescript(sql)
            finally:
                self._roll_back()

    def make_durable(self) -> None:
        """Bring what is committed into the file itself: a log beside it that is lost then takes no started effect along.

        A reader that holds an older state for longer keeps the rest in the log, which is synced to disk as well.
        """
        with plain_errors(self.path):
            self._connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(FULL)").fetchall()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT * 1000}")

    @contextmanager
    def write(self, run: str | None = None) -> Iterator[None]:  # noqa: ARG002 - all writers wait here
        if self._connection.in_transaction:
            yield
            return
        with plain_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            finally:
                self._roll_back()

    def exclusive(self) -> AbstractContextManager[None]:
        return self.write()

    def tables(self) -> set[str]:
        return {row["name"] for row in self.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")}

    def columns(self, table: str) -> set[str]:
        return {row["name"] for row in self.rows(f"PRAGMA table_info({table})")}

    def checkpoints(self, run: str) -> list[tuple[str, Mapping[str, Any]]]:
        if "checkpoints" not in self.tables():
            return []
        return [
            (row["checkpoint_id"], _checkpoint_document(run, row)) for row in self.rows(_CHECKPOINTS, (run,))
        ]

    def saved_rows(self, run: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for table in sorted(self.tables() & {"checkpoints", "writes"}):
            for row in self.rows(f"SELECT * FROM {table} WHERE thread_id = ?", (run,)):  # one of two
                yield table, dict(row)

    def put_saved(self, table: str, values: Mapping[str, Any], origin: object) -> int:
        return insert_row(self, table, values, origin)

    def lock(self, run: str, now: str) -> RunLock:
        return RunLock(self, self.path, run, now)

    def ensure_still_held(self) -> None:
        """The kernel keeps the lock of a stopped process: no other process took the run over."""

    def vacuum(self) -> None:
        self.rows("PRAGMA incremental_vacuum")

    def _damaged(self, sql: str, parameters: Parameters) -> list[sqlite3.Row]:
        """Read again where a text is not UTF-8, with U+FFFD in it: one damaged row must not hide the sound ones."""
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        try:
            return self._connection.execute(sql, parameters).fetchall()
        finally:
            self._connection.text_factory = str

    def _roll_back(self) -> None:
        """Undo what a failure left open; after a commit there is nothing to undo."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def _checkpoint_document(run: str, row: sqlite3.Row) -> Mapping[str, Any]:
    if row["type"] == "msgpack":
        document = unpack_value(run, row["checkpoint_id"], row["checkpoint"])
        if isinstance(document, dict) and isinstance(document.get("channel_values"), dict):
            return document
    raise damaged_checkpoint_error(run, row["checkpoint_id"])

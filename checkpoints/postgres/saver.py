"""The framework's checkpoints on the server: through our connection, each operation one fenced transaction."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import Cursor
from psycopg.pq import Format
from psycopg.rows import DictRow, dict_row

from opsleuth.checkpoints import checkpoint_saver
from opsleuth.checkpoints.postgres.database import PostgresDatabase
from opsleuth.checkpoints.postgres.history import STEP
from opsleuth.checkpoints.seals import COLUMNS, INSERT_SEAL

_WRITES = """
SELECT checkpoint_id, task_id, idx, channel, type, blob AS value FROM checkpoint_writes
WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND task_id = ?
"""
_SETUP = 1869640558
"""The server's lock under which the framework's tables are made."""

_NEWEST = f"""
SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?
ORDER BY {STEP} DESC, checkpoint_id DESC LIMIT 1
"""


class PostgresCheckpointSaver(checkpoint_saver.CheckpointSaver, PostgresSaver):
    """The framework's PostgreSQL saver, its asynchronous side done by its synchronous one.

    `db` is where the runs are held; the checkpoints may lie on another server. A checkpoint is written inside a
    transaction of both, so that nobody can take the run over in between.
    """

    def __init__(self, db: PostgresDatabase) -> None:
        self._db, self.place, self._unflushed = db, db.place, []
        with db.checkpoint_db.using() as connection:
            PostgresSaver.__init__(self, connection, serde=checkpoint_saver.strict_serializer())  # type: ignore[arg-type]

    def plain(self) -> AbstractContextManager[object]:
        return self._db.checkpoint_db.using()

    def newest_checkpoint(self, thread: str, namespace: str) -> str | None:
        row = self._db.checkpoint_db.row(_NEWEST, (thread, namespace))
        return str(row[0]) if row else None

    @contextmanager
    def transaction(self, thread: str) -> Iterator[None]:
        with self._db.write(thread), self._db.checkpoint_db.write(thread):
            yield

    def put_seal(self, parameters: Mapping[str, Any]) -> None:
        self._db.change(INSERT_SEAL, parameters)

    def stored_writes(self, thread: str, checkpoint: str, task: str) -> list[dict[str, Any]]:
        rows = self._db.checkpoint_db.rows(_WRITES, (thread, checkpoint, task))
        return [{name: row[name] for name in (*COLUMNS["writes"], "value")} for row in rows]

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:  # noqa: ARG002 - the framework's own
        with self._db.checkpoint_db.using() as connection, Cursor(connection, row_factory=dict_row) as cursor:
            cursor.format = Format.BINARY
            yield cursor


@contextmanager
def open_saver(db: PostgresDatabase) -> Iterator[PostgresCheckpointSaver]:
    """A checkpoint saver over the database that the store has opened; its tables are made on first use."""
    saver = PostgresCheckpointSaver(db)
    if not db.read_only and not db.checkpoint_db.line.framework_is_ready:
        _set_up(saver, db.checkpoint_db)
        db.checkpoint_db.line.framework_is_ready = True
    try:
        yield saver
    finally:
        saver.flush_writes()


def _set_up(saver: PostgresCheckpointSaver, db: PostgresDatabase) -> None:
    """Make the framework's tables, or bring them up to date. One process at a time: theirs is not made for more."""
    if _checkpoint_schema_version(db) == len(saver.MIGRATIONS) - 1:
        return
    with db.using() as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_SETUP,))
        try:
            saver.setup()
        finally:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_SETUP,))


def _checkpoint_schema_version(db: PostgresDatabase) -> int:
    if "checkpoint_migrations" not in db.tables():
        return -1
    row = db.row("SELECT max(v) FROM checkpoint_migrations")
    return -1 if row is None or row[0] is None else int(row[0])

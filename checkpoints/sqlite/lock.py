"""One process per run: an exclusive flock for the whole attempt. The kernel frees it when the process dies."""

import fcntl
import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from opsleuth.checkpoints.db import Database
from opsleuth.checkpoints.errors import Busy, NotWritable
from opsleuth.checkpoints.processes import this_process

_TAKE = """
UPDATE runs SET pid = :pid, host = :host, process_start = :start, locked = :now WHERE id = :run
"""
_LEAVE = """
UPDATE runs SET pid = NULL, host = NULL, process_start = NULL, locked = NULL WHERE id = :run
"""


class RunLock:
    """Context of one attempt. Entering raises Busy if another process, or this one, holds the run.

    The row with pid, host and start is for people and for `list`; the lock itself is the flock. A forked
    child would keep it: no `os.fork` inside an attempt (programs that are executed do not inherit it).
    """

    def __init__(self, db: Database, path: Path, run: str, now: str) -> None:
        self._db, self._path, self.run, self._now = db, path, run, now
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        descriptor = self._open()
        with ExitStack() as undoing:
            undoing.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._busy() from None
            self._sign(_TAKE)
            undoing.pop_all()
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            self._sign(_LEAVE)
        finally:
            os.close(descriptor)

    def _sign(self, sql: str) -> None:
        self._db.change(sql, {**this_process()._asdict(), "now": self._now, "run": self.run})

    def _open(self) -> int:
        path = locks_folder(self._path) / self.run
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise NotWritable(
                f"cannot open the lock file {path}: {error.strerror}; check permissions"
            ) from error

    def _busy(self) -> Busy:
        row = self._db.row("SELECT pid, host, locked FROM runs WHERE id = ?", (self.run,))
        return Busy(self.run, *(tuple(row) if row else (None, None, None)))


def locks_folder(path: Path) -> Path:
    """The folder of lock files beside the database, made on first use."""
    folder = path.with_name(f"{path.name}.locks")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise NotWritable(
            f"cannot make {folder}: {error.strerror}; check permissions, or choose --db"
        ) from error
    return folder

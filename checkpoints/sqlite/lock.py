"""One process per run: an exclusive flock for the whole attempt. The kernel frees it when the process dies.

The file of the flock lies beside the database, links resolved. A bind mount, or a folder of locks that somebody removed,
leads to another file for the same run: on Linux a name of the kernel's own, made of device and inode of the database, is
held as well. Elsewhere these two cases are not seen.
"""

import errno
import fcntl
import hashlib
import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from opsleuth.checkpoints.database import Database
from opsleuth.checkpoints.errors import NotWritableError, RunBusyError
from opsleuth.checkpoints.processes import this_process

_TAKE = """
UPDATE runs SET pid = :pid, host = :host, process_start = :start, locked = :now WHERE id = :run
"""
_LEAVE = """
UPDATE runs SET pid = NULL, host = NULL, process_start = NULL, locked = NULL WHERE id = :run
"""


class RunLock:
    """Context of one attempt. Entering raises RunBusyError if another process, or this one, holds the run.

    The row with pid, host and start is for people and for `list`; the lock itself is the flock. A forked
    child would keep it: no `os.fork` inside an attempt (programs that are executed do not inherit it).
    """

    def __init__(self, db: Database, path: Path, run: str, now: str) -> None:
        self._db, self._path, self.run, self._now = db, path, run, now
        self._descriptor: int | None = None
        self._name: socket.socket | None = None

    def __enter__(self) -> Self:
        descriptor = self._open()
        with ExitStack() as undoing:
            undoing.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._busy() from None
            name = self._hold_name()
            if name is not None:
                undoing.callback(name.close)
            self._sign(_TAKE)
            undoing.pop_all()
        self._descriptor, self._name = descriptor, name
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
            if self._name is not None:
                self._name.close()
                self._name = None
            os.close(descriptor)

    def _hold_name(self) -> socket.socket | None:
        """A socket whose name belongs to this run of this very file, None where there are no such names.

        Raises RunBusyError where another process holds it.
        """
        if not sys.platform.startswith("linux"):
            return None
        held = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            held.bind(_identity_name(self._path, self.run))
        except OSError as error:
            held.close()
            if error.errno == errno.EADDRINUSE:
                raise self._busy() from None
            return None
        return held

    def _sign(self, sql: str) -> None:
        self._db.change(sql, {**this_process()._asdict(), "now": self._now, "run": self.run})

    def _open(self) -> int:
        path = locks_folder(self._path) / self.run
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise NotWritableError(
                f"cannot open the lock file {path}: {error.strerror}; check permissions"
            ) from error

    def _busy(self) -> RunBusyError:
        row = self._db.row("SELECT pid, host, locked FROM runs WHERE id = ?", (self.run,))
        return RunBusyError(self.run, *(tuple(row) if row else (None, None, None)))


def locks_folder(path: Path) -> Path:
    """The folder of lock files beside the database, made on first use."""
    path = Path(os.path.realpath(path))
    folder = path.with_name(f"{path.name}.locks")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise NotWritableError(
            f"cannot make {folder}: {error.strerror}; check permissions, or choose --db"
        ) from error
    return folder


def _identity_name(path: Path, run: str) -> bytes:
    """A name in the kernel's abstract space, the same for every spelling of the path of one file."""
    seen = path.stat()
    identity = f"{seen.st_dev}:{seen.st_ino}:{run}".encode()
    return b"\0opsleuth-run-" + hashlib.sha256(identity).hexdigest()[:40].encode()

"""One process per run, over many hosts: a lease that its holder renews, and a fence that grows with every holder.

A holder that was not heard from for as long as a lease lasts can be succeeded; so can, at once, one on this host whose
process is gone. The fence keeps a former holder from writing: see `begin_writing` in the schema. A lease that ran out
still holds as long as nobody took the run over.
"""

import contextlib
import threading
from types import TracebackType
from typing import Any, NamedTuple, Self

from opsleuth.checkpoints.database import Database
from opsleuth.checkpoints.errors import NotFoundError, RunBusyError, RunLostError, StoreError
from opsleuth.checkpoints.processes import ProcessIdentity, is_alive, this_process
from opsleuth.state.run_status import Status

SECONDS = 30.0
"""How long a lease lasts; it is renewed three times as often."""

_LOOK = """
SELECT fence, pid, host, process_start, locked, coalesce(leased > clock_timestamp(), FALSE) AS live
FROM runs WHERE id = :run
"""
_TAKE = """
UPDATE runs SET fence = fence + 1, leased = clock_timestamp() + :seconds * interval '1 second',
                pid = :pid, host = :host, process_start = :start, locked = :now
WHERE id = :run AND fence = :fence
"""
_RENEW = """
UPDATE runs SET leased = clock_timestamp() + :seconds * interval '1 second' WHERE id = :run AND fence = :fence
"""
_LEAVE = """
UPDATE runs SET leased = NULL, pid = NULL, host = NULL, process_start = NULL, locked = NULL
WHERE id = :run AND fence = :fence
"""


_HELD: set[tuple[str, str, int]] = set()
"""Place, run and fence of what this process holds; runs whose release could not be written are removed from it too."""


class _LeaseHolder(NamedTuple):
    status: Status
    pid: int | None
    host: str | None
    process_start: str | None


class FencedDatabase(Database):
    """A database that knows what its program holds: the fence of each run, and what is raised once one was lost."""

    fences: dict[str, int]
    lost: RunLostError | None


class RunLease:
    """Context of one attempt. Entering raises RunBusyError if a live process, or this one, holds the run, NotFoundError for none."""

    def __init__(self, db: FencedDatabase, run: str, now: str) -> None:
        self._db, self.run, self._now = db, run, now
        self._fence = 0
        self._over = threading.Event()
        self._renewing: threading.Thread | None = None

    def __enter__(self) -> Self:
        with self._db.write(self.run):
            self._fence = self._free() + 1
            process: ProcessIdentity = this_process()
            values = process._asdict() | {"now": self._now, "fence": self._fence - 1}
            self._db.change(_TAKE, self._values(**values))
        self._db.fences[self.run] = self._fence
        _HELD.add(self._mine)
        self._renewing = threading.Thread(target=self._renew, name=f"lease of {self.run}", daemon=True)
        self._renewing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._renewing is not None:
            self._renewing.join()
        self._db.fences.pop(self.run, None)
        self._db.lost = None
        _HELD.discard(self._mine)
        # Whoever cannot say that he leaves is succeeded when the lease has run out.
        with contextlib.suppress(StoreError):
            self._db.change(_LEAVE, self._values(fence=self._fence))

    def _free(self) -> int:
        """The fence of the last holder, who holds the run no more."""
        row = self._db.row(_LOOK, {"run": self.run})
        if row is None:
            raise NotFoundError(f"no run {self.run!r}")
        holder = _LeaseHolder(Status.RUNNING, row["pid"], row["host"], row["process_start"])
        self._fence = int(row["fence"])
        left = holder[1:] == this_process() and self._mine not in _HELD
        if row["live"] and is_alive(holder) and not left:
            raise RunBusyError(self.run, row["pid"], row["host"], row["locked"])
        return self._fence

    @property
    def _mine(self) -> tuple[str, str, int]:
        return str(self._db.place), self.run, self._fence

    def _renew(self) -> None:
        """In a thread of its own: the holder may wait for a person, or compute."""
        pause = SECONDS / 3
        while not self._over.wait(pause):
            if not self._db.sound():
                continue  # it may hang forever: then another one takes the run over
            try:
                self._db.change(_RENEW, self._values(fence=self._fence))
            except RunLostError as lost:
                self._db.lost = lost
                return
            except StoreError:
                continue  # the server may come back before the lease has run out

    def _values(self, **more: object) -> dict[str, Any]:
        return {"run": self.run, "seconds": SECONDS, **more}

"""A worker's heartbeat, sent from a thread so that a busy loop is not considered dead, and limited so that a hung one is.

The queue has a heartbeat of its own in the loop: it falls silent when the loop computes for a while. This one goes on
until the loop has not come round for as long as no work takes. Then leases are not renewed either, and others take the
runs over; should the loop wake up after that, its fences keep it from writing.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator

import psycopg

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.checkpoints.errors import StoreError
from opsleuth.checkpoints.postgres.connection import open_connection
from opsleuth.checkpoints.postgres.error_messages import plain_errors
from opsleuth.state.clock import Clock

log = logging.getLogger("opsleuth.worker")
_BEAT = "SELECT procrastinate_update_heartbeat_v1(%s)"


class WorkerHeartbeat:
    """Of one worker: beats at this interval, as long as the loop came round within `hung` of them.

    `worker` is the queue's number for it, known from its first job on; before, there is nothing to take over.
    """

    def __init__(self, place: PostgresServer, clock: Clock, every: float, hung: float) -> None:
        self.worker: int | None = None
        self._place, self._clock, self._every, self._hung = place, clock, every, hung
        self._came_round = clock.monotonic()

    def record_loop_turn(self) -> None:
        """The loop says so."""
        self._came_round = self._clock.monotonic()

    def is_responsive(self) -> bool:
        """Whether the loop came round lately."""
        return self._clock.monotonic() - self._came_round < self._hung

    @contextlib.contextmanager
    def keep_beating(self) -> Iterator[None]:
        """Beat while the block runs."""
        over = threading.Event()
        thread = threading.Thread(target=self._beat_until, args=(over,), name="pulse", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _beat_until(self, over: threading.Event) -> None:
        with contextlib.ExitStack() as stack:
            connection: psycopg.Connection[object] | None = None
            while not over.wait(self._every):
                if self.worker is None:
                    continue
                if not self.is_responsive():
                    log.error(
                        "the event loop has hung for over %.0f s: other workers may take over its runs",
                        self._hung,
                    )
                    continue
                try:
                    if connection is None or connection.closed:
                        connection = open_connection(self._place, self._place.url, read_only=False)
                        stack.callback(connection.close)
                    with plain_errors(self._place):
                        connection.execute(_BEAT, (self.worker,))
                except StoreError as error:
                    log.warning("the heartbeat cannot be written (%s): trying again", error)

"""The breaker: after three failures in a row a tool of a source is left alone for a while.

Closed lets every call pass. Open refuses. After the pause one call is let through on trial (half-open): its
success closes the breaker, its failure opens it again.
"""

from dataclasses import dataclass

from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import Clock

FAILURES = frozenset(
    {ResultStatus.TRANSIENT, ResultStatus.TIMEOUT, ResultStatus.UNAVAILABLE, ResultStatus.INTERNAL}
)
# These say nothing about the backend: it was never asked, or the caller gave up.
SILENT = frozenset({ResultStatus.INVALID_ARGUMENTS, ResultStatus.NOT_PERMITTED, ResultStatus.CANCELED})

Key = tuple[str, str]


@dataclass(slots=True)
class _Line:
    failures: int = 0
    last: str = ""
    opened: float | None = None
    trial: bool = False


class Breaker:
    """One breaker per (tool, source). `pause` in seconds; `failures` in a row open it."""

    def __init__(self, clock: Clock, *, failures: int = 3, pause: float = 60.0) -> None:
        self._clock = clock
        self._failures = failures
        self._pause = pause
        self._lines: dict[Key, _Line] = {}

    def refuses(self, key: Key) -> str | None:
        """Why a call may not be made now, or None. None on a half-open breaker makes this call its trial."""
        line = self._lines.get(key)
        if line is None or line.opened is None:
            return None
        waited = self._clock.monotonic() - line.opened
        if waited >= self._pause and not line.trial:
            line.trial = True
            return None
        rest = max(0.0, self._pause - waited)
        return f"{line.failures} calls in a row failed, the last with: {line.last}; it is tried again in {rest:.0f} s"

    def record(self, key: Key, status: ResultStatus, text: str = "") -> None:
        """Count the outcome of a call that `refuses` let pass."""
        line = self._lines.setdefault(key, _Line())
        line.trial = False
        if status in SILENT:
            return
        if status not in FAILURES:
            del self._lines[key]
            return
        line.failures += 1
        line.last = text
        if line.failures >= self._failures:
            line.opened = self._clock.monotonic()

"""The breaker: after three failures in a row a tool of a source is left alone for a while.

Closed lets every call pass. Open refuses. After the pause one call is let through on trial (half-open): its
success closes the breaker, its failure opens it again.
"""

from dataclasses import dataclass

from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import Clock

COUNTED_FAILURES = frozenset(
    {ResultStatus.TRANSIENT, ResultStatus.TIMEOUT, ResultStatus.UNAVAILABLE, ResultStatus.INTERNAL}
)
# These say nothing about the backend: it was never asked, the caller gave up, or nobody saw the outcome of a change.
UNCOUNTED_STATUSES = frozenset(
    {
        ResultStatus.INVALID_ARGUMENTS,
        ResultStatus.NOT_PERMITTED,
        ResultStatus.CANCELED,
        ResultStatus.UNKNOWN,
    }
)

Key = tuple[str, str]


@dataclass(slots=True)
class _BreakerState:
    failures: int = 0
    last: str = ""
    opened: float | None = None
    trial: bool = False


class CircuitBreaker:
    """One breaker per (tool, source). `pause` in seconds; `failures` in a row open it."""

    def __init__(self, clock: Clock, *, failures: int = 3, pause: float = 60.0) -> None:
        self._clock = clock
        self._failures = failures
        self._pause = pause
        self._lines: dict[Key, _BreakerState] = {}

    def open_tools(self) -> dict[str, str]:
        """The tools that may not be called now, with the reason of each."""
        return {
            key[0]: self._reason(line) for key, line in self._lines.items() if self._seconds_left(line) > 0
        }

    def restore(self, key: Key, failures: int, text: str, ago: float) -> None:
        """Take up what an earlier process saw: this many failures in a row, the last `ago` seconds ago."""
        if failures and key not in self._lines:
            opened = self._clock.monotonic() - ago if failures >= self._failures else None
            self._lines[key] = _BreakerState(failures, text, opened)

    def refuses(self, key: Key) -> str | None:
        """Why a call may not be made now, or None. None on a half-open breaker makes this call its trial."""
        line = self._lines.get(key)
        if line is None or line.opened is None:
            return None
        if self._seconds_left(line) <= 0 and not line.trial:
            line.trial = True
            return None
        return self._reason(line)

    def record(self, key: Key, status: ResultStatus, text: str = "") -> None:
        """Count the outcome of a call that `refuses` let pass."""
        line = self._lines.setdefault(key, _BreakerState())
        line.trial = False
        if status in UNCOUNTED_STATUSES:
            return
        if status not in COUNTED_FAILURES:
            del self._lines[key]
            return
        line.failures += 1
        line.last = text
        if line.failures >= self._failures:
            line.opened = self._clock.monotonic()

    def _seconds_left(self, line: _BreakerState) -> float:
        """Until a trial is let through; 0 where nothing is refused."""
        if line.opened is None:
            return 0.0
        return max(0.0, self._pause - (self._clock.monotonic() - line.opened))

    def _reason(self, line: _BreakerState) -> str:
        return (
            f"{line.failures} calls in a row failed, the last with: {line.last}; "
            f"it is tried again in {self._seconds_left(line):.0f} s"
        )

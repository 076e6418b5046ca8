"""How long to wait before the next attempt: one formula for calls, model requests, messages, jobs and checks."""

from typing import NamedTuple


class Backoff(NamedTuple):
    """Seconds from the first pause to the longest; each pause is twice the one before."""

    first: float
    longest: float

    def seconds(self, tries: int, jitter: float = 0.5) -> float:
        """The pause after `tries` tries. `jitter` from 0 to 1 spreads it from half of the plain value to one and a half."""
        # Beyond 2**62 every pause is the longest, and a power of any size would overflow.
        return min(self.first * 2.0 ** min(max(tries - 1, 0), 62) * (0.5 + jitter), self.longest)

    def seconds_as_asked(self, tries: int, asked: float, jitter: float = 0.5) -> float | None:
        """The pause after `tries` tries, at least what the other side asked for; None where it asked for too much."""
        return None if asked > self.longest else max(asked, self.seconds(tries, jitter))

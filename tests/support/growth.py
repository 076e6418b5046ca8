"""For claims about growth: how the cost of some work compares with that of more of it."""

from collections.abc import Callable
from time import process_time

FLOOR = 0.002
"""Seconds of processor time below which a measurement is noise."""


def cpu_seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The least processor time of several repeats, never below the noise."""
    best = min(_measure(work) for _ in range(repeats))
    return max(best, FLOOR)


def assert_grows_at_most(
    ratio: float, small: Callable[[], object], large: Callable[[], object], repeats: int = 3
) -> None:
    """`large` takes at most `ratio` times the processor time of `small`; both are measured here and now."""
    base, more = cpu_seconds(small, repeats), cpu_seconds(large, repeats)
    assert more <= ratio * base, (
        f"{more:.4f} s against {base:.4f} s: {more / base:.0f} times, at most {ratio} allowed"
    )


def _measure(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start

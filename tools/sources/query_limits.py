"""Cost limits of a free query to a time-series store: points, ranges and series, all of them before it is sent."""

from opsleuth.analysis.aligned_series import EVEN_STEPS
from opsleuth.analysis.records import TimeRange
from opsleuth.tools.sources.query_text import QueryShape
from opsleuth.tools.spec import InvalidArgumentsError

MOST_POINTS = 300
DEFAULT_POINTS = 60
LONGEST_SPAN = 7 * 86_400.0
LONGEST_RANGE = 86_400.0
MOST_SUBQUERY_STEPS = 300
MOST_SERIES = 5_000
MOST_WORK = 5_000_000
"""Samples that an answer may take: series x points x samples in the longest range."""
_SAMPLE_SECONDS = 15.0


def choose_step(span: TimeRange, wanted: float | None) -> float:
    """The step in seconds that is sent. Raises InvalidArgumentsError where range by step gives too many points."""
    seconds = span.end - span.start
    if seconds > LONGEST_SPAN:
        raise InvalidArgumentsError(
            f"{seconds / 86_400:.1f} days are too long a time for one query, at most {LONGEST_SPAN / 86_400:g}: give since and until"
        )
    if wanted is None:
        return next((step for step in EVEN_STEPS if seconds / step <= DEFAULT_POINTS), EVEN_STEPS[-1])
    points = seconds / wanted
    if points > MOST_POINTS:
        raise InvalidArgumentsError(
            f"{points:,.0f} points are too many, at most {MOST_POINTS}: give a step of {seconds / MOST_POINTS:.0f} s or more"
        )
    return wanted


def check_ranges(shape: QueryShape, step: float) -> None:
    """Raises InvalidArgumentsError for a range that is too long, or a subquery of too many steps."""
    for part in shape.ranges:
        if part.seconds > LONGEST_RANGE:
            raise InvalidArgumentsError(
                f"a range of {part.seconds / 3_600:,.0f} h is too long, at most {LONGEST_RANGE / 3_600:g} h: shorten it"
            )
        if part.step is not None:
            steps = part.seconds / (part.step or min(step, 60.0))
            if steps > MOST_SUBQUERY_STEPS:
                raise InvalidArgumentsError(
                    f"a subquery of {steps:,.0f} steps is too large, at most {MOST_SUBQUERY_STEPS}: give it a longer step"
                )


def check_work(series: int, span: TimeRange, step: float, shape: QueryShape) -> None:
    """Raises InvalidArgumentsError where series by points by range is more than a look may cost."""
    points = (span.end - span.start) / step + 1
    plain = [part.seconds for part in shape.ranges if part.step is None]
    within = max(1.0, max(plain, default=0.0) / _SAMPLE_SECONDS)
    for part in shape.ranges:
        if part.step is not None:  # subqueries stand inside of each other
            within *= max(1.0, part.seconds / (part.step or min(step, 60.0)))
    work = series * points * within
    if series > MOST_SERIES or work > MOST_WORK:
        raise InvalidArgumentsError(
            f"the query reads {series:,} series, {points:,.0f} points each, over ranges of {shape.longest_range:g} s: "
            f"at most {MOST_SERIES:,} series and {MOST_WORK:,} samples in all. Select fewer, or give a longer step"
        )

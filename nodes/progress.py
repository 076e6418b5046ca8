"""Turns that bring nothing new: the planner is told once, then the run ends."""

from opsleuth.state.investigation import Notice

WARN_AFTER, STALLED = 2, 4
"""Turns in a row without anything new before the planner is told, and before the run ends."""


def stalled_notice(stalled: int) -> tuple[Notice, ...]:
    """What the planner is told after so many turns without anything new."""
    if stalled != WARN_AFTER:
        return ()
    text = f"{stalled} turns brought nothing new. Conclude with what is known, or ask for something else."
    return (Notice(code="stagnation", text=text),)

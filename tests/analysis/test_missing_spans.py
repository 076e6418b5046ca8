"""Child spans that no longer come."""

from opsleuth.analysis.missing_spans import find_lost_spans
from opsleuth.analysis.missing_steps import WindowCounts
from opsleuth.analysis.time_windows import BASELINE, classify_windows

NOW = "+0 min"
WINDOWS = classify_windows([BASELINE, NOW], 0.0)
UNDER_PAGE = {("a", "charge"): frozenset({"page"}), ("a", "page"): frozenset({None})}


def lost(
    counts: dict[str, tuple[int, int]], parents: dict[tuple[str, str], frozenset[str | None]]
) -> dict[str, str]:
    operations = [WindowCounts(name, {BASELINE: usual, NOW: now}) for name, (usual, now) in counts.items()]
    return {one.step.name: one.anchor.name for one in find_lost_spans("a", operations, WINDOWS, parents)}


def test_a_child_that_vanishes_under_a_parent_that_goes_on_is_lost() -> None:
    assert lost({"page": (40, 30), "charge": (40, 0)}, UNDER_PAGE) == {"charge": "page"}


def test_a_child_that_falls_with_its_parent_is_not() -> None:
    assert lost({"page": (40, 4), "charge": (40, 4)}, UNDER_PAGE) == {}


def test_what_is_called_from_outside_depends_on_nobody_here() -> None:
    assert lost({"page": (40, 0), "charge": (40, 40)}, UNDER_PAGE) == {}


def test_where_no_parent_was_seen_the_equally_frequent_is_the_anchor() -> None:
    assert lost({"page": (40, 30), "charge": (40, 0), "other": (7, 0)}, {}) == {"charge": "page"}


def test_a_chance_equal_is_a_weaker_anchor_than_a_whole_flow() -> None:
    def size(counts: dict[str, tuple[int, int]]) -> float:
        operations = [
            WindowCounts(name, {BASELINE: usual, NOW: now}) for name, (usual, now) in counts.items()
        ]
        return max(
            one.loss.size
            for one in find_lost_spans("a", operations, WINDOWS, {})
            if one.step.name == "charge"
        )

    chance = {"page": (18, 18), "charge": (18, 13)}
    assert size({**chance, "cart": (18, 18), "quote": (18, 18)}) > 2 * size(chance)


def test_an_error_handler_that_is_no_longer_needed_is_not_missed() -> None:
    assert lost({"page": (40, 40), "ErrorController.show": (40, 0)}, {}) == {}


def test_what_was_hardly_ever_seen_is_not_missed() -> None:
    assert lost({"page": (2, 30), "charge": (2, 0)}, {}) == {}

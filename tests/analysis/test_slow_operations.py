"""Operations that take longer by themselves."""

from collections.abc import Sequence

from opsleuth.analysis.records import SpanStat
from opsleuth.analysis.slow_operations import find_slow_operations
from opsleuth.analysis.span_statistics import SpanStatistics
from opsleuth.analysis.time_windows import BASELINE, classify_windows

BEFORE, NOW = "-2 min", "+0 min"


def stat(
    window: str, own: float, *, mean: float | None = None, service: str = "a", calls: int = 40
) -> SpanStat:
    return SpanStat(window, service, "work", calls, 40, own, own, own if mean is None else mean, 0.0)


def sizes(stats: Sequence[SpanStat], ways: dict[tuple[str, str], str] | None = None) -> dict[str, float]:
    seen = SpanStatistics(stats, (), classify_windows((row.window for row in stats), 0.0), ways=ways or {})
    return {finding.service: finding.size for finding in find_slow_operations(seen)}


def test_an_operation_that_takes_longer_is_found() -> None:
    assert sizes([stat(BASELINE, 5), stat(NOW, 200)]).keys() == {"a"}


def test_a_constant_one_and_a_faster_one_are_not() -> None:
    assert sizes([stat(BASELINE, 50), stat(NOW, 50)]) == {}
    assert sizes([stat(BASELINE, 50), stat(NOW, 5)]) == {}


def test_a_share_of_itself_is_drift() -> None:
    assert sizes([stat(BASELINE, 500), stat(NOW, 700)]) == {}


def test_what_nobody_notices_in_a_whole_request_is_nothing() -> None:
    others = [stat(BASELINE, 500, service="b"), stat(NOW, 500, service="b")]
    assert sizes([stat(BASELINE, 0.05), stat(NOW, 5)]).keys() == {"a"}
    assert sizes([stat(BASELINE, 0.05), stat(NOW, 5), *others]) == {}


def test_what_strays_by_nature_must_stray_further() -> None:
    assert sizes([stat(BASELINE, 10, mean=80), stat(NOW, 70)]) == {}


def test_what_was_so_before_the_onset_counts_less() -> None:
    fresh = sizes([stat(BASELINE, 5), stat(BEFORE, 5), stat(NOW, 300)])["a"]
    drifted = sizes([stat(BASELINE, 5), stat(BEFORE, 300), stat(NOW, 300)])["a"]
    assert drifted < fresh / 2


def test_the_way_to_another_service_is_not_own_time() -> None:
    assert sizes([stat(BASELINE, 5), stat(NOW, 200)], {("a", "work"): "b"}) == {}


def test_an_operation_seen_on_one_side_only_is_not_compared() -> None:
    assert sizes([stat(BASELINE, 5)]) == {}
    assert sizes([stat(NOW, 500)]) == {}
    assert sizes([stat(BASELINE, 5, calls=0), stat(NOW, 500)]) == {}

"""Which end of slow calls is slow."""

from collections.abc import Mapping, Sequence

import pytest

from opsleuth.analysis.network_gaps import compare_network_gaps, find_network_time_loss
from opsleuth.analysis.records import EdgeLatency, SpanStat
from opsleuth.analysis.span_statistics import SpanStatistics
from opsleuth.analysis.time_windows import BASELINE, classify_windows

NOW = "+0 min"
WINDOWS = classify_windows([BASELINE, NOW], 0.0)


def traffic(
    now: Mapping[tuple[str, str], float],
    *,
    calls: int = 50,
    own_ms: float = 100.0,
    stats: Sequence[SpanStat] = (),
) -> SpanStatistics:
    """Pairs with their gap now, in ms; usually each has 4."""
    edges = [EdgeLatency(BASELINE, *pair, calls, 4.0) for pair in now]
    edges += [EdgeLatency(NOW, *pair, calls, gap) for pair, gap in now.items()]
    work = [SpanStat(window, "a", "page", 50, 50, 100, own_ms, own_ms, 0) for window in (BASELINE, NOW)]
    return SpanStatistics([*work, *stats], edges, WINDOWS, ways={("a", "ask"): "b"})


def blamed(seen: SpanStatistics) -> dict[str, str]:
    return {finding.service: finding.kind for finding in find_network_time_loss(seen)}


def test_a_service_that_all_reach_slowly_has_a_slow_network() -> None:
    seen = traffic({("a", "c"): 300, ("b", "c"): 310, ("a", "b"): 4, ("c", "d"): 4})
    assert blamed(seen) == {"c": "network_delay"}


def test_a_service_that_one_of_several_reaches_slowly_is_not_to_blame() -> None:
    assert "c" not in blamed(traffic({("a", "c"): 300, ("b", "c"): 4, ("d", "c"): 4}))


def test_a_caller_that_reaches_several_slowly_is_the_slow_one() -> None:
    seen = traffic({("a", "b"): 90, ("a", "c"): 95, ("a", "d"): 100, ("e", "b"): 4})
    assert blamed(seen) == {"a": "latency"}


def test_one_very_slow_callee_is_not_taken_for_a_slow_caller() -> None:
    assert blamed(traffic({("a", "b"): 2000, ("a", "c"): 25})) == {"b": "network_delay", "c": "network_delay"}
    found = find_network_time_loss(traffic({("a", "b"): 2000, ("a", "c"): 25}))
    sizes = {finding.service: finding.size for finding in found}
    assert sizes["b"] > 50 * sizes["c"]


def test_a_service_slow_on_both_sides_is_no_case_for_the_network_alone() -> None:
    assert blamed(traffic({("a", "b"): 300, ("b", "c"): 300, ("d", "c"): 4, ("e", "c"): 4})) == {
        "b": "latency"
    }


def test_of_a_slow_chain_the_end_that_is_slow_on_both_sides_is_meant() -> None:
    assert blamed(traffic({("a", "b"): 300, ("b", "c"): 300})) == {"b": "latency"}
    assert "c" in blamed(traffic({("a", "b"): 14, ("b", "c"): 300}))


def test_what_nobody_notices_in_a_whole_request_speaks_low() -> None:
    short, long = (
        find_network_time_loss(traffic({("a", "b"): 60}, own_ms=own))[0].size for own in (100, 5000)
    )
    assert long < short / 3


def test_what_drifts_anyway_is_nothing() -> None:
    assert blamed(traffic({("a", "b"): 6})) == {}
    assert blamed(traffic({("a", "b"): 2})) == {}


def test_a_pair_that_was_steady_for_long_may_drift_less() -> None:
    minutes = [f"{minute:+d} min" for minute in range(-30, 10)]
    windows = classify_windows([BASELINE, *minutes], 0.0)

    def seen(gaps: Mapping[int, float]) -> SpanStatistics:
        rows = [EdgeLatency(BASELINE, "a", "b", 50, 20.0)]
        rows += [EdgeLatency(f"{m:+d} min", "a", "b", 50, gaps.get(m, 29.0)) for m in range(-30, 10)]
        return SpanStatistics((), rows, windows)

    steady = {m: 20.0 + m % 2 for m in range(-30, 0)}
    restless = {m: 20.0 + 12 * (m % 3) for m in range(-30, 0)}
    assert blamed(seen(steady)) == {"b": "network_delay"}
    assert blamed(seen(restless)) == {}


def test_a_single_slow_call_speaks_half_as_loud() -> None:
    one, many = (
        find_network_time_loss(traffic({("a", "b"): 300}, calls=calls))[0].size for calls in (1, 10_000)
    )
    assert one == pytest.approx(many / 2, rel=0.01)


def test_a_way_that_strays_by_nature_must_stray_further() -> None:
    restless = SpanStat(BASELINE, "a", "ask", 50, 50, 60.0, 4.0, 90.0, 1.0)
    assert blamed(traffic({("a", "b"): 80}, stats=[restless])) == {}
    assert blamed(traffic({("a", "b"): 400}, stats=[restless])) == {"b": "network_delay"}


def test_a_pair_without_a_usual_level_is_not_compared() -> None:
    assert compare_network_gaps(SpanStatistics((), [EdgeLatency(NOW, "a", "b", 5, 900.0)], WINDOWS)) == []


def test_missing_medians_and_empty_pairs_are_left_out() -> None:
    edges = [EdgeLatency(w, "a", "b", n, g) for w in (BASELINE, NOW) for n, g in ((0, 9.0), (5, None))]
    assert compare_network_gaps(SpanStatistics((), edges, WINDOWS)) == []


def test_a_server_that_outlives_its_answer_leaves_no_time_to_win_back() -> None:
    edges = [EdgeLatency(BASELINE, "a", "b", 9, -50.0), EdgeLatency(NOW, "a", "b", 9, 2.0)]
    assert find_network_time_loss(SpanStatistics((), edges, WINDOWS)) == []

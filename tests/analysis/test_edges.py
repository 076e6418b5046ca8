"""Which end of slow calls is slow."""

from collections.abc import Mapping, Sequence

import pytest

from opsleuth.analysis.edges import compare, find
from opsleuth.analysis.records import EdgeLatency, SpanStat
from opsleuth.analysis.spans import Traffic
from opsleuth.analysis.windows import BASELINE, INCIDENT

ONSET = 0.0


def traffic(
    now: Mapping[tuple[str, str], float], *, calls: int = 50, stats: Sequence[SpanStat] = ()
) -> Traffic:
    """Pairs with their gap now, in ms; usually each has 4."""
    edges = [EdgeLatency(BASELINE, *pair, calls, 4.0) for pair in now]
    edges += [EdgeLatency(INCIDENT, *pair, calls, gap) for pair, gap in now.items()]
    return Traffic(stats, edges, {}, {("a", "ask"): "b"}, request_ms=100.0, members=())


def blamed(seen: Traffic) -> dict[str, str]:
    return {finding.service: finding.kind for finding in find(seen, ONSET)}


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
    found = find(traffic({("a", "b"): 2000, ("a", "c"): 25}), ONSET)
    sizes = {finding.service: finding.size for finding in found}
    assert sizes["b"] > 50 * sizes["c"]


def test_a_service_slow_on_both_sides_is_no_case_for_the_network_alone() -> None:
    assert blamed(traffic({("a", "b"): 300, ("b", "c"): 300, ("d", "c"): 4, ("e", "c"): 4})) == {
        "b": "latency"
    }


def test_less_than_anybody_would_notice_is_nothing() -> None:
    assert blamed(traffic({("a", "b"): 14})) == {}


def test_a_single_slow_call_speaks_half_as_loud() -> None:
    one, many = (find(traffic({("a", "b"): 300}, calls=calls), ONSET)[0].size for calls in (1, 10_000))
    assert one == pytest.approx(many / 2, rel=0.01)


def test_a_way_that_strays_by_nature_must_stray_further() -> None:
    restless = SpanStat(BASELINE, "a", "ask", 50, 50, 60.0, 4.0, 90.0, 1.0)
    assert blamed(traffic({("a", "b"): 80}, stats=[restless])) == {}
    assert blamed(traffic({("a", "b"): 400}, stats=[restless])) == {"b": "network_delay"}


def test_a_pair_without_a_usual_level_is_not_compared() -> None:
    seen = Traffic((), [EdgeLatency(INCIDENT, "a", "b", 5, 900.0)], {}, {}, 100.0, ())
    assert compare(seen, ONSET) == []


def test_missing_medians_and_empty_pairs_are_left_out() -> None:
    edges = [EdgeLatency(w, "a", "b", n, g) for w in (BASELINE, INCIDENT) for n, g in ((0, 9.0), (5, None))]
    assert compare(Traffic((), edges, {}, {}, 100.0, ()), ONSET) == []


def test_a_server_that_outlives_its_answer_leaves_no_time_to_win_back() -> None:
    edges = [EdgeLatency(BASELINE, "a", "b", 9, -50.0), EdgeLatency(INCIDENT, "a", "b", 9, 2.0)]
    assert find(Traffic((), edges, {}, {}, 100.0, ()), ONSET) == []

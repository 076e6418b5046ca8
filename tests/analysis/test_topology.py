"""Reach and paths in the graph of who calls whom."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.records import ServiceDependency
from opsleuth.analysis.topology import (
    callees_by_caller,
    find_call_path,
    find_nearest_known_callees,
    measure_call_distances,
)

SHOP = [
    ServiceDependency("web", "cart"),
    ServiceDependency("web", "search"),
    ServiceDependency("cart", "db"),
    ServiceDependency("search", "index"),
    ServiceDependency("index", "db"),
    ServiceDependency("db", "web"),  # a cycle must not hang anything
    ServiceDependency("cart", "cart"),
]
edges = st.lists(
    st.builds(ServiceDependency, st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=20
)


def test_a_service_is_not_its_own_callee() -> None:
    assert callees_by_caller(SHOP)["cart"] == {"db"}
    assert callees_by_caller(None) == {}


def test_distances_count_calls() -> None:
    assert measure_call_distances(callees_by_caller(SHOP), "web") == {
        "web": 0,
        "cart": 1,
        "search": 1,
        "db": 2,
        "index": 2,
    }
    assert measure_call_distances({}, "alone") == {"alone": 0}


def test_a_path_is_a_shortest_chain() -> None:
    callees = callees_by_caller(SHOP)
    assert find_call_path(callees, "web", "db") == ["web", "cart", "db"]
    assert find_call_path(callees, "web", "web") == ["web"]
    assert find_call_path(callees, "web", "nowhere") == []


def test_the_nearest_known_services_are_found_through_unknown_ones() -> None:
    callees = callees_by_caller(SHOP)
    assert find_nearest_known_callees(callees, "web", {"cart", "search", "db"}) == ["cart", "search"]
    assert find_nearest_known_callees(callees, "web", {"db"}) == ["db"]
    assert find_nearest_known_callees(callees, "web", set()) == []


@given(edges, st.sampled_from("abcdef"), st.sampled_from("abcdef"))
def test_every_path_follows_calls_and_is_as_long_as_the_distance(
    topology: list[ServiceDependency], start: str, goal: str
) -> None:
    callees = callees_by_caller(topology)
    chain = find_call_path(callees, start, goal)
    reach = measure_call_distances(callees, start)
    assert bool(chain) == (goal in reach)
    assert len(chain) == reach.get(goal, -1) + 1
    assert all(callee in callees[caller] for caller, callee in pairwise(chain))

"""Reach and paths in the graph of who calls whom."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.records import Dependency
from opsleuth.analysis.topology import callees_of, distances, nearest, path

SHOP = [
    Dependency("web", "cart"),
    Dependency("web", "search"),
    Dependency("cart", "db"),
    Dependency("search", "index"),
    Dependency("index", "db"),
    Dependency("db", "web"),  # a cycle must not hang anything
    Dependency("cart", "cart"),
]
edges = st.lists(st.builds(Dependency, st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=20)


def test_a_service_is_not_its_own_callee() -> None:
    assert callees_of(SHOP)["cart"] == {"db"}
    assert callees_of(None) == {}


def test_distances_count_calls() -> None:
    assert distances(callees_of(SHOP), "web") == {"web": 0, "cart": 1, "search": 1, "db": 2, "index": 2}
    assert distances({}, "alone") == {"alone": 0}


def test_a_path_is_a_shortest_chain() -> None:
    callees = callees_of(SHOP)
    assert path(callees, "web", "db") == ["web", "cart", "db"]
    assert path(callees, "web", "web") == ["web"]
    assert path(callees, "web", "nowhere") == []


def test_the_nearest_known_services_are_found_through_unknown_ones() -> None:
    callees = callees_of(SHOP)
    assert nearest(callees, "web", {"cart", "search", "db"}) == ["cart", "search"]
    assert nearest(callees, "web", {"db"}) == ["db"]
    assert nearest(callees, "web", set()) == []


@given(edges, st.sampled_from("abcdef"), st.sampled_from("abcdef"))
def test_every_path_follows_calls_and_is_as_long_as_the_distance(
    topology: list[Dependency], start: str, goal: str
) -> None:
    callees = callees_of(topology)
    chain = path(callees, start, goal)
    reach = distances(callees, start)
    assert bool(chain) == (goal in reach)
    assert len(chain) == reach.get(goal, -1) + 1
    assert all(callee in callees[caller] for caller, callee in pairwise(chain))

"""The relation between kinds must be usable as an order: nothing explains itself, no two each other."""

from graphlib import TopologicalSorter

from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.fault_kinds import (
    SYMPTOMS,
    drop_explained_kinds,
    explains_symptom,
    symptoms_of_kind,
)
from opsleuth.state.conclusion import KINDS


def test_every_word_in_the_relation_is_a_kind() -> None:
    assert {symptom for kind in KINDS for symptom in symptoms_of_kind(kind)} | SYMPTOMS <= set(KINDS)


def test_no_kind_explains_itself_by_way_of_others() -> None:
    order = TopologicalSorter({a: {b for b in KINDS if explains_symptom(a, b)} for a in KINDS}).static_order()
    assert set(order) == set(KINDS)


def test_no_kind_explains_itself() -> None:
    assert not any(explains_symptom(kind, kind) for kind in KINDS)


def test_a_full_volume_stands_above_what_it_causes() -> None:
    assert drop_explained_kinds(["locks", "storage_full", "crash", "latency"]) == ["storage_full"]


def test_two_independent_kinds_both_remain() -> None:
    assert drop_explained_kinds(["slow_query", "storage_full", "cpu"]) == ["slow_query", "storage_full"]


@given(st.lists(st.sampled_from(KINDS), min_size=1, unique=True))
def test_something_always_remains(kinds: list[str]) -> None:
    left = drop_explained_kinds(kinds)
    assert left
    assert set(left) <= set(kinds)

"""The relation between kinds must be usable as an order: nothing explains itself, no two each other."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.kinds import KINDS, SYMPTOMS, explains, shows_as, unexplained


def test_every_word_in_the_relation_is_a_kind() -> None:
    assert {symptom for kind in KINDS for symptom in shows_as(kind)} | SYMPTOMS <= set(KINDS)


def test_no_two_kinds_explain_each_other() -> None:
    both = [(a, b) for a, b in permutations(KINDS, 2) if explains(a, b) and explains(b, a)]
    assert both == []


def test_no_kind_explains_itself() -> None:
    assert not any(explains(kind, kind) for kind in KINDS)


def test_a_full_volume_stands_above_what_it_causes() -> None:
    assert unexplained(["locks", "storage_full", "crash", "latency"]) == ["storage_full"]


def test_two_independent_kinds_both_remain() -> None:
    assert unexplained(["slow_query", "storage_full", "cpu"]) == ["slow_query", "storage_full"]


@given(st.lists(st.sampled_from(KINDS), min_size=1, unique=True))
def test_something_always_remains(kinds: list[str]) -> None:
    left = unexplained(kinds)
    assert left
    assert set(left) <= set(kinds)

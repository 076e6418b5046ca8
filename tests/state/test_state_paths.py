"""Paths into JSON: what is put can be got, and differences name every place that differs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.state.state_paths import (
    MISSING,
    NoSuchPathError,
    find_differences,
    format_value_line,
    get_at_path,
    parse_typed_value,
    set_at_path,
)

STATE: dict[str, Any] = {
    "plan": [{"id": "P1", "text": "look"}, {"id": "P2", "text": "think"}],
    "budget": {"limits": {"turns": 30}},
    "notices": ["a", "b"],
    "draft": None,
}
NAMES = st.sampled_from(["a", "b", "id"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", STATE),
        ("plan.P2.text", "think"),
        ("plan.1.text", "think"),
        ("budget.limits.turns", 30),
        ("notices.1", "b"),
    ],
)
def test_a_path_names_by_key_place_or_id(path: str, value: Any) -> None:
    assert get_at_path(STATE, path) == value


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("plans", "the state has no 'plans': it has plan, budget"),
        ("plan.P3", "plan has no 'P3': it has P1, P2"),
        ("notices.2", "it has 0, 1"),
        ("draft.answer", "it is null and holds nothing"),
        ("budget.limits.turns.x", "it is 30 and holds nothing"),
        ("notices.99999999999", "it has 0, 1"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_there_is(path: str, said: str) -> None:
    with pytest.raises(NoSuchPathError, match=said):
        get_at_path(STATE, path)


def test_put_leaves_the_original_alone() -> None:
    after = set_at_path(STATE, "plan.P1.text", "listen")
    assert get_at_path(after, "plan.P1.text") == "listen"
    assert get_at_path(STATE, "plan.P1.text") == "look"
    assert get_at_path(set_at_path(STATE, "notices.+", "c"), "notices") == ["a", "b", "c"]


@pytest.mark.parametrize("path", ["", "unknown", "draft.answer", "plan.P9.text", "notices.7"])
def test_put_makes_no_new_fields(path: str) -> None:
    with pytest.raises(NoSuchPathError):
        set_at_path(STATE, path, 1)


def test_differences_name_elements_by_id() -> None:
    after = set_at_path(set_at_path(STATE, "plan.P2.text", "act"), "budget.limits.turns", 7)
    assert find_differences(STATE, after) == [
        ("plan.P2.text", "think", "act"),
        ("budget.limits.turns", 30, 7),
    ]
    added = set_at_path(STATE, "plan.+", {"id": "P3", "text": "x"})
    (change,) = find_differences(STATE, added)
    assert (change.path, change.before) == ("plan.P3", MISSING)


@given(JSON, JSON)
def test_differences_are_empty_exactly_for_equal_values(before: Any, after: Any) -> None:
    found = find_differences(before, after)
    assert bool(found) is (before != after)
    assert all(change.before != change.after for change in found)


@given(st.dictionaries(NAMES, JSON, min_size=1), JSON)
def test_what_is_put_can_be_got(document: dict[str, Any], value: Any) -> None:
    path = next(iter(document))
    assert get_at_path(set_at_path(document, path, value), path) == value


@pytest.mark.parametrize(
    ("typed", "value"),
    [("3", 3), ('"3"', "3"), ("refuted", "refuted"), ("NaN", "NaN"), ("[1", "[1"), ("null", None)],
)
def test_a_value_is_json_or_a_bare_word(typed: str, value: Any) -> None:
    assert parse_typed_value(typed) == value


def test_shown_is_one_bounded_line() -> None:
    assert format_value_line({"a": "x\ny"}) == '{"a": "x\\ny"}'
    assert len(format_value_line("x" * 999, 50)) == 50
    assert format_value_line(MISSING) == "nothing"

"""Templates: what is masked, what is told apart, and how much memory it may take."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.log_templates import (
    ANY,
    MAX_WORDS,
    TemplateTree,
    find_code_location,
    mask_log_line,
    mine_log_templates,
)

words = st.text(alphabet=string.ascii_lowercase, min_size=1, max_size=6)
lines = st.lists(words, min_size=1, max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("took 12.5 ms", "took <n> ms"),
        ("took 3ms, -7 left", "took <n>ms, <n> left"),
        ("at 2024-01-02T03:04:05.678Z done", "at <time> done"),
        ("03:04:05,678 done", "<time> done"),
        ("peer 10.0.0.7:8080 gone", "peer <addr> gone"),
        ("net 10.0.0.0/8", "net <addr>"),
        ("peer fe80::1:2 gone", "peer <addr> gone"),
        ("peer 2001:db8:0:0:0:0:0:1 gone", "peer <addr> gone"),
        ("mail to jo.doe@example.org failed", "mail to <addr> failed"),
        ("order 8a533bf9-bd12-4608-a8eb-606890982448 paid", "order <id> paid"),
        ("span b7662db874fe938b", "span <id>"),
        ("pointer 0xDEADBEEF", "pointer <id>"),
        ("pod checkout-7d9f8b6c54-x2x8p died", "pod <id> died"),
        ("no column \"price\" in 'items'", "no column <str> in <str>"),
        ("it isn't ours, it's theirs", "it isn't ours, it's theirs"),
        ("retries2 of plan9", "retries<n> of plan<n>"),
    ],
)
def test_what_varies_is_masked_by_its_form(line: str, masked: str) -> None:
    assert mask_log_line(line) == masked


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("12:00:01 INFO c.s.CartService#34 user 7", "c.s.CartService#34"),
        ("ERROR app/views.py:120: boom 3", "app/views.py:120"),
        ("[Handler.java:77] boom", None),
        ("main.go:9] started", "main.go:9"),
        ("connect to redis:6379", None),
        ("ticket #12 closed", None),
        ("port app:80", None),
    ],
)
def test_a_place_in_the_code_is_recognised(line: str, place: str | None) -> None:
    assert find_code_location(line) == place


def test_lines_of_two_statements_stay_apart_though_only_their_place_differs() -> None:
    found = mine_log_templates(["a.B#34 done 1", "a.B#34 done 2", "a.B#37 done 3"])
    assert found["a.B#34 done 1"] == found["a.B#34 done 2"] != found["a.B#37 done 3"]


def test_words_that_differ_become_open() -> None:
    found = mine_log_templates(["login of user anna from home", "login of user berta from work"])
    assert set(found.values()) == {"login of user <*> from <*>"}


def test_lines_that_share_little_stay_apart() -> None:
    assert (
        len(
            set(
                mine_log_templates(
                    ["cache warmed up after restart", "cache miss for key of session"]
                ).values()
            )
        )
        == 2
    )


@given(st.lists(lines, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_lines_plays_no_part(messages: list[str], dice: object) -> None:
    order = list(messages)
    dice.shuffle(order)  # type: ignore[attr-defined]
    assert mine_log_templates(order) == mine_log_templates(messages)


@given(st.lists(lines, min_size=1, max_size=30))
def test_every_line_fits_its_template(messages: list[str]) -> None:
    for message, template in mine_log_templates(messages).items():
        expected, got = template.split(), mask_log_line(message).split()
        assert len(expected) == len(got)
        assert all(a in (b, ANY) for a, b in zip(expected, got, strict=True))


@given(st.lists(lines, max_size=40))
def test_every_line_is_counted_once(messages: list[str]) -> None:
    tree = TemplateTree()
    kept = {id(template): template for template in (tree.add(message) for message in messages)}
    assert sum(template.count for template in kept.values()) == len(messages)


@given(st.text(max_size=2000))
def test_any_text_is_masked_within_bounds(text: str) -> None:
    assert len(mask_log_line(text).split()) <= MAX_WORDS
    assert set(mine_log_templates([text])) == {text}


def test_memory_is_bounded_whatever_comes() -> None:
    tree = TemplateTree(max_templates=50)
    for i in range(5000):
        tree.add(" ".join(_letters(i + k) for k in range(1 + i % 4)))
    assert len(tree) <= 50 + 4


def test_a_node_with_too_many_children_sends_the_rest_one_way() -> None:
    tree = TemplateTree(max_children=3, agreement=0.5)
    found = [str(tree.add(f"{_letters(i)} went away again")) for i in range(20)]
    assert found[-1] == "<*> went away again"


def _letters(number: int) -> str:
    return "".join(string.ascii_lowercase[int(digit)] for digit in str(number))


def test_a_word_of_a_megabyte_costs_no_more_than_its_beginning() -> None:
    assert mine_log_templates(["x" * 1_000_000]) == {"x" * 1_000_000: "x" * 600}

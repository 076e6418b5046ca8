"""What is looked for in text from outside takes time in proportion to the text, whatever it holds."""

from collections.abc import Callable

import pytest
from growth import assert_grows_at_most

from opsleuth.analysis.change_diffs import read_change_diff
from opsleuth.analysis.log_levels import quote_statement
from opsleuth.analysis.message_meaning import read_message_meaning
from opsleuth.analysis.metric_roles import find_metric_role
from opsleuth.analysis.records import ServiceChange

WORK: dict[str, Callable[[int], object]] = {
    "words that begin a statement": lambda n: quote_statement("select " * n),
    "updates that set nothing": lambda n: quote_statement("update " * n),
    "digits beside a phrase": lambda n: read_message_meaning("insufficient " + "1" * n),
    "a name of repeated limits": lambda n: read_message_meaning("connection " + "max" * n),
    "blanks in a changed line": lambda n: read_change_diff(
        ServiceChange(0.0, "a", "commit", "b", diff="+" + " " * n + "x")
    ),
    "a metric's endless name": lambda n: find_metric_role("disk" * n, ""),
}


@pytest.mark.parametrize("what", WORK)
def test_ten_times_the_text_takes_about_ten_times_as_long(what: str) -> None:
    assert_grows_at_most(40, lambda: WORK[what](1_500), lambda: WORK[what](15_000))


@pytest.mark.parametrize(
    ("sample", "quoted"),
    [
        ("took 9 s: SELECT a\nFROM b", "SELECT a FROM b"),
        ("Update carts\nset a = 1", "Update carts set a = 1"),
        ("# head\nSET timestamp=1;\ndelete from b", "delete from b"),
        ("selectfrom is slow", "selectfrom is slow"),
        ("from here, select a", "from here, select a"),
    ],
)
def test_a_statement_is_found_by_its_two_words_in_order(sample: str, quoted: str) -> None:
    assert quote_statement(sample) == quoted

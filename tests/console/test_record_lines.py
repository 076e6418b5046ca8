"""Evidence as a person reads it: names and values, rows under their names, and nothing of it left out."""

from typing import Any

import pytest

from opsleuth.console.record_lines import render_record_lines

ROWS = [{"service": "web", "now": 41, "usual": None}, {"service": "cart", "now": 3, "usual": 0.5}]


def test_flat_rows_are_a_table_and_short_values_stand_together() -> None:
    record = {
        "matched": 2,
        "lasts": True,
        "rows": ROWS,
        "window": {"start": "14:00Z", "end": "15:00Z"},
        "empty": [],
    }
    assert render_record_lines(record, 80, "utf-8") == [
        "matched: 2",
        "lasts: yes",
        "rows:",
        "  service  now  usual",
        "  web      41   -",
        "  cart     3    0.5",
        "window: start 14:00Z, end 15:00Z",
        "empty: none",
    ]  # fmt: skip


def test_rows_that_do_not_fit_stand_one_under_the_other_and_whole() -> None:
    long = "a message that is as long as the screen is wide, and longer than any column could be"
    rows = [{"service": "web", "message": long}, {"service": "cart", "message": "two\nlines"}]
    assert render_record_lines({"rows": rows}, 80, "utf-8") == [
        "rows:",
        "  - service: web",
        f"    message: {long}",
        "  - service: cart",
        "    message:",
        "      two",
        "      lines",
    ]


@pytest.mark.parametrize(
    "value", [None, "", [], {}, [[]], [{}], [None], {"a": {}}, [[1, [2, {"b": None}]]], [{"a": [{"b": [1]}]}]], ids=str
)  # fmt: skip
def test_any_record_has_lines_without_the_words_of_a_program(value: Any) -> None:
    lines = render_record_lines({"name": value}, 40, "utf-8")
    assert lines[0].startswith("name:")
    assert not [line for line in lines if "None" in line or "null" in line]


def test_no_text_of_a_source_looks_like_a_line_of_its_own() -> None:
    lines = render_record_lines({"a": "x\x1b[2J\x85verdict: healthy", "b\nverdict": 1}, 80, "utf-8")
    assert not [line for line in lines if line.startswith("verdict")]
    assert "\x1b" not in "".join(lines)

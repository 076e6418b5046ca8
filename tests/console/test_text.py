"""Cells, cuts and spellings: no text of any script may break a line or a column."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from opsleuth.console import text as texts

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
WORDY = st.text(st.sampled_from("ab 订单é👩🏽‍🚒\u200d\ufe0f"), max_size=60)


@given(ANY | WORDY, st.integers(1, 40))
def test_a_cut_text_fits_and_is_a_beginning(text: str, cells: int) -> None:
    clean = texts.clean(text)
    short = texts.cut(clean, cells)
    assert texts.width(short) <= cells
    assert short == clean or clean.startswith(short[:-1])


@given(ANY | WORDY, st.integers(4, 40))
def test_wrapping_loses_nothing_and_keeps_the_width(text: str, cells: int) -> None:
    clean = texts.clean(text)
    lines = texts.wrap(clean, cells)
    assert "".join(lines).replace(" ", "") == clean.replace(" ", "")
    assert all(texts.width(line) <= cells for line in lines)


@given(ANY)
def test_a_clean_text_is_one_line_without_acting_characters(text: str) -> None:
    clean = texts.clean(text)
    assert not {unicodedata.category(c) for c in clean} & {"Cc", "Zl", "Zp"}
    assert texts.clean(clean) == clean


@given(ANY, st.sampled_from(["ascii", "cp1252", "utf-8", "shift_jis"]))
def test_what_is_spelt_can_be_encoded(text: str, encoding: str) -> None:
    texts.clean(text, encoding).encode(encoding)


def test_wide_characters_take_two_cells() -> None:
    assert texts.width("订单服务") == 8
    assert texts.width("👩\u200d🚒") == 2
    assert texts.pad("订单", 6) == "订单  "
    assert texts.pad("订单", 6, right=True) == "  订单"
    assert texts.cut("订单服务", 6) == "订单…"
    assert texts.cut("订单服务", 5) == "订单…"


def test_acting_characters_are_shown_not_lost() -> None:
    assert texts.clean("a\x1b[31mb\u202ec\nd") == r"a\x1b[31mb\u202ec d"
    assert texts.clean("[/db] [prod]") == "[/db] [prod]"


def test_glyphs_have_a_spelling_in_ascii() -> None:
    assert texts.spell("▁▄█ a…b – │", "ascii") == "_-# a~b - |"
    assert texts.spell("订单", "cp1252") == "??"


def test_a_sparkline_shows_the_peaks() -> None:
    assert texts.sparkline([0, 0, 0, 7]) == "▁▁▁█"
    assert texts.sparkline([5, 5]) == "▁▁"
    assert texts.sparkline([1]) == ""
    assert len(texts.sparkline([float(i % 7) for i in range(500)])) == 16

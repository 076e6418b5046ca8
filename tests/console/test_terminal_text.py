"""Cells, cuts and spellings: no text of any script may break a line or a column."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from opsleuth.console import terminal_text as texts

ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
WORDY = st.text(st.sampled_from("ab 订单é👩🏽‍🚒\u200d\ufe0f"), max_size=60)


@given(ANY | WORDY, st.integers(1, 40))
def test_a_cut_text_fits_and_is_a_beginning(text: str, cells: int) -> None:
    clean = texts.clean_line(text)
    short = texts.cut_to_width(clean, cells)
    assert texts.measure_width(short) <= cells
    if texts.measure_width(clean) <= cells:
        assert short == clean
    assert clean.startswith(short[:-1])


@given(ANY | WORDY, st.integers(4, 40))
def test_wrapping_loses_nothing_and_keeps_the_width(text: str, cells: int) -> None:
    clean = texts.clean_line(text)
    lines = texts.wrap_to_width(clean, cells)
    assert "".join(lines).replace(" ", "") == clean.replace(" ", "")
    assert all(texts.measure_width(line) <= cells for line in lines)


@given(ANY)
def test_a_clean_text_is_one_line_without_acting_characters(text: str) -> None:
    clean = texts.clean_line(text)
    assert not {unicodedata.category(c) for c in clean} & {"Cc", "Zl", "Zp"}
    assert texts.clean_line(clean) == clean


@given(ANY, st.sampled_from(["ascii", "cp1252", "utf-8", "shift_jis"]))
def test_what_is_spelt_can_be_encoded(text: str, encoding: str) -> None:
    spelt = texts.clean_line(text, encoding)
    assert spelt.encode(encoding).decode(encoding) == spelt


def test_wide_characters_take_two_cells() -> None:
    assert texts.measure_width("订单服务") == 8
    assert texts.measure_width("👩\u200d🚒") == 2
    assert texts.pad_to_width("订单", 6) == "订单  "
    assert texts.pad_to_width("订单", 6, right=True) == "  订单"
    assert texts.cut_to_width("订单服务", 6) == "订单…"
    assert texts.cut_to_width("订单服务", 5) == "订单…"


def test_acting_characters_are_shown_not_lost() -> None:
    assert texts.clean_line("a\x1b[31mb\u202ec\nd") == r"a\x1b[31mb\u202ec d"
    assert texts.clean_line("[/db] [prod]") == "[/db] [prod]"


def test_glyphs_have_a_spelling_in_ascii() -> None:
    assert texts.spell_in_encoding("▁▄█ a…b – │", "ascii") == "_-# a~b - |"
    assert texts.spell_in_encoding("订单", "cp1252") == "??"


def test_a_sparkline_shows_the_peaks() -> None:
    assert texts.draw_sparkline([0, 0, 0, 7]) == "▁▁▁█"
    assert texts.draw_sparkline([5, 5]) == "▁▁"
    assert texts.draw_sparkline([1]) == ""
    assert len(texts.draw_sparkline([float(i % 7) for i in range(500)])) == 16

"""Text that could act on a terminal is shown in full and does nothing."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.redaction.control_characters import escape_control_characters, harmless_json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b]0;owned\x07", "\\x1b[2J\\x1b]0;owned\\x07"),
        ("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "\\x1b]8;;http://evil\\x1b\\click\\x1b]8;;\\x1b\\"),
        ("\x1b]52;c;cm0gLXJm\x07", "\\x1b]52;c;cm0gLXJm\\x07"),
        ("\x9b31m\x85", "\\x9b31m\\x85"),
        ("safe\u202egpj.exe", "safe\\u202egpj.exe"),
        ("a\u2066b\u2069\u200f\u061c", "a\\u2066b\\u2069\\u200f\\u061c"),
        ("over\rwritten", "over\\x0dwritten"),
        ("one\r\ntwo\n\tthree", "one\ntwo\n\tthree"),
        ("hid\u200bden\ufeff\U000e0041", "hid\\u200bden\\ufeff\\U000e0041"),
        ("pass\u200dword\u200c", "pass\\u200dword\\u200c"),
        ("line\u2028break\u2029and\x85next", "line\\u2028break\\u2029and\\x85next"),
        ("fill\u3164er\u115f\uffa0\u034f", "fill\\u3164er\\u115f\\uffa0\\u034f"),
        ("hid\U000e0100den\u2065", "hid\\U000e0100den\\u2065"),
        ("\u0645\u06cc\u200c\u062e\u0648 ❤️ क्\u200dष", "\u0645\u06cc\u200c\u062e\u0648 ❤️ क्\u200dष"),
        ("lone \ud83d half", "lone \\ud83d half"),
        ("[/db] [prod] 排查 👩\u200d🚀 naïve", "[/db] [prod] 排查 👩\u200d🚀 naïve"),
    ],
)
def test_each_is_shown(text: str, shown: str) -> None:
    assert escape_control_characters(text) == shown
    assert harmless_json({text: [text, 1, None]}) == {shown: [shown, 1, None]}


@given(st.text(st.characters(exclude_categories=())))
def test_nothing_acts_and_nothing_is_lost(text: str) -> None:
    shown = escape_control_characters(text)
    assert escape_control_characters(shown) == shown
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in shown if c not in "\n\t")
    assert not any(
        unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        for c in shown
    )
    assert all(c in shown or f"{ord(c):x}" in shown or c == "\r" for c in text)

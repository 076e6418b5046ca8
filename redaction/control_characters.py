r"""Text from outside made harmless for a screen: what would act on a terminal or reorder a line becomes visible.

ESC becomes `\x1b`, a right-to-left override `\u202e`: nothing is lost, nothing acts. Newline and tab stay;
CR LF becomes a newline.
"""

import re
from collections.abc import Mapping

from opsleuth.state.json_types import JSON

# C0 but tab and newline, DEL and C1; soft hyphen and the grapheme joiner; fillers that show as nothing; bidi marks, embeddings, overrides
# and isolates; zero-width space, no-break space and invisible operators; line and paragraph separators; shorthand and music controls;
# annotations; tag characters and further variation selectors, which spell hidden text; lone surrogates.
_ALWAYS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Joiners and the sixteen variation selectors stay where emoji and several scripts need them; beside a plain letter they only hide.
_BESIDE_PLAIN = "\u200c\u200d\ufe00-\ufe0d"
_ACTING = re.compile(f"[{_ALWAYS}]|(?<=[ -~])[{_BESIDE_PLAIN}]+|[{_BESIDE_PLAIN}]+(?=[ -~])")


def escape_control_characters(text: str) -> str:
    """The text with every acting character spelled out; harmless text comes back as it is."""
    return _ACTING.sub(_escape_character, text.replace("\r\n", "\n"))


def harmless_json(value: JSON) -> JSON:
    """The same for every string of a JSON value, keys too."""
    if isinstance(value, str):
        return escape_control_characters(value)
    if isinstance(value, Mapping):
        return {harmless_json(key): harmless_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [harmless_json(item) for item in value]
    return value


def _escape_character(match: re.Match[str]) -> str:
    return "".join(map(_spell_one, match.group()))


def _spell_one(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

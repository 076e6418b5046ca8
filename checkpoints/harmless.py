r"""Text from outside made harmless for a screen: what would act on a terminal or reorder a line becomes visible.

ESC becomes `\x1b`, a right-to-left override `\u202e`: nothing is lost, nothing acts. Newline and tab stay;
CR LF becomes a newline.
"""

import re
from collections.abc import Mapping
from typing import Any

# C0 but tab and newline, DEL and C1; soft hyphen; bidi marks, embeddings, overrides and isolates; zero-width
# space, no-break space and invisible operators; line and paragraph separators; annotations; tag characters that
# spell hidden text; lone surrogates. Zero-width joiners stay: emoji and several scripts need them.
_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def harmless(text: str) -> str:
    """The text with every acting character spelled out; harmless text comes back as it is."""
    return _ACTING.sub(_spell, text.replace("\r\n", "\n"))


def harmless_json(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same for every string of a JSON value, keys too."""
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, Mapping):
        return {harmless_json(key): harmless_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [harmless_json(item) for item in value]
    return value


def _spell(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

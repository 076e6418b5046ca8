"""Text in evidence that gives orders to whoever reads it, claims an approval, or looks like a call of a tool.

Such text changes nothing: it is data wherever it stands. It is found so that a person hears of the attempt.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from opsleuth.state.json_types import JSON

AROUND = 60
"""Characters that are shown on either side of what was found."""

_ALL = r"(?:\w+ ){0,3}?(?:previous|prior|above|earlier|former|your)"
_THINGS = r"(?:instructions?|rules?|prompts?|orders?|directions?|guidelines?)"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:ignore|disregard|forget|override) {_ALL} {_THINGS}",
        r"\bapproved by (?:the )?(?:admin(?:istrator)?|operator|sre|root|security|system)\b",
        r"\b(?:without asking|every tool is allowed|stop investigating)\b",
        r"</?(?:tool_call|data|system|assistant)>",
        r"\b(?:you are now in|as an ai\b|new (?:system )?instructions?:)",
        r"\"(?:tool|name)\"\s*:\s*\"\w+\"\s*,\s*\"(?:arguments|parameters)\"\s*:|\btool_calls\b|\bfunction_call\b",
        r"(?:忽略|无视)\w{0,6}(?:之前|以上|先前|所有)\w{0,6}(?:指令|指示|规则)|管理员已批准",
        r"(?:これまで|以前|上記)\w{0,4}(?:指示|命令)\w{0,6}無視",
        r"игнорируй(?:те)? \w{0,8} ?(?:предыдущие|прежние) инструкции",
        r"ignora (?:todas )?las instrucciones anteriores|aprobado por el administrador",
        r"(?:vergiss|ignoriere) (?:alle )?(?:bisherigen|vorherigen) anweisungen",
        r"تجاهل جميع التعليمات",
    )
)
_HINTS = re.compile(
    r"ignor|disregard|forget|overrid|approv|asking|allowed|investigating|tool|function_call|data>|system|assistant|arguments|as an ai|you are now|instruction|[忽无管無иИت]|vergiss|aprob",
    re.IGNORECASE,
)
"""Words that a text must contain to be examined closely; most texts contain none."""

_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,400}={0,2}(?![A-Za-z0-9+/=])")
_ALIKE = str.maketrans("аеорсхуіјѕАЕОРСХІЈЅ", "aeopcxyijsAEOPCXIJS")  # noqa: RUF001 - letters that look alike
_TAGS = {0xE0000 + c: chr(c) for c in range(0x20, 0x7F)}


def find_injected_instruction(record: Mapping[str, Any]) -> str | None:
    """The first such passage of a record, with a little around it, on one line and in readable spelling; or None."""
    for form in _readable_variants("\n".join(_walk_record_texts(record))):
        if found := _first_pattern_match(form):
            return " ".join(form[max(found.start() - AROUND, 0) : found.end() + AROUND].split())
    return None


def _walk_record_texts(value: JSON) -> Iterator[str]:
    """Every text of a record, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _walk_record_texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _walk_record_texts(inner)


def _first_pattern_match(form: str) -> re.Match[str] | None:
    if not _HINTS.search(form):
        return None
    found = [match for pattern in _PATTERNS if (match := pattern.search(form))]
    return min(found, key=lambda match: match.start(), default=None)


def _readable_variants(text: str) -> Iterator[str]:
    """The text with hidden characters dropped and wide letters narrowed; with look-alikes undone; and decoded."""
    plain = text if text.isascii() else _normalize_characters(text)
    yield plain
    if (latin := plain.translate(_ALIKE)) != plain:
        yield latin
    if "%20" in plain:
        yield unquote(plain)
    for match in _BASE64.finditer(plain):
        if decoded := _decode_base64(match[0]):
            yield decoded


def _normalize_characters(text: str) -> str:
    return "".join(
        c for c in unicodedata.normalize("NFKC", text.translate(_TAGS)) if not _is_hidden_character(c)
    )


def _is_hidden_character(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character) == "Cf"


def _decode_base64(token: str) -> str:
    try:
        text = base64.b64decode(token + "=" * (-len(token) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return text if text.isprintable() else ""

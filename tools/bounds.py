"""Bounding a record: long texts and lists keep their head and tail, and the hole is marked and counted."""

import re
from collections.abc import Mapping
from typing import Any

from opsleuth.state.canonical import canonical

# The first widths tried; halved until the record fits, so that only what is long loses anything.
_WIDEST_TEXT = 32_768
_WIDEST_LIST = 4_096

# What stands in a list where items were left out.
HOLE = re.compile(r"…\[[\d,]+ items cut\]…")


def size(record: Any) -> int:  # noqa: ANN401 - any JSON value
    """Bytes of the record's canonical JSON. Raises TypeError or ValueError for what is no JSON."""
    return len(canonical(record).encode("utf-8", "surrogatepass"))


def bounded(record: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
    """The record itself if it is at most `limit` bytes, else one with holes and `cut {bytes, limit}`.

    Raises TypeError or ValueError for what is no JSON.
    """
    whole = size(record)
    if whole <= limit:
        return record
    text, items = _WIDEST_TEXT, _WIDEST_LIST
    note = {"bytes": whole, "limit": limit}
    while text >= 16:
        smaller: dict[str, Any] = {**shrunk(record, text, items), "cut": note}
        if size(smaller) <= limit:
            return smaller
        text, items = text // 2, max(2, items // 2)
    return {"cut": note}


def cut_text(text: str, width: int) -> str:
    """The text with its middle replaced by a mark, if it is longer than `width` characters."""
    if len(text) <= width:
        return text
    head, tail = width - width // 3, width // 3
    return f"{text[:head]}…[{len(text) - head - tail:,} characters cut]…{text[len(text) - tail :]}"


def shrunk(value: Any, text: int, items: int) -> Any:  # noqa: ANN401 - any JSON value
    """The value with texts of at most about `text` characters and lists of at most `items`, the holes marked."""
    if isinstance(value, str):
        return cut_text(value, text)
    if isinstance(value, Mapping):
        return {key: shrunk(item, text, items) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shrunk(item, text, items) for item in _ends(value, items)]
    return value


def _ends(values: list[Any] | tuple[Any, ...], items: int) -> list[Any]:
    if len(values) <= items:
        return list(values)
    head, tail = items - items // 3, items // 3
    hole = f"…[{len(values) - head - tail:,} items cut]…"
    return [*values[:head], hole, *values[len(values) - tail :]]

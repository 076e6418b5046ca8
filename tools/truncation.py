"""Bounding a record: long texts and lists keep their head and tail, and the hole is marked and counted."""

import re
from collections.abc import Mapping
from typing import Any

from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.json_types import JSON
from opsleuth.tools.cut_redaction import redact_before_cut

# The first widths tried; halved until the record fits, so that only what is long loses anything.
_WIDEST_TEXT = 32_768
_WIDEST_LIST = 4_096
_NARROWEST_TEXT = 64
# About as long as the mark of a hole is.
_MARK_WIDTH = 25

# What appears in a list where items were left out.
CUT_ITEMS_MARK = re.compile(r"…\[[\d,]+ items cut\]…")


def canonical_json_size(record: JSON) -> int:
    """Bytes of the record's canonical JSON. Raises TypeError or ValueError for anything that is not JSON."""
    return len(to_canonical_json(record).encode("utf-8", "surrogatepass"))


def bound_record(record: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
    """The record itself if it is at most `limit` bytes, else one with holes and `cut {bytes, limit, left_out}`.

    Only entries that do not even fit with holes are left out. Raises TypeError or ValueError for anything that is not JSON.
    """
    whole = canonical_json_size(record)
    if whole <= limit:
        return record
    text, items = _WIDEST_TEXT, _WIDEST_LIST
    note = {"bytes": whole, "limit": limit}
    while text >= 16:
        smaller: dict[str, Any] = {**shrink_value(record, text, items), "cut": note}
        if canonical_json_size(smaller) <= limit:
            return smaller
        text, items = text // 2, max(2, items // 2)
    return _keep_what_fits(record, limit, note)


def _keep_what_fits(record: Mapping[str, Any], limit: int, note: Mapping[str, JSON]) -> Mapping[str, Any]:
    """The entries that fit, rows first, then single values; how many do not is counted."""
    kept: dict[str, Any] = {}

    def build(entries: Mapping[str, Any]) -> dict[str, Any]:
        ordered = {key: entries[key] for key in record if key in entries}
        return {**ordered, "cut": {**note, "left_out": len(record) - len(ordered)}}

    for key in sorted(record, key=lambda key: _rank_of_entry(record[key])):
        tries = ({**kept, key: shrink_value(record[key], _NARROWEST_TEXT, items)} for items in (2, 1))
        kept = next((entries for entries in tries if canonical_json_size(build(entries)) <= limit), kept)
    return build(kept) if kept else {"cut": note}


def _rank_of_entry(value: JSON) -> int:
    if isinstance(value, list | tuple):
        return 0 if value and isinstance(value[0], Mapping) else 2
    return 2 if isinstance(value, Mapping) else 1


def cut_text(text: str, width: int) -> str:
    """The text with its middle replaced by a mark, if it is longer than `width` characters; secrets go first.

    Where little is too much, the end goes instead.
    """
    if len(text) <= width:
        return text
    text = redact_before_cut(text)
    if len(text) <= width:
        return text
    if len(text) - width < 2 * _MARK_WIDTH:  # a mark in the middle would take more than it saves
        return f"{text[: width - 1]}…"
    head, tail = width - width // 3, width // 3
    return f"{text[:head]}…[{len(text) - head - tail:,} characters cut]…{text[len(text) - tail :]}"


def shrink_value(value: JSON, text: int, items: int) -> JSON:
    """The value with texts of at most about `text` characters and lists of at most `items`, the holes marked."""
    if isinstance(value, str):
        return cut_text(value, text)
    if isinstance(value, Mapping):
        return {key: shrink_value(item, text, items) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shrink_value(item, text, items) for item in _cut_middle_items(value, items)]
    return value


def _cut_middle_items(values: list[Any] | tuple[Any, ...], items: int) -> list[Any]:
    if len(values) <= items:
        return list(values)
    head, tail = items - items // 3, items // 3
    hole = f"…[{len(values) - head - tail:,} items cut]…"
    return [*values[:head], hole, *values[len(values) - tail :]]

"""A record made to fit into a model's context: rather fewer items than mangled words, since words get cited."""

from collections.abc import Iterator, Mapping
from typing import Any

from opsleuth.tools.truncation import bound_record, canonical_json_size, shrink_value

_WIDE, _WIDTH, _NARROW = 1_000, 400, 240
_ITEMS = (512, 256, 128, 64, 32, 24, 16, 10)
_SOME_ITEMS, _FEW_ITEMS = (24, 10), (6, 4, 3, 2, 1)
_APPENDIX = (
    "looked_at",
    "also_moved",
    "as_usual",
    "later",
    "frequent",
    "gone",
    "others",
    "graded_changes",
    "notes",
)
"""Sections that only add to an answer, the least important first: they go before a row of the answer itself does."""
_FIRST = ("suspects", "findings", "statements", "failing", "new", "lines", "points")
"""Sections that are the answer, the most important first."""


def fit_record(record: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
    """The record itself if it is at most `limit` bytes, else with marked holes; texts stay whole as long as they can."""
    if canonical_json_size(record) <= limit:
        return record
    for smaller in _list_smaller_forms(record):
        if canonical_json_size(smaller) <= limit:
            return smaller
    kept = _without_appendix(record, len(_APPENDIX))
    ordered = {key: kept[key] for key in (*(k for k in _FIRST if k in kept), *kept)}
    return bound_record(ordered, limit)


def _list_smaller_forms(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record with ever more left out: first the middle of long lists, then whole appendices, then all but a few rows."""
    yield from (shrink_value(record, width, items) for width in (_WIDE, _WIDTH) for items in _ITEMS)
    for count, name in enumerate(_APPENDIX, start=1):
        if name in record:
            shorter = _without_appendix(record, count)
            yield from (shrink_value(shorter, _WIDTH, items) for items in _SOME_ITEMS)
    bare = _without_appendix(record, len(_APPENDIX))
    yield from (shrink_value(bare, width, items) for width in (_WIDTH, _NARROW) for items in _FEW_ITEMS)


def _without_appendix(record: Mapping[str, Any], count: int) -> Mapping[str, Any]:
    """The record without its `count` least important sections; their names stay, so that they can be read on purpose."""
    dropped = [name for name in _APPENDIX[:count] if record.get(name)]
    kept = {key: value for key, value in record.items() if key not in dropped}
    return kept | ({"sections_not_shown": dropped} if dropped else {})

"""A record made to fit into a model's context: rather fewer items than mangled words, since words get cited."""

from collections.abc import Mapping
from typing import Any

from opsleuth.tools.truncation import bound_record, canonical_json_size, shrink_value

_WIDTHS = (1_000, 400)
_ITEMS = (512, 256, 128, 64, 32, 24, 16, 10, 6, 4, 3)


def fit_record(record: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
    """The record itself if it is at most `limit` bytes, else with marked holes; texts stay whole as long as they can."""
    if canonical_json_size(record) <= limit:
        return record
    for width in _WIDTHS:
        for items in _ITEMS:
            smaller: Mapping[str, Any] = shrink_value(record, width, items)
            if canonical_json_size(smaller) <= limit:
                return smaller
    return bound_record(record, limit)

"""A record made to fit into a model's context: rather fewer items than mangled words, since words get cited."""

from collections.abc import Mapping
from typing import Any

from opsleuth.tools.bounds import bounded, shrunk, size

_WIDTHS = (1_000, 400)
_ITEMS = (512, 256, 128, 64, 32, 24, 16, 10, 6, 4, 3)


def fitted(record: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
    """The record itself if it is at most `limit` bytes, else with marked holes; texts stay whole as long as they can."""
    if size(record) <= limit:
        return record
    for width in _WIDTHS:
        for items in _ITEMS:
            smaller: Mapping[str, Any] = shrunk(record, width, items)
            if size(smaller) <= limit:
                return smaller
    return bounded(record, limit)

"""The rows of a page of stored evidence: what was read, never the paging around it."""

from collections.abc import Iterator, Mapping

from opsleuth.state.json_types import JSON
from opsleuth.verification.fact_details import Path, Record, is_number, make_detail
from opsleuth.verification.fact_rows import read_any_object, read_listed_row
from opsleuth.verification.facts import Fact, FactDetail, make_pointer

STORED_PAGE_TOOL = "evidence_read"
_PAGED_VALUES = ("items", "value", "text")
"""Where a page of stored evidence has what was read; its other fields only repeat what was asked for."""


def read_stored_page(record: Record) -> Iterator[Fact]:
    """The rows of a page, each as the tool that it comes from gives it; of a text its lines."""
    place, tool = str(record.get("path") or ""), str(record.get("tool") or "")
    for key in _PAGED_VALUES:
        value = record.get(key)
        if is_number(value):
            detail = make_detail(place.rpartition(".")[2] or key, value, (key,))
            yield Fact("", "", detail.name, value, detail.path, unit=detail.unit, details=(detail,))
        elif isinstance(value, list | tuple):
            for i, item in enumerate(value):
                yield from _read_item(item, (key, i), tool, place)
        else:
            yield from _read_item(value, (key,), tool, place)


def _read_item(item: JSON, path: Path, tool: str, place: str) -> Iterator[Fact]:
    if isinstance(item, str):
        for said in filter(None, (" ".join(line.split()) for line in item.splitlines())):
            detail = FactDetail("line", said, "", make_pointer(path))
            yield Fact("", "", "line", said, detail.path, text=said, details=(detail,))
    elif isinstance(item, Mapping):
        yield from read_listed_row(tool, place, item, path)
    else:
        yield from read_any_object(item, path, "")

"""The scalars of a row as details of a fact, each with the path that leads back to it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeGuard

from opsleuth.state.json_types import JSON
from opsleuth.verification.facts import (
    FactDetail,
    Number,
    make_pointer,
)
from opsleuth.verification.units import unit_word_of_key

Path = tuple[str | int, ...]


Record = Mapping[str, Any]


_MOST_LEAVES = 60


def list_rows(value: JSON) -> Sequence[tuple[int, Record]]:
    """The objects of a list, each with its place in it."""
    rows = enumerate(value) if isinstance(value, list | tuple) else ()
    return [(i, row) for i, row in rows if isinstance(row, Mapping)]


def normalize_unit(unit: str) -> str:
    return {"percent": "%", "lines": "", "requests": "", "count": ""}.get(unit, unit)


def read_span(record: Record) -> tuple[str, str] | None:
    window = record.get("window")
    if (
        isinstance(window, Mapping)
        and isinstance(window.get("start"), str)
        and isinstance(window.get("end"), str)
    ):
        return window["start"], window["end"]
    return None


def read_leaves(value: JSON, path: Path, name: str = "", skip: Sequence[str] = ()) -> Iterator[FactDetail]:
    """The scalars of a row, nested ones with their keys joined by a point; at most `_MOST_LEAVES`."""
    yield from islice(_all_leaves(value, path, name, skip), _MOST_LEAVES)


def _all_leaves(value: JSON, path: Path, name: str, skip: Sequence[str]) -> Iterator[FactDetail]:
    if len(path) > 10:
        return
    if isinstance(value, Mapping):
        for key, child in value.items():
            if str(key) not in skip:
                inner = str(key) if not name or name == "figures" else f"{name}.{key}"
                yield from _all_leaves(child, (*path, str(key)), inner, skip)
    elif isinstance(value, list | tuple):
        for i, child in enumerate(value):
            yield from _all_leaves(child, (*path, i), name, skip)
    elif is_number(value) or isinstance(value, str):
        yield make_detail(name, value, path)


def make_detail(name: str, value: Number | str, path: Path) -> FactDetail:
    unit = unit_word_of_key(name.replace(".", "_")) if is_number(value) else ""
    return FactDetail(name, value, unit, make_pointer(path))


def with_unit(detail: FactDetail, unit: str) -> FactDetail:
    return FactDetail(detail.name, detail.value, unit, detail.path)


def find_first_detail(
    by_path: Mapping[str, FactDetail], path: Path, names: Sequence[str]
) -> FactDetail | None:
    wanted = (make_pointer((*path, *name.split(".")) if "." in name else (*path, name)) for name in names)
    return next((by_path[p] for p in wanted if p in by_path), None)


def as_number(value: Number | str) -> Number | None:
    return value if is_number(value) else None


def is_number(value: object) -> TypeGuard[Number]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_text(value: JSON) -> str | None:
    return value if isinstance(value, str) else None

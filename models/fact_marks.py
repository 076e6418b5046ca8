"""The record of a result as a planner sees it: each row with the id of its fact, so that whatever is shown can be cited."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.state.json_types import JSON
from opsleuth.verification.facts import Fact, follow_pointer

_SERIES = ("max", "min", "first", "last", "mean", "median", "change_point", "samples")
_SAID_BY_FACT = ("figures", "size", "detector", "signal")
_ROW = re.compile(r".*/\d+(?=/|$)")
"""Up to the innermost list item of a pointer."""
_BOUNDS = re.compile(r"/(?:window|covered)/")


class MarkedRecord(NamedTuple):
    """The record with ids on its rows; facts that need a line; ids of single values, by their place in the record."""

    record: Mapping[str, Any]
    lines: Sequence[Fact]
    values: Mapping[str, str]


def mark_facts(record: Mapping[str, Any], facts: Sequence[Fact]) -> MarkedRecord:
    """Put the id of its fact on each row; what a line says is left out of the record."""
    rows: dict[str, str] = {}
    values: dict[str, str] = {}
    lines = []
    for fact in facts:
        if row := _find_row(record, fact.path):
            rows.setdefault(row, fact.id)
        elif fact.searched or fact.path.split("/")[1] in _SERIES:
            lines.append(fact)
        elif not _BOUNDS.search(fact.path):
            values.setdefault(_format_place(fact.path), fact.id)
    series = {fact.path.split("/")[1] for fact in lines if not fact.searched}
    kept = {key: value for key, value in record.items() if key not in series}
    return MarkedRecord(
        {key: _with_fact_ids(value, f"/{key}", rows) for key, value in kept.items()}, lines, values
    )


def _find_row(record: Mapping[str, Any], path: str) -> str:
    """The pointer to the list item that a fact is about, empty where there is none; a text inside a row is the row's."""
    found = _ROW.match(path)
    while found:
        row = found[0]
        around = row.rpartition("/")[0]
        item = follow_pointer(record, row)
        if isinstance(item, Mapping) or (isinstance(item, str | list | tuple) and around.count("/") == 1):
            return row if isinstance(follow_pointer(record, around), list | tuple) else ""
        found = _ROW.match(around)
    return ""


def _is_finding(row: Mapping[str, Any]) -> bool:
    """Whether a detector's own sentence stands in the row, which says its figures."""
    return isinstance(row.get("text"), str) and ("detector" in row or "direction" in row)


def _format_place(path: str) -> str:
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])


def _with_fact_ids(value: JSON, path: str, rows: Mapping[str, str]) -> JSON:
    if isinstance(value, Mapping):
        made = {
            k: _with_fact_ids(v, f"{path}/{str(k).replace('~', '~0').replace('/', '~1')}", rows)
            for k, v in value.items()
        }
        if path in rows:
            left_out = _SAID_BY_FACT if _is_finding(value) else ()
            made = {"fact": rows[path], **{k: v for k, v in made.items() if k not in left_out}}
        return made
    if isinstance(value, list | tuple):
        if path in rows:
            return [f"{rows[path]}:", *value]
        return [_with_fact_ids(v, f"{path}/{i}", rows) for i, v in enumerate(value)]
    return f"{rows[path]}: {value}" if path in rows and isinstance(value, str) else value

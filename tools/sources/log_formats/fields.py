"""Fields of a JSON object or of a row by the names that formats give them, remembered for objects of the same keys."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.log_formats.declaration import JsonFormat
from opsleuth.tools.sources.log_formats.json_formats import (
    GENERIC,
    HOST_FIELDS,
    JSON_FORMATS,
    NAMESPACE_FIELDS,
    STACK_FIELDS,
    TRACE_FIELDS,
)
from opsleuth.tools.sources.log_formats.likely_fields import find_likely_fields

_MOST_PLANS = 5_000
_MOST_WORDS = 60

FieldPath = tuple[str, ...]
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """Which fields of objects with certain keys hold what, best first."""

    format: JsonFormat
    time: tuple[FieldPath, ...]
    level: tuple[FieldPath, ...]
    message: tuple[FieldPath, ...]
    service: tuple[FieldPath, ...]
    pod: tuple[FieldPath, ...]
    namespace: tuple[FieldPath, ...]
    host: tuple[FieldPath, ...]
    trace: tuple[FieldPath, ...]
    stack: tuple[FieldPath, ...]
    used: frozenset[str]


class FieldPlans:
    """The plans of all objects met so far, by their keys."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], FieldPlan] = {}

    def plan_for(self, row: Row) -> FieldPlan:
        keys = tuple(row)
        plan = self._known.get(keys)
        if plan is None:
            if len(self._known) >= _MOST_PLANS:
                self._known.clear()
            plan = self._known[keys] = make_plan(row)
        return plan


def make_plan(row: Row) -> FieldPlan:
    chosen = next(one for one in JSON_FORMATS if _has_keys(one, row))

    def paths(own: tuple[str, ...], general: tuple[str, ...]) -> tuple[FieldPath, ...]:
        return tuple(path for name in dict.fromkeys((*own, *general)) for path in _paths_of(name, row))

    def found_or_likely(what: str, own: tuple[str, ...], general: tuple[str, ...]) -> tuple[FieldPath, ...]:
        return paths(own, general) or (likely(what) if is_odd else ())

    def likely(what: str) -> tuple[FieldPath, ...]:
        return tuple((name,) for name in find_likely_fields(row, what))

    # A logger that is known by how it names the time has no field beside those that are known.
    is_odd = chosen is GENERIC and not paths(chosen.time, GENERIC.time)
    time = found_or_likely("time", chosen.time, GENERIC.time)
    level = found_or_likely("level", chosen.level, GENERIC.level)
    message = found_or_likely("message", chosen.message, GENERIC.message)
    service = found_or_likely("service", chosen.service, GENERIC.service)
    return FieldPlan(
        chosen,
        time=time,
        level=level,
        message=message,
        service=service,
        pod=paths(chosen.pod, GENERIC.pod),
        namespace=paths((), NAMESPACE_FIELDS),
        host=paths((), HOST_FIELDS),
        trace=paths((), TRACE_FIELDS),
        stack=paths((), STACK_FIELDS),
        used=_used_keys(chosen, row) | {path[0] for path in (*time, *level, *message) if len(path) == 1},
    )


def _used_keys(chosen: JsonFormat, row: Row) -> frozenset[str]:
    """Keys that hold nothing beside what the line itself has a place for."""
    lists = (
        *(chosen.time, chosen.level, chosen.message, chosen.service, chosen.pod),
        *(GENERIC.time, GENERIC.level, GENERIC.message, GENERIC.service, GENERIC.pod),
        *(NAMESPACE_FIELDS[:1], TRACE_FIELDS, STACK_FIELDS),
    )
    return frozenset(
        name for names in lists for name in names if name in row and not isinstance(row[name], Mapping)
    )


def _has_keys(declared: JsonFormat, row: Row) -> bool:
    if declared is GENERIC:
        return True
    some = not declared.any_of or any(name in row for name in declared.any_of)
    return some and all(name in row for name in declared.marks)


def _paths_of(name: str, row: Row) -> list[FieldPath]:
    """The ways to a name with dots that the keys of the object leave open."""
    found: list[FieldPath] = [(name,)] if name in row else []
    parts = name.split(".")
    for count in range(1, len(parts)):
        head = ".".join(parts[:count])
        if head in row:
            rest = parts[count:]
            found += [(head, *rest)] if len(rest) == 1 else [(head, *rest), (head, ".".join(rest))]
    return found


def first_value(row: Row, paths: tuple[FieldPath, ...]) -> JSON:
    """The first value that is not empty; None if there is none."""
    for path in paths:
        value: Any = row
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value not in (None, ""):
            return value
    return None


def word_of(value: JSON) -> str | None:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def first_word(row: Row, paths: tuple[FieldPath, ...]) -> str | None:
    """The first value that is a word or a number; objects and lists are passed over."""
    for path in paths:
        if (word := word_of(first_value(row, (path,)))) is not None:
            return word
    return None


def text_of(value: JSON) -> str:
    """A value as text: anything that is not text as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        return bytes(value).decode(
            "utf-8", "replace"
        )  # the journal's way to write anything that is not UTF-8
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list) else str(value)


def words_of(values: Mapping[str, Any]) -> str | None:
    """All texts and numbers in the values, one to a row; None if there are none."""
    found: list[str] = []
    _collect_words(values, found)
    return "\n".join(found) or None


def _collect_words(value: JSON, found: list[str]) -> None:
    if len(found) >= _MOST_WORDS:
        return
    if isinstance(value, Mapping):
        for inner in value.values():
            _collect_words(inner, found)
    elif isinstance(value, list):
        for inner in value:
            _collect_words(inner, found)
    elif value is not None and not isinstance(value, bool):
        found.append(str(value))

"""Paths into the state as JSON: `hypotheses.H1.status`, `plan.0.text`, `budget.limits.turns`.

An element of a list is named by its place or by its `id`. Pure functions on JSON values.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from opsleuth.state.errors import UsageError
from opsleuth.state.json_types import JSON

MISSING = object()
_MOST_NAMES = 12


class NoSuchPathError(UsageError):
    """The path leads nowhere; the text says how far it goes and what there is."""


class StateDifference(NamedTuple):
    """One place that differs. `MISSING` stands for what is not there on one side."""

    path: str
    before: Any
    after: Any


def get_at_path(document: JSON, path: str) -> JSON:
    """The value at a path, the whole document for an empty one. Raises NoSuchPathError."""
    value = document
    walked: list[str] = []
    for name in _split_path(path):
        value = _get_child(value, name, walked)
        walked.append(name)
    return value


def set_at_path(document: Mapping[str, Any], path: str, value: JSON) -> dict[str, Any]:
    """A copy of the document with another value at a path that exists, or with a new key of a mapping.

    `plan.+` appends to a list. Raises NoSuchPathError.
    """
    *parents, last = _split_path(path) or [""]
    if not last:
        raise NoSuchPathError(f"name the field to set: {_describe_choices(document)}")
    changed = copy.deepcopy(dict(document))
    holder = get_at_path(changed, ".".join(parents))
    if isinstance(holder, dict) and (parents or last in holder):
        holder[last] = value
    elif isinstance(holder, list) and last == "+":
        holder.append(value)
    elif isinstance(holder, list):
        holder[_find_element_index(holder, last, parents)] = value
    else:
        _get_child(holder, last, parents)
    return changed


def find_differences(before: JSON, after: JSON, path: str = "") -> list[StateDifference]:
    """Where two JSON values differ, at the deepest path that names the place."""
    if before == after:
        return []
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        pairs = [(name, before.get(name, MISSING), after.get(name, MISSING)) for name in {**before, **after}]
    elif _is_keyed_list(before) and _is_keyed_list(after):
        old, new = ({item["id"]: item for item in side} for side in (before, after))
        pairs = [(name, old.get(name, MISSING), new.get(name, MISSING)) for name in {**old, **new}]
        if [n for n in old if n in new] != [n for n in new if n in old]:
            return [StateDifference(path, before, after)]
    else:
        return [StateDifference(path, before, after)]
    return [change for name, a, b in pairs for change in find_differences(a, b, f"{path}.{name}".lstrip("."))]


def format_value_line(value: JSON, most: int = 200) -> str:
    """A value in one line of at most `most` characters."""
    text = "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def parse_typed_value(text: str) -> JSON:
    """A value as it is typed: JSON, or else the text itself."""
    try:
        return json.loads(text, parse_constant=_reject_json_constant)
    except (ValueError, RecursionError):
        return text


def _reject_json_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _split_path(path: str) -> list[str]:
    return [name for name in path.split(".") if name] if path != "." else []


def _get_child(value: JSON, name: str, walked: Sequence[str]) -> JSON:
    if isinstance(value, Mapping) and name in value:
        return value[name]
    if isinstance(value, list):
        return value[_find_element_index(value, name, walked)]
    where = ".".join(walked) or "the state"
    raise NoSuchPathError(f"{where} has no {name!r}: {_describe_choices(value)}")


def _find_element_index(items: Sequence[Any], name: str, walked: Sequence[str]) -> int:
    for place, item in enumerate(items):
        if isinstance(item, Mapping) and item.get("id") == name:
            return place
    if name.isdecimal() and len(name) < 8 and int(name) < len(items):
        return int(name)
    raise NoSuchPathError(f"{'.'.join(walked) or 'the list'} has no {name!r}: {_describe_choices(items)}")


def _describe_choices(value: JSON) -> str:
    if isinstance(value, Mapping):
        names = [str(name) for name in value]
    elif isinstance(value, list):
        names = [str(item["id"]) if _has_id(item) else str(place) for place, item in enumerate(value)]
    else:
        return f"it is {format_value_line(value, 60)} and holds nothing"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"it has {', '.join(names[:_MOST_NAMES])}{more}" if names else "it is empty"


def _is_keyed_list(value: JSON) -> bool:
    """A list whose elements are distinguished by an `id`, each its own."""
    if not isinstance(value, list) or not all(_has_id(item) for item in value):
        return False
    return len({item["id"] for item in value}) == len(value)


def _has_id(item: JSON) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("id"), str)

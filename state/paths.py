"""Paths into the state as JSON: `hypotheses.H1.status`, `plan.0.text`, `budget.limits.turns`.

An element of a list is named by its place or by its `id`. Pure functions on JSON values.
"""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MISSING = object()
_MOST_NAMES = 12


class NoSuchPath(LookupError):
    """The path leads nowhere; the text says how far it goes and what there is."""


class Change(NamedTuple):
    """One place that differs. `MISSING` stands for what is not there on one side."""

    path: str
    before: Any
    after: Any


def get(document: Any, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value at a path, the whole document for an empty one. Raises NoSuchPath."""
    value = document
    walked: list[str] = []
    for name in _names(path):
        value = _step(value, name, walked)
        walked.append(name)
    return value


def put(document: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """A copy of the document with another value at a path that exists, or with a new key of a mapping.

    `plan.+` appends to a list. Raises NoSuchPath.
    """
    *parents, last = _names(path) or [""]
    if not last:
        raise NoSuchPath(f"name the field to set: {_choices(document)}")
    changed = copy.deepcopy(dict(document))
    holder = get(changed, ".".join(parents))
    if isinstance(holder, dict) and (parents or last in holder):
        holder[last] = value
    elif isinstance(holder, list) and last == "+":
        holder.append(value)
    elif isinstance(holder, list):
        holder[_index(holder, last, parents)] = value
    else:
        _step(holder, last, parents)
    return changed


def differences(before: Any, after: Any, path: str = "") -> list[Change]:  # noqa: ANN401 - any JSON values
    """Where two JSON values differ, at the deepest path that names the place."""
    if before == after:
        return []
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        pairs = [(name, before.get(name, MISSING), after.get(name, MISSING)) for name in {**before, **after}]
    elif _named(before) and _named(after):
        old, new = ({item["id"]: item for item in side} for side in (before, after))
        pairs = [(name, old.get(name, MISSING), new.get(name, MISSING)) for name in {**old, **new}]
        if [n for n in old if n in new] != [n for n in new if n in old]:
            return [Change(path, before, after)]
    else:
        return [Change(path, before, after)]
    return [change for name, a, b in pairs for change in differences(a, b, f"{path}.{name}".lstrip("."))]


def shown(value: Any, most: int = 200) -> str:  # noqa: ANN401 - any JSON value
    """A value in one line of at most `most` characters."""
    text = "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def plain(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """A value as it is typed: JSON, or else the text itself."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(word: str) -> Any:  # noqa: ANN401 - never returns
    raise ValueError(f"{word} is no JSON")


def _names(path: str) -> list[str]:
    return [name for name in path.split(".") if name] if path != "." else []


def _step(value: Any, name: str, walked: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping) and name in value:
        return value[name]
    if isinstance(value, list):
        return value[_index(value, name, walked)]
    where = ".".join(walked) or "the state"
    raise NoSuchPath(f"{where} has no {name!r}: {_choices(value)}")


def _index(items: Sequence[Any], name: str, walked: Sequence[str]) -> int:
    for place, item in enumerate(items):
        if isinstance(item, Mapping) and item.get("id") == name:
            return place
    if name.isdecimal() and len(name) < 8 and int(name) < len(items):
        return int(name)
    raise NoSuchPath(f"{'.'.join(walked) or 'the list'} has no {name!r}: {_choices(items)}")


def _choices(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(value, Mapping):
        names = [str(name) for name in value]
    elif isinstance(value, list):
        names = [str(item["id"]) if _has_id(item) else str(place) for place, item in enumerate(value)]
    else:
        return f"it is {shown(value, 60)} and holds nothing"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"it has {', '.join(names[:_MOST_NAMES])}{more}" if names else "it is empty"


def _named(value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """A list whose elements are told apart by an `id`, each its own."""
    if not isinstance(value, list) or not all(_has_id(item) for item in value):
        return False
    return len({item["id"] for item in value}) == len(value)


def _has_id(item: Any) -> bool:  # noqa: ANN401 - any JSON value
    return isinstance(item, Mapping) and isinstance(item.get("id"), str)

"""The differences between two objects, or two snapshots of one, value by value."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from opsleuth.state.json_types import JSON

# Values that differ between any two objects, or any two readings of one, and say nothing.
_UNTELLING = frozenset(
    {
        "uid", "resourceVersion", "selfLink", "managedFields", "creationTimestamp", "generation",
        "observedGeneration", "podIP", "podIPs", "hostIP", "hostIPs", "containerID", "imageID",
        "lastProbeTime", "lastTransitionTime", "lastHeartbeatTime", "lastUpdateTime", "startTime",
        "startedAt", "pod-template-hash", "controller-revision-hash", "uptime", "serviceAccountToken",
    }
)  # fmt: skip
_TOKEN_VOLUME = re.compile(r"^kube-api-access-\w{5}$")


class ValueDifference(NamedTuple):
    """One value that is not the same; None where a side does not have it."""

    path: str
    this: JSON
    other: JSON


def find_differences(this: JSON, other: JSON, path: str = "") -> Iterator[ValueDifference]:
    """Where two documents differ, in the order of the first; lists of named objects are matched by name."""
    if isinstance(this, Mapping) and isinstance(other, Mapping):
        yield from _compare_mappings(this, other, path)
    elif _is_list(this) and _is_list(other):
        yield from _compare_lists(this, other, path)
    elif this != other:
        yield ValueDifference(path, this, other)


def _compare_mappings(
    this: Mapping[str, JSON], other: Mapping[str, JSON], path: str
) -> Iterator[ValueDifference]:
    for name in dict.fromkeys([*this, *other]):
        if name in _UNTELLING:
            continue
        inner = f"{path}.{name}" if path else str(name)
        if name not in this or name not in other:
            yield ValueDifference(inner, this.get(name), other.get(name))
        else:
            yield from find_differences(this[name], other[name], inner)


def _compare_lists(this: Sequence[JSON], other: Sequence[JSON], path: str) -> Iterator[ValueDifference]:
    mine, theirs = _index_by_key(this), _index_by_key(other)
    if mine is None or theirs is None:
        if list(this) != list(other):
            yield ValueDifference(path, list(this), list(other))
        return
    for key in dict.fromkeys([*mine, *theirs]):
        inner = f"{path}[{key}]"
        if key not in mine or key not in theirs:
            yield ValueDifference(inner, mine.get(key), theirs.get(key))
        else:
            yield from find_differences(mine[key], theirs[key], inner)


def _index_by_key(rows: Sequence[JSON]) -> dict[str, JSON] | None:
    """Rows by what names them (`name`, `type` of conditions, `key` of taints); None where that is not unique."""
    for key in ("name", "type", "key", "containerPort", "port"):
        named: dict[str, JSON] = {}
        for row in rows:
            if isinstance(row, Mapping) and key in row:
                named[_hide_drawn_name(str(row[key]))] = row
        if len(named) == len(rows):
            return named
    return None


def _hide_drawn_name(name: str) -> str:
    """The volume of the token has a drawn suffix in each pod."""
    return "kube-api-access" if _TOKEN_VOLUME.match(name) else name


def _is_list(value: JSON) -> TypeGuard[Sequence[JSON]]:
    return isinstance(value, list | tuple)

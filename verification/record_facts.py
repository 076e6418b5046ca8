"""All figures, times and text of one JSON record, indexed once so that many claims can be checked against it."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opsleuth.verification.quantities import Quantity, TimeToken, scan_tokens
from opsleuth.verification.units import MeasureUnit, unit_of_field, unit_of_key
from opsleuth.verification.written_times import WrittenTime

# Numbers in these ranges, without a unit, are read as seconds or milliseconds since the epoch too (2014 to 2039).
_EPOCH_S = (1.4e9, 2.2e9)
_EPOCH_MS = (1.4e12, 2.2e12)


class RecordFigure(NamedTuple):
    """One number of a record. `units` is empty where the record does not say; `holder` numbers the object around it."""

    raw: float
    units: tuple[MeasureUnit, ...]
    key: str
    holder: int


class RecordInstant(NamedTuple):
    """One time of a record, seconds since the epoch, and the object around it."""

    seconds: float
    holder: int


class RecordObject(NamedTuple):
    """An object of the record: what its own strings and its key say (casefolded), and, for a row, in which list."""

    label: str
    path: str | None


@dataclass(frozen=True)
class RecordFacts:
    """What one record holds. `text` is that of `record_text`; `sizes` the list lengths."""

    figures: tuple[RecordFigure, ...]
    instants: tuple[RecordInstant, ...]
    clocks: tuple[WrittenTime, ...]
    holders: tuple[RecordObject, ...]
    sizes: frozenset[int]
    text: str
    raws: tuple[float, ...]
    unitless: tuple[float, ...]
    based: Mapping[str, tuple[float, ...]]


@dataclass
class _RecordWalk:
    figures: list[RecordFigure] = field(default_factory=list)
    instants: list[RecordInstant] = field(default_factory=list)
    clocks: list[WrittenTime] = field(default_factory=list)
    labels: list[list[str]] = field(default_factory=list)
    paths: list[str | None] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)


class _RecordItem(NamedTuple):
    value: Any
    key: str
    holder: int
    units: tuple[MeasureUnit, ...]
    path: str
    row: bool


def index_record(record: Mapping[str, Any]) -> RecordFacts:
    """Index `record`, in time linear in its size (up to the sorting of its numbers)."""
    walk = _RecordWalk()
    stack = [_RecordItem(record, "", 0, (), "", row=False)]
    while stack:
        stack.extend(reversed(list(_visit_item(walk, stack.pop()))))
    return _build_record_facts(walk, record_text(record))


def record_text(record: Mapping[str, Any]) -> str:
    """All strings and keys of the record, one a line, in the form in which names are compared."""
    texts: list[str] = []
    stack: list[Any] = [record]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            texts += map(str, value)
            stack.extend(value.values())
        elif isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, str):
            texts.append(value)
    return normalize_for_matching("\n".join(texts))


def _visit_item(walk: _RecordWalk, item: _RecordItem) -> Iterator[_RecordItem]:
    value = item.value
    if isinstance(value, Mapping):
        yield from _visit_object(walk, item)
    elif isinstance(value, list | tuple):
        walk.sizes.add(len(value))
        units = _inherited_units(item)
        yield from (_RecordItem(child, item.key, item.holder, units, item.path, row=True) for child in value)
    elif isinstance(value, str):
        _read_text(walk, item, value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _read_number(walk, item, float(value))


def _visit_object(walk: _RecordWalk, item: _RecordItem) -> Iterator[_RecordItem]:
    holder = len(walk.labels)
    walk.labels.append([item.key])
    walk.paths.append(item.path if item.row else None)
    unit = item.value.get("unit")
    units = (unit_of_field(unit) if isinstance(unit, str) else ()) or _inherited_units(item)
    for key, child in item.value.items():
        name = str(key)
        if any(c.isdigit() for c in name):
            _read_tokens(walk, _RecordItem(name, "", holder, (), "", row=False), name)
        yield _RecordItem(child, name, holder, units, f"{item.path}.{name}", row=False)


def _inherited_units(item: _RecordItem) -> tuple[MeasureUnit, ...]:
    own = unit_of_key(item.key)
    if own is None or own[0].dimension == "count":
        return item.units
    return own


def _read_text(walk: _RecordWalk, item: _RecordItem, value: str) -> None:
    if walk.labels:
        walk.labels[item.holder].append(value[:2000])
    _read_tokens(walk, item, value)


def _read_tokens(walk: _RecordWalk, item: _RecordItem, value: str) -> None:
    for token in scan_tokens(value):
        if isinstance(token, TimeToken):
            moment = token.moment
            if moment.dated:
                walk.instants.append(RecordInstant(moment.seconds, item.holder))
            else:
                walk.clocks.append(moment)
        elif isinstance(token, Quantity):
            units = token.units
            if token.bare:
                units = (unit_of_key(item.key) or ()) if token.text == value.strip() else ()
            walk.figures.append(RecordFigure(token.value, units, item.key, item.holder))


def _read_number(walk: _RecordWalk, item: _RecordItem, value: float) -> None:
    own = unit_of_key(item.key)
    # `points: [..]` says how its members are called, not that each is a count.
    counted = own is not None and own[0].dimension == "count"
    units = item.units if own is None or (counted and item.row) else own
    walk.figures.append(RecordFigure(value, units, item.key, item.holder))
    for (low, high), scale in ((_EPOCH_S, 1.0), (_EPOCH_MS, 1e-3)):
        if low <= value <= high:
            walk.instants.append(RecordInstant(value * scale, item.holder))


def _build_record_facts(walk: _RecordWalk, text: str) -> RecordFacts:
    based: dict[str, set[float]] = defaultdict(set)
    for figure in walk.figures:
        for unit in figure.units:
            based[unit.dimension].update(abs(figure.raw) * factor for factor in unit.factors)
    return RecordFacts(
        figures=tuple(walk.figures),
        instants=tuple(walk.instants),
        clocks=tuple(walk.clocks),
        holders=tuple(
            RecordObject(" ".join(label).casefold(), path)
            for label, path in zip(walk.labels, walk.paths, strict=True)
        ),
        sizes=frozenset(walk.sizes),
        text=text,
        raws=tuple(sorted({abs(f.raw) for f in walk.figures})),
        unitless=tuple(sorted({abs(f.raw) for f in walk.figures if not f.units})),
        based={dimension: tuple(sorted(values)) for dimension, values in based.items()},
    )


_SPACES = re.compile(r"[ \t]+")


def normalize_for_matching(text: str) -> str:
    """Casefolded, runs of spaces as one: the form in which names are compared."""
    return _SPACES.sub(" ", text).casefold()


def find_value_between(values: tuple[float, ...], low: float, high: float) -> float | None:
    """The first of the sorted `values` in `[low, high]` (with room for floating-point error), or None."""
    slack = max(abs(low), abs(high)) * 1e-9 + 1e-15
    i = bisect_left(values, low - slack)
    return values[i] if i < len(values) and values[i] <= high + slack else None

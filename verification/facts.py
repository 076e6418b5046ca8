"""Typed facts of a tool's result: one row each, with figures, times and words that a path leads back to.

Facts are derived from the stored record whenever it is read, so that runs of any age have them. A planner sees the id
of every row that it is shown; the first `MOST_SHOWN` of a result are tried first where prose is bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opsleuth.state.json_types import JSON
from opsleuth.verification.record_facts import normalize_for_matching
from opsleuth.verification.units import MeasureUnit, lookup_unit, unit_of_field
from opsleuth.verification.written_times import DAY, parse_written_time

MOST_SHOWN = 12
SHARE = "share"
"""The unit of a fraction between 0 and 1, which people write in per cent."""
FRACTION = (MeasureUnit("share", (1.0,)),)

Number = int | float


@dataclass(frozen=True, slots=True)
class FactDetail:
    """One scalar of a fact's row: how the source calls it, and the JSON pointer that leads to it."""

    name: str
    value: Number | str
    unit: str
    path: str

    @property
    def seconds(self) -> float | None:
        """Seconds since the epoch where the detail is a dated time."""
        return seconds_of_time(self.value)

    @property
    def units(self) -> tuple[MeasureUnit, ...]:
        return FRACTION if self.unit == SHARE else unit_of_field(self.unit) or lookup_unit(self.unit)


@dataclass(frozen=True, slots=True)
class SearchScope:
    """What a search went through: `complete` is false where rows were cut, sampled, skipped or not read; `gaps` says why."""

    source: str
    criteria: tuple[tuple[str, str], ...]
    span: tuple[str, str] | None
    rows: int
    matched: int
    complete: bool
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fact:
    """One row of a result. `before` is the usual value; `text` a sentence that a detector computed, in English.

    None means not recorded. A value without a known unit has the unit "".
    """

    id: str
    subject: str
    measure: str
    value: Number | str | None
    path: str
    before: Number | None = None
    before_path: str = ""
    unit: str = ""
    at: str | None = None
    span: tuple[str, str] | None = None
    usual: tuple[str, str] | None = None
    searched: SearchScope | None = None
    direction: str = ""
    text: str = ""
    details: tuple[FactDetail, ...] = ()

    @property
    def evidence(self) -> str:
        return self.id.partition(".")[0]

    @property
    def change(self) -> int:
        """The sign of value minus before; 0 where one of them is unknown."""
        if self.before is None or not isinstance(self.value, int | float):
            return 0
        return (self.value > self.before) - (self.value < self.before)

    @property
    def at_seconds(self) -> float | None:
        return seconds_of_time(self.at)

    @cached_property
    def label(self) -> str:
        """All words of the row in the form in which names are compared."""
        words = [self.subject, self.measure, self.text]
        words += [f"{d.name} {d.value}" if isinstance(d.value, str) else d.name for d in self.details]
        return normalize_for_matching("\n".join(words))

    @cached_property
    def label_source(self) -> str:
        """The words of the row as they stand, for reading figures and times out of them."""
        words = [
            self.text,
            *(d.value for d in self.details if isinstance(d.value, str) and d.seconds is None),
        ]
        return "\n".join(dict.fromkeys(words))

    @cached_property
    def figures(self) -> tuple[FactDetail, ...]:
        return tuple(d for d in self.details if isinstance(d.value, int | float))

    @cached_property
    def times(self) -> tuple[FactDetail, ...]:
        return tuple(d for d in self.details if d.seconds is not None)


def seconds_of_time(value: JSON) -> float | None:
    """Seconds since the epoch of a dated RFC 3339 time, else None."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    moment = parse_written_time(value)
    return moment.seconds if moment and moment.dated and moment.grain < DAY else None


def make_pointer(path: Sequence[str | int]) -> str:
    """The JSON pointer (RFC 6901) of a path."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def follow_pointer(record: JSON, path: str) -> JSON:
    """The value that a JSON pointer leads to. Raises KeyError, IndexError or ValueError where it leads nowhere."""
    value: Any = record
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list | tuple) else value[key]
    return value

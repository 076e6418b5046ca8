"""Where a stepped run stops by itself: before a node, before a call of a tool, when the state changes at a path.

A condition is a closed language of comparisons over the state, `hypotheses.H1.status == supported and turn >= 3`;
nothing of it is ever executed.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from opsleuth.state.errors import UsageError
from opsleuth.state.json_types import JSON
from opsleuth.state.state_paths import NoSuchPathError, get_at_path, parse_typed_value

NODES = ("plan", "approve", "act", "observe", "verify")
FORMS = "b NODE, b tool:NAME or b change:PATH, each with an optional `if PATH == VALUE [and …]`"

_TERM = re.compile(r"(\S+)\s+(==|!=|<=|>=|<|>|contains)\s+(.+)")
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "contains": lambda whole, part: part in whole,
}


class NodeBoundary(NamedTuple):
    """Between two nodes: which comes next, the state there, and the state where the run was last let go."""

    next: str
    values: Mapping[str, Any]
    before: Mapping[str, Any]

    @property
    def turn(self) -> int:
        return int(self.values["budget"]["used"]["turns"])


class ConditionTerm(NamedTuple):
    """One comparison. A path that is not there, or values that cannot be compared, make it false."""

    path: str
    word: str
    value: Any

    def holds(self, border: NodeBoundary) -> bool:
        special = {"turn": border.turn, "node": border.next}
        try:
            found = special.get(self.path) if self.path in special else get_at_path(border.values, self.path)
            return bool(_COMPARE[self.word](found, self.value))
        except (NoSuchPathError, TypeError):
            return False


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """One of them. `once` goes when it was hit."""

    number: int
    kind: Literal["node", "tool", "change"]
    what: str
    terms: tuple[ConditionTerm, ...] = ()
    once: bool = False
    text: str = ""

    def hit(self, border: NodeBoundary) -> bool:
        """Whether the run stops at this border."""
        if self.kind == "node":
            here = border.next == self.what
        elif self.kind == "tool":
            here = border.next == "act" and any(c["tool"] == self.what for c in border.values["pending"])
        else:
            here = _state_value_at(border.before, self.what) != _state_value_at(border.values, self.what)
        return here and all(term.holds(border) for term in self.terms)


def parse_breakpoint(text: str, number: int, *, once: bool = False) -> Breakpoint:
    """`plan`, `tool:logs_search`, `change:hypotheses if turn > 2`. Raises UsageError naming the forms."""
    place, _, condition = (part.strip() for part in text.partition(" if "))
    terms = (
        tuple(_parse_condition_term(part) for part in re.split(r"\s+and\s+", condition)) if condition else ()
    )
    kind, colon, what = place.partition(":")
    if not colon and place in NODES:
        return Breakpoint(number, "node", place, terms, once, text)
    if kind == "tool" and what:
        return Breakpoint(number, "tool", what, terms, once, text)
    if kind == "change" and what:
        return Breakpoint(number, "change", what, terms, once, text)
    raise UsageError(f"{text!r} is not a breakpoint: write {FORMS}; the nodes are {', '.join(NODES)}")


def _parse_condition_term(text: str) -> ConditionTerm:
    found = _TERM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a condition: write PATH OP VALUE, OP one of {' '.join(_COMPARE)}")
    return ConditionTerm(found[1], found[2], parse_typed_value(found[3]))


def _state_value_at(values: Mapping[str, Any], path: str) -> JSON:
    try:
        return get_at_path(values, path)
    except NoSuchPathError:
        return None

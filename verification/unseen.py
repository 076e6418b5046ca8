"""Names and numbers that turn up in a call or a plan step although nothing that was observed holds them.

Checked in the turn in which they turn up, so that no later turn builds on them. They are marked and told, not
refused: a call may well look for something new, but then on purpose.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opsleuth.state.calls import CallRequest
from opsleuth.state.investigation import Window
from opsleuth.verification.claims import EvidenceView
from opsleuth.verification.figures import Facts, facts, squeeze
from opsleuth.verification.grounding import Ground, found
from opsleuth.verification.names import names, occurs
from opsleuth.verification.quantities import Quantity, quantities

# Arguments that say which thing is meant: their whole value is a name.
NAMING = frozenset(
    {"service", "services", "pod", "namespace", "object", "host", "node", "database", "metric", "operation", "instance",
     "name", "container", "deployment", "caller", "callee", "component", "target", "topic", "queue", "table"}
)  # fmt: skip
# Arguments that say how much to look at: choices, not facts.
_KNOB = re.compile(
    r"(?:^|_)(?:limit|top|n|max|min|step|timeout|page|offset|percentile|quantile|bins?|seconds|minutes|replicas|factor|threshold|count|size|every|depth)(?:_|$)"
)


class Unseen(NamedTuple):
    """A value that nothing observed holds, and where it turned up."""

    value: str
    where: str

    def __str__(self) -> str:
        return (
            f'"{self.value}" ({self.where}) stands in no observation, alert or topology of this run: '
            "look it up first, or use a name or number that was observed"
        )


@dataclass(frozen=True)
class Seen:
    """What the run has seen: its observations, further texts (question, alert), and known names (topology)."""

    views: Sequence[EvidenceView]
    texts: Sequence[str]
    names: Collection[str]
    window: Window

    def name(self, name: str) -> bool:
        """Whether the name stands in a text, a known name or an observation."""
        return occurs(name, self._plain()) or any(occurs(name, [view.text]) for view in self.views)

    def number(self, quantity: Quantity) -> bool:
        """Whether a figure of the observations or texts can be written so."""
        start, end = self.window.start.timestamp(), self.window.end.timestamp()
        return any(found(quantity, Ground([one], start, end)) for one in self._facts())

    def _plain(self) -> list[str]:
        return [squeeze("\n".join([*self.texts, *self.names]))]

    def _facts(self) -> Iterator[Facts]:
        yield facts({"texts": list(self.texts)})
        for view in self.views:
            yield view.facts


def unseen_in_call(call: CallRequest, seen: Seen) -> tuple[Unseen, ...]:
    """What in the call's arguments nothing observed holds."""
    return tuple(_unique(_in_value(call.arguments, "", call.tool, seen)))


def unseen_in_text(text: str, where: str, seen: Seen) -> tuple[Unseen, ...]:
    """What in a plan step or a hypothesis nothing observed holds."""
    return tuple(_unique(_in_text(text, where, seen)))


def _unique(found_: Iterator[Unseen]) -> Iterator[Unseen]:
    known: set[str] = set()
    for item in found_:
        if item.value.casefold() not in known:
            known.add(item.value.casefold())
            yield item


def _in_value(value: Any, key: str, tool: str, seen: Seen) -> Iterator[Unseen]:  # noqa: ANN401 - any JSON value
    where = f"argument {key} of {tool}"
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _in_value(item, inner, tool, seen)
    elif isinstance(value, list):
        for item in value:
            yield from _in_value(item, key, tool, seen)
    elif isinstance(value, str):
        yield from _in_name(value, where, seen) if key.lower() in NAMING else _in_text(value, where, seen)
    elif isinstance(value, int | float) and not isinstance(value, bool) and not _KNOB.search(key.lower()):
        yield from _in_text(f"{value:.15g}", where, seen)


def _in_name(value: str, where: str, seen: Seen) -> Iterator[Unseen]:
    """A value that is a name as a whole; `*`, `|` and `,` join several."""
    for part in re.split(r"[*|,]+", value):
        name = part.strip(" ^$()")
        if name and not seen.name(name) and not seen.name(name.rstrip("-.")):
            yield Unseen(name, where)


def _in_text(text: str, where: str, seen: Seen) -> Iterator[Unseen]:
    for name in names(text, seen.names):
        if not seen.name(name):
            yield Unseen(name, where)
    for quantity in quantities(text):
        if not seen.number(quantity):
            yield Unseen(quantity.text, where)

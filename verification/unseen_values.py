"""Names and numbers in a call or a plan step that no observation holds.

Checked in the turn in which they turn up, so that no later turn builds on them. They are marked and told, not
refused: a call may well look for something new, but then on purpose.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opsleuth.state.calls import CallRequest
from opsleuth.state.investigation import Window
from opsleuth.state.json_types import JSON
from opsleuth.verification.conclusion_basis import EvidenceView
from opsleuth.verification.grounding import EvidenceGround, holds_number
from opsleuth.verification.name_extraction import extract_names, name_occurs_in
from opsleuth.verification.quantities import Quantity, find_quantities
from opsleuth.verification.record_facts import RecordFacts, index_record, normalize_for_matching

# Arguments that say which thing is meant: their whole value is a name.
NAMING = frozenset(
    {"service", "services", "pod", "namespace", "object", "host", "node", "database", "metric", "operation", "instance",
     "name", "container", "deployment", "caller", "callee", "component", "target", "topic", "queue", "table"}
)  # fmt: skip
# Arguments that say how much to look at: choices, not facts.
_KNOB = re.compile(
    r"(?:^|_)(?:limit|top|n|max|min|step|timeout|page|offset|percentile|quantile|bins?|seconds|minutes|replicas|factor|threshold|count|size|every|depth)(?:_|$)"
)


class UnseenValue(NamedTuple):
    """A value that nothing observed holds, and where it turned up."""

    value: str
    where: str

    def __str__(self) -> str:
        return (
            f'"{self.value}" ({self.where}) appears in no observation, alert or topology of this run: '
            "look it up first, or use a name or number that was observed"
        )


@dataclass(frozen=True)
class RunObservations:
    """What the run has seen: its observations, further texts (question, alert), and known names (topology)."""

    views: Sequence[EvidenceView]
    texts: Sequence[str]
    names: Collection[str]
    window: Window

    def name(self, name: str) -> bool:
        """Whether the name appears in a text, a known name or an observation."""
        return name_occurs_in(name, self._normalized_texts()) or any(
            name_occurs_in(name, [view.text]) for view in self.views
        )

    def number(self, quantity: Quantity) -> bool:
        """Whether a figure of the observations or texts can be written so."""
        start, end = self.window.seconds
        return any(holds_number(quantity, EvidenceGround([one], start, end)) for one in self._indexed_facts())

    def _normalized_texts(self) -> list[str]:
        return [normalize_for_matching("\n".join([*self.texts, *self.names]))]

    def _indexed_facts(self) -> Iterator[RecordFacts]:
        yield index_record({"texts": list(self.texts)})
        for view in self.views:
            yield view.facts


def find_unseen_in_call(call: CallRequest, seen: RunObservations) -> tuple[UnseenValue, ...]:
    """What in the call's arguments nothing observed holds."""
    return tuple(_drop_repeated_values(_iter_unseen_in_value(call.arguments, "", call.tool, seen)))


def find_unseen_in_text(text: str, where: str, seen: RunObservations) -> tuple[UnseenValue, ...]:
    """What in a plan step or a hypothesis nothing observed holds."""
    return tuple(_drop_repeated_values(_iter_unseen_in_text(text, where, seen)))


def _drop_repeated_values(found_: Iterator[UnseenValue]) -> Iterator[UnseenValue]:
    known: set[str] = set()
    for item in found_:
        if item.value.casefold() not in known:
            known.add(item.value.casefold())
            yield item


def _iter_unseen_in_value(value: JSON, key: str, tool: str, seen: RunObservations) -> Iterator[UnseenValue]:
    where = f"argument {key} of {tool}"
    if isinstance(value, Mapping):
        for inner, item in value.items():
            yield from _iter_unseen_in_value(item, inner, tool, seen)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_unseen_in_value(item, key, tool, seen)
    elif isinstance(value, str):
        yield from (
            _iter_unseen_in_name(value, where, seen)
            if key.lower() in NAMING
            else _iter_unseen_in_text(value, where, seen)
        )
    elif isinstance(value, int | float) and not isinstance(value, bool) and not _KNOB.search(key.lower()):
        yield from _iter_unseen_in_text(f"{value:.15g}", where, seen)


def _iter_unseen_in_name(value: str, where: str, seen: RunObservations) -> Iterator[UnseenValue]:
    """A value that is a name as a whole; `*`, `|` and `,` join several."""
    for part in re.split(r"[*|,]+", value):
        name = part.strip(" ^$()")
        if name and not seen.name(name) and not seen.name(name.rstrip("-.")):
            yield UnseenValue(name, where)


def _iter_unseen_in_text(text: str, where: str, seen: RunObservations) -> Iterator[UnseenValue]:
    for name in extract_names(text, seen.names):
        if not seen.name(name):
            yield UnseenValue(name, where)
    for quantity in find_quantities(text):
        if not seen.number(quantity):
            yield UnseenValue(quantity.text, where)

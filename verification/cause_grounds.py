"""The four grounds that confirm a cause, each from facts: order, path, mechanism, counter-test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from opsleuth.state.conclusion import Cause, CauseGround, CauseSequence
from opsleuth.verification.conclusion_basis import EvidenceView
from opsleuth.verification.facts import Fact
from opsleuth.verification.name_extraction import name_occurs_in

SAMPLING_STEP = 60.0
"""Seconds by which a cause may seem to come after its effect where no series tells its own step."""
_EDGES = ("calls", "called_by", "passes_to", "network_time")


def list_cause_grounds(
    cause: Cause,
    cited: Sequence[EvidenceView],
    evidence: Mapping[str, EvidenceView],
    *,
    tested: bool,
    asked: str | None = None,
) -> Iterator[CauseGround]:
    """Which of the four are shown; `cited` is what the cause's claims rest on, `tested` whether it withstood a counter-test.

    No path is needed where the cause is the service that the question is about (`asked`).
    """
    every = [fact for view in evidence.values() for fact in view.typed_facts]
    own = [fact for view in cited for fact in view.typed_facts if _is_about(fact, cause.service)]
    if _is_first(own, every, cause.service):
        yield "order"
    if cause.service == asked or _has_path(every, cause.service):
        yield "path"
    if any(_shows_mechanism(fact, cause) for fact in own):
        yield "mechanism"
    if tested:
        yield "counter_test"


def _is_about(fact: Fact, service: str) -> bool:
    return name_occurs_in(service, [fact.subject.casefold()]) if fact.subject else False


def find_cause_sequence(
    cause: Cause, cited: Sequence[EvidenceView], evidence: Mapping[str, EvidenceView]
) -> CauseSequence | None:
    """The beginning of the cause and of the first that suffers later; None where that is nobody, or not later."""
    every = [fact for view in evidence.values() for fact in view.typed_facts]
    began = _find_earliest(
        fact for view in cited for fact in view.typed_facts if _is_about(fact, cause.service)
    )
    later = _find_earliest(_list_suffering(every, cause.service))
    if began is None or later is None or began.at_seconds >= later.at_seconds:
        return None
    return CauseSequence(began=str(began.fact.at), later=later.fact.subject, later_began=str(later.fact.at))


def _is_first(own: Sequence[Fact], every: Sequence[Fact], service: str) -> bool:
    """Whether what is seen of the component begins no later than what is seen of those that suffer."""
    began, suffered = _find_earliest(own), _find_earliest(_list_suffering(every, service))
    if began is None:
        return False
    return suffered is None or began.at_seconds <= suffered.at_seconds + SAMPLING_STEP


def _list_suffering(every: Sequence[Fact], service: str) -> Iterator[Fact]:
    return (f for f in every if f.direction == "victim" and not _is_about(f, service))


class _Beginning(NamedTuple):
    """The row in which something is first seen to begin; seconds since the epoch."""

    at_seconds: float
    fact: Fact


def _find_earliest(facts: Iterable[Fact]) -> _Beginning | None:
    begun = (
        _Beginning(seconds, f)
        for f in facts
        if any(d.name == "onset" for d in f.details) or f.measure == "change"
        if (seconds := f.at_seconds) is not None
    )
    return min(begun, default=None, key=lambda one: one.at_seconds)


def _has_path(every: Sequence[Fact], service: str) -> bool:
    """Whether edges lead from the component to one that suffers, or only it is affected."""
    victims = {f.subject for f in every if f.direction == "victim" and not _is_about(f, service)}
    return not victims or bool(victims & _find_connected(service, every))


def _find_connected(service: str, every: Sequence[Fact]) -> set[str]:
    """All that edges of the topology, of traces and of the ranking join to the component."""
    edges = [edge for fact in every if fact.measure in _EDGES and (edge := _edge_of_fact(fact))]
    reached, grown = {service}, True
    while grown:
        new = {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
        grown = not new <= reached
        reached |= new
    return reached


def _edge_of_fact(fact: Fact) -> tuple[str, str] | None:
    if " → " in fact.subject:
        first, _, second = fact.subject.partition(" → ")
        return first, second
    return (fact.subject, str(fact.value)) if isinstance(fact.value, str) else None


def _shows_mechanism(fact: Fact, cause: Cause) -> bool:
    """A finding of the cause's own kind, or a change together with its words."""
    kinds = {str(d.value) for d in fact.details if d.name == "kind"}
    return fact.direction == "cause" and cause.kind in kinds and cause.kind != "other"

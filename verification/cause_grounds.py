"""The four grounds that confirm a cause, each from facts: order, path, mechanism, counter-test."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from opsleuth.state.conclusion import Cause, CauseGround
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


def _is_first(own: Sequence[Fact], every: Sequence[Fact], service: str) -> bool:
    """Whether what is seen of the component begins no later than what is seen of those that suffer."""
    began = _find_earliest(own)
    suffered = _find_earliest(f for f in every if f.direction == "victim" and not _is_about(f, service))
    if began is None:
        return False
    return suffered is None or began <= suffered + SAMPLING_STEP


def _find_earliest(facts: Iterable[Fact]) -> float | None:
    onsets = (
        f.at_seconds for f in facts if any(d.name == "onset" for d in f.details) or f.measure == "change"
    )
    return min((seconds for seconds in onsets if seconds is not None), default=None)


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

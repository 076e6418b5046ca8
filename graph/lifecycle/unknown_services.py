"""Services in the question that neither the sources nor the rows of a case name."""

from collections.abc import Collection, Mapping

from opsleuth.questions.unknown_services import find_unknown_services
from opsleuth.state.investigation import Alert
from opsleuth.state.nearest_name import suggest_names
from opsleuth.tools.sources.case_source import CaseSource


def find_absent_services(
    question: str | None,
    alert: Alert | None,
    known: Mapping[str, tuple[str, ...]],
    case: CaseSource | None,
) -> tuple[str, ...]:
    """Services that the operator's own question, or the alert that was handed in, is about and that neither `known` nor the case names.

    The tables of a case are read only where there seems to be one.
    """
    if not known and case is None:
        return ()
    spoken = {*known, *(alias for aliases in known.values() for alias in aliases)}
    found = list(find_unknown_services(question or "", spoken))
    if alert and alert.service and alert.service not in spoken:
        found.insert(0, alert.service)
    if found and case is not None:
        held = {name.casefold() for name in _services_in_case(case)}
        found = [name for name in found if not any(name.casefold() in other for other in held)]
    return tuple(dict.fromkeys(found))


def _services_in_case(case: CaseSource) -> set[str]:
    """The services that the rows of a case name; log lines are left out, which may be many."""
    data = case.recording({"metrics", "traces", "topology", "changes", "events", "objects"})
    names = {series.service for series in data.metrics or ()}
    names |= {span.service for span in data.spans or ()} | {stat.service for stat in data.span_stats or ()}
    names |= {end for call in data.topology or () for end in (call.caller, call.callee)}
    names |= {end for edge in data.edges or () for end in (edge.caller, edge.callee)}
    names |= {change.service for change in data.changes or ()}
    return (
        names | {event.object for event in data.events or ()} | {thing.name for thing in data.objects or ()}
    )


def describe_absent_services(absent: Collection[str], known: Collection[str]) -> str:
    """In words, with the names that are near, or those that there are."""
    names = " and ".join(absent)
    near = suggest_names(next(iter(absent)), known)
    return f"there is no data on {names}: no source has a service of that name ({near})"[:1000]

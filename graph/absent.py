"""What is asked about and is not there: services that neither the sources nor the rows of a case name."""

from collections.abc import Collection, Mapping

from opsleuth.state.investigation import Alert
from opsleuth.tools.nearest import suggestion
from opsleuth.tools.sources.case import CaseFolder
from opsleuth.verification.strangers import strangers


def absent_from(
    question: str | None,
    alert: Alert | None,
    known: Mapping[str, tuple[str, ...]],
    case: CaseFolder | None,
) -> tuple[str, ...]:
    """Services that the operator's own question, or the alert that was handed in, is about and that neither `known` nor the case names.

    The tables of a case are read only where there seems to be one.
    """
    if not known and case is None:
        return ()
    spoken = {*known, *(alias for aliases in known.values() for alias in aliases)}
    found = list(strangers(question or "", spoken))
    if alert and alert.service and alert.service not in spoken:
        found.insert(0, alert.service)
    if found and case is not None:
        held = {name.casefold() for name in _named_in(case)}
        found = [name for name in found if not any(name.casefold() in other for other in held)]
    return tuple(dict.fromkeys(found))


def _named_in(case: CaseFolder) -> set[str]:
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


def no_data(absent: Collection[str], known: Collection[str]) -> str:
    """In words, with the names that are near, or those that there are."""
    names = " and ".join(absent)
    near = suggestion(next(iter(absent)), known)
    return f"there is no data on {names}: the sources know no service of that name ({near})"[:1000]

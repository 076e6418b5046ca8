"""The change behind each cause, graded by code from the ranking: a planner names one, but does not grade it.

What the ranking does not grade is innocent there. Without a ranking a change that appears in a list of changes only coincides.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsleuth.state.conclusion import Cause, CauseChange, Conclusion
from opsleuth.verification.conclusion_basis import EvidenceView

RANKING, CHANGES = "rank_suspects", "changes_list"
_SHORTEST_ID = 5
_UNCOMPARED = "recorded as a change of this service; nothing compares it with what fails"

ChangeRecord = Mapping[str, Any]


def with_graded_changes(conclusion: Conclusion, evidence: Sequence[EvidenceView]) -> Conclusion:
    """The conclusion with the change of each cause as code grades it, and none that code does not know."""
    if not conclusion.causes:
        return conclusion
    rankings = [view for view in evidence if view.tool == RANKING and view.shows]
    graded: Sequence[ChangeRecord] = rankings[-1].record.get("graded_changes") or () if rankings else ()
    listed = () if rankings else tuple(_list_changes(evidence))
    causes = [_with_named_change(cause, graded, listed) for cause in conclusion.causes]
    if not any(cause.change for cause in causes) and (trigger := find_trigger(graded)):
        place = next((i for i, cause in enumerate(causes) if cause.service == trigger["service"]), None)
        if place is not None:
            causes[place] = causes[place].model_copy(update={"change": _build_change(trigger)})
    changed = {"causes": [cause.model_dump() for cause in causes]}
    return Conclusion.model_validate(conclusion.model_dump() | changed)


def find_trigger(graded: Sequence[ChangeRecord]) -> ChangeRecord | None:
    """The change that set it off, or the only one that fits in place and time; of several that fit, none."""
    if not graded or (graded[0]["grade"] != "cause" and len(graded) > 1):
        return None
    return graded[0]


def _with_named_change(cause: Cause, graded: Sequence[ChangeRecord], listed: Sequence[ChangeRecord]) -> Cause:
    """The cause with the planner's change in the form and grade that the evidence gives it; without it where it gives none."""
    if cause.change is None:
        return cause
    found = next((change for change in (*graded, *listed) if _is_same_change(cause.change, change)), None)
    return cause.model_copy(update={"change": _build_change(found) if found else None})


def _is_same_change(named: CauseChange, record: ChangeRecord) -> bool:
    """Whether the planner's id is the record's id or version, or as much of one as tells it from others."""
    wanted = named.id.casefold()
    own = [str(record.get(key) or "").casefold() for key in ("id", "version")]
    if wanted in own:
        return True
    return len(wanted) >= _SHORTEST_ID and any(
        id_.startswith(wanted) or wanted.startswith(id_) for id_ in own if len(id_) >= _SHORTEST_ID
    )


def _list_changes(evidence: Sequence[EvidenceView]) -> Iterator[ChangeRecord]:
    """The rows of the lists of changes in the form of graded ones."""
    for view in evidence:
        for row in view.record.get("changes") or () if view.tool == CHANGES and view.shows else ():
            id_ = (row.get("extra") or {}).get("commit") or row.get("version") or row.get("id")
            if id_:
                yield {**row, "id": str(id_), "at": row.get("time"), "grade": "coincides", "why": _UNCOMPARED}


def _build_change(record: ChangeRecord) -> CauseChange:
    known = {name: record[name] for name in CauseChange.model_fields if record.get(name) is not None}
    return CauseChange.model_validate(known)

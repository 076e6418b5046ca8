"""What was seen before: earlier incidents that were like this one, for people to read. Nothing here weighs in any finding."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opsleuth.analysis.incident_terms import ENOUGH, collect_incident_terms, compare_incidents
from opsleuth.checkpoints.incidents import IncidentRow
from opsleuth.checkpoints.store import Store
from opsleuth.nodes.deps import Deps
from opsleuth.state.fault_words import FAULT_WORDS
from opsleuth.state.investigation import Investigation
from opsleuth.state.results import Observation
from opsleuth.state.run_status import Verdict

MOST_SHOWN = 3
Document = Mapping[str, Any]


def add_earlier_incidents(document: dict[str, Any], state: Investigation, deps: Deps) -> dict[str, Any]:
    """The report with the earlier incidents that are like this one; this one is kept for those to come.

    A question on an ended run and a run that found everything well are not incidents of their own.
    """
    if state.follow_up is not None or document.get("verdict") in (Verdict.HEALTHY, Verdict.ANSWERED):
        return document
    terms = keep_incident(deps.store, deps.run, document, deps.observed.upto(state.observations))
    return document | {"seen_before": list(find_earlier_incidents(deps.store, deps.run, terms))}


def keep_incident(
    store: Store, run: str, document: Document, observed: Sequence[Observation]
) -> frozenset[str]:
    """Keep what the incident of a run is known by; its terms."""
    row = store.runs.get(run)
    terms = read_incident_terms(document, observed)
    incident = IncidentRow(
        run=run,
        project=row.project if row else "",
        began=find_beginning(document),
        document=summarize_incident(document),
    )
    store.incidents.put(incident, terms)
    return terms


def read_incident_terms(document: Document, observed: Sequence[Observation]) -> frozenset[str]:
    """The terms of an incident, out of its report and what its tools answered."""
    causes = {cause["service"] for cause in document.get("causes") or []}
    rankings = [o.record for o in observed if o.tool == "rank_suspects" and o.record.get("suspects")]
    findings = [
        finding
        for suspect in (rankings[-1]["suspects"] if rankings else ())
        if suspect["service"] in causes
        for finding in suspect["findings"]
    ]
    patterns = [o.record for o in observed if o.tool == "logs_patterns" and not o.status.is_error]
    lines = [
        (str(row.get("service") or ""), str(row.get("pattern") or ""))
        for record in patterns[:1]
        for row in record.get("failing") or ()
    ]
    return collect_incident_terms(document, findings, lines)


def find_earlier_incidents(store: Store, run: str, terms: frozenset[str]) -> Iterator[dict[str, Any]]:
    """The most alike first, those with the same cause together as one entry; branches of this run are not earlier ones."""
    kept = store.incidents.get(run)
    sharing = store.incidents.find_sharing(
        kept.project if kept else "", terms, without=store.runs.list_family(run)
    )
    graded = sorted(((compare_incidents(terms, own), name) for name, own in sharing.items()), reverse=True)
    rows = [
        row for grade, name in graded if grade >= ENOUGH and (row := store.incidents.get(name)) is not None
    ]
    by_cause: dict[str, list[IncidentRow]] = {}
    for row in rows:
        by_cause.setdefault(row.cause or str(row.document.get("cause") or ""), []).append(row)
    for cause, same in list(by_cause.items())[:MOST_SHOWN]:
        yield describe_earlier_incidents(cause, same)


def describe_earlier_incidents(cause: str, rows: Sequence[IncidentRow]) -> dict[str, Any]:
    """One entry for incidents with one cause, the most alike first: which, how often, what helped, how people judged it."""
    nearest = rows[0]
    judged = [row for row in rows if row.judged]
    word = max(judged, key=lambda row: row.judged_at or "").judged if judged else None
    newest_first = sorted(rows, key=lambda row: row.began, reverse=True)
    helped = [said for row in newest_first if (said := row.helped or str(row.document.get("helped") or ""))]
    return {
        "run": nearest.run,
        "began": nearest.began,
        "cause": cause,
        "times": len(rows),
        "helped": helped[0] if helped else "",
        "advised": str(nearest.document.get("advised") or ""),
        "judged": word,
        "found": str(nearest.document.get("cause") or ""),
    }


def find_beginning(document: Document) -> str:
    """When the incident began: its alert's onset, else the start of its window."""
    alert = document.get("alert") or {}
    return str(alert.get("onset") or alert.get("fired_at") or document["window"]["start"])


def summarize_incident(document: Document) -> dict[str, Any]:
    """What is kept of an incident for people: the cause in words, what helped, and what was advised."""
    causes = document.get("causes") or []
    if not causes:
        return {}
    first = causes[0]
    cause = f"{first['service']}: {FAULT_WORDS.get(first['kind'], first['kind'])}"
    change = first.get("change") or {}
    if change.get("grade") == "cause":
        cause += f", set off by {change['kind']} {change['id']} of {change['service']}"
    done = [row for row in document.get("effects") or [] if row.get("verified") and not row.get("replayed")]
    advice = [row["text"] for row in document.get("recommendations") or []]
    return {
        "cause": cause[:500],
        "helped": "; ".join(f"{row['tool'].replace('_', ' ')} of {row['target']}" for row in done)[:500],
        "advised": str(advice[0])[:500] if advice else "",
    }

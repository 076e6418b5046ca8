"""What happened when, from the alert and from what was observed; in order, with the evidence of each entry."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from opsleuth.models.advice import WORDS
from opsleuth.models.planner import Observation
from opsleuth.state.base import to_json
from opsleuth.state.investigation import Investigation

MOST = 24
LEAD = timedelta(hours=2)
"""How long before the window an entry may lie: a change two hours earlier can still be the cause."""


def timeline(state: Investigation, observed: Sequence[Observation]) -> list[dict[str, Any]]:
    """Entries `{time, text, evidence}`, oldest first, each once, at most `MOST`."""
    entries = [*_alert(state)]
    services = _concerned(state)
    for o in observed:
        if not o.status.is_error and o.evidence == f"E{o.number}":
            entries += [entry | {"evidence": o.evidence} for entry in _moments(o.record, services)]
    earliest = state.window.start - LEAD
    ordered = sorted(
        (e for e in entries if _when(e["time"]) >= earliest), key=lambda e: (_when(e["time"]), e["text"])
    )
    # What two detectors saw begin began once: when the first of them saw it.
    unique = {e["text"]: e for e in reversed(ordered)}
    return [e for e in ordered if unique[e["text"]] is e][:MOST]


def _concerned(state: Investigation) -> frozenset[str]:
    """The causes, and who stands next to one on the way of the harm."""
    if state.draft is None:
        return frozenset()
    causes = {cause.service for cause in state.draft.causes}
    return frozenset(causes.union(*(pair for pair in state.draft.propagation if causes & set(pair))))


def _alert(state: Investigation) -> Iterable[dict[str, Any]]:
    if state.alert is None:
        return
    facts = to_json(state.alert)
    if facts["onset"]:
        yield {"time": facts["onset"], "text": "onset, as the alert claims it", "evidence": None}
    if facts["fired_at"]:
        yield {"time": facts["fired_at"], "text": "alert sent", "evidence": None}


def _moments(record: Mapping[str, Any], services: Collection[str]) -> Iterable[dict[str, Any]]:
    """Changes of the services concerned, and when each of their findings began."""
    for change in _rows(record, "changes"):
        if change.get("service") in services:
            what = " ".join(str(change[key]) for key in ("kind", "version") if change.get(key))
            yield {"time": change["time"], "text": f"{what} of {change['service']}"}
    for finding in _rows(record, "findings"):
        if (
            finding.get("service") in services
            and finding.get("onset")
            and finding.get("direction") == "cause"
        ):
            yield {"time": finding["onset"], "text": f"{finding['service']}: {_began(finding)}"}


def _began(finding: Mapping[str, Any]) -> str:
    if finding.get("metric"):
        return f"{finding['metric']} leaves its usual range"
    what = WORDS[finding["kind"]]
    return f"first log line of {what}" if finding.get("signal") == "logs" else f"{what} begins"


def _rows(record: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    return [row for row in record.get(name, ()) if isinstance(row, Mapping)]


def _when(text: str) -> datetime:
    return datetime.fromisoformat(text)

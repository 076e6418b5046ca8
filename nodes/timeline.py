"""What happened when, from the alert and from what was observed; in order, with the evidence of each entry."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from opsleuth.models.planner import Observation
from opsleuth.state.base import to_json
from opsleuth.state.investigation import Investigation

MOST = 24
LEAD = timedelta(hours=2)
"""How long before the window an entry may lie: a change two hours earlier can still be the cause."""


def timeline(state: Investigation, observed: Sequence[Observation]) -> list[dict[str, Any]]:
    """Entries `{time, text, evidence}`, oldest first, each once, at most `MOST`."""
    entries = [*_alert(state)]
    for o in observed:
        if not o.status.is_error and o.evidence == f"E{o.number}":
            entries += [entry | {"evidence": o.evidence} for entry in _moments(o.record)]
    earliest = state.window.start - LEAD
    unique = {(e["time"], e["text"]): e for e in reversed(entries) if _when(e["time"]) >= earliest}
    return sorted(unique.values(), key=lambda e: (_when(e["time"]), e["text"]))[:MOST]


def _alert(state: Investigation) -> Iterable[dict[str, Any]]:
    if state.alert is None:
        return
    facts = to_json(state.alert)
    if facts["onset"]:
        yield {"time": facts["onset"], "text": "onset, as the alert claims it", "evidence": None}
    if facts["fired_at"]:
        yield {"time": facts["fired_at"], "text": "alert sent", "evidence": None}


def _moments(record: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """A tool that knows of moments worth telling lists them under `moments` as `{time, text}`."""
    for moment in record.get("moments", ()):
        if isinstance(moment, Mapping) and isinstance(moment.get("time"), str) and moment.get("text"):
            yield {"time": moment["time"], "text": str(moment["text"])}


def _when(text: str) -> datetime:
    return datetime.fromisoformat(text)

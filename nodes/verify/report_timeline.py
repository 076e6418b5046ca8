"""What happened when, from the alert and from what was observed; in order, with the evidence of each entry."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from opsleuth.models.fault_advice import FAULT_WORDS
from opsleuth.models.planner import Observation
from opsleuth.state.base import to_json
from opsleuth.state.investigation import Investigation
from opsleuth.state.run_status import Verdict

Entry = dict[str, Any]

MOST = 24
LEAD = timedelta(hours=2)
"""How long before the window an entry may lie: a change two hours earlier can still be the cause."""


def build_timeline(
    state: Investigation, observed: Sequence[Observation], acted: Iterable[Entry] = ()
) -> list[Entry]:
    """Entries `{time, text, evidence}`, oldest first, each once, at most `MOST`.

    Changes of the services concerned, all of them where no cause is known; and when the findings about those began.
    `acted` are the entries of changes that the run made.
    """
    own = [o for o in observed if not o.status.is_error and o.has_own_evidence]
    services = _services_concerned(state)
    known = services or state.draft is None or state.draft.verdict is not Verdict.INCONCLUSIVE
    told = [
        *_alert_entries(state),
        *acted,
        *(
            e | {"evidence": o.evidence}
            for o in own
            for e in _change_entries(o.record, services if known else None)
        ),
    ]
    began = [e | {"evidence": o.evidence} for o in own for e in _onset_entries(o.record, services)]
    unique = {(e["time"], e["text"]): e for e in reversed(told)}
    # What two detectors saw begin began once: when the first of them saw it.
    first: dict[str, Entry] = {}
    for entry in sorted(began, key=_entry_sort_key):
        first.setdefault(entry["text"], entry)
    earliest = state.window.start - LEAD
    entries = [e for e in (*unique.values(), *first.values()) if _parse_entry_time(e["time"]) >= earliest]
    return sorted(entries, key=_entry_sort_key)[:MOST]


def _entry_sort_key(entry: Entry) -> tuple[datetime, str]:
    return _parse_entry_time(entry["time"]), entry["text"]


def _services_concerned(state: Investigation) -> frozenset[str]:
    """The causes, and who stands next to one on the way of the harm."""
    if state.draft is None:
        return frozenset()
    causes = {cause.service for cause in state.draft.causes}
    return frozenset(causes.union(*(pair for pair in state.draft.propagation if causes & set(pair))))


def _alert_entries(state: Investigation) -> Iterable[Entry]:
    if state.alert is None:
        return
    facts = to_json(state.alert)
    if facts["onset"]:
        yield {"time": facts["onset"], "text": "onset, as the alert claims it", "evidence": None}
    if facts["fired_at"]:
        yield {"time": facts["fired_at"], "text": "alert sent", "evidence": None}


def _change_entries(record: Mapping[str, Any], services: Collection[str] | None) -> Iterable[Entry]:
    for change in _record_rows(record, "changes"):
        if services is None or change.get("service") in services:
            what = " ".join(str(change[key]) for key in ("kind", "version") if change.get(key))
            yield {"time": change["time"], "text": f"{what} of {change['service']}"}
    for change in _record_rows(record, "graded_changes"):
        if change["grade"] == "cause":
            what = " ".join(str(change[key]) for key in ("kind", "version") if change.get(key))
            yield {"time": change["at"], "text": f"{what} of {change['service']}"}


def _onset_entries(record: Mapping[str, Any], services: Collection[str]) -> Iterable[Entry]:
    for finding in _record_rows(record, "findings"):
        if (
            finding.get("service") in services
            and finding.get("onset")
            and finding.get("direction") == "cause"
            and finding.get("signal") != "statements"  # read every so often: what is new was there before
        ):
            yield {"time": finding["onset"], "text": f"{finding['service']}: {_describe_onset(finding)}"}


def _describe_onset(finding: Mapping[str, Any]) -> str:
    if finding.get("metric"):
        return f"{finding['metric']} leaves its usual range"
    what = FAULT_WORDS[finding["kind"]]
    return f"first log line of {what}" if finding.get("signal") == "logs" else f"{what} begins"


def _record_rows(record: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    return [row for row in record.get(name, ()) if isinstance(row, Mapping)]


def _parse_entry_time(text: str) -> datetime:
    return datetime.fromisoformat(text)

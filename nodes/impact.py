"""What the users had of the incident: the harm that was measured at the alerting service."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.models.planner import Observation
from opsleuth.state.investigation import Investigation


def impact(state: Investigation, observed: Sequence[Observation]) -> dict[str, Any] | None:
    """`{text, evidence}` of the extra waiting and failures of the alerting service, failing that of the one hurt most.

    None where no metric shows any.
    """
    harms = [(o.evidence, finding) for o in observed if not o.status.is_error for finding in _harms(o.record)]
    if not harms:
        return None
    alerting = state.alert.service if state.alert else None
    names = [finding["service"] for _, finding in harms]
    service = alerting if alerting in names else names[0]
    about = {
        f["text"].partition(";")[0]: evidence for evidence, f in reversed(harms) if f["service"] == service
    }
    return {"text": "; ".join(reversed(about)), "evidence": sorted(set(about.values()))}


def _harms(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    rows = [row for row in record.get("findings", ()) if isinstance(row, Mapping)]
    return [row for row in rows if str(row.get("detector")).startswith("harm.")]

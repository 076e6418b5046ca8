"""The impact on users: the harm measured at the alerting service."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.models.planner import Observation
from opsleuth.state.investigation import Investigation
from opsleuth.state.run_status import Verdict


def summarize_impact(state: Investigation, observed: Sequence[Observation]) -> dict[str, Any] | None:
    """The extra waiting and failures of the alerting service, failing that of a cause, else of the one hurt most.

    None where there is none. Where a cause was found, the harm of a service that has no part in it is another incident.
    `{text, evidence, since, figures}`: `figures` holds rows of service, measure, usual, now and unit (shares in per cent).
    """
    harms = [
        (o.evidence, finding)
        for o in observed
        if not o.status.is_error
        for finding in _harm_findings(o.record)
    ]
    if not harms:
        return None
    service = _choose_hurt_service(state, [finding["service"] for _, finding in harms])
    if service is None:
        return None
    about = {
        f["text"].partition(";")[0]: evidence for evidence, f in reversed(harms) if f["service"] == service
    }
    hurt = [finding for _, finding in harms if finding["service"] == service]
    return {
        "text": "; ".join(reversed(about)),
        "evidence": sorted(set(about.values())),
        "since": min((str(f["onset"]) for f in hurt if f.get("onset")), default=None),
        "figures": list({row["measure"]: row for row in map(_figure_row, hurt) if row}.values()),
    }


def _choose_hurt_service(state: Investigation, hurt: Sequence[str]) -> str | None:
    draft = state.draft
    causes = [cause.service for cause in draft.causes] if draft else []
    touched = [name for pair in draft.propagation for name in pair] if draft else []
    meant = [state.alert.service if state.alert else None, *causes, *touched]
    found = next((name for name in meant if name in hurt), None)
    return found if found or (draft and draft.verdict == Verdict.CAUSE_FOUND) else hurt[0]


def _figure_row(finding: Mapping[str, Any]) -> dict[str, Any] | None:
    """The measure's values before and after; a share of failed requests in per cent."""
    figures = finding.get("figures") or {}
    usual, now, unit = figures.get("usual"), figures.get("incident"), str(figures.get("unit") or "")
    if not isinstance(usual, int | float) or not isinstance(now, int | float):
        return None
    failures = str(finding["detector"]) == "harm.failures"
    if failures and unit != "%":
        usual, now, unit = 100 * usual, 100 * now, "%"
    measure = "failed requests" if failures else str(finding.get("metric") or "waiting time")
    return {
        "service": finding["service"],
        "measure": measure,
        "usual": usual,
        "now": now,
        "unit": unit,
    }


def _harm_findings(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    rows = [row for row in record.get("findings", ()) if isinstance(row, Mapping)]
    return [row for row in rows if str(row.get("detector")).startswith("harm.")]

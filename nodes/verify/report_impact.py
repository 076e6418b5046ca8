"""The impact on users: what the service that was asked about shows, then the harm measured elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.analysis.request_fields import name_requests
from opsleuth.models.planner import Observation
from opsleuth.state.investigation import Investigation
from opsleuth.state.run_status import Verdict

_RESPECTS = {"failures": "failing requests", "waiting": "latency"}
"""What users feel of a service, by the respect of its rows."""
_MOST_GROWTH = 1000.0


def summarize_impact(state: Investigation, observed: Sequence[Observation]) -> dict[str, Any] | None:
    """What the users of the service that was asked about feel; where that is not measured or not harmed, the harm elsewhere.

    None where nothing shows any. `{text, evidence, since, figures}`: `figures` holds rows of service, measure, usual, now
    and unit (shares in per cent) of what moved, first the measure that alarmed, then the one that grew most.
    """
    harm = _summarize_harm(state, observed)
    asked = state.alert.service if state.alert else None
    if asked is None or state.draft is None or state.draft.verdict != Verdict.CAUSE_FOUND:
        return harm
    rows = _list_asked_rows(asked, observed)
    if not rows:
        if harm is None or harm["service"] == asked:
            return harm
        return harm | {"text": f"{asked}: not measured; {harm['text']}"}
    moved = [row for _, row in rows if row.get("onset")]
    if not moved and harm is not None and harm["service"] != asked:
        own = _summarize_rows(state, rows)
        text, evidence = f"{own['text']}; {harm['text']}", sorted({*own["evidence"], *harm["evidence"]})
        return harm | {"text": text, "evidence": evidence}
    return _summarize_rows(state, rows)


def _list_asked_rows(service: str, observed: Sequence[Observation]) -> list[tuple[str, Mapping[str, Any]]]:
    """What was measured of the service, each respect once, with its evidence: by metrics, failing that by lines of requests."""
    found: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for o in observed:
        for row in () if o.status.is_error else o.record.get("impact", ()):
            if isinstance(row, Mapping) and row.get("service") == service:
                found.setdefault(str(row["respect"]), (o.evidence, row))
    if "failures" not in found:
        found |= [("failures", row) for row in _list_failing_lines(service, observed)[:1]]
    return [found[respect] for respect in _RESPECTS if respect in found]


def _list_failing_lines(service: str, observed: Sequence[Observation]) -> list[tuple[str, Mapping[str, Any]]]:
    """The share of failed requests that lines of requests show, as rows of the same form."""
    return [
        (o.evidence, row)
        for o in observed
        if not o.status.is_error
        for finding in _list_findings(o.record)
        if finding.get("detector") == "log_statuses" and finding.get("service") == service
        if (row := _row_of_statuses(finding))
    ]


def _row_of_statuses(finding: Mapping[str, Any]) -> Mapping[str, Any] | None:
    figures = finding.get("figures") or {}
    failed, requests = figures.get("failed"), figures.get("requests")
    before = figures.get("baseline_requests")
    if not requests or failed is None:
        return None
    text = f"{failed:,} of {requests:,} {name_requests(finding['service'])} failed ({100 * failed / requests:.2g} %)"
    if before:
        text += f", before {figures.get('baseline', 0):,} of {before:,}"
    return {
        "service": finding["service"],
        "respect": "failures",
        "measure": "failed requests",
        **({"usual": 100 * figures.get("baseline", 0) / before} if before else {}),
        "now": 100 * failed / requests,
        "unit": "%",
        "onset": finding.get("onset"),
        "text": text,
    }


def _summarize_rows(state: Investigation, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    alarmed = state.alert.metric if state.alert else None
    moved = sorted(
        (row for _, row in rows if row.get("onset") and "usual" in row),
        key=lambda row: (row["measure"] != alarmed, -_measure_growth(row)),
    )
    missing = [words for name, words in _RESPECTS.items() if all(row["respect"] != name for _, row in rows)]
    texts = [*(str(row["text"]) for row in moved), *(str(row["text"]) for _, row in rows if row not in moved)]
    texts += [f"{words} not measured" for words in missing]
    return {
        "text": "; ".join(texts),
        "service": rows[0][1]["service"],
        "evidence": sorted({evidence for evidence, _ in rows}),
        "since": min((str(row["onset"]) for _, row in rows if row.get("onset")), default=None),
        "figures": [
            {key: row.get(key, "") for key in ("service", "measure", "usual", "now", "unit")} for row in moved
        ],
    }


def _measure_growth(row: Mapping[str, Any]) -> float:
    """How many times as much as usual, at most a thousand: of two measures the more striking one comes first."""
    usual, now = float(row["usual"]), float(row["now"])
    return min(now / usual, _MOST_GROWTH) if usual > 0 else _MOST_GROWTH


def _summarize_harm(state: Investigation, observed: Sequence[Observation]) -> dict[str, Any] | None:
    """The extra waiting and failures of the alerting service, failing that of a cause, else of the one hurt most.

    None where there is none. Where a cause was found, the harm of a service that has no part in it is another incident.
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
        "service": service,
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


def _list_findings(record: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The findings of a record, and those of its suspects."""
    suspects = [row for row in record.get("suspects", ()) if isinstance(row, Mapping)]
    rows = [*record.get("findings", ()), *(f for s in suspects for f in s.get("findings", ()))]
    return [row for row in rows if isinstance(row, Mapping)]

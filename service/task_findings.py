"""What a run has found so far, from its events and its evidence: the same while it goes on and when it is over."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.checkpoints.store import Store
from opsleuth.service.documents import EvidenceSummary, Findings, HypothesisSummary
from opsleuth.state.json_types import JSON

_HYPOTHESIS = "hypothesis.updated"


def collect_findings(store: Store, run: str) -> Findings:
    """The answer, if there is one, hypotheses as they stand, evidence in the order in which it came."""
    report = store.reports.get(run) or {}
    answer = report.get("answer")
    return Findings(
        answer=str(answer) if answer else None,
        hypotheses=collect_hypotheses(store, run),
        evidence=[_summarize_evidence(row) for row in store.evidence.list(run)],
    )


def collect_hypotheses(store: Store, run: str) -> list[HypothesisSummary]:
    """Each as it was last reported."""
    told: dict[str, Mapping[str, Any]] = {}
    for event in store.events.read(run, types=[_HYPOTHESIS]):
        told[str(event["data"].get("id", ""))] = event["data"]
    return [
        HypothesisSummary(
            id=name,
            text=str(data.get("text", "")),
            status=str(data.get("status", "")),
            supporting=_parse_evidence_names(data.get("for")),
            contradicting=_parse_evidence_names(data.get("against")),
        )
        for name, data in told.items()
    ]


def _parse_evidence_names(value: JSON) -> list[str]:
    return [str(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else []


def _summarize_evidence(row: EvidenceRow) -> EvidenceSummary:
    return EvidenceSummary(
        id=row.id, tool=row.tool, source=row.source, headline=row.headline, status=row.status.value
    )

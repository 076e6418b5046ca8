"""What a run has found so far, from its events and its evidence: the same while it goes on and when it is over."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.checkpoints.store import Store
from opsleuth.service.documents import Findings, Hypothesis, Piece

_HYPOTHESIS = "hypothesis.updated"


def findings(store: Store, run: str) -> Findings:
    """The answer, if there is one, hypotheses as they stand, evidence in the order in which it came."""
    report = store.reports.get(run) or {}
    answer = report.get("answer")
    return Findings(
        answer=str(answer) if answer else None,
        hypotheses=hypotheses(store, run),
        evidence=[_piece(row) for row in store.evidence.list(run)],
    )


def hypotheses(store: Store, run: str) -> list[Hypothesis]:
    """Each as it was last told of."""
    told: dict[str, Mapping[str, Any]] = {}
    for event in store.events.read(run, types=[_HYPOTHESIS]):
        told[str(event["data"].get("id", ""))] = event["data"]
    return [
        Hypothesis(
            id=name,
            text=str(data.get("text", "")),
            status=str(data.get("status", "")),
            supporting=_names(data.get("for")),
            contradicting=_names(data.get("against")),
        )
        for name, data in told.items()
    ]


def _names(value: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    return [str(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else []


def _piece(row: EvidenceRow) -> Piece:
    return Piece(id=row.id, tool=row.tool, source=row.source, headline=row.headline, status=row.status.value)

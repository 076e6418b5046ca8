"""One report held against its key: what was right, what it cost."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opsleuth.evals.cases import Case, Expected


@dataclass(frozen=True, slots=True)
class Score:
    """How one case went. The three answers about the cause are None where the key names none.

    `blamed` is true where a healthy case was given a cause, or one was named that must not be blamed.
    `seconds` is active time of the run, `calls` counts tool calls, `repeated` those answered from the record.
    """

    case: str
    set: str
    fault_type: str
    expected: str
    verdict: str
    verdict_right: bool
    top1: bool | None
    top3: bool | None
    kind: bool | None
    all_causes: bool | None
    blamed: bool
    claims: int
    unsupported: int
    calls: int
    repeated: int
    turns: int
    tokens: int
    seconds: float
    status: str
    run: str
    answered: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def score(case: Case, report: Mapping[str, Any]) -> Score:
    """The score of a report; an empty one (the run failed) has everything wrong."""
    key = case.expected
    causes = report.get("causes", ())
    named = [cause["service"] for cause in causes]
    has_cause = bool(key.services)
    top1 = bool(named and named[0] in key.services)
    usage = report.get("usage", {})
    evidence = report.get("evidence", ())
    return Score(
        case=case.id,
        set=case.folder.parent.name,
        fault_type=key.fault_type,
        expected=key.verdict,
        verdict=report.get("verdict") or "none",
        verdict_right=report.get("verdict") == key.verdict,
        top1=top1 if has_cause else None,
        top3=bool(set(named[:3]) & key.services) if has_cause else None,
        kind=(causes[0]["kind"] in key.kinds if top1 else False) if has_cause else None,
        all_causes=_all(key, causes) if key.causes else None,
        blamed=_blamed(key, causes),
        claims=len(report.get("claims", ())),
        unsupported=report.get("unsupported", 0),
        calls=usage.get("tool_calls", 0),
        repeated=usage.get("tool_calls", 0) - len(evidence),
        turns=usage.get("turns", 0),
        tokens=usage.get("tokens_in", 0) + usage.get("tokens_out", 0),
        seconds=usage.get("seconds", 0.0),
        status=report.get("status", "none"),
        run=report.get("run", ""),
        answered=f"{named[0]} ({causes[0]['kind']})" if named else "",
    )


def _all(key: Expected, causes: Sequence[Mapping[str, Any]]) -> bool:
    named = {(cause["service"], cause["kind"]) for cause in causes}
    return all(cause in named for cause in key.causes)


def _blamed(key: Expected, causes: Sequence[Mapping[str, Any]]) -> bool:
    named = {cause["service"] for cause in causes} | {f"kind:{cause['kind']}" for cause in causes}
    healthy = key.verdict == "healthy" and bool(causes)
    return healthy or bool(named & key.must_not_blame)

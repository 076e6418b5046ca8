"""The report as one JSON document: stored at the end of a run, read without the framework."""

from collections.abc import Iterable, Mapping
from typing import Any

from opsleuth.checkpoints.effects import EffectRow
from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.nodes.deps import Deps
from opsleuth.nodes.verify.report_impact import summarize_impact
from opsleuth.nodes.verify.report_timeline import build_timeline
from opsleuth.state.base import to_json
from opsleuth.state.calls import ResultStatus
from opsleuth.state.investigation import Investigation
from opsleuth.state.results import Observation

Document = dict[str, Any]


def build_report(state: Investigation, deps: Deps) -> Document:
    """The answer with everything it rests on. Times RFC 3339 UTC, money a decimal string, lists ranked best first."""
    observed = deps.observed.upto(state.observations)
    raw = to_json(state)
    conclusion = raw["draft"] or {}
    claims = conclusion.pop("claims", [])
    unsupported = sum(claim["status"] == "unsupported" for claim in claims)
    return {
        "run": deps.run,
        "question": state.question,
        "alert": raw["alert"],
        "window": {"start": raw["window"]["start"], "end": raw["window"]["end"]},
        "status": raw["status"],
        "stop_reason": raw["stop_reason"],
        "stop_detail": state.stop_detail,
        **conclusion,
        "not_available": _not_available(
            (*filter(None, [state.unresolved]), *conclusion.get("not_available", ())),
            deps.toolbox.not_available,
            observed,
        ),
        "unmet_demands": list(state.review.unmet) if state.review else [],
        "objections": list(state.review.objections) if state.review else [],
        "review": state.review.second if state.review else "none",
        "warnings": _source_warnings(deps),
        "claims": claims,
        "unsupported": unsupported,
        "hypotheses": raw["hypotheses"],
        "plan": raw["plan"],
        "impact": summarize_impact(state, observed),
        "timeline": build_timeline(state, observed, _effect_timeline_entries(deps)),
        "evidence": [
            _evidence_entry(row, observed[row.number - 1])
            for row in deps.store.evidence.list(deps.run)
            if row.number <= len(observed)
        ],
        "runbooks": list(_runbooks_shown(observed)),
        "effects": [_effect_entry(row) for row in deps.store.effects.list(deps.run)],
        "denied": [_denied_entry(o) for o in observed if _refused_by(o)],
        "usage": raw["budget"]["used"],
        "limits": raw["budget"]["limits"],
        "planner": deps.planner.name,
        "degraded": list(_warnings_with_code("degraded", deps)),
        "orders_in_data": list(_warnings_with_code("orders", deps)),
        "read_only": state.read_only,
        "replay": deps.executor.is_replaying,
        **({"answer": f"{REPLAY_MARK} {conclusion['answer']}"} if deps.executor.is_replaying else {}),
    }


def _not_available(said: Iterable[str], sources: Iterable[str], observed: Iterable[Observation]) -> list[str]:
    """What the conclusion says, what has no source, what was not there when asked for, which sources were missed; each once."""
    asked = (f"{o.tool}: {o.headline}" for o in observed if o.status is ResultStatus.NOT_RECORDED)
    failed = (f"{o.tool}: {o.headline}" for o in observed if o.status in _FAILED and not _refused_by(o))
    missed = {name: why for o in observed for name, why in (o.record.get("not_read") or {}).items()}
    partly = (f"{name}: {why}"[:1000] for name, why in missed.items())
    return list(dict.fromkeys((*said, *sources, *asked, *failed, *partly)))


def _runbooks_shown(observed: Iterable[Observation]) -> Iterable[Mapping[str, Any]]:
    """The runbooks that the planner was shown, each once, with what they fit by and where their text stands."""
    seen: set[str] = set()
    for o in observed:
        for book in o.record.get("runbooks", ()) if o.tool == "runbooks_find" else ():
            if book["name"] not in seen:
                seen.add(book["name"])
                yield {**{key: book[key] for key in ("name", "title", "fits_by")}, "evidence": o.evidence}


def _effect_timeline_entries(deps: Deps) -> Iterable[dict[str, Any]]:
    """When each change was made, and when it was seen to have worked."""
    for row in deps.store.effects.list(deps.run):
        if row.status == "done" and row.finished:
            yield {"time": row.finished, "text": f"{row.tool} of {row.target} done", "evidence": None}
    for seen in deps.store.evidence.list(deps.run):
        if seen.tool.endswith(".check") and seen.status == ResultStatus.OK:
            yield {"time": seen.fetched, "text": f"seen: {seen.headline}", "evidence": seen.id}


def _warnings_with_code(code: str, deps: Deps) -> Iterable[Mapping[str, Any]]:
    """Warnings of one kind: since which turn another planner decided, or where data gave orders."""
    for event in deps.store.events.read(deps.run, types=("warning",)):
        if event["data"].get("code") == code:
            yield {"turn": event["turn"], "why": event["data"]["message"]}


def _source_warnings(deps: Deps) -> list[str]:
    """What was wrong with the sources' data, as it was said in this attempt and those before; each once."""
    said = deps.store.events.read(deps.run, types=("warning",))
    return list(dict.fromkeys(e["data"]["message"] for e in said if e["data"].get("code") == "source"))


REPLAY_MARK = "[replay of a recording: nothing was executed]"
"""Stands before the answer of a replayed run, so that every view of it says so."""
_FAILED = (
    ResultStatus.UNAVAILABLE,
    ResultStatus.TIMEOUT,
    ResultStatus.TRANSIENT,
    ResultStatus.INTERNAL,
    ResultStatus.NOT_PERMITTED,
)


def _evidence_entry(row: EvidenceRow, seen: Observation) -> Mapping[str, Any]:
    """What `E7` refers to: the call, where it went, and the stored body by its hash. Sizes in bytes."""
    return {
        "id": row.id,
        "tool": row.tool,
        "arguments": dict(row.arguments),
        "purpose": seen.purpose,
        "status": row.status,
        "headline": row.headline,
        "source": row.source,
        "query": row.query,
        "target": row.target,
        "scanned": row.scanned,
        "matched": row.matched,
        "fetched": row.fetched,
        "sha256": row.sha256,
        "size": row.size,
        "redactions": row.redactions,
        "turn": seen.turn,
    }


def _effect_entry(row: EffectRow) -> Mapping[str, Any]:
    return {
        "id": row.call_id,
        "tool": row.tool,
        "target": row.target,
        "arguments": dict(row.arguments),
        "risk": row.risk,
        "status": row.status,
        "outcome": row.outcome,
        "approval": row.approval,
        "started": row.started,
        "finished": row.finished,
        "verified": row.verified,
        "checked": row.checked,
        "replayed": row.is_replayed,
    }


def _refused_by(o: Observation) -> str | None:
    """Who refused the call: `policy` or `operator`. None where it ran, and where its target said no."""
    return o.record.get("decided") if o.status is ResultStatus.NOT_PERMITTED else None


def _denied_entry(o: Observation) -> Mapping[str, Any]:
    return {
        "tool": o.tool,
        "arguments": dict(o.arguments),
        "reason": o.headline,
        "decided": _refused_by(o),
        "turn": o.turn,
    }

"""Suspects: all detectors over all sources, combined into one ranking."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from opsleuth.analysis.change_diffs import identify_change
from opsleuth.analysis.records import Finding, GradedChange, Ranking, Recording, Suspect
from opsleuth.state.calls import ResultStatus
from opsleuth.state.garbage_collection import pause_garbage_collection
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.recordings import (
    EVERYTHING,
    finding_record,
    not_recorded_result,
    read_recording,
    round_figure,
    source_names,
    span_record,
    without_empty,
)
from opsleuth.tools.sources.memory_source import FIELDS, ROWS
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

if TYPE_CHECKING:
    from opsleuth.analysis.cluster.entities import SuspectObject

MOST_FINDINGS = 4
MOST_OBJECTS = 20


class RankSuspectsArguments(Arguments):
    limit: Annotated[int, Field(ge=1, le=20, description="suspects shown, 1 to 20")] = 5


async def rank_suspects(arguments: RankSuspectsArguments, context: ToolContext) -> ToolResult:
    recording = await read_recording(context, *EVERYTHING, lenient=True)
    rows = sum(len(getattr(recording, field) or ()) for field in ROWS)
    if rows == 0:
        return not_recorded_result(context, "metrics", "no source of this run holds any rows")
    ranking, objects = await asyncio.to_thread(_rank_recording, recording)
    shown = ranking.suspects[: arguments.limit]
    return ToolResult(
        record=_ranking_record(recording, ranking, shown, objects),
        headline=_ranking_headline(ranking),
        status=ResultStatus.OK if shown else ResultStatus.NONE_MATCHED,
        source=source_names(context, *EVERYTHING),
        scanned=rows,
        matched=len(ranking.suspects),
    )


def _rank_recording(recording: Recording) -> tuple[Ranking, Mapping[tuple[str, str], "SuspectObject"]]:
    """The ranking, and the object behind each suspect by its service and kind."""
    from opsleuth.analysis.cluster.entities import objects_behind
    from opsleuth.analysis.ranking import rank_findings, run_detectors

    with pause_garbage_collection():
        ranking = rank_findings(recording, run_detectors(recording))
    return ranking, objects_behind(ranking.suspects[:MOST_OBJECTS], recording)


def _ranking_record(
    recording: Recording,
    ranking: Ranking,
    shown: Sequence[Suspect],
    objects: Mapping[tuple[str, str], "SuspectObject"],
) -> dict[str, Any]:
    record = {
        "verdict": ranking.verdict,
        "causes": ranking.causes,
        "suspects": _suspect_records(shown, objects),
        "propagation": [list(pair) for pair in ranking.propagation],
        "notes": list(ranking.notes),
        "window": span_record(recording.window),
        "suspects_total": len(ranking.suspects),
        "looked_at": {field: len(rows) for field in ROWS if (rows := getattr(recording, field)) is not None},
        "not_available": [
            c for c, fields in FIELDS.items() if all(getattr(recording, f) is None for f in fields)
        ],
    }
    added = {
        "graded_changes": [_graded_change_record(graded) for graded in ranking.changes],
        "also_moved": [_move_record(finding) for finding in ranking.also_moved],
        "later": [_move_record(finding) for finding in ranking.later],
        "earlier": [_move_record(finding) for finding in ranking.earlier],
        "changes_read": len(recording.changes or ()),
    }
    return record | {name: value for name, value in added.items() if value}


def _move_record(finding: Finding) -> dict[str, Any]:
    """What else moved on a suspect: of which service and since when, with the figures of its sentence."""
    known = finding_record(finding)
    return {key: known[key] for key in ("service", "metric", "text", "onset", "figures") if key in known}


def _graded_change_record(graded: GradedChange) -> dict[str, Any]:
    """A change that may have set it off: `grade` cause (the diff shows how) or coincides (no diff to see)."""
    change = graded.change
    record = {
        "id": identify_change(change),
        "kind": change.kind,
        "service": change.service,
        "at": format_rfc3339(change.time),
        "grade": graded.grade,
        "why": graded.why,
        "author": change.author,
        "version": change.version,
        "summary": change.summary,
        "place": graded.place,
    }
    return without_empty(record)


def _suspect_records(
    suspects: Sequence[Suspect], objects: Mapping[tuple[str, str], "SuspectObject"]
) -> list[dict[str, Any]]:
    """One record for each; a finding that belongs to several suspects of its service is listed once, but always as the first of one."""
    records, told = [], set[str]()
    for place, suspect in enumerate(suspects, 1):
        own = [f for i, f in enumerate(suspect.findings) if i == 0 or f.text not in told]
        told |= {finding.text for finding in suspect.findings[:MOST_FINDINGS]}
        behind = objects.get((suspect.service, suspect.kind))
        records.append(_suspect_record(place, replace(suspect, findings=own), behind))
    return records


def _suspect_record(place: int, suspect: Suspect, behind: "SuspectObject | None") -> dict[str, Any]:
    record = {
        "place": place,
        "service": suspect.service,
        "kind": suspect.kind,
        "score": round_figure(suspect.score),
        "metric": suspect.metric,
        "onset": format_rfc3339(suspect.onset),
        "explained_by": suspect.explained_by,
        "entity": _convert_entity(behind),
        "show": behind.show if behind else None,
        "undo": behind.undo if behind else None,
        "findings": [finding_record(finding) for finding in suspect.findings[:MOST_FINDINGS]],
        "findings_total": len(suspect.findings),
    }
    return without_empty(record)


def _convert_entity(behind: "SuspectObject | None") -> dict[str, str | None] | None:
    if behind is None:
        return None
    return {"kind": behind.ref.kind, "namespace": behind.ref.namespace, "name": behind.ref.name or None}


def _ranking_headline(ranking: Ranking) -> str:
    if not ranking.suspects:
        return f"{ranking.verdict}: no suspects"
    first = ranking.suspects[0]
    return (
        f"{ranking.verdict}: first suspect {first.service} ({first.kind}, score {round_figure(first.score)})"
    )


SUSPECTS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="rank_suspects",
        purpose="Ranked suspects over all sources, with reasons, propagation and what was not available.",
        not_for="Proof: check with other tools.",
        arguments=RankSuspectsArguments,
        example={"limit": 5},
        run=rank_suspects,
        bounded_work=True,
    ),
)

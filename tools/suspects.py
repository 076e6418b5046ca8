"""Suspects: all detectors over all sources, put together into one ranking."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.records import Ranking, Recording, Suspect
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.arguments import zulu
from opsleuth.tools.reading import (
    EVERYTHING,
    figure,
    finding_record,
    not_recorded,
    read,
    source_names,
    span_record,
    without_empty,
)
from opsleuth.tools.sources.memory import FIELDS, ROWS
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

MOST_FINDINGS = 4


class RankSuspects(Arguments):
    limit: Annotated[int, Field(ge=1, le=20, description="suspects shown, 1 to 20")] = 5


async def rank_suspects(arguments: RankSuspects, context: ToolContext) -> ToolResult:
    recording = await read(context, *EVERYTHING, lenient=True)
    rows = sum(len(getattr(recording, field) or ()) for field in ROWS)
    if rows == 0:
        return not_recorded(context, "metrics", "no source of this run holds any rows")
    ranking = await asyncio.to_thread(_ranked, recording)
    shown = ranking.suspects[: arguments.limit]
    return ToolResult(
        record=_record(recording, ranking, shown),
        headline=_headline(ranking),
        status=ResultStatus.OK if shown else ResultStatus.NONE_MATCHED,
        source=source_names(context, *EVERYTHING),
        scanned=rows,
        matched=len(ranking.suspects),
    )


def _ranked(recording: Recording) -> Ranking:
    from opsleuth.analysis.ranking import detect, rank  # noqa: PLC0415 - all detectors: loaded by the first call

    return rank(recording, detect(recording))


def _record(recording: Recording, ranking: Ranking, shown: Sequence[Suspect]) -> dict[str, Any]:
    return {
        "verdict": ranking.verdict,
        "causes": ranking.causes,
        "suspects": [_suspect(number, suspect) for number, suspect in enumerate(shown, 1)],
        "propagation": [list(pair) for pair in ranking.propagation],
        "notes": list(ranking.notes),
        "window": span_record(recording.window),
        "suspects_total": len(ranking.suspects),
        "looked_at": {field: len(rows) for field in ROWS if (rows := getattr(recording, field)) is not None},
        "not_available": [
            c for c, fields in FIELDS.items() if all(getattr(recording, f) is None for f in fields)
        ],
    }


def _suspect(place: int, suspect: Suspect) -> dict[str, Any]:
    record = {
        "place": place,
        "service": suspect.service,
        "kind": suspect.kind,
        "score": figure(suspect.score),
        "metric": suspect.metric,
        "onset": zulu(suspect.onset),
        "explained_by": suspect.explained_by,
        "findings": [finding_record(finding) for finding in suspect.findings[:MOST_FINDINGS]],
        "findings_total": len(suspect.findings),
    }
    return without_empty(record)


def _headline(ranking: Ranking) -> str:
    if not ranking.suspects:
        return f"{ranking.verdict}: no suspects"
    first = ranking.suspects[0]
    return f"{ranking.verdict}: first suspect {first.service} ({first.kind}, score {figure(first.score)})"


SUSPECTS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="rank_suspects",
        purpose="Ranked suspects over all sources, with reasons, propagation and what was not available.",
        not_for="Proof: check with other tools.",
        arguments=RankSuspects,
        example={"limit": 5},
        run=rank_suspects,
    ),
)

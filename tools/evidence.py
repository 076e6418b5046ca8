"""Stored evidence, read page by page."""

import json
from typing import Annotated, Any

from pydantic import Field

from opsleuth.state.base import EvidenceId
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.json_types import JSON
from opsleuth.tools.evidence_paths import find_evidence, parse_path, values_at
from opsleuth.tools.spec import Arguments, InvalidArgumentsError, ToolContext, ToolResult, ToolSpec

# What a page may weigh: a few thousand tokens.
PAGE_CHARACTERS = 12_000


class EvidenceReadArguments(Arguments):
    evidence: Annotated[EvidenceId, Field(description="id such as E3")]
    path: Annotated[str, Field(max_length=300, description="such as lines or objects[0].status")] = ""
    offset: Annotated[
        int, Field(ge=0, le=1_000_000_000, description="first list item or character, from 0")
    ] = 0
    limit: Annotated[int, Field(ge=1, le=500, description="list items, 1 to 500")] = 50


async def evidence_read(arguments: EvidenceReadArguments, context: ToolContext) -> ToolResult:
    body = find_evidence(context.evidence, arguments.evidence)
    found = values_at(body.record, parse_path(arguments.path), arguments.evidence)
    value = found[0] if len(found) == 1 and "[*]" not in arguments.path else found
    about = {"evidence": body.id, "tool": body.tool, "status": str(body.status), "path": arguments.path}
    part, length, total = _cut_page(value, arguments)
    if arguments.offset and arguments.offset >= total:
        raise InvalidArgumentsError(
            f"offset {arguments.offset} is past the end: {arguments.evidence} has {total} there"
        )
    reached = arguments.offset + length
    record = {**about, "offset": arguments.offset, "total": total, **part}
    if reached < total:
        record["next_offset"] = reached
    return ToolResult(
        record=record,
        headline=f"{body.id} {arguments.path or 'record'}: {arguments.offset} to {reached} of {total}",
        source="evidence",
    )


def _cut_page(value: JSON, arguments: EvidenceReadArguments) -> tuple[dict[str, Any], int, int]:
    """The page, how many items or characters it holds, and how many there are."""
    if isinstance(value, list):
        items = _take_page_items(value, arguments.offset, arguments.limit)
        return {"items": items}, len(items), len(value)
    text = value if isinstance(value, str) else to_canonical_json(value)
    page = text[arguments.offset : arguments.offset + PAGE_CHARACTERS]
    whole = len(page) == len(text)
    return {"value": value} if whole else {"text": page}, len(page), len(text)


def _take_page_items(values: list[Any], offset: int, limit: int) -> list[Any]:
    """Items from `offset` on until the page is full; one at least."""
    page: list[Any] = []
    weight = 0
    for value in values[offset : offset + limit]:
        weight += len(json.dumps(value, ensure_ascii=False))
        if page and weight > PAGE_CHARACTERS:
            break
        page.append(value)
    return page


EVIDENCE: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="evidence_read",
        purpose="Stored evidence in full, page by page.",
        not_for="New data: ask its own tool.",
        arguments=EvidenceReadArguments,
        example={"evidence": "E3", "path": "lines", "offset": 20},
        run=evidence_read,
    ),
)

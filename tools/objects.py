"""Platform objects: their list, and the recorded state of the requested ones."""

from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis import workloads
from opsleuth.analysis.records import ObjectState
from opsleuth.state.calls import ResultStatus
from opsleuth.state.json_types import JSON
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.recordings import (
    any_text_contains,
    detect_findings,
    finding_record,
    not_recorded_result,
    read_recording,
    source_names,
    to_plain_json,
    without_empty,
)
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec
from opsleuth.tools.truncation import cut_text

WIDEST_TEXT = 8_000
MOST_LISTED = 60


class ObjectsGetArguments(Arguments):
    kind: Annotated[str, Field(max_length=100, description="Pod, Deployment, Node, DBInstance, …")] = ""
    name: Annotated[str, Field(max_length=300, description="part of the object's name")] = ""
    namespace: Annotated[str, Field(max_length=300, description="exact namespace")] = ""
    limit: Annotated[int, Field(ge=1, le=20, description="objects shown in full, 1 to 20")] = 3


async def objects_get(arguments: ObjectsGetArguments, context: ToolContext) -> ToolResult:
    recording = await read_recording(context, "objects")
    objects = recording.objects or ()
    if not objects:
        return not_recorded_result(context, "objects", "no object states are recorded")
    found = [o for o in objects if _matches_filter(o, arguments)]
    in_full = found[: arguments.limit] if arguments.name or arguments.kind else []
    listed = found[len(in_full) :]
    findings = [
        f
        for f in await detect_findings(recording, "objects")
        if any_text_contains(arguments.name, f.service, f.text)
    ]
    record = {
        **without_empty({"kind": arguments.kind, "name": arguments.name, "namespace": arguments.namespace}),
        "scanned": len(objects),
        "matched": len(found),
        "kinds": dict(Counter(o.kind for o in (found or objects)).most_common(20)),
        "objects": [_full_object_record(state) for state in in_full],
        "others": [_short_object_record(state) for state in listed[:MOST_LISTED]],
        "not_shown": max(0, len(listed) - MOST_LISTED) or None,
        "findings": [finding_record(finding) for finding in findings[:5]],
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{len(found)} of {format_count(len(objects), 'object')}"
        + (f": {found[0].kind}/{found[0].name}" if found else ""),
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=source_names(context, "objects"),
        scanned=len(objects),
        matched=len(found),
    )


def _matches_filter(state: ObjectState, arguments: ObjectsGetArguments) -> bool:
    if arguments.namespace and arguments.namespace != state.namespace:
        return False
    return any_text_contains(arguments.kind, state.kind) and any_text_contains(arguments.name, state.name)


def _full_object_record(state: ObjectState) -> dict[str, Any]:
    record = {
        **_short_object_record(state),
        "status": _bound_document(state.status),
        "spec": _bound_document(state.spec),
        "labels": to_plain_json(state.labels or {}),
        "extra": to_plain_json(state.extra or {}),
    }
    return without_empty(record)


def _bound_document(value: JSON) -> JSON:
    return cut_text(value, WIDEST_TEXT) if isinstance(value, str) else to_plain_json(value)


def _short_object_record(state: ObjectState) -> dict[str, Any]:
    record: dict[str, Any] = {
        "kind": state.kind,
        "name": state.name,
        "namespace": state.namespace,
        "captured_at": format_rfc3339(state.time),
    }
    workload = workloads.read_workload(state)
    if workload is not None:
        record |= {
            "state": workload.status,
            "ready": workload.ready,
            "desired": workload.desired,
            "restarts": workload.restarts,
            "reasons": list(workload.reasons),
        }
    return without_empty(record)


OBJECTS: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="objects_get",
        purpose="Recorded state of platform objects (pods, deployments, nodes, databases); without name or kind: which there are.",
        not_for="What happened: events_list.",
        arguments=ObjectsGetArguments,
        example={"kind": "Pod", "name": "checkout"},
        run=objects_get,
        capability="objects",
        target=lambda arguments: arguments.name or None,
    ),
)

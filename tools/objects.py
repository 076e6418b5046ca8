"""Objects of the platform: which there are, and the recorded state of those asked for."""

from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis import workloads
from opsleuth.analysis.records import ObjectState
from opsleuth.state.calls import ResultStatus
from opsleuth.state.words import counted
from opsleuth.tools.arguments import zulu
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.reading import (
    finding_record,
    findings_of,
    not_recorded,
    part_of,
    plain,
    read,
    source_names,
    without_empty,
)
from opsleuth.tools.spec import Arguments, ToolContext, ToolResult, ToolSpec

WIDEST_TEXT = 8_000
MOST_LISTED = 60


class ObjectsGet(Arguments):
    kind: Annotated[str, Field(max_length=100, description="Pod, Deployment, Node, DBInstance, …")] = ""
    name: Annotated[str, Field(max_length=300, description="part of the object's name")] = ""
    namespace: Annotated[str, Field(max_length=300, description="exact namespace")] = ""
    limit: Annotated[int, Field(ge=1, le=20, description="objects shown in full, 1 to 20")] = 3


async def objects_get(arguments: ObjectsGet, context: ToolContext) -> ToolResult:
    recording = await read(context, "objects")
    objects = recording.objects or ()
    if not objects:
        return not_recorded(context, "objects", "no object states are recorded")
    found = [o for o in objects if _matches(o, arguments)]
    in_full = found[: arguments.limit] if arguments.name or arguments.kind else []
    listed = found[len(in_full) :]
    findings = [
        f for f in await findings_of(recording, "objects") if part_of(arguments.name, f.service, f.text)
    ]
    record = {
        **without_empty({"kind": arguments.kind, "name": arguments.name, "namespace": arguments.namespace}),
        "scanned": len(objects),
        "matched": len(found),
        "kinds": dict(Counter(o.kind for o in (found or objects)).most_common(20)),
        "objects": [_whole(state) for state in in_full],
        "others": [_short(state) for state in listed[:MOST_LISTED]],
        "not_shown": max(0, len(listed) - MOST_LISTED) or None,
        "findings": [finding_record(finding) for finding in findings[:5]],
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{len(found)} of {counted(len(objects), 'object')}"
        + (f": {found[0].kind}/{found[0].name}" if found else ""),
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=source_names(context, "objects"),
        scanned=len(objects),
        matched=len(found),
    )


def _matches(state: ObjectState, arguments: ObjectsGet) -> bool:
    if arguments.namespace and arguments.namespace != state.namespace:
        return False
    return part_of(arguments.kind, state.kind) and part_of(arguments.name, state.name)


def _whole(state: ObjectState) -> dict[str, Any]:
    record = {
        **_short(state),
        "status": _document(state.status),
        "spec": _document(state.spec),
        "labels": plain(state.labels or {}),
        "extra": plain(state.extra or {}),
    }
    return without_empty(record)


def _document(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return cut_text(value, WIDEST_TEXT) if isinstance(value, str) else plain(value)


def _short(state: ObjectState) -> dict[str, Any]:
    record: dict[str, Any] = {
        "kind": state.kind,
        "name": state.name,
        "namespace": state.namespace,
        "captured_at": zulu(state.time),
    }
    workload = workloads.read(state)
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
        arguments=ObjectsGet,
        example={"kind": "Pod", "name": "checkout"},
        run=objects_get,
        capability="objects",
        target=lambda arguments: arguments.name or None,
    ),
)

"""One object of the platform by section, its difference to another, and what is not in its desired state."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from opsleuth.analysis.cluster.object_differences import ValueDifference, find_differences
from opsleuth.analysis.cluster.object_sections import (
    find_section,
    fit_whole_parts,
    measure_part,
    split_into_sections,
)
from opsleuth.analysis.cluster.undesired_states import (
    UndesiredState,
    count_by_kind,
    explain_state,
    find_undesired_states,
)
from opsleuth.analysis.object_owners import GENERATED, collect_object_owners
from opsleuth.analysis.records import Finding, ObjectState, PlatformEvent, Recording
from opsleuth.state.calls import ResultStatus
from opsleuth.state.json_types import JSON
from opsleuth.state.nearest_name import suggest_names
from opsleuth.state.plurals import format_count
from opsleuth.tools.arguments import format_rfc3339
from opsleuth.tools.evidence_paths import find_evidence
from opsleuth.tools.recordings import (
    detect_findings,
    finding_record,
    not_recorded_result,
    read_recording,
    source_names,
    to_plain_json,
    without_empty,
)
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import Arguments, InvalidArgumentsError, ToolContext, ToolResult, ToolSpec

# A view fits into what a small window has for one result, so that nothing else cuts it.
VIEW_BYTES = 6_000
# A section that was asked for by name; more of it is read from the evidence, page by page.
SECTION_BYTES = 40_000
MOST_EVENTS = 10
MOST_LISTED = 40
MOST_DIFFERENCES = 60
EARLIER, SIBLING = "earlier", "sibling"


class ObjectViewArguments(Arguments):
    name: Annotated[str, Field(max_length=300, description="one object")] = ""
    kind: Annotated[str, Field(max_length=100, description="Pod, Deployment, Node, …")] = ""
    namespace: Annotated[str, Field(max_length=300, description="exact namespace")] = ""
    section: Annotated[
        str,
        Field(max_length=300, description="status, conditions, container/app, env/app, spec, events, …"),
    ] = ""
    compare_with: Annotated[
        str, Field(max_length=300, description="sibling, earlier, another name, or E3")
    ] = ""


async def object_view(arguments: ObjectViewArguments, context: ToolContext) -> ToolResult:
    if not arguments.name and (arguments.section or arguments.compare_with):
        raise InvalidArgumentsError("section and compare_with need the name of an object: add name")
    wanted: list[Capability] = ["objects"]
    if arguments.name:
        wanted.append("changes" if arguments.compare_with == EARLIER else "events")
    recording = await read_recording(context, *wanted)
    if not recording.objects:
        return not_recorded_result(context, "objects", "no object states are recorded")
    if not arguments.name:
        findings = await detect_findings(recording, "objects")
        return await asyncio.to_thread(_list_undesired, arguments, context, recording.objects, findings)
    snapshots = _select_object(arguments, recording.objects)
    if isinstance(snapshots, ToolResult):
        return snapshots
    if arguments.compare_with:
        return _compare_object(arguments, context, recording, snapshots)
    return _show_sections(arguments, context, recording, snapshots[-1])


# --- what is not in its desired state ----------------------------------------------------------------------


def _list_undesired(
    arguments: ObjectViewArguments,
    context: ToolContext,
    objects: Sequence[ObjectState],
    findings: Sequence[Finding],
) -> ToolResult:
    examined = [state for state in objects if _is_of_kind(state, arguments)]
    found = find_undesired_states(examined)
    names = {(state.kind, state.namespace, state.name): None for state in examined}
    record = {
        **without_empty({"kind": arguments.kind, "namespace": arguments.namespace}),
        "scanned": len(names),
        "matched": len(found),
        "not_in_desired_state": [_undesired_record(one) for one in found[:MOST_LISTED]],
        "not_shown": max(0, len(found) - MOST_LISTED) or None,
        "kinds": dict(count_by_kind(examined or objects)),
        "findings": [finding_record(finding) for finding in findings[:5]],
    }
    odd = any(finding.direction == "cause" for finding in findings[:5])
    if arguments.kind:
        record["names"] = [format_object_name(*name) for name in list(names)[: 2 * MOST_LISTED]]
        record["names_not_shown"] = max(0, len(names) - 2 * MOST_LISTED) or None
    first = f": {found[0].state.kind}/{found[0].state.name} {found[0].reasons[0]}" if found else ""
    return ToolResult(
        record=without_empty(record),
        headline=f"{len(found)} of {format_count(len(names), 'object')} not in the desired state{first}",
        status=ResultStatus.OK if found or odd or (arguments.kind and names) else ResultStatus.NONE_MATCHED,
        source=source_names(context, "objects"),
        scanned=len(names),
        matched=len(found),
    )


def _undesired_record(one: UndesiredState) -> dict[str, Any]:
    return {**_identify_object(one.state), "why": [reason[:300] for reason in one.reasons[:6]]}


def _is_of_kind(state: ObjectState, arguments: ObjectViewArguments) -> bool:
    if arguments.namespace and arguments.namespace != state.namespace:
        return False
    return not arguments.kind or _drop_plural(arguments.kind) == state.kind.casefold()


def _drop_plural(kind: str) -> str:
    """`pods` and `deployment.apps` as people type them."""
    plain = kind.casefold().partition(".")[0]
    for ending, instead in (("classes", "class"), ("policies", "policy"), ("ingresses", "ingress")):
        if plain.endswith(ending):
            return plain.removesuffix(ending) + instead
    return (
        plain if plain.endswith(("ss", "us")) else plain.removesuffix("s") if plain != "endpoints" else plain
    )


def format_object_name(kind: str, namespace: str | None, name: str) -> str:
    """An object as people write it, such as `Pod shop/cart-1`."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


# --- which object ------------------------------------------------------------------------------------------


def _select_object(
    arguments: ObjectViewArguments, objects: Sequence[ObjectState]
) -> list[ObjectState] | ToolResult:
    """The snapshots of the one object that is meant, oldest first; the choice where several are.

    Raises InvalidArgumentsError that names the nearest ones.
    """
    name = arguments.name.rpartition("/")[2]
    candidates = [state for state in objects if _is_of_kind(state, arguments)]
    plain = {id(state): state.name.rpartition("/")[2] for state in candidates}
    found = [state for state in candidates if plain[id(state)] == name]
    if not found:
        found = [state for state in candidates if name.casefold() in plain[id(state)].casefold()]
    if not found:
        near = suggest_names(name, plain.values(), most=8)
        what = " ".join(
            filter(None, [arguments.kind or "object", repr(name), *_in_namespace(arguments.namespace)])
        )
        raise InvalidArgumentsError(
            f"there is no {what} among {format_count(len(candidates), 'object')} ({near})"
        )
    chosen = {(state.kind, state.namespace, state.name) for state in found}
    if len(chosen) > 1:
        return _offer_choice(name, sorted(chosen, key=str), len(objects))
    return sorted(found, key=lambda state: state.time or 0.0)


def _in_namespace(namespace: str) -> list[str]:
    return [f"in namespace {namespace}"] if namespace else []


def _offer_choice(name: str, chosen: Sequence[tuple[str, str | None, str]], scanned: int) -> ToolResult:
    record = {
        "name": name,
        "ambiguous": "several objects have this name: give kind, namespace or the whole name",
        "names": [format_object_name(*one) for one in chosen[:MOST_LISTED]],
        "not_shown": max(0, len(chosen) - MOST_LISTED) or None,
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{format_count(len(chosen), 'object')} named {name}: say which",
        scanned=scanned,
        matched=len(chosen),
    )


def _identify_object(state: ObjectState) -> dict[str, Any]:
    about = {
        "kind": state.kind,
        "name": state.name,
        "namespace": state.namespace,
        "captured_at": format_rfc3339(state.time),
    }
    return without_empty(about)


# --- sections ----------------------------------------------------------------------------------------------


def _view_sections(state: ObjectState, events: Sequence[PlatformEvent]) -> dict[str, JSON]:
    """All sections of an object, its events after its status."""
    sections = {name: to_plain_json(value) for name, value in split_into_sections(state).items()}
    own = [event for event in events if _is_about(event, state)]
    if own:
        sections["events"] = [
            _event_line(event) for event in sorted(own, key=lambda e: e.time)[-MOST_EVENTS:]
        ]
    return sections


def _is_about(event: PlatformEvent, state: ObjectState) -> bool:
    kind, _, name = event.object.rpartition("/")
    namespace = (event.extra or {}).get("namespace")
    if name != state.name.rpartition("/")[2] or (kind and kind.casefold() != state.kind.casefold()):
        return False
    return namespace is None or state.namespace is None or namespace == state.namespace


def _event_line(event: PlatformEvent) -> dict[str, Any]:
    record = {
        "time": format_rfc3339(event.time),
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "count": event.count,
    }
    return without_empty(record)


def _show_sections(
    arguments: ObjectViewArguments, context: ToolContext, recording: Recording, state: ObjectState
) -> ToolResult:
    sections = _view_sections(state, recording.events or ())
    asked = find_section(sections, arguments.section) if arguments.section else sections
    if not asked:
        raise InvalidArgumentsError(
            f"{state.kind} {state.name} has no section {arguments.section!r} ({_name_sections(sections)})"
        )
    fitted = fit_whole_parts(asked, SECTION_BYTES if arguments.section else VIEW_BYTES)
    problems = list(dict.fromkeys(explain_state(state)))
    record = {
        **_identify_object(state),
        "not_in_desired_state": [reason[:300] for reason in problems[:6]],
        "sections": fitted.shown,
        "left_out_bytes": fitted.left_out,
        "other_sections": [name for name in sections if name not in asked] if arguments.section else [],
    }
    what = arguments.section or format_count(len(fitted.shown), "section")
    return ToolResult(
        record=without_empty(record),
        headline=f"{format_object_name(state.kind, state.namespace, state.name)}: {what}"
        + (f", {problems[0][:120]}" if problems else ""),
        source=source_names(context, "objects"),
        scanned=len(recording.objects or ()),
        matched=1,
    )


def _name_sections(sections: Mapping[str, JSON]) -> str:
    return f"its sections: {', '.join(sections)}"


# --- differences -------------------------------------------------------------------------------------------


def _compare_object(
    arguments: ObjectViewArguments,
    context: ToolContext,
    recording: Recording,
    snapshots: Sequence[ObjectState],
) -> ToolResult:
    this = snapshots[-1]
    if arguments.compare_with[:1] == "E" and arguments.compare_with[1:].isdigit():
        return _compare_with_evidence(arguments, context, this)
    if arguments.compare_with == EARLIER:
        if len(snapshots) == 1:
            return _show_recorded_change(context, recording, this)
        other = snapshots[0]
    elif arguments.compare_with == SIBLING:
        other = _choose_sibling(this, recording)
    else:
        named = arguments.model_copy(
            update={"name": arguments.compare_with, "kind": arguments.kind or this.kind}
        )
        found = _select_object(named, recording.objects or ())
        if isinstance(found, ToolResult):
            return found
        other = found[-1]
    mine, theirs = _view_sections(this, ()), _view_sections(other, ())
    return _differences_result(arguments, context, this, _identify_object(other), mine, theirs)


def _compare_with_evidence(
    arguments: ObjectViewArguments, context: ToolContext, this: ObjectState
) -> ToolResult:
    body = find_evidence(context.evidence, arguments.compare_with)
    stored = body.record.get("sections")
    if not isinstance(stored, Mapping):
        raise InvalidArgumentsError(f"{body.id} holds no sections of an object: name evidence of object_view")
    mine = {name: part for name, part in _view_sections(this, ()).items() if name in stored}
    theirs = {name: part for name, part in stored.items() if name in mine}
    about = {name: body.record.get(name) for name in ("kind", "name", "namespace", "captured_at")}
    return _differences_result(
        arguments, context, this, {"evidence": body.id, **without_empty(about)}, mine, theirs
    )


def _choose_sibling(this: ObjectState, recording: Recording) -> ObjectState:
    """Another object of the same kind and owner, one that is well before one that is not.

    Raises InvalidArgumentsError where there is none.
    """
    owners = collect_object_owners(recording)
    owner = owners.of(this.name, this.kind)
    alike = [
        state
        for state in recording.objects or ()
        if (state.kind, state.namespace) == (this.kind, this.namespace) and state.name != this.name
    ]
    if this.kind.casefold() in GENERATED:
        alike = [state for state in alike if owners.of(state.name, state.kind) == owner]
    well = [state for state in alike if not any(explain_state(state))]
    if not alike:
        raise InvalidArgumentsError(
            f"{this.kind} {this.name} has no sibling: no other {this.kind} of its owner is recorded; name an object"
        )
    return (well or alike)[-1]


def _differences_result(
    arguments: ObjectViewArguments,
    context: ToolContext,
    this: ObjectState,
    other: Mapping[str, Any],
    mine: dict[str, JSON],
    theirs: dict[str, JSON],
) -> ToolResult:
    if arguments.section:
        mine, theirs = find_section(mine, arguments.section), find_section(theirs, arguments.section)
        if not mine and not theirs:
            raise InvalidArgumentsError(f"neither object has a section {arguments.section!r}")
    found = [one for one in find_differences(mine, theirs) if not one.path.startswith("metadata.name")]
    shown: list[dict[str, JSON]] = []
    room = VIEW_BYTES
    for one in found[:MOST_DIFFERENCES]:
        row = _difference_record(one)
        room -= measure_part(row)
        if room < 0:
            break
        shown.append(row)
    record = {
        **_identify_object(this),
        "compared_with": dict(other),
        "section": arguments.section,
        "matched": len(found),
        "differences": shown,
        "not_shown": [one.path for one in found[len(shown) :]][:MOST_DIFFERENCES],
        "not_compared": "times, addresses, ids and generations",
    }
    first = f", first {found[0].path}" if found else ""
    return ToolResult(
        record=without_empty(record),
        headline=f"{format_count(len(found), 'difference')} between {this.name} and {other.get('name') or other.get('evidence')}{first}",
        status=ResultStatus.OK if found else ResultStatus.NONE_MATCHED,
        source=source_names(context, "objects"),
        scanned=len({**mine, **theirs}),
        matched=len(found),
    )


def _difference_record(one: ValueDifference) -> dict[str, JSON]:
    """One difference; a large value is named by its size, never shown in part."""
    row: dict[str, JSON] = {"path": one.path}
    for side, value in (("this", one.this), ("other", one.other)):
        size = measure_part(value)
        row[side] = value if size <= VIEW_BYTES // 4 else f"{size:,} bytes: view the section"
    return row


def _show_recorded_change(context: ToolContext, recording: Recording, this: ObjectState) -> ToolResult:
    """Where only one snapshot exists: what the last change of the object says that it changed."""
    owners = collect_object_owners(recording)
    names = {this.name.rpartition("/")[2], owners.of(this.name, this.kind)}
    changes = sorted((c for c in recording.changes or () if c.service in names), key=lambda c: c.time)
    told = [change for change in changes if change.diff]
    if not told:
        return not_recorded_result(
            context,
            "objects",
            f"there is one snapshot of {this.kind} {this.name}, and no change with a difference",
        )
    last = told[-1]
    record = {
        **_identify_object(this),
        "compared_with": "the version before its last recorded change",
        "change": {
            "time": format_rfc3339(last.time),
            "kind": last.kind,
            "summary": last.summary,
            "author": last.author,
        },
        "difference": (last.diff or "").splitlines(),
    }
    return ToolResult(
        record=without_empty(record),
        headline=f"{last.kind} of {last.service} at {format_rfc3339(last.time)}",
        source=source_names(context, "objects", "changes"),
        scanned=len(changes),
        matched=len(told),
    )


OBJECT_VIEW: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="object_view",
        purpose="One platform object by section, or its differences; without name: what is not in its desired state.",
        not_for="What happened over time: events_list.",
        arguments=ObjectViewArguments,
        example={"kind": "Pod", "name": "checkout-7d9f", "section": "env/app"},
        run=object_view,
        capability="objects",
        target=lambda arguments: arguments.name or None,
    ),
)

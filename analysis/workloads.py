"""The state of workloads and nodes in one shape, whatever form it was recorded in.

Understood are API documents (camel case or snake case), rows of `kubectl get -o wide` and the text of
`kubectl describe`. What a document does not say stays None.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from opsleuth.analysis import kubectl_output
from opsleuth.analysis.records import ObjectState
from opsleuth.state.json_types import JSON

_RESTARTS = re.compile(r"^(\d+)(?: \((\S+) ago\))?$")
_READY = re.compile(r"^(\d+)/(\d+)$")
_PLACES = re.compile(
    r"(?<!\d)(\d{1,20}+) (desired|available|total|updated|unavailable|Active|Succeeded|Failed)"
)
_EMPTY = frozenset({"", "<none>", "none", "unscheduled", "n/a", "-"})


@dataclass(frozen=True, slots=True)
class ObjectCondition:
    """One condition of an object: `status` is `True`, `False` or `Unknown`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """One pod, job, node or controller. `status` and `reasons` are the platform's own words, current ones first.

    `past` holds why containers ended the time before, `up_seconds` how long the youngest container (or the last
    restart) is ago, `unready_since` since when the state itself says that it is not ready, `age_seconds` how long the object exists, `messages` what the platform says about it, `printed` that it is a row of a table.
    """

    kind: str
    name: str
    read_at: float | None = None
    ready: int | None = None
    desired: int | None = None
    status: str = ""
    reasons: Sequence[str] = ()
    past: Sequence[str] = ()
    messages: Sequence[str] = ()
    conditions: Sequence[ObjectCondition] = ()
    exit_code: int | None = None
    restarts: int | None = None
    age_seconds: float | None = None
    up_seconds: float | None = None
    unready_since: float | None = None
    placed: bool | None = None
    printed: bool = False


def read_workload(state: ObjectState) -> Workload | None:
    """The workload behind one object state; None where its form is not known."""
    if isinstance(state.status, str):
        return _workload_from_text(state, state.status)
    if "READY" in state.status or "STATUS" in state.status:
        return _workload_from_row(state, state.status)
    found = _workload_from_document(state, state.status)
    return found if found.desired is not None or found.status or found.conditions else None


# --- rows of `kubectl get` ---------------------------------------------------------------------------------


def _workload_from_row(state: ObjectState, row: Mapping[str, Any]) -> Workload:
    ready, desired = _parse_ready_ratio(str(row.get("READY", "")))
    restarts, ago = _parse_restarts(str(row.get("RESTARTS", "")))
    age = kubectl_output.parse_age_seconds(str(row.get("AGE", "")))
    return Workload(
        kind=state.kind,
        name=state.name,
        read_at=state.time,
        ready=ready,
        desired=desired,
        status=str(row.get("STATUS", "")),
        restarts=restarts,
        age_seconds=age,
        up_seconds=ago,
        placed=_is_node_assigned(row["NODE"]) if "NODE" in row else None,
        printed=True,
    )


def _parse_ready_ratio(text: str) -> tuple[int | None, int | None]:
    found = _READY.match(text)
    return (int(found[1]), int(found[2])) if found else (None, None)


def _parse_restarts(text: str) -> tuple[int | None, float | None]:
    found = _RESTARTS.match(text)
    if not found:
        return None, None
    return int(found[1]), kubectl_output.parse_age_seconds(found[2]) if found[2] else None


def _is_node_assigned(node: object) -> bool:
    return str(node or "").strip().lower() not in _EMPTY


# --- API documents -----------------------------------------------------------------------------------------


def _first_present_value(document: Mapping[str, Any], *names: str) -> JSON:
    return next((document[name] for name in names if document.get(name) is not None), None)


def _workload_from_document(state: ObjectState, status: Mapping[str, Any]) -> Workload:
    containers = [*_collect_container_statuses(status)]
    running = [c for c in containers if _first_present_value(c, "ready") is True]
    spec = state.spec if isinstance(state.spec, Mapping) else {}
    desired = (
        _first_present_value(status, "desired", "replicas") if "replicas" not in spec else spec["replicas"]
    )
    ready = _first_present_value(status, "available", "availableReplicas", "ready", "readyReplicas")
    node = _first_present_value(status, "node_name", "nodeName") or _first_present_value(
        spec, "nodeName", "node_name"
    )
    base = Workload(
        kind=state.kind,
        name=state.name,
        read_at=state.time,
        ready=len(running) if containers else ready if isinstance(ready, int) else None,
        desired=len(containers) or (desired if isinstance(desired, int) else None),
        status=str(_first_present_value(status, "phase") or ""),
        conditions=[*_read_conditions(status)],
        age_seconds=_seconds_since(
            _first_present_value(status, "start_time", "startTime") or _read_pod_creation(state), state.time
        ),
        placed=_is_node_assigned(node) if node is not None else None,
    )
    if base.desired and base.ready is None:
        base = replace(base, ready=0)  # the API leaves out a count that is zero
    facts = _container_facts(containers, state.time) if containers else {}
    return replace(base, **facts, unready_since=_find_unready_time(status, containers))


def _find_unready_time(status: Mapping[str, Any], containers: Sequence[Mapping[str, Any]]) -> float | None:
    """When it became unready; for one that is ready (again), when a container of it ended last."""
    for row in status.get("conditions") or ():
        if isinstance(row, Mapping) and row.get("type") == "Ready" and row.get("status") == "False":
            moment = _parse_epoch(_first_present_value(row, "lastTransitionTime", "last_transition_time"))
            if moment is not None:
                return moment
    parts = [
        part
        for container in containers
        for name in ("state", "lastState", "last_state")
        for part in _state_parts(container.get(name))
    ]
    ends = [_parse_epoch(_first_present_value(part, "finishedAt", "finished_at")) for part in parts]
    return max((moment for moment in ends if moment is not None), default=None)


def _read_pod_creation(state: ObjectState) -> JSON:
    """When a pod was made: one that no node has accepted has no other beginning."""
    metadata = (state.extra or {}).get("metadata")
    if state.kind.lower() != "pod" or not isinstance(metadata, Mapping):
        return None
    return _first_present_value(metadata, "creationTimestamp", "creation_timestamp")


def _collect_container_statuses(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in (
        "initContainerStatuses",
        "init_containers",
        "containers",
        "containerStatuses",
        "container_statuses",
    ):
        yield from (entry for entry in status.get(name) or () if isinstance(entry, Mapping))


def _container_facts(containers: Sequence[Mapping[str, Any]], read_at: float | None) -> dict[str, Any]:
    now = [part for c in containers for part in _state_parts(_first_present_value(c, "state"))]
    before = [
        part for c in containers for part in _state_parts(_first_present_value(c, "lastState", "last_state"))
    ]
    codes = [_first_present_value(part, "exitCode", "exit_code") for part in [*now, *before]]
    restarts = [_first_present_value(c, "restart_count", "restartCount") or 0 for c in containers]
    up = [_seconds_since(_first_present_value(part, "startedAt", "started_at"), read_at) for part in now]
    return {
        "reasons": [str(part["reason"]) for part in now if part.get("reason")],
        "past": [str(part["reason"]) for part in before if part.get("reason")],
        "messages": [str(part["message"]) for part in [*now, *before] if part.get("message")],
        "exit_code": next((code for code in codes if code is not None), None),
        "restarts": max(restarts),
        "up_seconds": min((seconds for seconds in up if seconds is not None), default=None),
    }


def _seconds_since(moment: object, read_at: float | None) -> float | None:
    """Seconds from an RFC 3339 time to the reading; None without both, or if it lies after the reading."""
    started = _parse_epoch(moment)
    if started is None or read_at is None:
        return None
    passed = read_at - started
    return passed if passed >= 0 else None


def _parse_epoch(moment: object) -> float | None:
    """Seconds since the epoch of an RFC 3339 time; None for anything else."""
    if not isinstance(moment, str):
        return None
    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def _state_parts(state: object) -> Iterator[Mapping[str, Any]]:
    """The waiting, running and terminated parts of a container state, nested or flat."""
    if not isinstance(state, Mapping):
        return
    yield state
    yield from (part for part in state.values() if isinstance(part, Mapping))


def _read_conditions(status: Mapping[str, Any]) -> Iterator[ObjectCondition]:
    for row in status.get("conditions") or ():
        if isinstance(row, Mapping) and row.get("type"):
            yield ObjectCondition(
                str(row["type"]),
                str(row.get("status", "")),
                str(row.get("reason") or ""),
                str(row.get("message") or ""),
            )
    for name in ("memory_pressure", "disk_pressure", "pid_pressure"):
        if name in status:
            yield ObjectCondition(name.title().replace("_", ""), str(status[name]))
    if isinstance(ready := status.get("ready"), str):
        yield ObjectCondition("Ready", ready)


# --- texts -------------------------------------------------------------------------------------------------


def _workload_from_text(state: ObjectState, text: str) -> Workload | None:
    top = {label: value for indent, label, value in kubectl_output.read_label_fields(text) if indent == 0}
    if top.get("Name") or top.get("Containers") is not None:
        return _workload_from_describe(state, text, top)
    return None


def _workload_from_describe(state: ObjectState, text: str, top: Mapping[str, str]) -> Workload:
    places = {
        what: int(number)
        for number, what in _PLACES.findall(top.get("Replicas", "") + top.get("Pods Statuses", ""))
    }
    containers = _described_containers(text)
    facts = Workload(
        kind=state.kind,
        name=state.name,
        read_at=state.time,
        status=top.get("Status", "Failed" if places.get("Failed") and not places.get("Active") else ""),
        conditions=[ObjectCondition(*row) for row in kubectl_output.read_conditions_table(text)],
        placed=_is_node_assigned(top["Node"]) if "Node" in top else None,
    )
    if "desired" in places:
        return replace(facts, desired=places["desired"], ready=places.get("available"))
    return replace(facts, **containers)


def _described_containers(text: str) -> dict[str, Any]:
    """Current and last reasons, exit code, restarts and readiness, from the Containers section alone."""
    now: list[str] = []
    past: list[str] = []
    codes: list[int] = []
    restarts: list[int] = []
    ready: list[bool] = []
    reasons = now
    for line in kubectl_output.extract_section(text, "Init Containers") + kubectl_output.extract_section(
        text, "Containers"
    ):
        label, _, value = line.strip().partition(":")
        value = value.strip()
        if label in {"State", "Last State"}:
            reasons = past if label == "Last State" else now
        elif label == "Reason" and value:
            reasons.append(value)
        elif label == "Exit Code" and value.isdigit():
            codes.append(int(value))
        elif label == "Restart Count" and value.isdigit():
            restarts.append(int(value))
        elif label == "Ready" and value in {"True", "False"}:
            ready.append(value == "True")
    return {
        "reasons": now,
        "past": past,
        "exit_code": codes[0] if codes else None,
        "restarts": max(restarts, default=None),
        "ready": sum(ready) if ready else None,
        "desired": len(ready) or None,
    }

"""The state of workloads and nodes in one shape, whatever form it was recorded in.

Understood are API documents (camel case or snake case), rows of `kubectl get -o wide` and the text of
`kubectl describe`. What a document does not say stays None.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from opsleuth.analysis import describe
from opsleuth.analysis.records import ObjectState

_RESTARTS = re.compile(r"^(\d+)(?: \((\S+) ago\))?$")
_READY = re.compile(r"^(\d+)/(\d+)$")
_PLACES = re.compile(r"(\d+) (desired|available|total|updated|unavailable|Active|Succeeded|Failed)")
_EMPTY = frozenset({"", "<none>", "none", "unscheduled", "n/a", "-"})


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of an object: `status` is `True`, `False` or `Unknown`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """One pod, job, node or controller. `status` and `reasons` are the platform's own words, current ones first.

    `past` holds why containers ended the time before, `up_seconds` how long the youngest container (or the last
    restart) is ago, `age_seconds` how long the object exists, `messages` what the platform says about it.
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
    conditions: Sequence[Condition] = ()
    exit_code: int | None = None
    restarts: int | None = None
    age_seconds: float | None = None
    up_seconds: float | None = None
    placed: bool | None = None


def read(state: ObjectState) -> Workload | None:
    """The workload behind one object state; None where its form is not known."""
    if isinstance(state.status, str):
        return _from_text(state, state.status)
    if "READY" in state.status or "STATUS" in state.status:
        return _from_row(state, state.status)
    found = _from_document(state, state.status)
    return found if found.desired is not None or found.status or found.conditions else None


# --- rows of `kubectl get` ---------------------------------------------------------------------------------


def _from_row(state: ObjectState, row: Mapping[str, Any]) -> Workload:
    ready, desired = _ratio(str(row.get("READY", "")))
    restarts, ago = _restarts(str(row.get("RESTARTS", "")))
    age = describe.seconds(str(row.get("AGE", "")))
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
        placed=_placed(row["NODE"]) if "NODE" in row else None,
    )


def _ratio(text: str) -> tuple[int | None, int | None]:
    found = _READY.match(text)
    return (int(found[1]), int(found[2])) if found else (None, None)


def _restarts(text: str) -> tuple[int | None, float | None]:
    found = _RESTARTS.match(text)
    if not found:
        return None, None
    return int(found[1]), describe.seconds(found[2]) if found[2] else None


def _placed(node: object) -> bool:
    return str(node or "").strip().lower() not in _EMPTY


# --- API documents -----------------------------------------------------------------------------------------


def _get(document: Mapping[str, Any], *names: str) -> Any:  # noqa: ANN401 -- a JSON value
    return next((document[name] for name in names if document.get(name) is not None), None)


def _from_document(state: ObjectState, status: Mapping[str, Any]) -> Workload:
    containers = [*_containers(status)]
    running = [c for c in containers if _get(c, "ready") is True]
    spec = state.spec if isinstance(state.spec, Mapping) else {}
    desired = _get(status, "desired", "replicas") if "replicas" not in spec else spec["replicas"]
    ready = _get(status, "available", "availableReplicas", "ready", "readyReplicas")
    node = _get(status, "node_name", "nodeName") or _get(spec, "nodeName", "node_name")
    base = Workload(
        kind=state.kind,
        name=state.name,
        read_at=state.time,
        ready=len(running) if containers else ready if isinstance(ready, int) else None,
        desired=len(containers) or (desired if isinstance(desired, int) else None),
        status=str(_get(status, "phase") or ""),
        conditions=[*_conditions(status)],
        age_seconds=_since(_get(status, "start_time", "startTime"), state.time),
        placed=_placed(node) if node is not None else None,
    )
    if base.desired and base.ready is None:
        base = replace(base, ready=0)  # the API leaves out a count that is zero
    return replace(base, **_container_facts(containers, state.time)) if containers else base


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in (
        "initContainerStatuses",
        "init_containers",
        "containers",
        "containerStatuses",
        "container_statuses",
    ):
        yield from (entry for entry in status.get(name) or () if isinstance(entry, Mapping))


def _container_facts(containers: Sequence[Mapping[str, Any]], read_at: float | None) -> dict[str, Any]:
    now = [part for c in containers for part in _state_parts(_get(c, "state"))]
    before = [part for c in containers for part in _state_parts(_get(c, "lastState", "last_state"))]
    codes = [_get(part, "exitCode", "exit_code") for part in [*now, *before]]
    restarts = [_get(c, "restart_count", "restartCount") or 0 for c in containers]
    up = [_since(_get(part, "startedAt", "started_at"), read_at) for part in now]
    return {
        "reasons": [str(part["reason"]) for part in now if part.get("reason")],
        "past": [str(part["reason"]) for part in before if part.get("reason")],
        "messages": [str(part["message"]) for part in [*now, *before] if part.get("message")],
        "exit_code": next((code for code in codes if code is not None), None),
        "restarts": max(restarts),
        "up_seconds": min((seconds for seconds in up if seconds is not None), default=None),
    }


def _since(moment: object, read_at: float | None) -> float | None:
    """Seconds from an RFC 3339 time to the reading; None without both, or if it lies after the reading."""
    if not isinstance(moment, str) or read_at is None:
        return None
    try:
        parsed = datetime.fromisoformat(moment)
    except ValueError:
        return None
    started = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    passed = read_at - started.timestamp()
    return passed if passed >= 0 else None


def _state_parts(state: object) -> Iterator[Mapping[str, Any]]:
    """The waiting, running and terminated parts of a container state, nested or flat."""
    if not isinstance(state, Mapping):
        return
    yield state
    yield from (part for part in state.values() if isinstance(part, Mapping))


def _conditions(status: Mapping[str, Any]) -> Iterator[Condition]:
    for row in status.get("conditions") or ():
        if isinstance(row, Mapping) and row.get("type"):
            yield Condition(
                str(row["type"]),
                str(row.get("status", "")),
                str(row.get("reason") or ""),
                str(row.get("message") or ""),
            )
    for name in ("memory_pressure", "disk_pressure", "pid_pressure"):
        if name in status:
            yield Condition(name.title().replace("_", ""), str(status[name]))
    if isinstance(ready := status.get("ready"), str):
        yield Condition("Ready", ready)


# --- texts -------------------------------------------------------------------------------------------------


def _from_text(state: ObjectState, text: str) -> Workload | None:
    top = {label: value for indent, label, value in describe.fields(text) if indent == 0}
    if top.get("Name") or top.get("Containers") is not None:
        return _from_describe(state, text, top)
    return None


def _from_describe(state: ObjectState, text: str, top: Mapping[str, str]) -> Workload:
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
        conditions=[Condition(*row) for row in describe.conditions(text)],
        placed=_placed(top["Node"]) if "Node" in top else None,
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
    for line in describe.section(text, "Init Containers") + describe.section(text, "Containers"):
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

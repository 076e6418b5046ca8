"""The relations of an object to others, as `kubectl describe` prints them.

Only standing labels are read (`Selector:`, `Labels:`, `TargetPort:`, `Endpoints:`, `Node:`, `StorageClass:`); the
text is for people, and the rest of it is somebody's own words.
"""

from collections.abc import Iterator
from typing import Any

from opsleuth.analysis import kubectl_output
from opsleuth.analysis.cluster.objects import ClusterObject, ObjectRef
from opsleuth.analysis.records import ObjectState

_ABSENT = frozenset({"", "<none>", "<unset>"})


def described_objects(state: ObjectState, text: str) -> Iterator[ClusterObject]:
    """The object that the text describes, and for a Service its endpoints."""
    top = {label: value for indent, label, value in kubectl_output.read_label_fields(text) if indent == 0}
    name = top.get("Name", "")
    if not name:
        return
    namespace = state.namespace or _drop_absent(top.get("Namespace"))
    metadata: dict[str, Any] = {"labels": _parse_pairs(text, "Labels"), "annotations": {}}
    if owner := _drop_absent(top.get("Controlled By")):
        kind, _, made_by = owner.partition("/")
        metadata["ownerReferences"] = [{"kind": kind, "name": made_by, "controller": True}]
    yield ClusterObject(
        ref=ObjectRef(state.kind, namespace, name.rpartition("/")[2]),
        metadata=metadata,
        spec=_parse_spec(state.kind, top, text),
        status={
            "conditions": [_make_condition(*row) for row in kubectl_output.read_conditions_table(text)],
            **_read_phase(top),
        },
        read_at=state.time,
    )
    if state.kind == "Service" and "Endpoints" in top:
        addresses = [{"ip": part.partition(":")[0].strip()} for part in top["Endpoints"].split(",")]
        subsets = [] if top["Endpoints"] in _ABSENT else [{"addresses": addresses}]
        yield ClusterObject(
            ObjectRef("Endpoints", namespace, name), body={"subsets": subsets}, read_at=state.time
        )


def _parse_spec(kind: str, top: dict[str, str], text: str) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    selector = _parse_pairs(text, "Selector")
    if selector:
        spec["selector"] = selector if kind == "Service" else {"matchLabels": selector}
    if kind == "Service":
        target = top.get("TargetPort", "").partition("/")[0]
        port = top.get("Port", "").split()[-1:] or [""]
        number = port[0].partition("/")[0]
        spec["ports"] = (
            [{"port": _parse_number(number), "targetPort": _parse_number(target)}] if target else []
        )
        spec["internalTrafficPolicy"] = top.get("Internal Traffic Policy", "Cluster")
        spec["type"] = top.get("Type", "ClusterIP")
        spec["sessionAffinity"] = top.get("Session Affinity", "None")
        if address := _drop_absent(top.get("IP")):
            spec["clusterIP"] = address
    if node := _drop_absent(top.get("Node")):
        spec["nodeName"] = node.partition("/")[0]
    if storage := _drop_absent(top.get("StorageClass")):
        spec["storageClassName"] = storage
    if replicas := top.get("Replicas", "").split(" desired")[0]:
        spec |= {"replicas": int(replicas)} if replicas.isdigit() else {}
    return spec


def _read_phase(top: dict[str, str]) -> dict[str, str]:
    fields = (("phase", "Status"), ("reason", "Reason"), ("message", "Message"))
    return {name: top[label] for name, label in fields if top.get(label)}


def _parse_pairs(text: str, label: str) -> dict[str, str]:
    """Labels or a selector: on the line itself, and below it in the same column."""
    found: dict[str, str] = {}
    inside = False
    for line in text.splitlines():
        if line.startswith(f"{label}:"):
            inside, rest = True, line.partition(":")[2]
        elif inside and line.startswith(" "):
            rest = line
        else:
            inside = False
            continue
        for pair in rest.strip().split(","):
            key, equals, value = pair.strip().partition("=")
            if equals:
                found[key] = value
    return found


def _make_condition(kind: str, status: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


def _drop_absent(value: str | None) -> str | None:
    return None if value is None or value in _ABSENT else value


def _parse_number(text: str) -> int | str:
    return int(text) if text.isdigit() else text

"""A cluster as the public API documents describe it: two deployments, one of which was rolled out badly and restarts."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from contract_server import Asked, Reply

APPS = "apps/v1"


def kubeconfig(
    folder: Path, url: str, user: Mapping[str, Any] | None = None, *, namespace: str = "shop", **cluster: Any
) -> Path:
    """A kubeconfig that leads to `url`, as `user`; without one there are no credentials."""
    path = folder / "kubeconfig"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url, **cluster}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "me", "namespace": namespace}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def status(code: int, reason: str, message: str) -> Reply:
    """An error as the API gives it: a Status."""
    return Reply({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code}, code)  # fmt: skip


def forbidden(asked: Asked, user: str = "oncall") -> Reply:
    """What a role does not hold, as RBAC words it."""
    group = asked.path.split("/")[2] if asked.path.startswith("/apis/") else ""
    names = re.search(r"/namespaces/([^/]+)/", asked.path)
    where = f'in the namespace "{names[1]}"' if names else "at the cluster scope"
    verb, plural = ("get", "pods/log") if asked.path.endswith("/log") else ("list", asked.path.split("/")[-1])
    kind = f"{plural.split('/')[0]}.{group}" if group else plural.split("/")[0]
    said = (
        f'{kind} is forbidden: User "{user}" cannot {verb} resource "{plural}" in API group "{group}" {where}'
    )
    return status(403, "Forbidden", said)


def unknown() -> Reply:
    """A kind, or a version of a group, that the cluster does not have."""
    return status(404, "NotFound", "the server could not find the requested resource")


def no_kubelet(node: str) -> Reply:
    """A log of a pod on a node that is gone."""
    said = f'Get "https://{node}:10250/containerLogs/shop/x/app?timestamps=true": dial tcp: connect: connection refused'
    return status(500, "InternalError", said)


def _meta(name: str, created: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "shop", "creationTimestamp": created, **more}


def _template(image: str, **environment: str) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in environment.items()]
    return {"template": {"spec": {"containers": [{"name": "app", "image": image, "env": variables}]}}}


def _revision(number: int, created: str, image: str, **environment: str) -> dict[str, Any]:
    notes = {"deployment.kubernetes.io/revision": str(number)}
    owner = {"kind": "Deployment", "name": "orders", "uid": "u-orders"}
    meta = _meta(f"orders-6d5c7f8b{number}", created, annotations=notes, ownerReferences=[owner])
    return {"metadata": meta, "spec": _template(image, **environment)}


def _pod(name: str, owner: str, **container: Any) -> dict[str, Any]:
    labels = {"app": owner, "pod-template-hash": "6d5c7f8b4"}
    meta = _meta(name, "2026-03-03T13:50:00Z", labels=labels,
                 ownerReferences=[{"kind": "ReplicaSet", "name": f"{owner}-6d5c7f8b4"}])  # fmt: skip
    state = {
        "name": "app",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-03-03T13:50:05Z"}},
    }
    return {"metadata": meta, "spec": {"nodeName": "node-1"}, "status": {"phase": "Running", "containerStatuses": [state | container]}}  # fmt: skip


KILLED = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-03-03T14:05:00Z"}}
LISTS: Mapping[str, Sequence[dict[str, Any]]] = {
    "pods": [
        _pod("orders-6d5c7f8b4-x7k2p", "orders", restartCount=3, ready=False, lastState=KILLED,
             state={"waiting": {"reason": "CrashLoopBackOff", "message": "back-off restarting failed container"}}),
        _pod("payments-6d5c7f8b4-q9w4z", "payments"),
    ],
    "deployments": [
        {"metadata": _meta("orders", "2026-01-01T00:00:00Z", uid="u-orders", labels={"app": "orders"}),
         "spec": {"replicas": 1, **_template("shop/orders:2.14.0", CACHE_MB="4096", DB_PASSWORD="geheim-4711")},
         "status": {"replicas": 1, "unavailableReplicas": 1,
                    "conditions": [{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}]}},
        {"metadata": _meta("payments", "2026-01-01T00:00:00Z", uid="u-payments", labels={"app": "payments"}),
         "spec": {"replicas": 1, **_template("shop/payments:1.0.0")}, "status": {"replicas": 1, "readyReplicas": 1}},
    ],
    "replicasets": [
        _revision(4, "2026-03-03T13:50:00Z", "shop/orders:2.14.0", CACHE_MB="4096", DB_PASSWORD="geheim-4711"),
        _revision(3, "2026-03-01T09:00:00Z", "shop/orders:2.13.2", CACHE_MB="256", DB_PASSWORD="geheim-4711"),
    ],
    "events": [
        {"involvedObject": {"kind": "Pod", "name": "orders-6d5c7f8b4-x7k2p", "namespace": "shop"}, "type": "Warning",
         "reason": "BackOff", "message": "Back-off restarting failed container", "count": 12,
         "firstTimestamp": "2026-03-03T14:01:00Z", "lastTimestamp": "2026-03-03T14:20:00Z"},
        {"involvedObject": {"kind": "Deployment", "name": "orders"}, "type": "Normal", "reason": "ScalingReplicaSet",
         "message": "Scaled up replica set", "eventTime": "2026-03-03T13:50:00.123456Z", "lastTimestamp": None},
    ],
    "nodes": [{"metadata": {"name": "node-1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}],
}  # fmt: skip
PLACES = frozenset({"shop", "web"})
LOGS = {
    ("orders-6d5c7f8b4-x7k2p", False): "2026-03-03T14:06:00.5Z INFO starting\n",
    (
        "orders-6d5c7f8b4-x7k2p",
        True,
    ): "2026-03-03T14:04:59.9Z ERROR java.lang.OutOfMemoryError: Java heap space\n",
    (
        "payments-6d5c7f8b4-q9w4z",
        False,
    ): '2026-03-03T14:00:00Z {"level":"warn","msg":"slow call to orders"}\n',
}


def cluster(asked: Asked) -> Reply:
    """Lists of every kind that it has, logs of pods, and 404 for the rest."""
    if asked.path == "/version":
        return Reply({"major": "1", "minor": "31", "gitVersion": "v1.31.4"})
    parts = asked.path.split("/")
    if parts[-1] == "log":
        return _log(parts[-2], previous=asked.query.get("previous") == "true")
    kind = parts[-1]
    if kind in LISTS:
        return Reply({"kind": "List", "metadata": {"resourceVersion": "7"}, "items": LISTS[kind]})
    if kind == "horizontalpodautoscalers":
        return unknown()
    if parts[-2] == "namespaces" and kind not in PLACES:
        return status(404, "NotFound", f'namespaces "{kind}" not found')
    return Reply({"kind": "List", "metadata": {}, "items": None})


def _log(pod: str, *, previous: bool) -> Reply:
    if (pod, previous) not in LOGS:
        return status(400, "BadRequest", f'previous terminated container "app" in pod "{pod}" not found')
    return Reply(LOGS[pod, previous])

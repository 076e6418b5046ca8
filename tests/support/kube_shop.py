"""A cluster with one deployment that takes JSON patches as the API of Kubernetes describes them: conditional, and dry."""

import copy
from collections.abc import Mapping
from typing import Any

from contract_server import Asked, Reply
from kube_cluster import status

PATH = "/apis/apps/v1/namespaces/shop/deployments/orders"
MODIFIED = (
    'Operation cannot be fulfilled on deployments.apps "orders": the object has been modified; '
    "please apply your changes to the latest version and try again"
)
REVISION = "deployment.kubernetes.io/revision"


def _template(image: str, **environment: str) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "app", "image": image}
    if environment:
        container["env"] = [{"name": name, "value": value} for name, value in environment.items()]
    return {"metadata": {"labels": {"app": "orders"}}, "spec": {"containers": [container]}}


def replica_set(revision: int, image: str, **environment: str) -> dict[str, Any]:
    template = _template(image, **environment)
    template["metadata"]["labels"]["pod-template-hash"] = f"hash{revision}"
    owner = {"kind": "Deployment", "name": "orders", "uid": "u-orders"}
    meta = {
        "name": f"orders-hash{revision}",
        "labels": {"app": "orders", "pod-template-hash": f"hash{revision}"},
        "annotations": {REVISION: str(revision)},
        "ownerReferences": [owner],
    }
    return {"metadata": meta, "spec": {"template": template}}


class Shop:
    """`behave` says how it answers the next patches that are no dry run: ok, lost (done, then 503), never (503), full (quota)."""

    def __init__(self, *behave: str) -> None:
        self.behave = list(behave)
        self.patches: list[Any] = []
        self.dry: list[Any] = []
        self.moved = 0
        self.deployment: dict[str, Any] = {
            "metadata": {
                "name": "orders",
                "uid": "u-orders",
                "resourceVersion": "100",
                "generation": 7,
                "annotations": {REVISION: "2"},
            },
            "spec": {"replicas": 3, "template": _template("shop/orders:2.14.0")},
        }
        self.sets = [replica_set(1, "shop/orders:2.13.4"), replica_set(2, "shop/orders:2.14.0")]
        self._settle()

    def __call__(self, asked: Asked) -> Reply:
        if asked.path.endswith("/replicasets"):
            return Reply({"kind": "List", "metadata": {}, "items": self.sets})
        if asked.path != PATH:
            return status(404, "NotFound", f'deployments.apps "{asked.path.split("/")[-1]}" not found')
        return Reply(self.deployment) if asked.method == "GET" else self.patch(asked)

    def patch(self, asked: Asked) -> Reply:
        assert asked.headers["content-type"] == "application/json-patch+json"
        dry = asked.query.get("dryRun") == "All"
        (self.dry if dry else self.patches).append(asked.document)
        if "full" in self.behave:
            return status(403, "Forbidden", "exceeded quota: pods")
        way = "ok" if dry or not self.behave else self.behave.pop(0)
        if way == "never":
            return status(503, "ServiceUnavailable", "try again")
        changed = copy.deepcopy(self.deployment)
        for step in asked.document:
            _apply(changed, step)
        if changed["metadata"]["resourceVersion"] != self.deployment["metadata"]["resourceVersion"]:
            return status(409, "Conflict", MODIFIED)
        if dry:
            return Reply(changed)
        self._store(changed)
        return status(503, "ServiceUnavailable", "lost") if way == "lost" else Reply(self.deployment)

    def _store(self, changed: dict[str, Any]) -> None:
        meta = changed["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        if changed["spec"] != self.deployment["spec"]:
            meta["generation"] += 1
            self.moved += 1
        self.deployment = changed
        self._settle()

    def _settle(self) -> None:
        """What its controller reports when all pods are there."""
        wanted = self.deployment["spec"]["replicas"]
        same = dict.fromkeys(("replicas", "updatedReplicas", "availableReplicas"), wanted)
        self.deployment["status"] = same | {"observedGeneration": self.deployment["metadata"]["generation"]}


def _apply(document: dict[str, Any], step: Mapping[str, Any]) -> None:
    *parents, last = (part.replace("~1", "/") for part in step["path"].lstrip("/").split("/"))
    place: Any = document
    for part in parents:
        place = place[part]
    assert step["op"] == "add" or last in place
    place[last] = step["value"]

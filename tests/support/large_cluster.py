"""A cluster of thousands of pods behind a real HTTP server: paged lists, selectors and metadata-only lists as its API has them.

The objects are as large as real ones: most of a real list are `managedFields`. One Service of the cluster selects
pods that do not exist.
"""

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from contract_server import Asked, Reply
from kube_cluster import status, unknown

from opsleuth.scenarios.case_folder import format_utc

Document = dict[str, Any]
BROKEN = ("team-07", "app-07-03")
"""Namespace and name of the Service whose selector is wrong."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_HELM = "helm.sh/release.v1"


class ClusterSize(NamedTuple):
    """How many there are: namespaces, deployments in each, pods in all."""

    namespaces: int = 50
    deployments: int = 24
    pods: int = 5_000
    nodes: int = 120


class _Maker:
    """Makes the objects of a cluster, the same ones each time; `now` is the time of the youngest."""

    def __init__(self, size: ClusterSize, now: float) -> None:
        self._size, self._now = size, now
        self._chance = random.Random(7)
        self.lists: dict[str, list[Document]] = defaultdict(list)

    def make_all(self) -> None:
        self._make_nodes()
        self._make_further_groups()
        size = self._size
        per, rest = divmod(size.pods, size.namespaces * size.deployments)
        number = 0
        for place in range(size.namespaces):
            namespace = f"team-{place:02}"
            self._add("namespaces", "", namespace)
            self._make_namespace(namespace)
            for app in range(size.deployments):
                count = per + (1 if number < rest else 0)
                self._make_app(namespace, f"app-{place:02}-{app:02}", count)
                number += 1

    # --- one object --------------------------------------------------------------------------------------------

    def _add(self, plural: str, namespace: str, name: str, age: float = 864_000.0, **parts: Any) -> Document:
        made = format_utc(self._now - age)
        labels = parts.pop("labels", {"app.kubernetes.io/managed-by": "Helm"})
        metadata = {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "uid": f"{self._chance.getrandbits(128):032x}",
            "resourceVersion": str(self._chance.randrange(10**6, 10**8)),
            "creationTimestamp": made,
            "labels": {"helm.sh/chart": "app-3.14.2", **labels},
            "managedFields": [_written_fields("helm", made, parts), _written_fields("kube-controller-manager", made, parts)],
            **parts.pop("metadata", {}),
        }  # fmt: skip
        document = {"metadata": metadata, **parts}
        self.lists[plural].append(document)
        return document

    def _make_nodes(self) -> None:
        kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        for number in range(self._size.nodes):
            conditions = [
                {
                    "type": k,
                    "status": str(k == "Ready"),
                    "reason": f"Kubelet{k}",
                    "message": "as it should be",
                }
                for k in kinds
            ]
            images = [{"names": [f"registry.example.com/team/image-{n}@sha256:{n:064x}"], "sizeBytes": 10**8} for n in range(50)]  # fmt: skip
            capacity = {"cpu": "16", "memory": "64Gi", "pods": "110"}
            self._add("nodes", "", f"node-{number:03}", spec={"podCIDR": f"10.{number}.0.0/24"},
                      status={"conditions": conditions, "images": images, "capacity": capacity, "allocatable": capacity})  # fmt: skip

    def _make_further_groups(self) -> None:
        for number in range(200):
            self._add("persistentvolumes", "", f"pv-{number}", spec={"capacity": {"storage": "10Gi"}}, status={"phase": "Bound"})  # fmt: skip
            self._add("customresourcedefinitions", "", f"kind{number}.example.com", spec={"versions": [{"schema": _schema()}]})  # fmt: skip

    def _make_namespace(self, namespace: str) -> None:
        self._add("resourcequotas", namespace, "all", spec={"hard": {"pods": "500"}}, status={"hard": {"pods": "500"}, "used": {"pods": "100"}})  # fmt: skip
        self._add("networkpolicies", namespace, "within", spec={"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {}}]}]})  # fmt: skip
        self._add("rolebindings", namespace, "team", roleRef={"kind": "ClusterRole", "name": "edit"}, subjects=[{"kind": "Group", "name": namespace}])  # fmt: skip
        for number in range(4):
            self._add("persistentvolumeclaims", namespace, f"data-{number}", spec={"volumeName": f"pv-{number}"}, status={"phase": "Bound"})  # fmt: skip
            self._add("cronjobs", namespace, f"nightly-{number}", spec={"schedule": "0 3 * * *"}, status={"lastScheduleTime": format_utc(self._now - 7_200)})  # fmt: skip

    # --- one application -----------------------------------------------------------------------------------------

    def _make_app(self, namespace: str, app: str, pods: int) -> None:
        labels = {"app": app, "app.kubernetes.io/managed-by": "Helm"}
        template = {"metadata": {"labels": labels}, "spec": _pod_spec(app)}
        selector = {"matchLabels": {"app": app}}
        counts = {"replicas": pods, "readyReplicas": pods, "availableReplicas": pods, "updatedReplicas": pods}
        deployment = self._add("deployments", namespace, app, labels=labels, spec={"replicas": pods, "selector": selector, "template": template},
                               status={**counts, "conditions": [{"type": "Available", "status": "True"}]})  # fmt: skip
        for revision in (1, 2, 3):
            hashed = "".join(self._chance.choices(_LETTERS, k=10))
            owner = {
                "kind": "Deployment",
                "name": app,
                "uid": deployment["metadata"]["uid"],
                "controller": True,
            }
            notes = {"deployment.kubernetes.io/revision": str(revision)}
            wanted = pods if revision == 3 else 0
            self._add("replicasets", namespace, f"{app}-{hashed}", age=864_000.0 / revision if self._chance.random() < 0.9 else 36_000.0, labels=labels | {"pod-template-hash": hashed},
                      metadata={"ownerReferences": [owner], "annotations": notes},
                      spec={"replicas": wanted, "selector": selector, "template": {**template, "spec": _pod_spec(app, revision)}}, status={"replicas": wanted})  # fmt: skip
        endpoints = [self._make_pod(namespace, app, hashed, labels) for _ in range(pods)]
        selects = {"app": "elsewhere"} if (namespace, app) == BROKEN else {"app": app}
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        self._add("services", namespace, app, labels=labels, spec={"selector": selects, "ports": ports, "clusterIP": f"10.96.{self._chance.randrange(256)}.{self._chance.randrange(256)}"})  # fmt: skip
        self._add("endpointslices", namespace, f"{app}-{hashed[:5]}", labels={"kubernetes.io/service-name": app},
                  endpoints=[] if (namespace, app) == BROKEN else endpoints, ports=[{"name": "http", "port": 8080}], addressType="IPv4")  # fmt: skip
        self._make_belongings(namespace, app, labels)

    def _make_belongings(self, namespace: str, app: str, labels: Mapping[str, str]) -> None:
        settings = "\n".join(f"setting.{n}: {self._chance.getrandbits(64):x}" for n in range(60))
        self._add(
            "configmaps", namespace, f"{app}-config", labels=labels, data={"application.yaml": settings}
        )
        self._add("secrets", namespace, f"{app}-db", labels=labels, type="Opaque", data={"password": "bm90LXRoaXM="})  # fmt: skip
        release = {"owner": "helm", "name": app, "status": "deployed", "version": "3"}
        self._add("secrets", namespace, f"sh.helm.release.v1.{app}.v3", labels=release, type=_HELM, data={"release": "H4sI" * 5_000})  # fmt: skip
        self._add("serviceaccounts", namespace, app, labels=labels)
        self._add("events", namespace, f"{app}.1", type="Normal", reason="Pulled", message="Container image already present on machine", count=3,
                  involvedObject={"kind": "Pod", "name": f"{app}-x", "namespace": namespace}, lastTimestamp=format_utc(self._now - self._chance.randrange(3_000)))  # fmt: skip
        if self._chance.random() < 0.25:
            target = {"kind": "Deployment", "name": app}
            able = {"type": "ScalingActive", "status": "True"}
            self._add("horizontalpodautoscalers", namespace, app, spec={"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 9}, status={"currentReplicas": 4, "desiredReplicas": 4, "conditions": [able]})  # fmt: skip
            self._add("poddisruptionbudgets", namespace, app, spec={"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}, status={"disruptionsAllowed": 1})  # fmt: skip

    def _make_pod(self, namespace: str, app: str, hashed: str, labels: Mapping[str, str]) -> Document:
        name = f"{app}-{hashed}-{''.join(self._chance.choices(_LETTERS, k=5))}"
        ip = ".".join(["10", *(str(self._chance.randrange(256)) for _ in range(3))])
        node = f"node-{self._chance.randrange(self._size.nodes):03}"
        began = {"running": {"startedAt": format_utc(self._now - 288_000.0)}}
        told = [{"name": c, "ready": True, "started": True, "restartCount": 0, "state": began, "image": f"shop/{c}:3.1", "imageID": f"sha256:{0:064x}",
                 "containerID": f"containerd://{self._chance.getrandbits(256):064x}"} for c in ("app", "istio-proxy")]  # fmt: skip
        conditions = [{"type": k, "status": "True", "lastTransitionTime": "2026-03-01T00:00:00Z"} for k in ("Initialized", "Ready", "ContainersReady", "PodScheduled")]  # fmt: skip
        owner = {"kind": "ReplicaSet", "name": f"{app}-{hashed}", "controller": True}
        self._add("pods", namespace, name, age=288_000.0, labels={**labels, "pod-template-hash": hashed}, metadata={"generateName": f"{app}-{hashed}-", "ownerReferences": [owner]},
                  spec=_pod_spec(app) | {"nodeName": node}, status={"phase": "Running", "podIP": ip, "conditions": conditions, "containerStatuses": told})  # fmt: skip
        return {"addresses": [ip], "conditions": {"ready": True}, "targetRef": {"kind": "Pod", "name": name}, "nodeName": node}  # fmt: skip


def _pod_spec(app: str, revision: int = 3) -> Document:
    variables = [{"name": f"SETTING_{n}", "value": f"value of setting {n} of {app}"} for n in range(12)]
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3}  # fmt: skip
    limits = {"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "256Mi"}}
    containers = [
        {"name": name, "image": f"registry.example.com/shop/{name}:3.{revision}", "env": variables, "resources": limits, "readinessProbe": probe,
         "livenessProbe": probe, "ports": [{"containerPort": 8080}], "volumeMounts": [{"name": "config", "mountPath": "/etc/app"}]}
        for name in ("app", "istio-proxy")
    ]  # fmt: skip
    tolerations = [{"key": f"node.kubernetes.io/{k}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for k in ("not-ready", "unreachable")]  # fmt: skip
    return {
        "containers": containers,
        "serviceAccountName": app,
        "volumes": [{"name": "config", "configMap": {"name": f"{app}-config"}}],
        "tolerations": tolerations,
    }


def _schema() -> Document:
    """A part of a definition that is large in each cluster: it is never asked for."""
    return {f"field{n}": {"type": "string", "description": "what this field is for " * 8} for n in range(60)}


def _written_fields(manager: str, time: str, parts: Mapping[str, Any]) -> Document:
    return {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1", "fieldsV1": _fields_of(parts)}  # fmt: skip


def _fields_of(value: Any) -> Document:
    if isinstance(value, Mapping):
        return {f"f:{key}": _fields_of(part) for key, part in value.items()}
    if isinstance(value, list):
        return {f'k:{{"name":"{n}"}}': _fields_of(part) for n, part in enumerate(value[:4])}
    return {}


class LargeCluster:
    """Answers requests for lists: in pages, narrowed by namespace and selectors, as metadata where only that is asked for."""

    def __init__(self, now: float, size: ClusterSize | None = None) -> None:
        maker = _Maker(size or ClusterSize(), now)
        maker.make_all()
        self._lists = dict(maker.lists)
        self._texts: dict[tuple[str, bool], list[str]] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        return {plural: len(found) for plural, found in self._lists.items()}

    def __call__(self, asked: Asked) -> Reply:
        if asked.path == "/version":
            return Reply({"gitVersion": "v1.31.4"})
        if asked.path == "/apis":
            return Reply({"kind": "APIGroupList", "groups": [{"name": n, "versions": [{"version": v}]} for n, v in _GROUPS]})  # fmt: skip
        plural = asked.path.rpartition("/")[2]
        if plural == "log":
            return Reply("")
        if plural not in self._lists:
            return unknown() if plural not in _EMPTY else Reply({"metadata": {}, "items": []})
        begin, most = int(asked.query.get("continue") or 0), int(asked.query.get("limit") or 10**9)
        rows = self._select_rows(plural, asked)
        if begin > len(rows):
            return status(410, "Expired", "The provided continue parameter is too old")
        more = str(begin + most) if begin + most < len(rows) else ""
        meta = {"resourceVersion": "77", **({"continue": more} if more else {})}
        body = f'{{"kind":"List","metadata":{json.dumps(meta)},"items":[{",".join(rows[begin : begin + most])}]}}'
        return Reply(body, headers={"content-type": "application/json"})

    def _select_rows(self, plural: str, asked: Asked) -> Sequence[str]:
        """The rows of a list as JSON texts. They are written once: the server costs little beside its client."""
        short = "PartialObjectMetadata" in asked.headers.get("accept", "")
        texts = self._texts.setdefault((plural, short), [])
        if not texts:
            texts += [json.dumps({"metadata": d["metadata"]} if short else d) for d in self._lists[plural]]
        parts = asked.path.split("/")
        namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts[:-1] else None
        wanted = list(_conditions(asked.query))
        return [
            text
            for text, document in zip(texts, self._lists[plural], strict=True)
            if namespace in {None, document["metadata"].get("namespace")}
            and all(_field(document, path) == value if same else _field(document, path) != value for path, same, value in wanted)
        ]  # fmt: skip


def _conditions(query: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], bool, str]]:
    """Path, whether it is to be equal, and value of each condition of the selectors."""
    for name, root in (("fieldSelector", ()), ("labelSelector", ("metadata", "labels"))):
        for part in filter(None, query.get(name, "").split(",")):
            left, _, value = part.partition("=")
            key = left.removesuffix("!")
            yield (*root, *(key.split(".") if not root else (key,))), not left.endswith("!"), value


def _field(document: Any, path: Sequence[str]) -> Any:
    for name in path:
        document = document.get(name, "") if isinstance(document, Mapping) else ""
    return document


_GROUPS = (
    ("apps", "v1"),
    ("batch", "v1"), ("autoscaling", "v2"), ("policy", "v1"), ("networking.k8s.io", "v1"),
    ("rbac.authorization.k8s.io", "v1"), ("discovery.k8s.io", "v1"), ("storage.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1"), ("admissionregistration.k8s.io", "v1"), ("apiextensions.k8s.io", "v1"),
)  # fmt: skip
_EMPTY = frozenset(
    {
        "jobs", "statefulsets", "daemonsets", "controllerrevisions", "ingresses", "ingressclasses", "limitranges",
        "storageclasses", "priorityclasses", "roles", "validatingwebhookconfigurations", "mutatingwebhookconfigurations",
        "clusterroles", "clusterrolebindings", "cronjobs",
    }
)  # fmt: skip

"""The objects of one cluster, whole as the API server returns them, by kind, namespace and name."""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from opsleuth.scenarios.case_folder import format_utc

Manifest = dict[str, Any]

API_VERSIONS = {
    "AuthorizationPolicy": "security.istio.io/v1",
    "Certificate": "cert-manager.io/v1",
    "ConfigMap": "v1",
    "ControllerRevision": "apps/v1",
    "CronJob": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "DestinationRule": "networking.istio.io/v1",
    "EndpointSlice": "discovery.k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Ingress": "networking.k8s.io/v1",
    "IngressClass": "networking.k8s.io/v1",
    "Job": "batch/v1",
    "LimitRange": "v1",
    "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
    "Namespace": "v1",
    "NetworkChaos": "chaos-mesh.org/v1alpha1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "Node": "v1",
    "PeerAuthentication": "security.istio.io/v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "Pod": "v1",
    "PodChaos": "chaos-mesh.org/v1alpha1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ReplicaSet": "apps/v1",
    "ResourceQuota": "v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "Secret": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "StatefulSet": "apps/v1",
    "StorageClass": "storage.k8s.io/v1",
    "StressChaos": "chaos-mesh.org/v1alpha1",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
    "VirtualService": "networking.istio.io/v1",
}
CLUSTER_SCOPED = frozenset(
    {
        "IngressClass",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "StorageClass",
        "ValidatingWebhookConfiguration",
    }
)
# Kinds whose writer is a controller; people and pipelines write the others.
_MANAGERS = {
    "ControllerRevision": "kube-controller-manager",
    "EndpointSlice": "kube-controller-manager",
    "Node": "kubelet",
    "PersistentVolume": "csi-provisioner",
    "Pod": "kube-controller-manager",
    "ReplicaSet": "kube-controller-manager",
}


class EntityRef(NamedTuple):
    """One object by name; `namespace` is empty for what belongs to the whole cluster."""

    kind: str
    namespace: str
    name: str

    def to_key(self) -> dict[str, str | None]:
        """The entity as the key writes it."""
        return {"kind": self.kind, "namespace": self.namespace or None, "name": self.name}


def make_manifest(
    random: Random,
    ref: EntityRef,
    created: float,
    *,
    labels: dict[str, str] | None = None,
    owner: Manifest | None = None,
    **body: Any,  # noqa: ANN401 - spec, status, data and the like
) -> Manifest:
    """A whole object with the metadata that the API server adds. `created` is in seconds since the epoch."""
    version = API_VERSIONS[ref.kind]
    metadata: Manifest = {"name": ref.name}
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    metadata |= {
        "uid": draw_uid(random),
        "resourceVersion": str(random.randrange(10**5, 10**8)),
        "generation": 1,
        "creationTimestamp": format_utc(int(created)),
        "labels": dict(labels or {}),
        "managedFields": [_make_managed_fields(_MANAGERS.get(ref.kind, "helm"), version, created)],
    }
    if owner:
        metadata["ownerReferences"] = [refer_to_owner(owner)]
    return {"apiVersion": version, "kind": ref.kind, "metadata": metadata, **body}


def _make_managed_fields(manager: str, version: str, at: float) -> Manifest:
    return {"manager": manager, "operation": "Update", "apiVersion": version, "time": format_utc(int(at))}


def refer_to_owner(owner: Manifest) -> Manifest:
    """An owner reference to a controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def record_edit(manifest: Manifest, at: float, manager: str) -> Manifest:
    """Note an edit at `at` in the object's own metadata; returns the object."""
    metadata = manifest["metadata"]
    metadata["generation"] += 1
    metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 997)
    metadata["managedFields"].append(_make_managed_fields(manager, manifest["apiVersion"], at))
    return manifest


def draw_uid(random: Random) -> str:
    """A version 4 UUID."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class ClusterState:
    """All objects of a cluster."""

    def __init__(self) -> None:
        self._objects: dict[EntityRef, Manifest] = {}

    def add(self, manifest: Manifest) -> Manifest:
        """Add or replace an object; returns it."""
        self._objects[ref_of(manifest)] = manifest
        return manifest

    def get(self, kind: str, name: str, namespace: str = "") -> Manifest:
        """The object; raises KeyError if there is none."""
        return self._objects[EntityRef(kind, namespace, name)]

    def find(self, ref: EntityRef) -> Manifest | None:
        """The object, or None."""
        return self._objects.get(ref)

    def remove(self, ref: EntityRef) -> None:
        """Delete an object that exists."""
        del self._objects[ref]

    def of_kind(self, kind: str, namespace: str | None = None) -> list[Manifest]:
        """All objects of a kind, of one namespace if it is given."""
        return [
            m for ref, m in self._objects.items() if ref.kind == kind and namespace in {None, ref.namespace}
        ]

    def owned_by(self, owner: Manifest, kind: str) -> list[Manifest]:
        """All objects of a kind that a controller owns."""
        uid = owner["metadata"]["uid"]
        owned = self.of_kind(kind, owner["metadata"].get("namespace"))
        return [m for m in owned if any(o["uid"] == uid for o in m["metadata"].get("ownerReferences", ()))]

    def __iter__(self) -> Iterator[Manifest]:
        return iter(list(self._objects.values()))

    def __contains__(self, ref: EntityRef) -> bool:
        return ref in self._objects


def ref_of(manifest: Manifest) -> EntityRef:
    """How an object is called."""
    metadata = manifest["metadata"]
    return EntityRef(manifest["kind"], metadata.get("namespace", ""), metadata["name"])

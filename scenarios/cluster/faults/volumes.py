"""Volumes that pods cannot have, and volumes that are full."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.pods import fail_mount, leave_unscheduled
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest, ref_of
from opsleuth.scenarios.cluster.traffic import refuse_clients
from opsleuth.scenarios.cluster.workloads import replace_pods

Entities = Sequence[EntityRef]


def claim_volume(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A pod mounts a claim that exists, or does not."""
    name = f"{target.name}-files"
    claim = cluster.ref("PersistentVolumeClaim", target, name)
    if not wrong:
        _bind_claim(cluster, claim, target)
    cluster.pod_spec(target)["volumes"].append(
        {"name": "files", "persistentVolumeClaim": {"claimName": name}}
    )
    cluster.edit(cluster.workload(target), target, f"{target.name}: uploads on a volume")
    pods = replace_pods(cluster, target)
    if wrong:
        leave_unscheduled(cluster, target, pods, f'persistentvolumeclaim "{name}" not found')
    return [cluster.workload_ref(target), claim]


def _bind_claim(
    cluster: ClusterScene, claim: EntityRef, target: Target, storage: str = "standard"
) -> Manifest:
    size = {"storage": "10Gi"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, "storageClassName": storage}
    status = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": size}
    return cluster.state.add(
        make_manifest(cluster.random, claim, target.since - 120, spec=spec, status=status)
    )


def choose_class(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A claim of a class that exists, or does not."""
    name, storage = f"{target.name}-index", "fast-nvme" if wrong else "standard"
    claim = _bind_claim(cluster, cluster.ref("PersistentVolumeClaim", target, name), target, storage)
    cluster.pod_spec(target)["volumes"].append(
        {"name": "index", "persistentVolumeClaim": {"claimName": name}}
    )
    cluster.edit(cluster.workload(target), target, f"{target.name}: index on a volume of its own")
    pods = replace_pods(cluster, target)
    if wrong:
        claim["status"] = {"phase": "Pending"}
        cluster.event(
            claim, "ProvisioningFailed", f'storageclass.storage.k8s.io "{storage}" not found', target
        )
        leave_unscheduled(cluster, target, pods, "pod has unbound immediate PersistentVolumeClaims")
    return [ref_of(claim), cluster.workload_ref(target)]


def _volume_of(cluster: ClusterScene, target: Target) -> Manifest:
    claim = cluster.state.get("PersistentVolumeClaim", f"data-{target.name}-0", target.namespace)
    return cluster.state.get("PersistentVolume", claim["spec"]["volumeName"])


def pin_volume(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A volume in a zone that has nodes, or in one without."""
    volume = _volume_of(cluster, target)
    zone = (
        "zone-q"
        if wrong
        else cluster.state.get("Node", cluster.pods(target)[0]["spec"]["nodeName"])["metadata"]["labels"][
            "topology.kubernetes.io/zone"
        ]
    )
    match = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [match]}]}}
    cluster.edit(volume, target, f"volume of {target.name} pinned to {zone}")
    pods = replace_pods(cluster, target)
    if wrong:
        leave_unscheduled(
            cluster,
            target,
            pods,
            f"{len(cluster.state.of_kind('Node'))} node(s) had volume node affinity conflict",
        )
    return [ref_of(volume), cluster.workload_ref(target)]


def attach_twice(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The store moved to another node with its volume, or the volume stayed behind."""
    volume = _volume_of(cluster, target)
    pods = replace_pods(cluster, target)
    old = pods[0]["spec"]["nodeName"]
    pods[0]["spec"]["nodeName"] = next(n for n in (*cluster.nodes, cluster.spare_node) if n != old)
    if wrong:
        name = volume["metadata"]["name"]
        fail_mount(
            cluster,
            target,
            pods,
            "FailedAttachVolume",
            f'Multi-Attach error for volume "{name}" Volume is already exclusively attached to one node and can\'t be attached to another',
        )
    return [
        ref_of(volume),
        cluster.ref("PersistentVolumeClaim", target, f"data-{target.name}-0"),
        cluster.workload_ref(target),
        ref_of(pods[0]),
    ]


def fill_volume(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The store's volume has room, or is full."""
    claim = cluster.state.get("PersistentVolumeClaim", f"data-{target.name}-0", target.namespace)
    if wrong:
        refuse_clients(
            cluster,
            target,
            lambda r: (
                f'could not extend file "base/16384/{r.randrange(20000, 30000)}": No space left on device'
            ),
            lambda _: (
                'pq: could not extend file "base/16384/24601": No space left on device (SQLSTATE 53100)'
            ),
        )
    else:
        claim["status"]["conditions"] = [{"type": "FileSystemResizePending", "status": "False"}]
    return [ref_of(claim), cluster.workload_ref(target)]


_VOLUME = ("config", "disk", "storage_full", "deploy")
FAULTS = (
    ClusterFault("claim_missing", "app", "scheduling", claim_volume, "ITBench nonexistent persistent volume claim; SREGym pvc_claim_mismatch", _VOLUME),
    ClusterFault("storage_class", "app", "scheduling", choose_class, "SREGym operator non_existent_storage", _VOLUME),
    ClusterFault("volume_zone", "database", "scheduling", pin_volume, "SREGym persistent_volume_affinity_violation", _VOLUME),
    ClusterFault("volume_attached", "database", "disk", attach_twice, "SREGym duplicate_pvc_mounts", ("scheduling", "config", "crash", "other")),
    ClusterFault("volume_full", "database", "storage_full", fill_volume, "chaos-mesh IOChaos; SREGym dev_shm_exhaustion", ("disk", "errors")),
)  # fmt: skip

"""Analyzers on a real API server, as a user whose role may only read: each finds its fault in what real lists hold."""

import asyncio
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from kube_place import APPS, RBAC, Namespace, template
from kube_real import TOKENS, ControlPlane
from kubelet import Kubelet, moment
from live_rig import one
from servers import until

from opsleuth.analysis.cluster import (
    admission,
    autoscaling,
    capacity,
    conditions,
    deletion,
    jobs,
    network_policies,
    nodes,
    references,
    services,
    storage,
    workloads,
)
from opsleuth.analysis.cluster.deviation import Analyzer, ClusterView, Deviation
from opsleuth.analysis.records import AlertFacts, Recording, ServiceDependency, TimeRange
from opsleuth.state.clock import FakeClock
from opsleuth.tools.sources.live_source import LiveSource

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow]

LATER = timedelta(minutes=10)
"""How long after the faults the cluster is read: deletions have had their time by then."""
STORAGE, ADMISSION = "/apis/storage.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
SERVICES, NETWORK = "/apis/apiregistration.k8s.io/v1/apiservices", "/apis/networking.k8s.io/v1"
READ = ("get", "list")
GRANTED: tuple[tuple[str, list[str]], ...] = (
    ("", ["pods", "services", "endpoints", "configmaps", "serviceaccounts", "namespaces", "limitranges", "resourcequotas",
          "persistentvolumes", "persistentvolumeclaims", "nodes", "events"]),
    ("apps", ["*"]), ("batch", ["*"]), ("autoscaling", ["*"]), ("networking.k8s.io", ["*"]), ("policy", ["*"]),
    ("storage.k8s.io", ["*"]), ("discovery.k8s.io", ["*"]), ("scheduling.k8s.io", ["*"]), ("rbac.authorization.k8s.io", ["*"]),
    ("admissionregistration.k8s.io", ["*"]), ("apiregistration.k8s.io", ["*"]),
)  # fmt: skip
"""What the role may read: all that is listed but secrets and definitions of custom resources."""


class FaultyCluster(NamedTuple):
    """What a user who may only read sees of a cluster with many faults."""

    view: ClusterView
    recording: Recording
    shop: str
    full: str


@pytest.fixture(scope="module")
def faulty(
    plane: ControlPlane, admin: httpx.Client, node: Kubelet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FaultyCluster]:
    shop, full = Namespace(admin), Namespace(admin)
    node.states.clear()
    made = [*allow_reading(shop), *make_cluster_faults(shop)]
    try:
        make_faults(shop)
        fill_quota(full)
        recording = read_as_reader(plane, tmp_path_factory.mktemp("reader"), shop)
        yield FaultyCluster(ClusterView.of(recording), recording, shop.name, full.name)
    finally:
        for path in made:
            admin.delete(path)


def allow_reading(shop: Namespace) -> list[str]:
    """The role, in the whole cluster; the paths of what was made for it."""
    rules = [{"apiGroups": [group], "resources": names, "verbs": list(READ)} for group, names in GRANTED]
    shop.make(f"{RBAC}/clusterroles", {"metadata": {"name": shop.name}, "rules": rules})
    subject = {"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": "ClusterRole", "name": shop.name, "apiGroup": "rbac.authorization.k8s.io"}
    body = {"metadata": {"name": shop.name}, "subjects": [subject], "roleRef": ref}
    shop.make(f"{RBAC}/clusterrolebindings", body)
    return [f"{RBAC}/clusterroles/{shop.name}", f"{RBAC}/clusterrolebindings/{shop.name}"]


def make_cluster_faults(shop: Namespace) -> list[str]:
    """Faults outside of namespaces; the paths of what was made."""
    stopped = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}  # fmt: skip
    shop.make("/api/v1/nodes", {"metadata": {"name": f"node-{shop.name}"}, "status": {"conditions": [stopped]}})  # fmt: skip
    shop.make(f"{STORAGE}/storageclasses", {"metadata": {"name": f"slow-{shop.name}"}, "provisioner": "example.com/disk"})  # fmt: skip
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}  # fmt: skip
    hook = {"name": "guard.example.com", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [rule], "clientConfig": {"service": {"name": "guard", "namespace": shop.name}}}  # fmt: skip
    shop.make(f"{ADMISSION}/validatingwebhookconfigurations", {"metadata": {"name": f"guard-{shop.name}"}, "webhooks": [hook]})  # fmt: skip
    served = {"group": "things.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
              "insecureSkipTLSVerify": True, "service": {"name": "things", "namespace": shop.name}}  # fmt: skip
    shop.make(SERVICES, {"metadata": {"name": "v1.things.example.com"}, "spec": served})
    return [
        f"/api/v1/nodes/node-{shop.name}",
        f"{STORAGE}/storageclasses/slow-{shop.name}",
        f"{ADMISSION}/validatingwebhookconfigurations/guard-{shop.name}",
        f"{SERVICES}/v1.things.example.com",
    ]


def make_faults(shop: Namespace) -> None:
    for name in ("web", "cart", "mail"):
        shop.release(name, f"shop/{name}:1.0")
    ports = [{"port": 80, "targetPort": 8080}]
    shop.make(shop.within("services"), {"metadata": {"name": "cart"}, "spec": {"selector": {"app": "kart"}, "ports": ports}})  # fmt: skip
    closed = {"podSelector": {"matchLabels": {"app": "mail"}}, "policyTypes": ["Ingress"]}
    shop.make(shop.within("networkpolicies", NETWORK), {"metadata": {"name": "closed"}, "spec": closed})
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
    shop.make(shop.within("persistentvolumeclaims"), {"metadata": {"name": "data"}, "spec": claim})
    evict_pod(shop, "mail")
    make_scaler(shop, "web")
    suspend_schedule(shop)
    refer_to_nothing(shop)
    held = {"metadata": {"name": "held", "finalizers": ["example.com/never"]}}
    path = f"{shop.within('configmaps')}/held"
    shop.make(shop.within("configmaps"), held)
    shop.admin.delete(path).raise_for_status()


def evict_pod(shop: Namespace, name: str) -> None:
    """A pod beside the deployment's that its node put out."""
    body = {
        "metadata": {"name": f"{name}-out", "labels": {"app": name}},
        "spec": template(name, "x:1")["spec"],
    }
    shop.make(shop.within("pods"), body)
    path = f"{shop.within('pods')}/{name}-out"
    until(lambda: bool(shop.got(path)["status"].get("containerStatuses")))
    said = "The node was low on resource: ephemeral-storage."
    shop.change(f"{path}/status", {"status": {"phase": "Failed", "reason": "Evicted", "message": said}})


def make_scaler(shop: Namespace, name: str) -> None:
    scaled = {"kind": "Deployment", "name": name, "apiVersion": "apps/v1"}
    path = shop.within("horizontalpodautoscalers", "/apis/autoscaling/v2beta2")
    shop.make(path, {"metadata": {"name": name}, "spec": {"scaleTargetRef": scaled, "maxReplicas": 4}})
    row = {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics returned from resource metrics API", "lastTransitionTime": moment()}  # fmt: skip
    status = {"currentReplicas": 1, "desiredReplicas": 1, "conditions": [row], "currentMetrics": []}
    shop.change(f"{path}/{name}/status", {"status": status})


def suspend_schedule(shop: Namespace) -> None:
    once = template("nightly", "shop/x:1")["spec"] | {"restartPolicy": "Never"}
    spec = {"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": {"spec": once}}}}
    shop.make(shop.within("cronjobs", "/apis/batch/v1beta1"), {"metadata": {"name": "nightly"}, "spec": spec})  # fmt: skip


def refer_to_nothing(shop: Namespace) -> None:
    shop.make(shop.within("configmaps"), {"metadata": {"name": "there"}, "data": {"a": "1"}})
    parts = template("orders", "shop/orders:1.0")
    parts["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "absent"}}]
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "orders"}}, "template": parts}
    shop.make(shop.within("deployments", APPS), {"metadata": {"name": "orders"}, "spec": spec})


def fill_quota(full: Namespace) -> None:
    """A quota of one pod, and a deployment that wants two."""
    full.make(full.within("resourcequotas"), {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    until(lambda: "hard" in full.got(f"{full.within('resourcequotas')}/few").get("status", {}))
    full.deploy("many", "shop/many:1.0", 2)

    def is_refused() -> bool:
        found = full.got(full.within("events"))["items"]
        return any("exceeded quota" in event["message"] for event in found)

    until(is_refused)


def read_as_reader(plane: ControlPlane, folder: Path, shop: Namespace) -> Recording:
    until(lambda: is_unavailable(shop))
    file = plane.kubeconfig(folder, {"token": TOKENS["reader"]}, namespace=shop.name)
    now = datetime.now(UTC) + LATER
    source = one(FakeClock(now), kind="kubernetes", kubeconfig=str(file))
    return read_all(source, TimeRange(now.timestamp() - 3600, now.timestamp()), [("web", "mail")])


def read_all(source: LiveSource, window: TimeRange, calls: list[tuple[str, str]]) -> Recording:
    found: Recording = asyncio.run(source.read(["objects", "events", "changes"], window))
    topology = [ServiceDependency(*pair) for pair in calls]
    return replace(found, topology=topology, alert=AlertFacts("requests to web fail", service="web"))


def is_unavailable(shop: Namespace) -> bool:
    """Whether the server has found out that nobody serves the group."""
    with suppress(AssertionError):
        rows = shop.got(f"{SERVICES}/v1.things.example.com")["status"].get("conditions", [])
        return any(row["type"] == "Available" and row["status"] == "False" for row in rows)
    return False


@pytest.mark.parametrize(
    ("analyzer", "kind", "name", "said"),
    [
        (services.find_broken_services, "Service", "cart", "selects app=kart, which no pod has"),
        (workloads.find_unmet_workloads, "Deployment", "many", "cannot create pods (FailedCreate)"),
        (workloads.find_failed_pods, "Deployment", "mail", "Evicted"),
        (autoscaling.find_stuck_autoscalers, "HorizontalPodAutoscaler", "web", "FailedGetResourceMetric"),
        (jobs.find_job_troubles, "CronJob", "nightly", "is suspended"),
        (deletion.find_undeleted_objects, "ConfigMap", "held", "finalizer example.com/never"),
        (storage.find_unbound_storage, "PersistentVolumeClaim", "data", "there is no StorageClass fast"),
        (network_policies.find_cut_paths, "NetworkPolicy", "closed", "allows no traffic from web to mail"),
        (references.find_dangling_references, "ConfigMap", "absent", "which does not exist"),
        (
            admission.find_admission_trouble,
            "ValidatingWebhookConfiguration",
            "guard-{shop}",
            "does not exist",
        ),
        (capacity.find_exhausted_capacity, "ResourceQuota", "few", "pods 1 of 1"),
        (nodes.find_unwell_nodes, "Node", "node-{shop}", "is not ready (NodeStatusUnknown)"),
        (conditions.find_failing_conditions, "APIService", "v1.things.example.com", "Available is False"),
    ],
)
def test_analyzer_finds_its_fault_in_a_real_cluster(
    faulty: FaultyCluster, analyzer: Analyzer, kind: str, name: str, said: str
) -> None:
    wanted = name.format(shop=faulty.shop)
    found = [d for d in analyzer(faulty.view) if (d.entity.kind, d.entity.name) == (kind, wanted)]
    assert any(said in d.text for d in found), describe_all(analyzer(faulty.view))


def describe_all(found: Iterable[Deviation]) -> list[tuple[str, str]]:
    return [(str(row.entity), row.text) for row in found]


def test_what_the_role_may_not_list_is_named_once_and_costs_nothing_else(faulty: FaultyCluster) -> None:
    missed = [line for line in faulty.recording.missed if "may not" in line]
    assert missed == ["the role may not list customresourcedefinitions, secrets"]
    refused = [line for line in faulty.recording.asked if "-> 403" in line]
    assert {line.split("?")[0].rpartition("/")[2] for line in refused} == {"secrets", "customresourcedefinitions"}  # fmt: skip


def test_the_reader_may_not_write(faulty: FaultyCluster, plane: ControlPlane) -> None:
    path = f"/api/v1/namespaces/{faulty.shop}/configmaps"
    trust = ssl.create_default_context(cafile=str(plane.folder / "ca.pem"))
    with httpx.Client(base_url=plane.url, verify=trust) as client:
        headers = {"authorization": f"Bearer {TOKENS['reader']}"}
        answer = client.post(path, json={"metadata": {"name": "mine"}}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/apis/batch/v1beta1/cronjobs",
        "/apis/discovery.k8s.io/v1beta1/endpointslices",
        "/apis/policy/v1beta1/poddisruptionbudgets",
        "/apis/autoscaling/v2beta2/horizontalpodautoscalers",
        "/apis/networking.k8s.io/v1/ingresses",
    ],
)
def test_kinds_are_found_in_the_versions_that_the_server_has(faulty: FaultyCluster, path: str) -> None:
    assert any(f"{path}?" in line and "-> 200" in line for line in faulty.recording.asked)

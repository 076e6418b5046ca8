"""What the source reads of a real API server: states, events, rollouts and logs, as real controllers wrote them."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from kube_place import APPS, Namespace, template
from kube_real import ControlPlane
from kubelet import Kubelet, moment, not_pulled, out_of_memory
from live_rig import one
from servers import free_port, until

from opsleuth.analysis import platform_reports, workloads
from opsleuth.analysis.records import Recording, ServiceChange, TimeRange
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.object_memory import attach_object_memory
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.tools.sources import kube_api, kube_logs
from opsleuth.tools.sources.live_source import LiveSource
from opsleuth.tools.sources.source_protocols import Capability

pytestmark = pytest.mark.kubernetes

Read = Callable[..., Any]


@pytest.fixture
def source(plane: ControlPlane, shop: Namespace, tmp_path: Path) -> LiveSource:
    """The namespace, by the certificate of an administrator."""
    file = plane.kubeconfig(tmp_path, plane.of_certificate("admin"), namespace=shop.name)
    return one(kind="kubernetes", kubeconfig=str(file), namespaces=[shop.name])


async def read(source: LiveSource, *capabilities: Capability) -> Recording:
    """The last hour, until a minute from now."""
    now = SystemClock().now().timestamp()
    return await source.read(capabilities, TimeRange(now - 3600, now + 60))


@pytest.mark.parametrize(
    ("states", "reason", "said"),
    [
        (not_pulled, "ImagePullBackOff", {"ImagePullBackOff"}),
        (out_of_memory, "CrashLoopBackOff", {"CrashLoopBackOff", "OOMKilled"}),
    ],
)
async def test_pods_that_do_not_come_up_are_found_with_their_deployment(
    source: LiveSource, shop: Namespace, node: Kubelet, states: Any, reason: str, said: set[str]
) -> None:
    shop.release("orders", "shop/orders:1.0")
    node.states["2.0"] = states
    shop.deploy("orders", "shop/orders:2.0")
    until(lambda: shop.waits("orders", reason))
    recording = await read(source, "objects", "events", "changes")
    pods = [w for o in recording.objects or () if o.kind == "Pod" and (w := workloads.read_workload(o))]
    assert sorted((w.ready, w.desired) for w in pods) == [(0, 1), (1, 1)]
    [ill] = [w for w in pods if not w.ready]
    assert {*ill.reasons, *ill.past} >= said
    assert ill.name.startswith("orders-")
    assert "orders" in {finding.service for finding in platform_reports.find_reported_troubles(recording)}


async def test_every_kind_of_controller_and_the_node(source: LiveSource, shop: Namespace) -> None:
    parts = {"selector": {"matchLabels": {"app": "x"}}, "template": template("x", "shop/x:1")}
    shop.make(shop.within("statefulsets", APPS), {"metadata": {"name": "store"}, "spec": parts | {"serviceName": "store"}})  # fmt: skip
    shop.make(shop.within("daemonsets", APPS), {"metadata": {"name": "agent"}, "spec": parts})
    once = {"metadata": {}, "spec": template("x", "shop/x:1")["spec"] | {"restartPolicy": "Never"}}
    shop.make(shop.within("jobs", "/apis/batch/v1"), {"metadata": {"name": "report"}, "spec": {"template": once}})  # fmt: skip
    scaled = {"kind": "Deployment", "name": "orders", "apiVersion": "apps/v1"}
    shop.make(
        shop.within("horizontalpodautoscalers", "/apis/autoscaling/v1"),
        {"metadata": {"name": "orders"}, "spec": {"scaleTargetRef": scaled, "maxReplicas": 4}},
    )
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    shop.make(shop.within("persistentvolumeclaims"), {"metadata": {"name": "data"}, "spec": claim})
    shop.make(shop.within("resourcequotas"), {"metadata": {"name": "all"}, "spec": {"hard": {"pods": "90"}}})
    recording = await read(source, "objects")
    found = {
        (o.kind, o.name) for o in recording.objects or () if o.kind != "Pod" and o.namespace == shop.name
    }
    assert found >= {
        ("StatefulSet", "store"),
        ("DaemonSet", "agent"),
        ("Job", "report"),
        ("HorizontalPodAutoscaler", "orders"),
        ("PersistentVolumeClaim", "data"),
        ("ResourceQuota", "all"),
    }
    assert ("Node", "node-1") in {(o.kind, o.name) for o in recording.objects or ()}
    assert [o.name for o in recording.objects or () if o.kind == "Namespace"] == [shop.name]
    assert recording.missed == ()


async def test_the_history_of_a_deployment_that_was_undone(
    source: LiveSource, shop: Namespace, plane: ControlPlane
) -> None:
    """Revision 1 is used again as revision 4: it was deployed then, and rolled back to now."""
    for image in ("1.0", "2.0", "3.0", "1.0"):
        shop.release("orders", f"shop/orders:{image}", CACHE_MB="256" if image == "1.0" else "4096")
    until(lambda: shop.revisions("orders") == [2, 3, 4])
    changes = (await read(source, "changes")).changes or ()
    assert [(c.kind, c.version, (c.extra or {})["revision"]) for c in changes] == [
        ("deploy", "1.0", 1),
        ("deploy", "2.0", 2),
        ("deploy", "3.0", 3),
        ("rollback", "1.0", 4),
    ]
    assert "+  - CACHE_MB=4096" in (changes[1].diff or "")
    assert "-  - CACHE_MB=4096" in (changes[3].diff or "")
    assert [c.time for c in changes] == sorted(c.time for c in changes)


async def test_revisions_of_stateful_sets_and_daemon_sets(source: LiveSource, shop: Namespace) -> None:
    for plural, name, more in (
        ("statefulsets", "store", {"serviceName": "store"}),
        ("daemonsets", "agent", {}),
    ):
        path = shop.within(plural, APPS)
        spec = {"selector": {"matchLabels": {"app": name}}, "template": template(name, "shop/x:1"), **more}
        shop.make(path, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
        until(lambda: _revisions(shop) % 2 == 1)
        shop.change(f"{path}/{name}", {"spec": {"template": template(name, "shop/x:2")}})
        until(lambda: _revisions(shop) % 2 == 0)
    changes = (await read(source, "changes")).changes or ()
    assert {(c.service, c.version) for c in changes} == {("store", "1"), ("store", "2"), ("agent", "1"), ("agent", "2")}  # fmt: skip
    assert [c.version for c in changes if c.diff] == ["2", "2"]


def _revisions(shop: Namespace) -> int:
    return len(shop.got(shop.within("controllerrevisions", APPS))["items"])


async def test_events_of_both_interfaces(source: LiveSource, shop: Namespace) -> None:
    """Controllers write the old form, schedulers the new one, whose series counts."""
    shop.release("orders", "shop/orders:1.0")
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders", "namespace": shop.name}
    noted = {
        "metadata": {"generateName": "orders-", "namespace": shop.name},
        "regarding": about,
        "reason": "FailedScheduling",
        "note": "0/1 nodes are available: 1 Insufficient memory.",
        "type": "Warning",
        "eventTime": moment(-60).replace("Z", ".000000Z"),
        "action": "Scheduling",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
    }
    shop.make(shop.within("events", "/apis/events.k8s.io/v1"), noted)
    events = (await read(source, "events")).events or ()
    told = {(e.object, e.reason, e.message) for e in events}
    assert ("Deployment/orders", "FailedScheduling", noted["note"]) in told
    assert "ScalingReplicaSet" in {e.reason for e in events}
    assert [e.time for e in events] == sorted(e.time for e in events)


async def test_logs_of_a_container_and_of_the_run_before(
    source: LiveSource, shop: Namespace, node: Kubelet
) -> None:
    node.states["2.0"] = out_of_memory
    shop.deploy("orders", "shop/orders:2.0")
    until(lambda: shop.waits("orders", "CrashLoopBackOff"))
    [pod] = shop.pods("orders")
    name, now = pod["metadata"]["name"], moment(-5)
    node.logs[name, False] = f"{now} INFO starting\n"
    node.logs[name, True] = f"{now} ERROR java.lang.OutOfMemoryError: Java heap space\n"
    found = await read(source, "logs")
    lines = found.logs or ()
    assert {(line.service, line.level, line.previous) for line in lines} == {("orders", "INFO", False), ("orders", "ERROR", True)}  # fmt: skip
    assert found.missed == ()


@pytest.mark.parametrize("manner", ["refuses", "hangs"])
async def test_a_node_that_does_not_answer_costs_its_own_logs_alone(
    source: LiveSource, shop: Namespace, node: Kubelet, manner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_logs, "LOG_SECONDS", 1.0)
    shop.release("orders", "shop/orders:1.0")
    [pod] = shop.pods("orders")
    node.logs[pod["metadata"]["name"], False] = f"{moment(-5)} INFO serving\n"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1] if manner == "hangs" else free_port()
        gone(shop, port, f"gone-{manner}")
        found = await read(source, "logs")
    assert [line.message for line in found.logs or ()] == ["INFO serving"]
    [missed] = found.missed
    assert f"logs of pods on gone-{manner} could not be read" in missed


def gone(shop: Namespace, port: int, name: str) -> None:
    """A node whose kubelet is at this port, and a pod that ran there."""
    at = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}  # fmt: skip
    shop.make("/api/v1/nodes", {"metadata": {"name": name}, "status": at})
    spec = template("late", "shop/late:1.0")["spec"] | {"nodeName": name}
    shop.make(shop.within("pods"), {"metadata": {"name": "late", "labels": {"app": "late"}}, "spec": spec})
    until(lambda: bool(shop.pods("late")[0]["status"].get("containerStatuses")))


async def test_a_list_in_pages_whose_token_grows_old_in_between(
    plane: ControlPlane, source: LiveSource, shop: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store forgets what the second page would be read from: the server answers 410, and the list begins anew."""
    for number in range(7):
        shop.make(shop.within("pods"), {"metadata": {"name": f"p-{number}"}, "spec": template("x", "x:1")["spec"]})  # fmt: skip
    monkeypatch.setattr(kube_api, "PAGE", 3)
    real, compacted = httpx.AsyncClient.stream, list[str]()

    def stream(self: httpx.AsyncClient, method: str, url: str, **sent: Any) -> Any:
        if "continue" in sent.get("params", {}) and not compacted:
            shop.make(shop.within("configmaps"), {"metadata": {"name": "later"}})  # what now is, is kept
            compacted.append(plane.compact())
        return real(self, method, url, **sent)

    monkeypatch.setattr(httpx.AsyncClient, "stream", stream)
    recording = await read(source, "objects")
    assert len([o for o in recording.objects or () if o.kind == "Pod"]) == 7
    assert compacted
    assert any("-> 410" in line for line in recording.asked)


async def test_doctor_on_a_real_cluster(plane: ControlPlane, shop: Namespace, tmp_path: Path) -> None:
    file = plane.kubeconfig(tmp_path, plane.of_certificate("admin"), namespace=shop.name)
    source = one(kind="kubernetes", kubeconfig=str(file), namespaces=[shop.name, "no-such-place"])
    checks = {check.what: check for check in await source.check()}
    assert checks["version"].text == shop.got("/version")["gitVersion"]
    assert checks["further kinds"].text == "may be listed"
    assert {c.what for c in checks.values() if c.state != "ok"} == {"namespace no-such-place"}


async def test_change_of_a_configuration_names_who_wrote_it_and_who_reads_it(
    source: LiveSource, shop: Namespace
) -> None:
    made = shop.make(shop.within("configmaps"), {"metadata": {"name": "limits"}, "data": {"rate": "100"}})
    parts = template("orders", "shop/orders:1.0")
    parts["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "limits"}}]
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "orders"}}, "template": parts}
    shop.make(shop.within("deployments", APPS), {"metadata": {"name": "orders"}, "spec": spec})
    until(lambda: shop.runs("orders", "shop/orders:1.0"))
    # Times of the API are whole seconds, and a write in the second of the creation is the creation. The server does
    # not move a manager's time when it writes a field again that it owns already: so one write, a second later.
    until(lambda: moment() > made["metadata"]["creationTimestamp"])
    path, headers = f"{shop.within('configmaps')}/limits", {"content-type": "application/merge-patch+json"}
    manager = {"fieldManager": "kubectl-edit"}
    shop.admin.patch(path, json={"data": {"rate": "1"}}, headers=headers, params=manager).raise_for_status()
    changes = (await read(source, "changes")).changes or ()
    [change] = [c for c in changes if c.author == "kubectl-edit"]
    assert f"ConfigMap {shop.name}/limits" in change.summary
    assert (change.extra or {})["workloads"] == ["orders"]


async def test_next_run_tells_what_was_deleted_and_what_one_manager_wrote_twice(
    plane: ControlPlane, shop: Namespace, tmp_path: Path
) -> None:
    """The cluster itself remembers neither: a deleted object is gone, and the manager's time stays where it was."""
    file = plane.kubeconfig(tmp_path, plane.of_certificate("admin"), namespace=shop.name)
    settings = {"kind": "kubernetes", "kubeconfig": str(file), "namespaces": [shop.name]}
    path = f"{shop.within('configmaps')}/limits"
    shop.make(shop.within("configmaps"), {"metadata": {"name": "limits"}, "data": {"rate": "1"}})
    shop.make(shop.within("configmaps"), {"metadata": {"name": "flags"}, "data": {"slow": "off"}})
    shop.change(path, {"data": {"rate": "10"}})
    found: list[list[ServiceChange]] = []
    with Store.open(tmp_path / "opsleuth.db", SystemClock(), Redactor()) as store:
        for run in ("inv-1", "inv-2"):
            row = RunRow(id=run, question="orders fail", project="shop")
            store.runs.create(row)
            source = one(**settings)
            attach_object_memory([source], store, row)
            found.append(list((await read(source, "objects", "changes")).changes or ()))
            shop.change(path, {"data": {"rate": "100"}})
            shop.admin.delete(f"{shop.within('configmaps')}/flags")
    before, after = ({c.summary.partition(" after")[0] for c in changes} for changes in found)
    assert after - before >= {
        f"ConfigMap {shop.name}/limits was changed",
        f"ConfigMap {shop.name}/flags was deleted",
    }


@pytest.mark.parametrize(("secret_keys", "kept"), [(False, {}), (True, {"password": "", "user": ""})])
async def test_names_of_secret_keys_come_from_metadata_alone(
    plane: ControlPlane, shop: Namespace, tmp_path: Path, secret_keys: bool, kept: dict[str, str]
) -> None:
    shop.make(shop.within("secrets"), {"metadata": {"name": "db"}, "stringData": {"password": "geheim-4711"}, "data": {"user": "bWU="}})  # fmt: skip
    file = plane.kubeconfig(tmp_path, plane.of_certificate("admin"), namespace=shop.name)
    source = one(kind="kubernetes", kubeconfig=str(file), namespaces=[shop.name], secret_keys=secret_keys)
    found = (await read(source, "objects")).objects or ()
    [state] = [o for o in found if o.kind == "Secret"]
    assert (state.extra or {}).get("data", {}) == kept
    assert "geheim" not in repr(state)

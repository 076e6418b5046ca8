"""Series of kube-state-metrics and of the kubelet belong to the workloads that they are about, not to who tells of them."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import servers
from live_rig import one

from opsleuth.analysis.records import MetricSeries, TimeRange
from opsleuth.tools.sources.metric_documents import read_metric_document
from opsleuth.tools.sources.metric_objects import name_object

START = 1_772_542_800
TIMES = [START + 30 * i for i in range(120)]
STATE = 'service="monitoring-kube-state-metrics",job="kube-state-metrics",instance="10.1.2.3:8080"'
KUBELET = 'service="monitoring-kube-prometheus-kubelet",job="kubelet",metrics_path="/metrics/cadvisor"'
POD = "orders-6d5c7f8b4-x7k2p"


def samples(name: str, labels: str, value: Any) -> list[str]:
    return [f"{name}{{{labels}}} {value(i) if callable(value) else value} {t}" for i, t in enumerate(TIMES)]


def exposition() -> str:
    """As Prometheus holds it: labels of the object kept (honorLabels), and for one metric renamed to exported_… ."""
    exported = f'exported_pod="store-0",exported_namespace="shop",pod="monitoring-kube-state-metrics-5c9d8f7b6-zk4tq",container="kube-state-metrics",{STATE}'  # fmt: skip
    lines = [
        "# TYPE kube_deployment_status_replicas_unavailable gauge",
        *samples("kube_deployment_status_replicas_unavailable", f'namespace="shop",deployment="orders",{STATE}', lambda i: 0 if i < 60 else 2),
        *samples("kube_deployment_status_replicas_unavailable", f'namespace="shop",deployment="web",{STATE}', 0),
        "# TYPE kube_pod_status_phase gauge",
        *samples("kube_pod_status_phase", f'namespace="shop",pod="{POD}",phase="Running",{STATE}', lambda i: int(i < 60)),
        *samples("kube_pod_status_phase", f'namespace="shop",pod="{POD}",phase="Failed",{STATE}', 0),
        "# TYPE kube_pod_container_status_restarts counter",
        *samples("kube_pod_container_status_restarts_total", f'container="app",{exported.replace(",container=", ",ignored=")}', lambda i: 3 * i),
        "# TYPE kube_node_status_condition gauge",
        *samples("kube_node_status_condition", f'node="node-1",condition="Ready",status="true",{STATE}', 1),
        "# TYPE kube_namespace_status_phase gauge",
        *samples("kube_namespace_status_phase", f'namespace="shop",phase="Active",{STATE}', 1),
        "# TYPE kube_pod_info gauge",
        *samples("kube_pod_info", f'namespace="shop",pod="{POD}",{STATE}', 1),
        "# TYPE container_memory_working_set_bytes gauge",
        *samples("container_memory_working_set_bytes", f'namespace="shop",pod="{POD}",container="app",{KUBELET}', 100),
        *samples("container_memory_working_set_bytes", f'namespace="shop",pod="{POD}",container="",{KUBELET}', 999),
        "# TYPE container_cpu_usage_seconds counter",
        *samples("container_cpu_usage_seconds_total", f'namespace="shop",pod="{POD}",container="app",{KUBELET}', lambda i: 15 * i),
        "# TYPE queue_depth gauge",
        *samples("queue_depth", 'service="orders"', 7),
    ]  # fmt: skip
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[MetricSeries]]:
    with servers.prometheus(tmp_path_factory.mktemp("objects"), exposition()) as url:
        source = one(kind="prometheus", url=url, before=0, step=30)
        recording = asyncio.run(source.read(["metrics"], TimeRange(TIMES[4], TIMES[-1])))
        yield list(recording.metrics or ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "metric", "pod"),
    [
        ("orders", "kube_deployment_status_replicas_unavailable", None),
        ("web", "kube_deployment_status_replicas_unavailable", None),
        ("orders", "kube_pod_status_phase{phase=Running}", POD),
        ("store", "kube_pod_container_status_restarts", "store-0"),
        ("node-1", "kube_node_status_condition{condition=Ready,status=true}", None),
        ("orders", "container_memory_working_set_bytes", POD),
        ("orders", "container_cpu_usage_seconds", POD),
        ("orders", "queue_depth", None),
    ],
)
def test_series_belongs_to_the_object_that_its_labels_name(
    found: list[MetricSeries], service: str, metric: str, pod: str | None
) -> None:
    assert (service, metric, pod) in {(s.service, s.metric, s.instance) for s in found}


@pytest.mark.slow
def test_nothing_is_left_under_the_name_of_an_exporter(found: list[MetricSeries]) -> None:
    assert {s.service for s in found} == {"orders", "web", "store", "node-1"}
    assert not [s.metric for s in found if s.metric.endswith("_info") or "Failed" in s.metric]


@pytest.mark.slow
def test_values_are_those_of_the_object(found: list[MetricSeries]) -> None:
    last = {(s.service, s.metric): (s.values[-1], s.unit) for s in found}
    assert last["orders", "kube_deployment_status_replicas_unavailable"][0] == 2
    assert last["web", "kube_deployment_status_replicas_unavailable"][0] == 0
    assert last["orders", "container_memory_working_set_bytes"] == (100, "bytes")
    cores, unit = last["orders", "container_cpu_usage_seconds"]
    assert cores == pytest.approx(0.5)
    assert unit == "cores"
    assert last["store", "kube_pod_container_status_restarts"][0] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("labels", "service", "pod"),
    [
        ({"job_name": "report-28412345", "namespace": "shop"}, "report", None),
        ({"replicaset": "orders-6d5c7f8b4"}, "orders", None),
        ({"horizontalpodautoscaler": "web"}, "web", None),
        ({"exported_pod": "cart-7d9f8b6c5-2kq8w", "pod": "kube-state-metrics-5c9d8f7b6-zk4tq"}, "cart", "cart-7d9f8b6c5-2kq8w"),
        ({"persistentvolumeclaim": "data"}, "data", None),
    ],
)  # fmt: skip
def test_object_of_the_labels(labels: dict[str, str], service: str, pod: str | None) -> None:
    assert name_object(labels) == (service, pod)


@pytest.mark.parametrize("labels", [{}, {"namespace": "shop"}, {"pod": "kube-state-metrics-5c9d8f7b6-zk4tq"}])
def test_labels_that_name_no_object(labels: dict[str, str]) -> None:
    assert name_object(labels) is None


def test_series_of_a_file_belong_to_their_objects() -> None:
    """What the query API of a Prometheus answered, kept in a file."""
    labels = {"__name__": "kube_deployment_status_replicas_unavailable", "deployment": "orders", "namespace": "shop",
              "service": "monitoring-kube-state-metrics", "job": "kube-state-metrics", "instance": "10.1.2.3:8080"}  # fmt: skip
    document = {"data": {"resultType": "matrix", "result": [{"metric": labels, "values": [[START, "0"], [START + 30, "2"]]}]}}  # fmt: skip
    [series] = read_metric_document(document, "prometheus") or []
    assert (series.service, series.metric, series.values) == ("orders", "kube_deployment_status_replicas_unavailable", (0, 2))  # fmt: skip

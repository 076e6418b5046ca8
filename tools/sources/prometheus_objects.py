"""Metrics that one program reports about many objects: kube-state-metrics of a cluster, the kubelet of its containers.

Their service label names the program. What a series is about appears in its other labels: `deployment`, `pod`, `node`;
or in `exported_pod` and similar ones, where Prometheus kept its own labels of the program beside them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from opsleuth.alerts.labels import is_exporter
from opsleuth.configuration.source_settings import PrometheusSettings
from opsleuth.tools.sources.metric_objects import EXPORTED_LABELS, OBJECT_LABELS, STATE_LABELS, Labels
from opsleuth.tools.sources.prometheus_queries import PlannedQuery, QueryRange, find_metric_unit

_BY = ", ".join((*OBJECT_LABELS, *EXPORTED_LABELS, *STATE_LABELS))
# Facts that do not change while an object lives, or say when they did.
_STILL = re.compile(
    r"_(?:info|labels|annotations|owner|created|start_time|completion_time|timestamp\w*|timestamp_seconds|metadata\w*|"
    r"tolerations|generation|last_seen|spec_volumes\w*|status_qos_class|status_scheduled_time|status_ready_time)$"
)
# The kubelet counts a pod's containers, and all of them together once more without a name.
_SINGLE_CONTAINERS = 'container!="",container!="POD"'
_BATCH = 40


def find_object_metrics(rows: Iterable[Labels], label: str) -> frozenset[str]:
    """The names of metrics of which every series carries an exporter in the service label."""
    exporters: dict[str, bool] = {}
    for row in rows:
        name = row.get("__name__", "")
        exporters[name] = exporters.get(name, True) and is_exporter(row.get(label, ""))
    return frozenset(name for name, only in exporters.items() if only and name)


def plan_object_queries(
    names: Sequence[str], label: str, settings: PrometheusSettings, span: QueryRange
) -> Iterator[PlannedQuery]:
    """Queries for these metrics by the objects that they are about."""
    told = [name for name in names if not _STILL.search(name)]
    window = max(span.step, settings.rate)
    gauges = [name for name in told if not name.endswith("_total")]
    for name in told:
        if name.endswith("_total"):
            selector = _select_series(f'__name__="{name}"', name, label, settings)
            query = f"sum by ({_BY}) (rate({selector}[{window:g}s]))"
            base = name.removesuffix("_total")
            unit = (
                "cores"
                if "cpu" in name and base.endswith("seconds")
                else f"{find_metric_unit(base, settings)}/s"
            )
            yield PlannedQuery(query, base, unit, window=window, selector=selector, by_object=True)
    for kept in (True, False):
        same = [name for name in gauges if _has_containers(name) is kept]
        for at in range(0, len(same), _BATCH):
            batch = same[at : at + _BATCH]
            pattern = "|".join(map(re.escape, batch))
            selector = _select_series(f'__name__=~"{pattern}"', batch[0], label, settings)
            query = f"max by (__name__, {_BY}) (last_over_time({selector}[{max(span.step, 1.0):g}s]))"
            yield PlannedQuery(query, by_object=True)


def _select_series(condition: str, name: str, label: str, settings: PrometheusSettings) -> str:
    conditions = [
        condition,
        f'{label}!=""',
        settings.match,
        _SINGLE_CONTAINERS if _has_containers(name) else "",
    ]
    return f"{{{','.join(filter(None, conditions))}}}"


def _has_containers(name: str) -> bool:
    """Whether a metric has a series for each container; what is sent and received is counted for the pod."""
    return name.startswith("container_") and not name.startswith("container_network_")

"""Which workloads a change of an object concerns: who reads it, whom it selects, scales or lets traffic to."""

from collections.abc import Iterator

from opsleuth.analysis.cluster.model import CONTROLLERS, Cluster
from opsleuth.analysis.cluster.objects import ClusterObject, Document, get_part, rows_of

_SELECTORS = {"Service": "selector", "PodDisruptionBudget": "selector", "NetworkPolicy": "podSelector"}
MOST_NAMED = 10
"""A change that concerns more workloads names the first ones."""


def find_workloads_touched(found: ClusterObject, cluster: Cluster) -> tuple[str, ...]:
    """The names of the workloads, in order; empty where the cluster's objects do not say."""
    names = dict.fromkeys(_list_touched(found, cluster))
    return tuple(names)[:MOST_NAMED]


def _list_touched(found: ClusterObject, cluster: Cluster) -> Iterator[str]:
    kind = found.ref.kind
    if kind in CONTROLLERS:
        yield found.ref.name
    elif kind in {"ConfigMap", "Secret"}:
        yield from (workload.ref.name for workload in cluster.users_of(found.ref))
    elif kind in _SELECTORS:
        selector = get_part(found.spec, _SELECTORS[kind])
        if selector or kind == "NetworkPolicy":  # one without a selector is for all pods
            yield from _list_selected(found, selector, cluster)
    elif kind == "HorizontalPodAutoscaler":
        yield from filter(None, [str(get_part(found.spec, "scaleTargetRef").get("name") or "")])
    elif kind == "ServiceAccount":
        yield from _list_account_users(found, cluster)
    elif kind == "PersistentVolumeClaim":
        yield from _list_claim_users(found, cluster)


def _list_selected(found: ClusterObject, selector: Document, cluster: Cluster) -> Iterator[str]:
    for pod in cluster.selected(found.ref.namespace, selector):
        workload = cluster.workload_of(pod)
        yield workload.ref.name if workload else pod.ref.name


def _list_account_users(account: ClusterObject, cluster: Cluster) -> Iterator[str]:
    for workload, template in cluster.templates():
        named = template.get("serviceAccountName") or template.get("serviceAccount")
        if workload.ref.namespace == account.ref.namespace and named == account.ref.name:
            yield workload.ref.name


def _list_claim_users(claim: ClusterObject, cluster: Cluster) -> Iterator[str]:
    for workload, template in cluster.templates():
        claims = {get_part(v, "persistentVolumeClaim").get("claimName") for v in rows_of(template, "volumes")}
        if workload.ref.namespace == claim.ref.namespace and claim.ref.name in claims:
            yield workload.ref.name

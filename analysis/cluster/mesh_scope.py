"""Which workloads a policy of a service mesh is for."""

from opsleuth.analysis.cluster.model import Cluster, matches_selector
from opsleuth.analysis.cluster.objects import ClusterObject, get_part

ROOT_NAMESPACE = "istio-system"
"""A policy here is for every namespace of the mesh."""


def list_guarded_workloads(policy: ClusterObject, cluster: Cluster) -> list[str]:
    """The names of the workloads whose pods a policy selects, each once; without a selector all of its namespace."""
    selector = get_part(policy.spec, "selector")
    everywhere = policy.ref.namespace == ROOT_NAMESPACE
    pods = cluster.of_kind("Pod") if everywhere else cluster.pods_in(policy.ref.namespace)
    owners = (cluster.workload_of(pod) for pod in pods if matches_selector(selector, pod.labels))
    return list(dict.fromkeys(owner.ref.name for owner in owners if owner))

"""Pods that are refused at admission, or changed there: quotas, limits, pod security, webhooks."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.controllers import read_mebibytes, read_millis
from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.pods import crash_pods, refuse_creation
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, make_manifest, ref_of
from opsleuth.scenarios.cluster.workloads import drop_pods, replace_pods, roll_out

Entities = Sequence[EntityRef]


def exhaust_quota(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The namespace's quota has room for the pods, or not for one more."""
    quota = cluster.state.get("ResourceQuota", "compute", target.namespace)
    if wrong:
        drop_pods(cluster, target)
    pods = cluster.state.of_kind("Pod", target.namespace)
    asked = [
        c["resources"]["requests"]
        for p in pods
        for c in p["spec"]["containers"]
        if "requests" in c.get("resources", {})
    ]
    cpu, memory = (
        sum(read_millis(a["cpu"]) for a in asked),
        round(sum(read_mebibytes(a["memory"]) for a in asked)),
    )
    hard = {
        "pods": "200",
        "requests.cpu": f"{cpu + (100 if wrong else 6000)}m",
        "requests.memory": f"{memory + (9000 if wrong else 32000)}Mi",
    }
    quota["spec"]["hard"] = hard
    cluster.edit(quota, target, f"quota of {target.namespace} fitted to its use")
    if wrong:
        refuse_creation(
            cluster,
            target,
            f'pods "{{pod}}" is forbidden: exceeded quota: compute, requested: requests.cpu=200m, used: requests.cpu={cpu}m, limited: requests.cpu={hard["requests.cpu"]}',
        )
    return [ref_of(quota)]


def limit_range(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The most that a container may have is more than the pods ask for, or less."""
    limits = cluster.state.get("LimitRange", "containers", target.namespace)
    most = "512Mi" if wrong else "8Gi"
    limits["spec"]["limits"][0]["max"]["memory"] = most
    if wrong:
        limits["spec"]["limits"][0]["default"]["memory"] = most
    cluster.edit(limits, target, f"container limits of {target.namespace}")
    roll_out(cluster, target, "restarted")
    if wrong:
        refuse_creation(
            cluster,
            target,
            f'pods "{{pod}}" is forbidden: maximum memory usage per Container is {most}, but limit is 1Gi',
        )
    return [ref_of(limits)]


def enforce_pod_security(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The namespace demands restricted pods of all, or only warns."""
    namespace = cluster.state.get("Namespace", target.namespace)
    mode = "enforce" if wrong else "warn"
    namespace["metadata"]["labels"][f"pod-security.kubernetes.io/{mode}"] = "restricted"
    cluster.edit(namespace, target, f"pod security of {target.namespace}: {mode} restricted")
    if wrong:
        roll_out(cluster, target, "restarted")
        refuse_creation(
            cluster,
            target,
            f'pods "{{pod}}" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "{target.name}" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "{target.name}" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "{target.name}" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "{target.name}" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
        )
    return [EntityRef("Namespace", "", target.namespace)]


def _add_hook(cluster: ClusterScene, target: Target, kind: str, service: str, policy: str) -> EntityRef:
    """An admission webhook on the pods of the target's namespace."""
    name = f"{cluster.suffix(4)}-{cluster.choose('image-policy', 'pod-defaults', 'label-guard')}"
    client = {
        "service": {"name": service, "namespace": cluster.spare_namespace, "path": "/admit", "port": 443},
        "caBundle": "LS0tLS1CRUdJTi...",
    }
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": target.namespace}}
    hook = {
        "name": f"{name}.example.com",
        "clientConfig": client,
        "rules": [rule],
        "failurePolicy": policy,
        "namespaceSelector": selector,
        "timeoutSeconds": 5,
        "sideEffects": "None",
    }
    ref = EntityRef(kind, "", name)
    cluster.state.add(make_manifest(cluster.random, ref, target.since, webhooks=[hook]))
    cluster.record_change(target, f"admission webhook {name}", about="platform")
    return ref


def lose_webhook(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A webhook without a server: pods are refused, or admitted all the same."""
    service = f"{cluster.suffix(4)}-policy"
    ref = _add_hook(cluster, target, "ValidatingWebhookConfiguration", service, "Fail" if wrong else "Ignore")
    if wrong:
        roll_out(cluster, target, "restarted")
        url = f"https://{service}.{cluster.spare_namespace}.svc:443/admit?timeout=5s"
        refuse_creation(
            cluster,
            target,
            f'Internal error occurred: failed calling webhook "{ref.name}.example.com": failed to call webhook: Post "{url}": service "{service}" not found',
        )
    return [ref]


def distrust_webhook(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A webhook whose certificate the API server does not trust: it refuses pods, or lets them pass."""
    service = f"{cluster.suffix(4)}-guard"
    ref = _add_hook(cluster, target, "MutatingWebhookConfiguration", service, "Fail" if wrong else "Ignore")
    if wrong:
        roll_out(cluster, target, "restarted")
        url = f"https://{service}.{cluster.spare_namespace}.svc:443/admit?timeout=5s"
        refuse_creation(
            cluster,
            target,
            f'Internal error occurred: failed calling webhook "{ref.name}.example.com": failed to call webhook: Post "{url}": tls: failed to verify certificate: x509: certificate signed by unknown authority',
        )
    return [ref]


def shrink_by_webhook(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A webhook sets the memory limit of new pods: too low, or as it was."""
    service = f"{cluster.suffix(4)}-defaults"
    ref = _add_hook(cluster, target, "MutatingWebhookConfiguration", service, "Ignore")
    limit = "48Mi" if wrong else "1Gi"
    pods = replace_pods(cluster, target)
    for pod in pods:
        pod["spec"]["containers"][0]["resources"] = {
            "limits": {"cpu": "1", "memory": limit},
            "requests": {"cpu": "200m", "memory": min(limit, "256Mi", key=read_mebibytes)},
        }
        pod["metadata"].setdefault("annotations", {})[f"{ref.name}.example.com/mutated"] = "resources"
    if wrong:
        crash_pods(cluster, target, pods, code=137, reason="OOMKilled")
    return [ref, cluster.workload_ref(target)]


FAULTS = (
    ClusterFault("quota_exhausted", "app", "quota", exhaust_quota, "ITBench insufficient-kubernetes-resource-quota; SREGym namespace_memory_limit", ("scheduling", "config")),
    ClusterFault("limit_range", "app", "quota", limit_range, "Kubernetes documents: limit ranges", ("scheduling", "config", "deploy")),
    ClusterFault("pod_security", "app", "permission", enforce_pod_security, "SREGym psa_restricted_blocks_recreation", ("config", "scheduling", "deploy")),
    ClusterFault("webhook_absent", "app", "config", lose_webhook, "SREGym admission_webhook_outage", ("dependency", "scheduling", "deploy")),
    ClusterFault("webhook_untrusted", "app", "certificate", distrust_webhook, "SREGym admission_webhook_tls_mismatch", ("config", "dependency", "scheduling", "deploy")),
    ClusterFault("webhook_shrinks", "app", "out_of_memory", shrink_by_webhook, "SREGym mutating_webhook_resource_limits", ("memory", "config", "quota", "crash")),
)  # fmt: skip

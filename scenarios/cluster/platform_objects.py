"""What any cluster has beside its workloads: nodes, cluster DNS, network, storage, quotas, admission, jobs."""

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.scene import ClusterScene
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest
from opsleuth.scenarios.cluster.workloads import WorkloadPlan, add_pod, add_workload, copy_manifest
from opsleuth.scenarios.invented_names import invent_word

COREFILE = """.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
"""
SYSTEM = "kube-system"
_NODE_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def add_nodes(cluster: ClusterScene) -> None:
    """The nodes of the requests and the spare one."""
    start = cluster.base.timing.start
    for number, name in enumerate((*cluster.nodes, cluster.spare_node)):
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/zone": f"zone-{'abc'[number % 3]}",
            "pool": "spare" if name == cluster.spare_node else "general",
        }
        beat = format_utc(int(cluster.base.timing.end - 8))
        since = format_utc(int(start - 86_400 * 20))
        conditions = [
            {
                "type": t,
                "status": s,
                "reason": r,
                "message": m,
                "lastHeartbeatTime": beat,
                "lastTransitionTime": since,
            }
            for t, s, r, m in _NODE_CONDITIONS
        ]
        amount = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "95Gi"}
        info = {
            "kubeletVersion": "v1.31.4",
            "containerRuntimeVersion": "containerd://1.7.24",
            "architecture": "amd64",
        }
        status = {"conditions": conditions, "capacity": amount, "allocatable": amount, "nodeInfo": info}
        spec: Manifest = {"podCIDR": f"10.244.{number}.0/24"}
        ref = EntityRef("Node", "", name)
        cluster.state.add(
            make_manifest(cluster.random, ref, start - 86_400 * 40, labels=labels, spec=spec, status=status)
        )


def add_platform(cluster: ClusterScene) -> None:
    """Everything of the platform that people do not touch every day."""
    _add_namespaces(cluster)
    _add_dns(cluster)
    _add_agents(cluster)
    _add_classes(cluster)
    _add_limits(cluster)
    _add_admission(cluster)
    _add_jobs(cluster)


def _long_ago(cluster: ClusterScene) -> float:
    return cluster.base.timing.start - 86_400 * cluster.random.uniform(30, 200)


def _add_object(cluster: ClusterScene, kind: str, name: str, namespace: str = "", **body: object) -> Manifest:
    ref = EntityRef(kind, namespace, name)
    return cluster.state.add(make_manifest(cluster.random, ref, _long_ago(cluster), **body))  # type: ignore[arg-type]


def _add_namespaces(cluster: ClusterScene) -> None:
    for name in (cluster.namespace, cluster.spare_namespace, SYSTEM):
        level = "privileged" if name == SYSTEM else "baseline"
        labels = {"kubernetes.io/metadata.name": name, "pod-security.kubernetes.io/enforce": level}
        if cluster.mesh and name == cluster.namespace:
            labels["istio-injection"] = "enabled"
        _add_object(
            cluster,
            "Namespace",
            name,
            labels=labels,
            spec={"finalizers": ["kubernetes"]},
            status={"phase": "Active"},
        )


def _add_dns(cluster: ClusterScene) -> None:
    """The cluster's DNS, and a second one with which somebody tries things out."""
    _add_dns_server(cluster, "coredns", SYSTEM, "kube-dns", "10.96.0.10")
    trial = f"coredns-{invent_word(cluster.random)}"
    _add_dns_server(cluster, trial, cluster.spare_namespace, trial, cluster.service_address())
    cluster.idle["dns"] = [(trial, cluster.spare_namespace)]


def _add_dns_server(cluster: ClusterScene, name: str, namespace: str, service: str, address: str) -> None:
    plan = WorkloadPlan(
        name=name,
        namespace=namespace,
        kind="Deployment",
        image="registry.k8s.io/coredns/coredns:v1.11.3",
        port=53,
        replicas=2,
        selector={"k8s-app": service},
        created=_long_ago(cluster),
        config_map=name,
        nodes=tuple(cluster.nodes) if namespace == SYSTEM else (cluster.spare_node,),
    )
    add_workload(cluster, plan)
    cluster.ports[name] = 53
    _add_object(cluster, "ConfigMap", name, namespace, data={"Corefile": COREFILE})
    port = {"name": "dns", "protocol": "UDP", "port": 53, "targetPort": 53}
    spec = {"type": "ClusterIP", "clusterIP": address, "selector": {"k8s-app": service}, "ports": [port]}
    _add_object(
        cluster,
        "Service",
        service,
        namespace,
        labels={"k8s-app": service},
        spec=spec,
        status={"loadBalancer": {}},
    )


def _add_agents(cluster: ClusterScene) -> None:
    """The DaemonSets of every node."""
    nodes = (*cluster.nodes, cluster.spare_node)
    for name, image in (
        ("kube-proxy", "registry.k8s.io/kube-proxy:v1.31.4"),
        ("calico-node", "docker.io/calico/node:v3.28.2"),
    ):
        labels = {"k8s-app": name}
        template = {"metadata": {"labels": labels}, "spec": _agent_spec(name, image)}
        count = len(nodes)
        status = {
            "desiredNumberScheduled": count,
            "currentNumberScheduled": count,
            "numberReady": count,
            "numberAvailable": count,
        }
        spec = {"selector": {"matchLabels": labels}, "template": template}
        owner = _add_object(cluster, "DaemonSet", name, SYSTEM, labels=labels, spec=spec, status=status)
        for node in nodes:
            add_pod(cluster, owner, f"{name}-{cluster.suffix()}", node, _long_ago(cluster))


def _agent_spec(name: str, image: str) -> Manifest:
    container = {"name": name, "image": image, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {"hostNetwork": True, "priorityClassName": "system-node-critical", "containers": [container]}


def _add_classes(cluster: ClusterScene) -> None:
    _add_object(
        cluster,
        "StorageClass",
        "standard",
        provisioner="csi.block.example",
        volumeBindingMode="WaitForFirstConsumer",
        reclaimPolicy="Delete",
    )
    _add_object(cluster, "IngressClass", "nginx", spec={"controller": "k8s.io/ingress-nginx"})
    for name, value in (("system-node-critical", 2_000_001_000), ("business", 1000), ("bulk", 10)):
        _add_object(cluster, "PriorityClass", name, value=value, preemptionPolicy="PreemptLowerPriority")


def _add_limits(cluster: ClusterScene) -> None:
    hard = {"pods": "200", "requests.cpu": "64", "requests.memory": "256Gi"}
    for namespace in (cluster.namespace, cluster.spare_namespace):
        _add_object(cluster, "ResourceQuota", "compute", namespace, spec={"hard": dict(hard)}, status={})
        limit = {
            "type": "Container",
            "default": {"cpu": "1", "memory": "1Gi"},
            "max": {"cpu": "8", "memory": "16Gi"},
        }
        _add_object(cluster, "LimitRange", "containers", namespace, spec={"limits": [limit]})


def _add_admission(cluster: ClusterScene) -> None:
    """A webhook that answers, and its server."""
    plan = WorkloadPlan(
        name="cert-manager-webhook",
        namespace="cert-manager",
        kind="Deployment",
        image="quay.io/jetstack/cert-manager-webhook:v1.16.1",
        port=10250,
        replicas=1,
        selector={"app": "webhook"},
        created=_long_ago(cluster),
        nodes=(cluster.spare_node,),
    )
    add_workload(cluster, plan)
    port = {"name": "https", "protocol": "TCP", "port": 443, "targetPort": 10250}
    spec = {"type": "ClusterIP", "clusterIP": "10.96.7.31", "selector": {"app": "webhook"}, "ports": [port]}
    _add_object(
        cluster, "Service", "cert-manager-webhook", "cert-manager", spec=spec, status={"loadBalancer": {}}
    )
    client = {
        "service": {
            "name": "cert-manager-webhook",
            "namespace": "cert-manager",
            "path": "/validate",
            "port": 443,
        },
        "caBundle": "LS0tLS1CRUdJTi...",
    }
    rule = {
        "apiGroups": ["cert-manager.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["*/*"],
    }
    hook = {
        "name": "webhook.cert-manager.io",
        "clientConfig": client,
        "rules": [rule],
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
    }
    _add_object(cluster, "ValidatingWebhookConfiguration", "cert-manager-webhook", webhooks=[hook])


def _add_jobs(cluster: ClusterScene) -> None:
    """Nightly jobs that end as they should: one that people wait for, one that nobody does."""
    for role, namespace in (("job", cluster.namespace), ("idle job", cluster.spare_namespace)):
        name = f"{invent_word(cluster.random)}-{cluster.random.choice(('report', 'export', 'settlement', 'cleanup'))}"
        add_nightly_job(cluster, name, namespace)
        cluster.idle[role] = [(name, namespace)]


def add_nightly_job(cluster: ClusterScene, name: str, namespace: str) -> tuple[Manifest, Manifest]:
    """A CronJob and its last Job, which completed."""
    last = cluster.base.timing.start - 3600 * 7
    container = {
        "name": "report",
        "image": f"registry.{cluster.namespace}.example/{name}:1.4.2",
        "resources": {},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job_spec = {"backoffLimit": 3, "completions": 1, "parallelism": 1, "template": template}
    spec = {
        "schedule": "0 2 * * *",
        "concurrencyPolicy": "Forbid",
        "suspend": False,
        "jobTemplate": {"spec": job_spec},
    }
    times = {"lastScheduleTime": format_utc(int(last)), "lastSuccessfulTime": format_utc(int(last + 240))}
    cron = _add_object(cluster, "CronJob", name, namespace, spec=spec, status=times)
    done = {
        "type": "Complete",
        "status": "True",
        "reason": "CompletionsReached",
        "message": "Reached expected number of succeeded pods",
    }
    status = {
        "startTime": format_utc(int(last)),
        "completionTime": format_utc(int(last + 240)),
        "succeeded": 1,
        "conditions": [done],
    }
    ref = EntityRef("Job", namespace, f"{name}-{int(last // 60)}")
    job = make_manifest(cluster.random, ref, last, owner=cron, spec=copy_manifest(job_spec), status=status)
    return cron, cluster.state.add(job)

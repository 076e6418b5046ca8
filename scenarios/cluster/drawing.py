"""A healthy cluster around an invented system: its workloads, their services, and idle ones beside them."""

from dataclasses import replace
from random import Random

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.cluster.platform_objects import add_nodes, add_platform
from opsleuth.scenarios.cluster.scene import ClusterScene
from opsleuth.scenarios.cluster.state import ClusterState, EntityRef, Manifest, make_manifest
from opsleuth.scenarios.cluster.workloads import WorkloadPlan, add_workload
from opsleuth.scenarios.invented_names import (
    draw_letters,
    invent_pod_names,
    invent_versions,
    invent_word,
)
from opsleuth.scenarios.scene import Scene, draw_scene
from opsleuth.scenarios.synthetic_system import SyntheticService, SyntheticSystem, draw_world

_PORTS = {"database": 5432, "replica": 5432, "cache": 6379}
_IMAGES = {"database": "docker.io/library/postgres:16.4", "cache": "docker.io/valkey/valkey:8.0.1"}
_IMAGES["replica"] = _IMAGES["database"]
CACHE_ROLES = ("cache", "database")


def draw_cluster(random: Random) -> ClusterScene:
    """A cluster in which all is well. It always has a database, a cache and a chain of services."""
    world = _with_pods(random, _with_cache(random, draw_world(random, {"external"})))
    base = draw_scene(random, world, 8.0)
    cluster = ClusterScene(
        base=base,
        state=ClusterState(),
        label=random.choice(("app.kubernetes.io/name", "app", "k8s-app")),
        namespace=world.namespace,
        ports={s.name: _draw_port(random, s) for s in world.services},
        nodes=list(world.nodes),
        spare_node=f"node-{invent_word(random)}-{len(world.nodes)}",
        spare_namespace=f"{invent_word(random)}-{random.choice(('staging', 'preview', 'batch'))}",
        mesh=random.random() < 0.35,
    )
    cluster.keeps_changes = random.random() < 0.6
    add_nodes(cluster)
    add_platform(cluster)
    for service in world.services:
        _add_service(cluster, service)
    _add_edge(cluster)
    _add_idle(cluster)
    return cluster


def _draw_port(random: Random, service: SyntheticService) -> int:
    return _PORTS.get(service.role) or random.choice((8080, 8080, 9090, 3000, 50051, 7070))


def _with_cache(random: Random, world: SyntheticSystem) -> SyntheticSystem:
    """The same system with a cache, which `draw_world` gives only every other one."""
    if world.with_role("cache"):
        return world
    from_app = random.choice(world.with_role("app"))
    cache = SyntheticService(f"{invent_word(random)}-cache", "cache", "redis", 0.6, 9.0, 55.0, 0.0, 0.06)
    call = replace(world.calls[0], caller=from_app.name, callee=cache.name, fan=1.0, gap_ms=0.6)
    return replace(world, services=(*world.services, cache), calls=(*world.calls, call))


def _with_pods(random: Random, world: SyntheticSystem) -> SyntheticSystem:
    """The same system with databases and caches in the cluster."""
    stateful = {"database", "replica", "cache"}
    services = [
        replace(s, pods=(f"{s.name}-0",)) if s.role in stateful else _as_service(random, s)
        for s in world.services
    ]
    return replace(world, services=tuple(services))


def _as_service(random: Random, service: SyntheticService) -> SyntheticService:
    return (
        replace(service, pods=invent_pod_names(random, service.name, len(service.pods)))
        if service.pods
        else service
    )


def _draw_creation_time(scene: Scene) -> float:
    """Some day between three days and four months before the window, when an object was made."""
    return scene.timing.start - 86_400 * scene.random.uniform(3, 120)


def _add_service(cluster: ClusterScene, service: SyntheticService) -> None:
    """A service's workload and all that belongs to it; a third party is a name only."""
    if service.role == "external":
        spec = {"type": "ExternalName", "externalName": service.name, "sessionAffinity": "None"}
        name = service.name.replace(".", "-")
        ref = EntityRef("Service", cluster.namespace, name)
        cluster.state.add(
            make_manifest(
                cluster.random, ref, _draw_creation_time(cluster.base), spec=spec, status={"loadBalancer": {}}
            )
        )
        return
    add_application(cluster, service, cluster.namespace)


def add_application(
    cluster: ClusterScene, service: SyntheticService, namespace: str, nodes: tuple[str, ...] = ()
) -> Manifest:
    """A workload with its Service, its settings and, if it keeps data, its volume and its credentials."""
    random, name = cluster.random, service.name
    created, stateful = _draw_creation_time(cluster.base), service.role in _IMAGES
    selector = {cluster.label: name}
    image = (
        _IMAGES.get(service.role)
        or f"registry.{cluster.namespace}.example/{name}:{invent_versions(random)[0]}"
    )
    if stateful:
        _add_storage(cluster, name, namespace, created)
    else:
        data = {
            "LOG_LEVEL": "info",
            "CACHE_TTL": str(random.randrange(10, 900)),
            "settings.yaml": "workers: 8\nqueue: default\n",
        }
        ref = EntityRef("ConfigMap", namespace, f"{name}-settings")
        cluster.state.add(make_manifest(random, ref, created, labels=selector, data=data))
    plan = WorkloadPlan(
        name=name,
        namespace=namespace,
        kind="StatefulSet" if stateful else "Deployment",
        image=image,
        port=cluster.ports[name],
        replicas=len(service.pods),
        selector=selector,
        created=created,
        environment=_make_environment(cluster, service),
        config_map=None if stateful else f"{name}-settings",
        claim=f"data-{name}-0" if stateful else None,
        pods=service.pods,
        nodes=nodes,
    )
    workload = add_workload(cluster, plan)
    add_cluster_service(cluster, name, namespace, created, headless=stateful and random.random() < 0.4)
    if not stateful and random.random() < 0.35:
        add_autoscaler(cluster, name, namespace, len(service.pods), created)
    if not stateful and random.random() < 0.35:
        _add_budget(cluster, name, namespace, len(service.pods), created)
    return workload


def _make_environment(cluster: ClusterScene, service: SyntheticService) -> list[Manifest]:
    """Where a service finds those that it calls, and its credentials for what keeps data."""
    if service.role in _IMAGES:
        secret = {"name": f"{service.name}-credentials", "key": "password"}
        return [{"name": "SERVER_PASSWORD", "valueFrom": {"secretKeyRef": secret}}]
    found: list[Manifest] = [{"name": "PORT", "value": str(cluster.ports[service.name])}]
    for call in cluster.base.world.callees(service.name):
        variable = call.callee.upper().replace("-", "_").replace(".", "_")
        found.append({"name": f"{variable}_ADDR", "value": f"{call.callee}:{cluster.ports[call.callee]}"})
        if cluster.base.world.service(call.callee).role in _IMAGES:
            secret = {"name": f"{call.callee}-credentials", "key": "password"}
            found.append({"name": f"{variable}_PASSWORD", "valueFrom": {"secretKeyRef": secret}})
    return found


def add_cluster_service(
    cluster: ClusterScene, name: str, namespace: str, created: float, *, headless: bool = False
) -> Manifest:
    """The Service in front of a workload."""
    address = "None" if headless else cluster.service_address()
    port = {"name": "main", "protocol": "TCP", "port": cluster.ports[name], "targetPort": "main"}
    if cluster.random.random() < 0.5:
        port["targetPort"] = cluster.ports[name]
    spec = {
        "type": "ClusterIP",
        "clusterIP": address,
        "clusterIPs": [address],
        "selector": {cluster.label: name},
        "ports": [port],
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
    }
    ref = EntityRef("Service", namespace, name)
    labels = {cluster.label: name}
    return cluster.state.add(
        make_manifest(cluster.random, ref, created, labels=labels, spec=spec, status={"loadBalancer": {}})
    )


def _add_storage(cluster: ClusterScene, name: str, namespace: str, created: float) -> None:
    random = cluster.random
    volume = f"pvc-{draw_letters(random, 8)}-{draw_letters(random, 4)}"
    claim = EntityRef("PersistentVolumeClaim", namespace, f"data-{name}-0")
    size = {"storage": f"{random.choice((20, 50, 100))}Gi"}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, "storageClassName": "standard"}
    bound = {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": size}
    made = make_manifest(random, claim, created, spec=spec | {"volumeName": volume}, status=bound)
    made["metadata"]["finalizers"] = ["kubernetes.io/pvc-protection"]
    cluster.state.add(made)
    reference = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim.name}
    body = {
        "capacity": size,
        "accessModes": ["ReadWriteOnce"],
        "claimRef": reference,
        "storageClassName": "standard",
    }
    body |= {
        "persistentVolumeReclaimPolicy": "Delete",
        "csi": {"driver": "csi.block.example", "volumeHandle": volume},
    }
    ref = EntityRef("PersistentVolume", "", volume)
    cluster.state.add(make_manifest(random, ref, created, spec=body, status={"phase": "Bound"}))
    secret = EntityRef("Secret", namespace, f"{name}-credentials")
    cluster.state.add(make_manifest(random, secret, created, labels={cluster.label: name}, type="Opaque"))


def add_autoscaler(
    cluster: ClusterScene, name: str, namespace: str, replicas: int, created: float
) -> Manifest:
    """An autoscaler that works and has room."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}},
    }
    spec = {
        "scaleTargetRef": reference,
        "minReplicas": min(2, replicas),
        "maxReplicas": replicas + 4,
        "metrics": [metric],
    }
    conditions = [
        {
            "type": "AbleToScale",
            "status": "True",
            "reason": "ReadyForNewScale",
            "message": "recommended size matches current size",
        },
        {
            "type": "ScalingActive",
            "status": "True",
            "reason": "ValidMetricFound",
            "message": "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)",
        },
        {
            "type": "ScalingLimited",
            "status": "False",
            "reason": "DesiredWithinRange",
            "message": "the desired count is within the acceptable range",
        },
    ]
    status = {
        "currentReplicas": replicas,
        "desiredReplicas": replicas,
        "conditions": conditions,
        "lastScaleTime": format_utc(int(created)),
    }
    ref = EntityRef("HorizontalPodAutoscaler", namespace, name)
    return cluster.state.add(make_manifest(cluster.random, ref, created, spec=spec, status=status))


def _add_budget(cluster: ClusterScene, name: str, namespace: str, replicas: int, created: float) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {cluster.label: name}}}
    status = {
        "currentHealthy": replicas,
        "desiredHealthy": 1,
        "disruptionsAllowed": replicas - 1,
        "expectedPods": replicas,
    }
    ref = EntityRef("PodDisruptionBudget", namespace, name)
    cluster.state.add(make_manifest(cluster.random, ref, created, spec=spec, status=status))


def _add_edge(cluster: ClusterScene) -> None:
    """The way in from outside."""
    edge, host = cluster.base.world.edge.name, f"www.{cluster.namespace}.example"
    backend = {"service": {"name": edge, "port": {"number": cluster.ports[edge]}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    spec = {
        "ingressClassName": "nginx",
        "rules": [{"host": host, "http": {"paths": [path]}}],
        "tls": [{"hosts": [host], "secretName": "edge-tls"}],
    }
    created = _draw_creation_time(cluster.base)
    ref = EntityRef("Ingress", cluster.namespace, edge)
    address = {"loadBalancer": {"ingress": [{"ip": "203.0.113.17"}]}}
    cluster.state.add(make_manifest(cluster.random, ref, created, spec=spec, status=address))
    secret = EntityRef("Secret", cluster.namespace, "edge-tls")
    cluster.state.add(make_manifest(cluster.random, secret, created, type="kubernetes.io/tls"))


def _add_idle(cluster: ClusterScene) -> None:
    """Workloads that no request touches: one beside the others, and one of each sort in a namespace of its own."""
    random = cluster.random
    for role, namespace in (
        ("app", cluster.namespace),
        ("app", cluster.spare_namespace),
        ("database", cluster.spare_namespace),
        ("cache", cluster.spare_namespace),
    ):
        name = (
            f"{invent_word(random)}-{ {'app': 'preview', 'database': 'archive', 'cache': 'scratch'}[role] }"
        )
        stateful = role in CACHE_ROLES
        runtime = {"app": random.choice(("go", "python")), "database": "postgres", "cache": "redis"}[role]
        pods = (f"{name}-0",) if stateful else invent_pod_names(random, name, 2)
        idle = SyntheticService(name, "app", runtime, 10, 10, 10, 0, 0.05, pods)
        idle = replace(idle, role="database" if role == "database" else "cache" if role == "cache" else "app")
        cluster.ports[name] = _draw_port(random, idle)
        cluster.idle.setdefault(role, []).append((name, namespace))
        add_application(cluster, idle, namespace, nodes=(cluster.spare_node,))

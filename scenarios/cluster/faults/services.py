"""Services and Ingresses that lead nowhere or to the wrong pods."""

from collections.abc import Sequence

from opsleuth.scenarios.cluster.declaration import ClusterFault
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef, Manifest, make_manifest, record_edit, ref_of
from opsleuth.scenarios.cluster.traffic import cut_calls_to, fail_requests, slow_down
from opsleuth.scenarios.cluster.workloads import WorkloadPlan, add_workload

Entities = Sequence[EntityRef]


def _choose_failure_way(cluster: ClusterScene) -> str:
    """How a call to a cluster address without endpoints fails: kube-proxy rejects it, a mesh answers itself."""
    return "no_endpoints" if cluster.mesh else str(cluster.choose("refused", "no_endpoints"))


def set_selector(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """A selector with one more label; the pods have it or not."""
    service = cluster.service(target)
    key, value = cluster.choose(
        ("track", "stable"), ("tier", "backend"), ("component", "server"), ("release", "main")
    )
    for pod in cluster.pods(target):
        pod["metadata"]["labels"][key] = value
    if wrong and cluster.random.random() < 0.5:
        service["spec"]["selector"] = {cluster.label: f"{target.name}-v2"}
    else:
        service["spec"]["selector"] |= {key: f"{value}-2" if wrong else value}
    cluster.edit(service, target, f"{target.name}: labels brought in line with the platform's scheme")
    if wrong:
        cut_calls_to(cluster, target, _choose_failure_way(cluster))
    return [cluster.ref("Service", target)]


def set_target_port(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The target port by number; a container listens there or not."""
    service, port = cluster.service(target), cluster.ports[target.name]
    service["spec"]["ports"][0]["targetPort"] = port + cluster.choose(1, 10, 1000) if wrong else port
    cluster.edit(service, target, f"{target.name}: service ports as numbers")
    if wrong:
        cut_calls_to(cluster, target, "refused")
    return [cluster.ref("Service", target)]


def set_port_name(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The target port by name; a container has such a port or not."""
    service = cluster.service(target)
    name = cluster.choose("grpc", "http-main", "web", "api")
    if not wrong:
        for holder in (
            cluster.container(target),
            *(p["spec"]["containers"][0] for p in cluster.pods(target)),
        ):
            holder["ports"][0]["name"] = name
            _rename_probes(holder, name)
    service["spec"]["ports"][0] |= {"targetPort": name, "name": name}
    cluster.edit(service, target, f"{target.name}: ports by name")
    if wrong:
        cut_calls_to(cluster, target, _choose_failure_way(cluster))
    return [cluster.ref("Service", target)]


def _rename_probes(container: Manifest, name: str) -> None:
    for probe in ("readinessProbe", "livenessProbe"):
        check = container[probe].get("httpGet") or container[probe]["tcpSocket"]
        check["port"] = name


def delete_service(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The Service is deleted; rightly so if only its old alias is."""
    ref = cluster.ref("Service", target)
    if wrong:
        cluster.state.remove(ref)
        cluster.record_change(target, f"{target.name}: unused objects removed by the clean-up")
        cut_calls_to(cluster, target, "no_such_host")
    else:
        record_edit(cluster.service(target), target.since, "helm")
        cluster.record_change(target, f"{target.name}: alias {target.name}-old removed, nobody calls it")
    return [ref]


def set_service_port(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The Service's own port; callers use another, or a second one is added."""
    service = cluster.service(target)
    port = service["spec"]["ports"][0]
    extra = {**port, "name": "extra", "port": port["port"] + 1}
    if wrong:
        port["port"] += cluster.choose(1, 80, 1000)
    else:
        service["spec"]["ports"].append(extra)
    cluster.edit(service, target, f"{target.name}: service ports revised")
    if wrong:
        cut_calls_to(cluster, target, "timeout")
    return [cluster.ref("Service", target)]


def share_selector(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Pods of another workload carry the labels that the Service selects."""
    name = f"{target.name}-{cluster.choose('loader', 'console', 'exporter')}"
    label = target.name if wrong else name
    plan = WorkloadPlan(
        name=name,
        namespace=target.namespace,
        kind="Deployment",
        image=cluster.container(target)["image"],
        port=cluster.ports[target.name],
        replicas=2,
        selector={cluster.label: label, "job": name},
        created=target.since,
    )
    ref = ref_of(add_workload(cluster, plan))
    cluster.record_change(target, f"{name} rolled out beside {target.name}", kind="deploy")
    if wrong:
        cut_calls_to(cluster, target, "unimplemented", share=0.5)
    return [cluster.ref("Service", target), ref]


def keep_traffic_local(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Only pods on the caller's own node may answer; every node has one, or one node alone."""
    service = cluster.service(target)
    service["spec"]["internalTrafficPolicy"] = "Local"
    pods = cluster.pods(target)
    nodes = cluster.nodes[:1] if wrong else cluster.nodes
    for number, pod in enumerate(pods):
        pod["spec"]["nodeName"] = nodes[number % len(nodes)]
    for caller in cluster.base.world.callers(target.name) if target.live else ():
        for number, pod in enumerate(_pods_of(cluster, caller.caller)):
            where = (
                cluster.nodes[number % len(cluster.nodes)]
                if wrong
                else pods[number % len(pods)]["spec"]["nodeName"]
            )
            pod["spec"]["nodeName"] = where
    cluster.edit(service, target, f"{target.name}: keep traffic on the node to save cross-zone cost")
    if wrong:
        cut_calls_to(cluster, target, "timeout", share=1 - 1 / len(cluster.nodes))
    return [cluster.ref("Service", target)]


def _pods_of(cluster: ClusterScene, name: str) -> list[Manifest]:
    return cluster.pods(Target(name, cluster.namespace, 0, live=True))


def pin_clients(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """Clients stick to one pod for hours, or for a minute."""
    service = cluster.service(target)
    seconds = 86_400 if wrong else 60
    service["spec"] |= {
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}},
    }
    cluster.edit(service, target, f"{target.name}: sticky sessions for {seconds} s")
    if wrong:
        slow_down(cluster, target, 3.5, cpu=35)
        fail_requests(
            cluster,
            target,
            0.05,
            lambda r: f"request queue full ({r.randrange(200, 260)} waiting), rejecting",
            "WARN",
        )
    return [cluster.ref("Service", target)]


def route_ingress(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The Ingress sends all paths to the right Service, or to one that does not exist."""
    ref = cluster.ref("Ingress", target)
    ingress = cluster.state.find(ref) or _own_ingress(cluster, target)
    backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    backend["name"] = f"{target.name}-svc" if wrong else target.name
    cluster.edit(ingress, target, f"ingress of {target.name}: rules generated by the new chart")
    if wrong:
        missing = f"{target.namespace}/{backend['name']}"
        cluster.event(ingress, "Sync", "Scheduled for sync", target, kind="Normal")
        cluster.log_of(
            "ingress-nginx-controller",
            "warn",
            lambda _: (
                f'Error obtaining Endpoints for Service "{missing}": no object matching key "{missing}" in local store'
            ),
            target.since,
            2.0,
            "ingress-nginx",
        )
        _lose_entry(cluster, target, "503")
    return [ref]


def set_ingress_class(cluster: ClusterScene, target: Target, wrong: bool) -> Entities:
    """The class of the Ingress; a controller serves it or none does."""
    ref = cluster.ref("Ingress", target)
    ingress = cluster.state.find(ref) or _own_ingress(cluster, target)
    ingress["spec"]["ingressClassName"] = (
        cluster.choose("nginx-internal", "traefik", "public") if wrong else "nginx"
    )
    cluster.edit(ingress, target, f"ingress of {target.name}: class set explicitly")
    if wrong:
        ingress["status"] = {"loadBalancer": {}}
        _lose_entry(cluster, target, "404")
    return [ref]


def _own_ingress(cluster: ClusterScene, target: Target) -> Manifest:
    backend = {"service": {"name": target.name, "port": {"number": cluster.ports[target.name]}}}
    rule = {
        "host": f"{target.name}.example",
        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
    }
    spec = {"ingressClassName": "nginx", "rules": [rule]}
    ref = cluster.ref("Ingress", target)
    made = make_manifest(cluster.random, ref, target.since - 86_400, spec=spec, status={"loadBalancer": {}})
    return cluster.state.add(made)


def _lose_entry(cluster: ClusterScene, target: Target, code: str) -> None:
    """Requests from outside end at the controller: the first service hears nothing of them any more."""
    if not target.live:
        return
    world, timing = cluster.base.world, cluster.base.timing
    cluster.base.effects.add(target.name, "rps", -0.97 * world.entry_rps, lambda t: float(t >= target.since))
    host = f"www.{cluster.namespace}.example"
    cluster.log_of(
        "ingress-nginx-controller",
        "info",
        lambda r: (
            f'203.0.113.{r.randrange(2, 250)} - - "GET /{r.choice(("", "cart", "search"))} HTTP/2.0" {code} {190 if code == "503" else 146} "-" "Mozilla/5.0" {r.randrange(30, 900)} 0.000 [{host}-upstream-default-backend] [] - - - -'
        ),
        max(target.since, timing.start),
        9.0,
        "ingress-nginx",
    )


FAULTS = (
    ClusterFault("service_selector", "app", "config", set_selector, "ITBench invalid-kubernetes-service-selector; SREGym wrong_service_selector", ("dependency", "network_loss", "errors", "deploy")),
    ClusterFault("service_target_port", "app", "config", set_target_port, "ITBench modified-target-port-kubernetes-service; SREGym, AIOpsLab k8s_target_port-misconfig", ("dependency", "network_loss", "errors")),
    ClusterFault("service_port_name", "app", "config", set_port_name, "SREGym incorrect_port_assignment", ("dependency", "network_loss", "errors")),
    ClusterFault("service_deleted", "app", "config", delete_service, "ITBench deleted-kubernetes-service; SREGym missing_service", ("dns", "dependency", "network_loss")),
    ClusterFault("service_port", "app", "config", set_service_port, "SREGym service_port_conflict", ("dependency", "network_loss", "errors")),
    ClusterFault("service_shared_selector", "app", "config", share_selector, "SREGym service_wrong_pod_selection", ("errors", "deploy", "dependency")),
    ClusterFault("service_traffic_local", "app", "config", keep_traffic_local, "SREGym internal_traffic_policy_local", ("network_loss", "dependency", "latency")),
    ClusterFault("service_session_affinity", "app", "config", pin_clients, "SREGym workload_imbalance", ("traffic", "cpu", "latency")),
    ClusterFault("ingress_backend", "edge", "config", route_ingress, "SREGym ingress_misroute", ("network_loss", "dependency", "errors", "traffic")),
    ClusterFault("ingress_class", "edge", "config", set_ingress_class, "Kubernetes documents: Ingress class", ("network_loss", "dependency", "traffic")),
)  # fmt: skip

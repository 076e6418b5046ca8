"""How requests suffer: calls that arrive nowhere, servers that fail or slow down, and what callers write of it."""

from collections.abc import Callable
from random import Random

from opsleuth.scenarios.cluster.client_lines import LEVELS, WAITS, FailedCall, write_failure, write_proxy_line
from opsleuth.scenarios.cluster.controllers import is_ready, ready_backends
from opsleuth.scenarios.cluster.scene import ClusterScene, ServiceLogLines, Target
from opsleuth.scenarios.cluster.state import EntityRef
from opsleuth.scenarios.fault_propagation import Shape
from opsleuth.scenarios.synthetic_system import ServiceCall

_VISIBLE_MS = 40.0  # a service that is faster than this slows down as if it took so long


def begin_at(since: float) -> Shape:
    """Nothing before `since`, full strength from then on."""
    return lambda moment: float(moment >= since)


def cut_calls_to(cluster: ClusterScene, target: Target, way: str, share: float = 1.0) -> None:
    """That share of the calls to a live target never arrives; their callers learn it in this way."""
    if target.live:
        for call in cluster.base.world.callers(target.name):
            _cut_call(cluster, call, way, share, target.since)


def cut_calls_from(
    cluster: ClusterScene, target: Target, way: str, share: float = 1.0, only: str | None = None
) -> None:
    """That share of the calls that a live target sends, or of those to one callee, never arrives."""
    if target.live:
        for call in cluster.base.world.callees(target.name):
            if only in {None, call.callee}:
                _cut_call(cluster, call, way, share, target.since)


def _cut_call(cluster: ClusterScene, call: ServiceCall, way: str, share: float, since: float) -> None:
    edge, effects = f"{call.caller}>{call.callee}", cluster.base.effects
    effects.add(edge, "cut", share, begin_at(since))
    effects.add(edge, "wait_ms", WAITS[way], lambda _: 1.0)
    write_callers(cluster, call, way, share, since)


def write_callers(cluster: ClusterScene, call: ServiceCall, way: str, share: float, since: float) -> None:
    """Let a caller, and its sidecar in a mesh, write of its failed calls."""
    caller = cluster.base.world.service(call.caller)
    service = cluster.state.find(EntityRef("Service", cluster.namespace, call.callee))
    address = service["spec"].get("clusterIP", "") if service else cluster.service_address()
    address = cluster.service_address() if address in {"", "None"} else address
    failed = FailedCall(call.callee, cluster.namespace, address, cluster.ports.get(call.callee, 443))
    rate = max(1.5, 7 * share)

    def text(random: Random) -> str:
        return write_failure(caller.runtime, way, random, failed)

    level = LEVELS.get(caller.runtime, "error")
    cluster.lines.append(ServiceLogLines(call.caller, cluster.namespace, level, text, rate, since))
    if cluster.mesh and write_proxy_line(way, cluster.random, failed):
        cluster.lines.append(
            ServiceLogLines(
                call.caller,
                cluster.namespace,
                "info",
                lambda r: str(write_proxy_line(way, r, failed)),
                rate,
                since,
            )
        )


def fail_requests(
    cluster: ClusterScene,
    target: Target,
    share: float,
    text: Callable[[Random], str] | None = None,
    level: str = "ERROR",
) -> None:
    """The target itself fails that share of its requests and writes why."""
    if target.live:
        cluster.base.effects.add(target.name, "fail", share, begin_at(target.since))
    if text:
        cluster.log(target, level, text, max(2.0, 9 * share) if target.live else 0.4)


def slow_down(cluster: ClusterScene, target: Target, factor: float, *, cpu: float = 0.0) -> None:
    """The target takes `factor` times as long as it did, and `cpu` points more of its limit."""
    if not target.live:
        return
    own = max(_VISIBLE_MS, cluster.base.rest[target.name].self_ms)
    cluster.base.effects.add(target.name, "self_ms", own * (factor - 1), cluster.base.lasting)
    if cpu:
        cluster.base.effects.add(target.name, "cpu", cpu, cluster.base.lasting)


def refuse_clients(
    cluster: ClusterScene, target: Target, server: Callable[[Random], str], client: Callable[[Random], str]
) -> None:
    """A server that is up turns every client away at once; both sides write it."""
    cluster.log(target, "FATAL", server, 6.0 if target.live else 0.4)
    if not target.live:
        return
    for call in cluster.base.world.callers(target.name):
        edge = f"{call.caller}>{call.callee}"
        cluster.base.effects.add(edge, "cut", 1.0, begin_at(target.since))
        cluster.base.effects.add(edge, "wait_ms", 8.0, lambda _: 1.0)
        level = LEVELS.get(cluster.base.world.service(call.caller).runtime, "error")
        cluster.log_of(call.caller, level, client, target.since, 6.0)


def suffer_missing_pods(cluster: ClusterScene, target: Target) -> None:
    """Derive what requests suffer from the pods that are not ready: no backend cuts all, fewer carry more."""
    if not target.live:
        return
    pods = cluster.pods(target)
    if not any(p["status"].get("phase") == "Running" for p in pods):
        cluster.gone[target.name] = target.since
    service = cluster.state.find(EntityRef("Service", target.namespace, target.name))
    already = cluster.base.world.callers(target.name)
    if service is None or any(_is_cut(cluster, call) for call in already):
        return
    wanted = len(cluster.base.world.service(target.name).pods)
    ready = len(ready_backends(cluster, service))
    if ready == 0:
        cut_calls_to(
            cluster, target, "no_endpoints" if cluster.mesh else cluster.choose("refused", "no_endpoints")
        )
        if target.name == cluster.base.world.edge.name:
            cluster.base.effects.add(target.name, "fail", 0.95, begin_at(target.since))
    elif sum(map(is_ready, pods)) < wanted:
        missing = 1 - ready / wanted
        cluster.base.effects.add(target.name, "capacity_lost", missing, begin_at(target.since))
        slow_down(cluster, target, 1 + 6 * missing, cpu=30 * missing)
        fail_requests(cluster, target, 0.3 * missing)


def _is_cut(cluster: ClusterScene, call: ServiceCall) -> bool:
    return cluster.base.effects.at(f"{call.caller}>{call.callee}", "cut", cluster.base.timing.end) > 0

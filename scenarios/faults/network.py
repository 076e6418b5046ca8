"""Faults between services: delay, loss, names that do not resolve, certificates that have run out."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from opsleuth.scenarios.case_folder import format_utc
from opsleuth.scenarios.faults.fault_kind import FaultAnswer, FaultKind
from opsleuth.scenarios.scene import Scene
from opsleuth.scenarios.synthetic_system import SyntheticService


def edges_of_service(scene: Scene, service: str) -> list[str]:
    """All calls to and from a service, as targets of effects."""
    world = scene.world
    return [f"{c.caller}>{c.callee}" for c in (*world.callers(service), *world.callees(service))]


def apply_network_delay(scene: Scene) -> FaultAnswer:
    """Every packet to and from one service takes longer; its own work is as fast as ever."""
    service = scene.app()
    # The harm is the added latency, so the latency's spread is the measure, not that of the bare gap.
    amount = scene.size * scene.spread(service.name, "self_ms")
    for edge in edges_of_service(scene, service.name):
        scene.effects.add(edge, "gap_ms", amount, scene.lasting)
    return FaultAnswer(service.name, also_kinds=["latency"])


def apply_network_loss(scene: Scene) -> FaultAnswer:
    """Lost packets: segments are sent again, the tail grows by the time-outs, some connections break."""
    service = scene.app()
    scene.push(service.name, "retransmits", 2)
    scene.effects.add(service.name, "tail", 0.3 * scene.size, scene.lasting)
    for call in scene.world.callers(service.name):
        edge = f"{call.caller}>{call.callee}"
        scene.effects.add(
            edge, "gap_ms", 0.4 * scene.size * scene.spread(service.name, "self_ms"), scene.lasting
        )
        scene.effects.add(call.caller, "tail", 0.15 * scene.size, scene.lasting)
        scene.push(edge, "fail", 0.6)
        scene.say(
            call.caller,
            "WARN",
            lambda r: _format_broken_connection(r, service.name),
            per_minute=scene.size / 3,
        )
    return FaultAnswer(service.name, also_kinds=["network_delay"])


def _format_broken_connection(random: Random, callee: str) -> str:
    address = f"10.42.{random.randrange(8)}.{random.randrange(2, 250)}"
    reason = random.choice(("connection reset by peer", "i/o timeout", "no response within 200ms, retrying"))
    return f"call to {callee} failed: read tcp {address}:{random.randrange(30000, 60000)}->{address}:8080: {reason}"


_UNKNOWN: dict[str, Callable[[str], str]] = {
    "jvm": lambda host: f"java.net.UnknownHostException: {host}: Name or service not known",
    "go": lambda host: f'msg="call failed" err="dial tcp: lookup {host} on 10.96.0.10:53: no such host"',
    "python": lambda host: (
        f"requests.exceptions.ConnectionError: {host}: [Errno -2] Name or service not known"
    ),
    "node": lambda host: f"Error: getaddrinfo ENOTFOUND {host}",
}


def apply_dns_failure(scene: Scene) -> FaultAnswer:
    """A service cannot resolve the name of one that it calls; the callee is well and gets fewer requests."""
    service = scene.calling_app()
    call = scene.random.choice(scene.world.callees(service.name))
    host = (
        call.callee
        if call.callee.endswith(".example")
        else f"{call.callee}.{scene.world.namespace}.svc.cluster.local"
    )
    scene.push(f"{service.name}>{call.callee}", "fail", 1.3)
    scene.say(service.name, "ERROR", lambda _: _UNKNOWN[service.runtime](host))
    if scene.chance(0.4):
        diff = "-  dnsPolicy: ClusterFirst\n+  dnsPolicy: Default\n"
        scene.change(
            scene.timing.onset - 60,
            service.name,
            "config",
            f"{service.name}: pod template cleaned up",
            diff=diff,
        )
    return FaultAnswer(service.name, also_kinds=["config", "dependency"])


def apply_expired_certificate(scene: Scene) -> FaultAnswer:
    """The certificate of a called service runs out at the onset: new connections to it are refused by callers."""
    service = scene.take([s for s in scene.world.with_role("app", "external") if scene.world.callers(s.name)])
    scene.say(
        service.name,
        "WARN",
        _format_handshake_error,
        per_minute=0 if service.role == "external" else scene.size / 3,
    )
    for call in scene.world.callers(service.name):
        caller = scene.world.service(call.caller)
        scene.push(f"{call.caller}>{call.callee}", "fail", 1.2)
        scene.say(call.caller, "ERROR", partial(_format_expiry_error, scene, caller, service))
    if service.role == "app":
        status = {"not_after": format_utc(scene.timing.onset), "ready": "False", "reason": "Expired"}
        scene.object("Certificate", f"{service.name}-tls", status, namespace=scene.world.namespace)
    return FaultAnswer(service.name)


def _format_handshake_error(random: Random) -> str:
    address = f"10.42.{random.randrange(8)}.{random.randrange(2, 250)}:{random.randrange(30000, 60000)}"
    return f"http: TLS handshake error from {address}: remote error: tls: expired certificate"


def _format_expiry_error(scene: Scene, caller: SyntheticService, callee: SyntheticService, _: Random) -> str:
    if caller.runtime == "jvm":
        return f"javax.net.ssl.SSLHandshakeException: {callee.name}: PKIX path validation failed: validity check failed"
    now, end = format_utc(scene.timing.onset + 60), format_utc(scene.timing.onset)
    return (
        f"call to https://{callee.name} failed: tls: failed to verify certificate: x509: "
        f"certificate has expired or is not yet valid: current time {now} is after {end}"
    )


FAULTS: Sequence[FaultKind] = (
    FaultKind("network_delay", apply_network_delay, shows=["traces"]),
    FaultKind("network_loss", apply_network_loss),
    FaultKind("dns", apply_dns_failure),
    FaultKind("certificate", apply_expired_certificate),
)

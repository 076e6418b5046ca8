"""Faults of a service's own work, of its load, and of third parties."""

from collections.abc import Sequence
from random import Random

from opsleuth.scenarios.faults.fault_kind import FaultAnswer, FaultKind
from opsleuth.scenarios.invented_names import draw_letters
from opsleuth.scenarios.scene import Scene
from opsleuth.scenarios.synthetic_system import SyntheticService


def apply_slow_service(scene: Scene) -> FaultAnswer:
    """A service takes longer for its own work; no resource tells why."""
    service = scene.app()
    amount = scene.push(service.name, "self_ms")
    if scene.chance(0.5):
        took = 3 * (amount + scene.rest[service.name].latency_ms)
        scene.say(
            service.name,
            "WARN",
            lambda r: f"slow request {draw_letters(r, 10)}: {took * r.uniform(0.8, 1.6):.0f} ms",
        )
    return FaultAnswer(service.name)


def apply_failing_requests(scene: Scene) -> FaultAnswer:
    """A service answers a share of its requests with 500; those who call it say so, too."""
    service = scene.app()
    scene.push(service.name, "fail")
    scene.say(
        service.name,
        "ERROR",
        lambda r: (
            f"request {draw_letters(r, 10)} answered 500: internal error, code E{4000 + r.randrange(3)}"
        ),
    )
    log_failures_at_callers(scene, service.name, "answered 500")
    return FaultAnswer(service.name, also_kinds=["exception"])


def log_failures_at_callers(scene: Scene, callee: str, what: str) -> None:
    """Let direct callers log that a call failed, half as often as the callee does."""
    for call in scene.world.callers(callee):
        scene.say(
            call.caller,
            "WARN",
            lambda r: f"upstream call {draw_letters(r, 8)} to {callee} {what}",
            per_minute=scene.size / 5,
        )


def apply_thrown_exception(scene: Scene) -> FaultAnswer:
    """A code path throws: the lines and calls that usually follow are missing, a stack trace stands there."""
    service = scene.calling_app()
    share = scene.push(service.name, "fail", 1.5)
    scene.effects.add(service.name, "lost_children", share, scene.lasting)
    number = scene.random.randrange(30, 400)
    scene.say(service.name, "ERROR", lambda r: format_stack_trace(r, service, number))
    log_failures_at_callers(scene, service.name, "failed: 500 Internal Server Error")
    return FaultAnswer(service.name, also_kinds=["errors"])


def format_stack_trace(random: Random, service: SyntheticService, line: int) -> str:
    """An exception as the service's runtime prints it, in one message; `line` is where it is thrown."""
    name = service.name.split("-")[0]
    if service.runtime == "jvm":
        thread = random.randrange(1, 40)
        return (
            f"[http-nio-8080-exec-{thread}] Servlet.service() threw exception\n"
            f'java.lang.NullPointerException: Cannot invoke "Quote.total()" because "quote" is null\n'
            f"\tat com.example.{name}.{name.title()}Service.handle({name.title()}Service.java:{line})\n"
            f"\tat com.example.{name}.{name.title()}Controller.post({name.title()}Controller.java:{line + 17})"
        )
    if service.runtime == "python":
        return (
            "Traceback (most recent call last):\n"
            f'  File "/app/{name}/handlers.py", line {line}, in handle\n    total = quote["total"]\nKeyError: \'total\''
        )
    if service.runtime == "go":
        return (
            "http: panic serving: runtime error: invalid memory address or nil pointer dereference\n"
            f"goroutine {random.randrange(100, 9000)} [running]:\nmain.(*{name.title()}).Handle(handlers.go:{line})"
        )
    return f"TypeError: Cannot read properties of undefined (reading 'total')\n    at handle (/app/{name}.js:{line}:17)"


def apply_third_party_fault(scene: Scene) -> FaultAnswer:
    """A third party is slow or fails; all that we have of it is what its callers see."""
    service = scene.take(scene.world.with_role("external"))
    if scene.chance(0.5):
        scene.push(service.name, "self_ms", 1.3)
        text = "timed out after 2000 ms"
    else:
        scene.push(service.name, "fail", 1.3)
        text = "answered 503 Service Unavailable"
    callers = [call.caller for call in scene.world.callers(service.name)]
    for caller in callers:
        scene.say(caller, "WARN", lambda r: f"POST https://{service.name}/v2/{draw_letters(r, 6)} {text}")
    return FaultAnswer(service.name, also=callers, also_kinds=["latency", "errors"])


def apply_traffic_surge(scene: Scene) -> FaultAnswer:
    """More requests come in at one service, from a client of its own or from everybody."""
    entry = scene.chance(0.5) and scene.world.edge.name not in scene.taken
    service = scene.take([scene.world.edge]) if entry else scene.app()
    scene.push(service.name, "rps", 1.5)
    scene.push(service.name, "self_ms", 0.4)
    if scene.chance(0.5):
        client = f"{scene.random.choice(('export', 'sync', 'crawler'))}-{draw_letters(scene.random, 4)}"
        scene.say(
            service.name,
            "INFO",
            lambda r: f"GET /bulk/{draw_letters(r, 8)} 200 client={client}",
            per_minute=2 * scene.size,
        )
    return FaultAnswer(service.name)


FAULTS: Sequence[FaultKind] = (
    FaultKind("latency", apply_slow_service),
    FaultKind("errors", apply_failing_requests),
    FaultKind("exception", apply_thrown_exception),
    FaultKind("dependency", apply_third_party_fault, needs=["external"]),
    FaultKind("traffic", apply_traffic_surge),
)

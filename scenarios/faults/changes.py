"""Faults that somebody brought in: a release, a setting, a right taken away."""

from collections.abc import Sequence

from opsleuth.scenarios.faults.fault_kind import FaultAnswer, FaultKind
from opsleuth.scenarios.faults.services import format_stack_trace, log_failures_at_callers
from opsleuth.scenarios.invented_names import draw_letters
from opsleuth.scenarios.scene import Scene

# setting, value before, value after, what the service says about it
_SETTINGS = (
    ("http.client.timeout", "2s", "20ms", "deadline exceeded after 20ms"),
    ("pool.max-size", "20", "2", "no free connection in pool of 2, waited 1000 ms"),
    (
        "feature.currency-table",
        "/etc/tables/v3.json",
        "/etc/tables/v4.json",
        "cannot read /etc/tables/v4.json: no such file",
    ),
    ("queue.topic", "updates-v1", "updates-v2", "unknown topic updates-v2"),
)


def apply_bad_deploy(scene: Scene) -> FaultAnswer:
    """A release makes a service slower, or makes it fail, from the minute it is out."""
    service = scene.app()
    broken = scene.chance(0.5)
    diff = "-    for item in batch:\n-        total += price[item]\n+    for item in batch:\n+        total += fetch_price(item)\n"
    before, after = scene.deploy(
        scene.timing.onset - 45, service.name, "prices are looked up when needed", diff
    )
    scene.say(
        service.name,
        "INFO",
        lambda _: f"starting {service.name} {after} (was {before})",
        per_minute=1.5,
        shape=lambda t: float(0 <= t - scene.timing.onset + 45 < 180),
    )
    if broken:
        number = scene.random.randrange(30, 300)
        scene.push(service.name, "fail", 1.1)
        scene.say(service.name, "ERROR", lambda r: format_stack_trace(r, service, number))
        log_failures_at_callers(scene, service.name, "answered 500")
    else:
        scene.push(service.name, "self_ms", 1.1)
        scene.push(service.name, "cpu", 0.3)
    return FaultAnswer(service.name, also_kinds=["config"], notes="fails" if broken else "slow")


def apply_bad_setting(scene: Scene) -> FaultAnswer:
    """A changed setting: the code is the same, the service says what it misses."""
    service = scene.app()
    name, before, after, complaint = scene.random.choice(_SETTINGS)
    diff = f"-{name}={before}\n+{name}={after}\n"
    scene.change(
        scene.timing.onset - 30, service.name, "config", f"{service.name}: {name} changed", diff=diff
    )
    scene.push(service.name, "fail", 1.1)
    scene.say(
        service.name, "ERROR", lambda r: f"request {draw_letters(r, 8)} failed: {complaint} ({name}={after})"
    )
    log_failures_at_callers(scene, service.name, "answered 503")
    return FaultAnswer(service.name, also_kinds=["deploy"])


def apply_lost_permission(scene: Scene) -> FaultAnswer:
    """A right is taken away: calls are refused, the service is otherwise well."""
    service = scene.app()
    bucket = f"{scene.world.namespace}-{draw_letters(scene.random, 6)}"
    role = f"role/{service.name}"
    texts = (
        f"AccessDenied: arn:aws:iam::000000000000:{role} is not authorized to perform: s3:GetObject on {bucket}",
        f"rpc error: code = PermissionDenied desc = {role} lacks permission storage.objects.get on {bucket}",
        f'pods is forbidden: User "system:serviceaccount:{scene.world.namespace}:{service.name}" cannot list resource "pods"',
    )
    text = scene.random.choice(texts)
    scene.push(service.name, "fail", 1.1)
    scene.say(service.name, "ERROR", lambda r: f"request {draw_letters(r, 8)} failed: {text}")
    log_failures_at_callers(scene, service.name, "answered 500")
    if scene.chance(0.6):
        diff = f'-    "{bucket}/*"\n+    "{bucket}-archive/*"\n'
        scene.change(
            scene.timing.onset - 40, service.name, "config", f"least privilege for {role}", diff=diff
        )
    return FaultAnswer(service.name, also_kinds=["config"])


FAULTS: Sequence[FaultKind] = (
    FaultKind("deploy", apply_bad_deploy),
    FaultKind("config", apply_bad_setting),
    FaultKind("permission", apply_lost_permission),
)

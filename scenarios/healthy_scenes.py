"""Worlds in which nothing is wrong though an alert came: it was twitchy, late, or about something over."""

from collections.abc import Callable, Mapping

from opsleuth.scenarios.scene import Scene


def leave_scene_unchanged(_scene: Scene) -> str:
    """Nothing happened at all."""
    return "A single sample above its limit."


def apply_past_restart(scene: Scene) -> str:
    """A pod was restarted once, more than half an hour before the alert was sent, and all is well since."""
    service = scene.app()
    pod = scene.random.choice(service.pods)
    when = scene.timing.start - scene.random.uniform(600, 1800)
    message = f"back-off 10s restarting failed container={service.name} pod={pod}"
    scene.event("BackOff", f"Pod/{pod}", message, first=when - 30, at=when, count=1)
    scene.pod_state(pod, restarts=1, started=when + 20)
    return f"One restart of {service.name}, over before the window."


def apply_harmless_release(scene: Scene) -> str:
    """A release that did no harm."""
    service = scene.app()
    scene.deploy(scene.timing.onset - 120, service.name, "wording of two messages")
    return f"A harmless release of {service.name}."


def apply_past_rollback(scene: Scene) -> str:
    """A bad release, rolled back before the window began."""
    service, start = scene.app(), scene.timing.start
    before, after = scene.deploy(start - 2400, service.name, "new basket")
    scene.change(
        start - 1500,
        service.name,
        "rollback",
        f"{service.name} back to {before} (from {after})",
        version=before,
    )
    return f"Release {after} of {service.name} was rolled back before the window."


def apply_busy_load(scene: Scene) -> str:
    """More load than usual, well carried."""
    edge = scene.world.edge
    scene.effects.add(edge.name, "rps", 0.08 * scene.world.entry_rps, scene.growing)
    return "Somewhat more load, no harm."


def apply_past_spike(scene: Scene) -> str:
    """A few slow minutes early in the window, long over when the alert was sent."""
    service, start = scene.app(), scene.timing.start + 240
    scene.push(service.name, "self_ms", 1.0, lambda t: float(start <= t < start + 180))
    return f"Three slow minutes of {service.name}, over long before the alert."


def apply_noisy_latency(scene: Scene) -> str:
    """A service whose latency has always jumped about."""
    service = scene.app()
    scene.world = scene.world.with_noise(service.name, 0.22)
    return f"The latency of {service.name} strays widely, then as now."


HEALTHY: Mapping[str, Callable[[Scene], str]] = {
    "quiet": leave_scene_unchanged,
    "recovered": apply_past_restart,
    "released": apply_harmless_release,
    "rolled_back": apply_past_rollback,
    "busy": apply_busy_load,
    "spike": apply_past_spike,
    "restless": apply_noisy_latency,
}

"""What leads astray: an unrelated deploy, a victim louder than the cause, a second alert about nothing."""

from collections.abc import Collection
from dataclasses import dataclass

from opsleuth.scenarios.scene import Scene

STEADY = 0.015  # relative spread of a latency so steady that any disturbance looks enormous


@dataclass(frozen=True, slots=True)
class PlacedDecoys:
    """`blameless` are services that a decoy points at, `text` goes into the alert."""

    blameless: tuple[str, ...]
    text: str


def add_decoys(scene: Scene, causes: Collection[str], involved: Collection[str]) -> PlacedDecoys:
    """Put all three into the scene. `causes` are the services at fault, `involved` whoever may be named as well."""
    for cause in causes:
        _make_victim_loud(scene, cause, involved)
    bystanders = _find_bystanders(scene, causes, involved)
    deployed = scene.random.choice(bystanders)
    moment = scene.timing.onset - scene.random.uniform(120, 1200)
    scene.deploy(moment, deployed, "dependencies updated, wording of two messages")
    alerting = scene.random.choice(bystanders)
    text = f"Also firing: memory of {alerting} above 60% for 5 minutes."
    return PlacedDecoys(tuple(dict.fromkeys((deployed, alerting))), text)


def _make_victim_loud(scene: Scene, cause: str, involved: Collection[str]) -> None:
    victims = [name for name in scene.world.upstream(cause) if name not in involved]
    if victims:
        scene.world = scene.world.with_noise(victims[0], STEADY)


def _find_bystanders(scene: Scene, causes: Collection[str], involved: Collection[str]) -> list[str]:
    """Services with code of their own away from the cause if there are any, else any that is not involved."""
    touched = set(involved).union(*(scene.world.upstream(cause) for cause in causes))
    apps = [s.name for s in scene.world.services if s.role in {"app", "edge"} and s.name not in involved]
    return [name for name in apps if name not in touched] or apps

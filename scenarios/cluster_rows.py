"""What the platform shows of a scene: events, and the states of deployments, pods, nodes and monitors."""

from collections.abc import Mapping
from typing import Any

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_utc
from opsleuth.scenarios.scene import Scene
from opsleuth.scenarios.synthetic_system import SyntheticService


def write_cluster(scene: Scene, case: CaseFolderWriter, *, platform: bool) -> None:
    """Add the changes, and where the platform is recorded its events and the state of the whole cluster."""
    for file, row in scene.rows:
        if platform or file == "changes.jsonl":
            case.add(file, **row)
    if not platform:
        return
    _add_everyday_events(scene, case)
    for service in scene.world.services:
        if service.pods:
            _add_workload_states(scene, case, service)
    for node in scene.world.nodes:
        status = {"ready": "True", "memory_pressure": "False", "disk_pressure": "False", "capacity_cpu": "8"}
        _add_object_state(scene, case, "Node", node, status)


def _add_everyday_events(scene: Scene, case: CaseFolderWriter) -> None:
    """Events as any cluster has them: jobs, image pulls, a probe that failed once."""
    random, timing = scene.random, scene.timing
    for _ in range(random.randrange(3, 8)):
        service = random.choice([s for s in scene.world.services if s.pods])
        pod = random.choice(service.pods)
        first = random.uniform(timing.start - 3600, timing.end - 30)
        reason, kind, message = random.choice(
            (
                ("Pulled", "Normal", f'Container image "{service.name}" already present on machine'),
                (
                    "Scheduled",
                    "Normal",
                    f"Successfully assigned {scene.world.namespace}/{pod} to {scene.world.nodes[0]}",
                ),
                ("Unhealthy", "Warning", "Readiness probe failed: HTTP probe failed with statuscode: 503"),
                (
                    "SawCompletedJob",
                    "Normal",
                    "Saw completed job: nightly-report-29012345, condition: Complete",
                ),
            )
        )
        row = {
            "timestamp": format_utc(first + 4),
            "first_timestamp": format_utc(first),
            "source": "kubernetes",
        }
        case.add(
            "events.jsonl", **row, object=f"Pod/{pod}", type=kind, reason=reason, message=message, count=1
        )


def _add_workload_states(scene: Scene, case: CaseFolderWriter, service: SyntheticService) -> None:
    desired = len(service.pods)
    ready = scene.ready.get(service.name, desired)
    status = {"desired": desired, "ready": ready, "available": ready, "unavailable": desired - ready}
    _add_object_state(scene, case, "Deployment", service.name, status)
    extra = [pod for pod, state in scene.pods.items() if state.get("owner") == service.name]
    for pod in dict.fromkeys((*service.pods, *extra)):
        _add_object_state(scene, case, "Pod", pod, _build_pod_status(scene, service, scene.pods.get(pod, {})))


def _build_pod_status(scene: Scene, service: SyntheticService, state: Mapping[str, Any]) -> dict[str, Any]:
    """`state` may override phase, ready, restarts, state, last_state, condition, node and started."""
    ready = state.get("ready", True)
    started = state.get("started", scene.timing.start - scene.random.uniform(3600, 400_000))
    container = {
        "name": service.name,
        "ready": ready,
        "restart_count": state.get("restarts", 0),
        "state": state.get("state", {"running": True, "started_at": format_utc(started)}),
    }
    if "last_state" in state:
        container["last_state"] = state["last_state"]
    condition = state.get("condition", {"type": "Ready", "status": str(bool(ready))})
    return {
        "phase": state.get("phase", "Running"),
        "node_name": state.get("node", scene.random.choice(scene.world.nodes)),
        "start_time": format_utc(started),
        "containers": [container],
        "conditions": [condition],
    }


def _add_object_state(
    scene: Scene, case: CaseFolderWriter, kind: str, name: str, status: Mapping[str, Any]
) -> None:
    spaced = {} if kind == "Node" else {"namespace": scene.world.namespace}
    case.add(
        "objects.jsonl",
        captured_at=format_utc(scene.timing.end),
        kind=kind,
        name=name,
        **spaced,
        status=dict(status),
    )

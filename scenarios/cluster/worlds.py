"""Worlds of one fault kind: where it is the cause, an innocent neighbour of the cause, or right and harmless."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, NotRequired, TypedDict, get_args

from opsleuth.scenarios.cluster.controllers import settle_controllers
from opsleuth.scenarios.cluster.drawing import draw_cluster
from opsleuth.scenarios.cluster.faults import CLUSTER_FAULTS, FAMILY_OF, ClusterFault
from opsleuth.scenarios.cluster.folder import AlertSignal, ClusterAlert, write_cluster_case
from opsleuth.scenarios.cluster.platform_objects import SYSTEM
from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef
from opsleuth.scenarios.cluster.traffic import suffer_missing_pods
from opsleuth.scenarios.fault_propagation import compute_levels

WorldRole = Literal["cause", "neighbour", "healthy"]
WORLD_ROLES: Sequence[WorldRole] = get_args(WorldRole)
# Sources that a world can be written without, to see what skill rests on.
ABLATIONS = ("objects", "events", "traces", "logs")
KEY_FILE = "answers.json"
_FAILING = 0.04  # share of requests above which an alert is about errors


class ClusterKey(TypedDict):
    """The right answer to a cluster world, as `answers.json` has it."""

    verdict: str
    root_cause_service: str | None
    acceptable_services: list[str]
    kind: str | None
    acceptable_kinds: list[str]
    acceptable_entities: list[dict[str, str | None]]
    must_not_blame: list[str]
    fault_type: str
    source_label: dict[str, Any]
    culprit: NotRequired[str]


@dataclass(frozen=True, slots=True)
class ClusterWorld:
    """A world before it is written. `oddity` is what is wrong in it or only looks so; `entities` its objects."""

    scene: ClusterScene
    key: ClusterKey
    alert: ClusterAlert
    oddity: Target
    entities: Sequence[EntityRef]


def build_world(kind: str, role: str, seed: int) -> ClusterWorld:
    """A world of a fault kind in a role; the same arguments give the same world. Raises ValueError for unknown ones."""
    if kind not in CLUSTER_FAULTS:
        raise ValueError(f"no cluster fault {kind!r}; choose from {', '.join(CLUSTER_FAULTS)}")
    if role not in WORLD_ROLES:
        raise ValueError(f"no role {role!r}; choose from {', '.join(WORLD_ROLES)}")
    random = Random(f"cluster/{kind}/{role}/{seed}")
    cluster = draw_cluster(random)
    fault = CLUSTER_FAULTS[kind]
    build = {"cause": _build_cause, "neighbour": _build_neighbour, "healthy": _build_healthy}[role]
    label = {"kind": kind, "role": role, "seed": seed, "catalogue": fault.source}
    return build(cluster, fault, label)


def _build_cause(cluster: ClusterScene, fault: ClusterFault, label: dict[str, Any]) -> ClusterWorld:
    target = pick_target(cluster, fault)
    entities = _apply_fault(cluster, fault, target)
    key = _faulty_key(cluster, fault, target, entities, label)
    return ClusterWorld(cluster, key, _send_alert(cluster, fault, target), target, entities)


def _build_neighbour(cluster: ClusterScene, fault: ClusterFault, label: dict[str, Any]) -> ClusterWorld:
    """The oddity on something that no request touches; the cause is of another family."""
    idle = pick_idle(cluster, fault)
    entities = fault.apply(cluster, idle, True)
    others = [
        f for f in CLUSTER_FAULTS.values() if FAMILY_OF[f.kind] != FAMILY_OF[fault.kind] and not f.alert
    ]
    cause = cluster.random.choice([f for f in others if f.place in {"app", "caller", "database", "cache"}])
    target = pick_target(cluster, cause)
    guilty = _apply_fault(cluster, cause, target)
    key = _faulty_key(cluster, cause, target, guilty, label | {"cause": cause.kind})
    taken = set(key["acceptable_services"])
    blameless = [
        idle.name,
        *(e.name for e in entities if e.kind in {"Deployment", "StatefulSet", "Node", "CronJob"}),
    ]
    key["must_not_blame"] = [
        n for n in dict.fromkeys(blameless) if n not in taken and not _is_shared(cluster, n)
    ]
    return ClusterWorld(cluster, key, _send_alert(cluster, cause, target), idle, entities)


def _is_shared(cluster: ClusterScene, name: str) -> bool:
    """Whether requests pass through it after all."""
    return name in cluster.nodes or any(s.name == name for s in cluster.base.world.services)


def _build_healthy(cluster: ClusterScene, fault: ClusterFault, label: dict[str, Any]) -> ClusterWorld:
    target = pick_target(cluster, fault)
    entities = fault.apply(cluster, target, False)
    settle_controllers(cluster)
    key = ClusterKey(
        verdict="healthy",
        root_cause_service=None,
        acceptable_services=[],
        kind=None,
        acceptable_kinds=[],
        acceptable_entities=[],
        must_not_blame=[],
        fault_type="healthy",
        source_label=label,
    )
    edge = cluster.base.world.edge.name
    service = cluster.random.choice((edge, *(s.name for s in cluster.base.world.with_role("app"))))
    return ClusterWorld(
        cluster,
        key,
        ClusterAlert(f"Latency of {service} above its usual range.", service, "latency"),
        target,
        entities,
    )


def _apply_fault(cluster: ClusterScene, fault: ClusterFault, target: Target) -> Sequence[EntityRef]:
    entities = fault.apply(cluster, target, True)
    settle_controllers(cluster)
    if fault.place in {"app", "caller", "edge", "database", "cache"}:
        suffer_missing_pods(cluster, target)
    return entities


def pick_target(cluster: ClusterScene, fault: ClusterFault) -> Target:
    """Something that requests pass through, and that the fault can sit on."""
    world, onset = cluster.base.world, cluster.base.timing.onset
    if fault.place == "node":
        busy = [n for n in cluster.nodes if _holds_services(cluster, n)]
        return Target(cluster.random.choice(busy), "", onset, live=True)
    if fault.place == "dns":
        return Target("coredns", SYSTEM, onset, live=True)
    if fault.place == "job":
        name, namespace = cluster.idle["job"][0]
        return Target(name, namespace, onset, live=True)
    if fault.place == "edge":
        return Target(world.edge.name, cluster.namespace, onset, live=True)
    role = fault.place if fault.place in {"database", "cache"} else "app"
    found = [s.name for s in world.services if s.role == role and world.callers(s.name)]
    if fault.place == "caller":
        found = [
            n for n in found if any(world.service(c.callee).role != "external" for c in world.callees(n))
        ]
    return Target(cluster.random.choice(found), cluster.namespace, onset, live=True)


def _holds_services(cluster: ClusterScene, node: str) -> bool:
    pods = cluster.state.of_kind("Pod", cluster.namespace)
    return any(p["spec"].get("nodeName") == node for p in pods)


def pick_idle(cluster: ClusterScene, fault: ClusterFault) -> Target:
    """Something that no request touches; mostly it has been as it is for hours or days."""
    timing, random = cluster.base.timing, cluster.random
    since = timing.start - random.uniform(3600, 86_400 * 4)
    if random.random() < 0.3:
        since = timing.onset - random.uniform(240, 1500)
    if fault.place == "node":
        return Target(cluster.spare_node, "", since, live=False)
    place = {"caller": "app", "edge": "app", "job": "idle job"}.get(fault.place, fault.place)
    options = cluster.idle[place]
    # What binds a whole namespace must bind one that no request touches.
    whole = fault.kind in {
        "quota_exhausted",
        "limit_range",
        "pod_security",
        "webhook_absent",
        "webhook_untrusted",
    }
    name, namespace = options[-1] if whole else random.choice(options)
    return Target(name, namespace, since, live=False)


def _faulty_key(
    cluster: ClusterScene,
    fault: ClusterFault,
    target: Target,
    entities: Sequence[EntityRef],
    label: dict[str, Any],
) -> ClusterKey:
    named = [target.name, *fault.culprits]
    named += [
        e.name
        for e in entities
        if e.kind in {"Node", "CronJob", "Job", "Deployment"} and fault.place in {"app", "node", "job"}
    ]
    key = ClusterKey(
        verdict="cause_found",
        root_cause_service=target.name,
        acceptable_services=list(dict.fromkeys(named)),
        kind=fault.answer,
        acceptable_kinds=list(dict.fromkeys((fault.answer, *fault.also))),
        acceptable_entities=[e.to_key() for e in _with_instances(cluster, entities)],
        must_not_blame=[],
        fault_type=fault.kind,
        source_label=label,
    )
    if cluster.keeps_changes:
        key["culprit"] = cluster.culprit or "none"
    return key


def _with_instances(cluster: ClusterScene, entities: Sequence[EntityRef]) -> list[EntityRef]:
    """The entities, and the numbered pods of stateful sets among them, which are as good a name for a store."""
    pods = [
        EntityRef("Pod", entity.namespace, pod["metadata"]["name"])
        for entity in entities
        if entity.kind == "StatefulSet"
        for pod in cluster.state.of_kind("Pod", entity.namespace)
        if pod["metadata"]["name"].rpartition("-")[0] == entity.name
    ]
    return list(dict.fromkeys((*entities, *pods)))


def _send_alert(cluster: ClusterScene, fault: ClusterFault, target: Target) -> ClusterAlert:
    """The platform's own alert of a fault that no request notices, else one about whoever suffers."""
    if fault.alert:
        return ClusterAlert(fault.alert.format(name=target.name, namespace=target.namespace), None, None)
    world, random = cluster.base.world, cluster.random
    if fault.place == "edge":
        return ClusterAlert(
            f"NoRequestsReceived: traffic of {target.name} fell below 5 % of its usual rate.",
            target.name,
            "requests",
        )
    names = (
        [world.edge.name, *world.upstream(target.name)[:1]]
        if target.name in cluster.base.rest
        else [world.edge.name]
    )
    service = random.choice([*names, target.name] if fault.place == "caller" else names)
    before, after = (
        cluster.base.rest[service],
        compute_levels(world, cluster.base.effects, cluster.base.timing.fired)[service],
    )
    where = f"{service} in namespace {cluster.namespace}"
    if after.fail_share - before.fail_share > _FAILING:
        signal: AlertSignal = "errors"
        texts = (
            f"HighRequestErrorRate: more than 5 % of the requests to {where} fail.",
            f"Error budget of {service} burns 14 times as fast as planned.",
        )
    else:
        signal = "latency"
        texts = (
            f"HighRequestLatency: {where} takes longer than usual for 3 minutes.",
            f"{service}: latency above its usual range.",
        )
    return ClusterAlert(random.choice(texts), service, signal)


def generate_world(
    kind: str, role: str, seed: int, folder: Path, *, without: Collection[str] = ()
) -> ClusterKey:
    """Write one world below `folder` and return its key. `without` names ABLATIONS that the folder lacks."""
    unknown = sorted(set(without) - set(ABLATIONS))
    if unknown:
        raise ValueError(f"cannot leave out {', '.join(unknown)}; choose from {', '.join(ABLATIONS)}")
    world = build_world(kind, role, seed)
    write_cluster_case(world.scene, world.alert, folder, without=without)
    return world.key


def generate_world_set(
    folder: Path,
    *,
    kinds: Collection[str] = tuple(CLUSTER_FAULTS),
    roles: Collection[str] = WORLD_ROLES,
    per: int = 1,
    seed: int = 1,
    without: Collection[str] = (),
) -> dict[str, ClusterKey]:
    """Write `per` worlds of each kind and role below `folder`, and `answers.json` beside them; return the keys."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = [(kind, role, seed * 1000 + i) for kind in kinds for role in roles for i in range(per)]
    Random(seed).shuffle(plan)
    keys: dict[str, ClusterKey] = {}
    for number, (kind, role, place) in enumerate(plan, start=1):
        # The name of a case tells nothing about its cause.
        name = f"cluster-{number:04}"
        keys[name] = generate_world(kind, role, place, folder / name, without=without)
    (folder / KEY_FILE).write_text(json.dumps(keys, indent=1, ensure_ascii=False) + "\n")
    return keys

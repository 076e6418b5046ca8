"""Generated cluster worlds: consistent in their references, repeatable, loadable, and true to their key."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from nonempty import nonempty

from opsleuth.evals.case_sets import load_case_set
from opsleuth.scenarios.cluster.controllers import ready_backends, resolve_port, selected_pods, used_quota
from opsleuth.scenarios.cluster.faults import CLUSTER_FAULTS
from opsleuth.scenarios.cluster.state import EntityRef, Manifest
from opsleuth.scenarios.cluster.worlds import (
    ABLATIONS,
    WORLD_ROLES,
    ClusterWorld,
    build_world,
    generate_world,
    generate_world_set,
)
from opsleuth.scenarios.fault_propagation import compute_levels
from opsleuth.state.conclusion import KINDS
from opsleuth.tools.sources.case_source import CaseSource

SEEDS = (0, 1)
# The words in which a key speaks; a folder may hold none of them.
KEY_WORDS = ("root_cause", "must_not_blame", "acceptable_", "neighbour", "catalogue", "culprit")
# A folder of each of these is written and read back; all kinds are only built, which is much faster.
WRITTEN = (
    "service_selector",
    "policy_denies_all",
    "quota_exhausted",
    "kubelet_stopped",
    "cache_password",
    "job_sidecar",
)


@cache
def _world(kind: str, role: str, seed: int = 0) -> ClusterWorld:
    return build_world(kind, role, seed)


def _text(world: ClusterWorld) -> str:
    return json.dumps([*world.scene.state, *world.scene.events, *world.scene.changes])


def test_at_least_sixty_kinds_are_declared_with_kinds_of_the_case_format() -> None:
    assert len(CLUSTER_FAULTS) >= 60
    for fault in nonempty(CLUSTER_FAULTS.values()):
        assert {fault.answer, *fault.also} <= set(KINDS), fault.kind
        assert fault.source, fault.kind


@pytest.mark.parametrize("kind", CLUSTER_FAULTS)
def test_the_key_of_a_cause_names_what_exists(kind: str) -> None:
    for seed in SEEDS:
        world = _world(kind, "cause", seed)
        key, state = world.key, world.scene.state
        assert key["verdict"] == "cause_found"
        assert key["root_cause_service"] in {m["metadata"]["name"] for m in state}
        assert key["kind"] in key["acceptable_kinds"]
        assert key["acceptable_entities"]
        missing = [entity.name for entity in world.entities if entity not in state]
        text = _text(world)
        # What is missing is at least referred to by what is there.
        assert [name for name in missing if json.dumps(name)[1:-1] not in text] == []
        if world.scene.keeps_changes:
            known = {change["id"] for change in world.scene.changes}
            assert key["culprit"] in known | {"none"}


@pytest.mark.parametrize("kind", CLUSTER_FAULTS)
def test_a_neighbour_is_blameless_and_the_cause_lies_elsewhere(kind: str) -> None:
    for seed in SEEDS:
        world = _world(kind, "neighbour", seed)
        key = world.key
        assert key["must_not_blame"], "nothing that could be blamed wrongly"
        assert not set(key["must_not_blame"]) & set(key["acceptable_services"])
        assert key["fault_type"] != kind
        calls = world.scene.base.world.calls
        assert not {c.callee for c in calls} & set(key["must_not_blame"])


@pytest.mark.parametrize("kind", CLUSTER_FAULTS)
def test_a_healthy_world_has_nothing_wrong(kind: str) -> None:
    for seed in SEEDS:
        world = _world(kind, "healthy", seed)
        assert world.key["verdict"] == "healthy"
        assert not [e for e in world.scene.events if e["type"] != "Normal"]
        _check_backends(world)
        _check_references(world)
        _check_effects(world)


def _check_backends(world: ClusterWorld) -> None:
    for service in world.scene.state.of_kind("Service"):
        if service["spec"].get("selector"):
            assert ready_backends(world.scene, service), service["metadata"]["name"]
            selected = selected_pods(world.scene, service)
            for port in service["spec"]["ports"]:
                assert all(resolve_port(p, port["targetPort"]) is not None for p in nonempty(selected))
    for workload in (*world.scene.state.of_kind("Deployment"), *world.scene.state.of_kind("StatefulSet")):
        assert workload["status"].get("readyReplicas", 0) == workload["spec"]["replicas"]


def _check_references(world: ClusterWorld) -> None:
    assert not dangling_references(world)
    for quota in world.scene.state.of_kind("ResourceQuota"):
        used = used_quota(world.scene, quota)
        assert all(_amount(used[name]) <= _amount(quota["spec"]["hard"][name]) for name in nonempty(used))


def _amount(quantity: str) -> float:
    for unit, factor in (("Gi", 1024.0), ("Mi", 1.0), ("m", 0.001)):
        if quantity.endswith(unit):
            return float(quantity.removesuffix(unit)) * factor
    return float(quantity)


def _check_effects(world: ClusterWorld) -> None:
    base = world.scene.base
    edges = [f"{c.caller}>{c.callee}" for c in base.world.calls]
    for target in (*edges, *(s.name for s in base.world.services)):
        for quantity in ("cut", "fail", "self_ms", "capacity_lost", "rps"):
            assert base.effects.at(target, quantity, base.timing.end) == 0, (target, quantity)


def dangling_references(world: ClusterWorld) -> list[EntityRef]:
    """What pods of live revisions refer to and the cluster does not have."""
    missing = []
    for pod in world.scene.state.of_kind("Pod"):
        namespace = pod["metadata"]["namespace"]
        missing += [ref for ref in _references(pod, namespace) if ref not in world.scene.state]
    return missing


def _references(pod: Manifest, namespace: str) -> list[EntityRef]:
    spec = pod["spec"]
    found = [EntityRef("Secret", namespace, s["name"]) for s in spec.get("imagePullSecrets", ())]
    if "serviceAccountName" in spec:
        found.append(EntityRef("ServiceAccount", namespace, spec["serviceAccountName"]))
    for volume in spec.get("volumes", ()):
        if "configMap" in volume:
            found.append(EntityRef("ConfigMap", namespace, volume["configMap"]["name"]))
        if "persistentVolumeClaim" in volume:
            found.append(
                EntityRef("PersistentVolumeClaim", namespace, volume["persistentVolumeClaim"]["claimName"])
            )
    for variable in (v for c in spec["containers"] for v in c.get("env", ())):
        source = variable.get("valueFrom", {})
        if "secretKeyRef" in source:
            found.append(EntityRef("Secret", namespace, source["secretKeyRef"]["name"]))
        if "configMapKeyRef" in source:
            found.append(EntityRef("ConfigMap", namespace, source["configMapKeyRef"]["name"]))
    return found


# Faults after which the Service of the target has no backend that answers.
_NO_BACKEND = (
    "service_selector",
    "service_target_port",
    "service_port_name",
    "probe_readiness",
    "scaled_to_zero",
)


@pytest.mark.parametrize("kind", _NO_BACKEND)
def test_a_service_said_to_have_no_backend_has_none(kind: str) -> None:
    broken = 0
    for seed in range(4):
        world = _world(kind, "cause", seed)
        service = world.scene.service(world.oddity)
        broken += not ready_backends(world.scene, service)
    # A roll-out of a probe may be stuck half-way.
    assert broken == 4 if kind != "probe_readiness" else broken >= 2


_DANGLING = {
    "config_map_missing": "ConfigMap",
    "secret_missing": "Secret",
    "image_unauthorized": "Secret",
    "claim_missing": "PersistentVolumeClaim",
}


@pytest.mark.parametrize(("kind", "missing"), _DANGLING.items())
def test_a_reference_said_to_lead_nowhere_does(kind: str, missing: str) -> None:
    assert missing in {ref.kind for ref in dangling_references(_world(kind, "cause"))}


@pytest.mark.parametrize("kind", [k for k, f in CLUSTER_FAULTS.items() if not f.alert])
def test_the_alert_of_a_cause_is_true(kind: str) -> None:
    """The service that it names fails more, takes longer, or hears nothing any more."""
    world = _world(kind, "cause")
    base, service = world.scene.base, str(world.alert.service)
    after = compute_levels(base.world, base.effects, base.timing.onset + 400)[service]
    before = base.rest[service]
    fails = after.fail_share > 5 * before.fail_share
    assert fails or after.latency_ms > 1.15 * before.latency_ms or after.rps < 0.2 * before.rps


@pytest.mark.parametrize("role", WORLD_ROLES)
@pytest.mark.parametrize("kind", WRITTEN)
def test_a_written_world_loads_without_warnings_and_is_repeatable(
    tmp_path: Path, kind: str, role: str
) -> None:
    one, two = tmp_path / "a" / "case", tmp_path / "b" / "case"
    assert generate_world(kind, role, 3, one) == generate_world(kind, role, 3, two)
    assert _bytes(one) == _bytes(two)
    folder = CaseSource.open(one)
    recording = folder.recording()
    assert folder.warnings == ()
    assert recording.objects
    assert recording.logs
    text = b"".join(_bytes(one).values()).decode()
    assert not [word for word in (*KEY_WORDS, kind) if word in text]


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_logs_and_metrics_of_what_does_not_run_stop(tmp_path: Path) -> None:
    key = generate_world("scaled_to_zero", "cause", 1, tmp_path / "case")
    recording = CaseSource.open(tmp_path / "case").recording()
    assert recording.metrics
    own = [s for s in recording.metrics if s.service == key["root_cause_service"]]
    others = [s for s in recording.metrics if s.service != key["root_cause_service"]]
    assert max(_last(s) for s in own) < max(_last(s) for s in others) - 300


def _last(series: Any) -> float:
    return float(series.times[-1])


@pytest.mark.parametrize("source", ABLATIONS)
def test_an_ablation_lacks_its_source_and_nothing_else(tmp_path: Path, source: str) -> None:
    generate_world("service_deleted", "cause", 1, tmp_path / "whole")
    generate_world("service_deleted", "cause", 1, tmp_path / "part", without=(source,))
    whole, part = _bytes(tmp_path / "whole"), _bytes(tmp_path / "part")
    gone = set(whole) - set(part)
    assert all(name.startswith(source) for name in nonempty(gone))
    assert all(whole[name] == part[name] for name in nonempty(part) if name != "incident.json")


def test_unknown_kinds_roles_and_sources_are_refused_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose from service_selector, service_target_port"):
        build_world("gremlins", "cause", 1)
    with pytest.raises(ValueError, match="choose from cause, neighbour, healthy"):
        build_world("service_selector", "villain", 1)
    with pytest.raises(ValueError, match="choose from objects, events, traces, logs"):
        generate_world("service_selector", "cause", 1, tmp_path, without=("topology",))


def test_a_set_is_one_that_the_evaluation_loads(tmp_path: Path) -> None:
    keys = generate_world_set(tmp_path, kinds=("scaled_to_zero",), seed=2)
    cases = load_case_set(tmp_path)
    assert {case.id for case in cases} == set(keys)
    assert sorted(case.expected.verdict for case in cases) == ["cause_found", "cause_found", "healthy"]


def test_the_command_writes_worlds(tmp_path: Path, importable: dict[str, str]) -> None:
    command = [sys.executable, "-m", "opsleuth.scenarios", "cluster", str(tmp_path)]
    options = ["--kind", "dns_policy", "--role", "cause", "--without", "traces"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True, env=importable)
    assert "1 worlds" in done.stdout
    assert not list(tmp_path.glob("*/traces*"))

"""Services that reach pods of others, or one pod only; symptoms that the pods' own state explains; derived owners."""

from typing import Any

from cluster_objects import ONSET, deployment, found_by, objects, pod, recorded, service, view, whole
from shop_recordings import CALLS, GOING_DARK, SHOP, find_blamed, make_errors, make_failures

from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.cluster.nodes import find_failing_network_agents, find_wrong_clocks
from opsleuth.analysis.cluster.services import find_broken_services
from opsleuth.analysis.records import LogLine, ServiceChange

OLD: dict[str, Any] = {"metadata": {"creationTimestamp": "2025-01-05T07:29:00Z"}}
NEW: dict[str, Any] = {"metadata": {"creationTimestamp": "2026-01-05T07:29:00Z"}}


def make_second(name: str) -> list[dict[str, Any]]:
    """A younger workload whose pod carries the label of the cart."""
    owner = {"ownerReferences": [{"kind": "Deployment", "name": name}]}
    return [deployment(name, **NEW), pod(name, number=5, labels={"app": "cart"}, metadata=owner)]


def make_cart() -> list[dict[str, Any]]:
    owner = {"ownerReferences": [{"kind": "Deployment", "name": "cart"}]}
    return [service("cart"), deployment("cart", **OLD), pod("cart", metadata=owner)]


def test_service_that_also_selects_a_younger_workload() -> None:
    [found] = found_by(find_broken_services, view(*make_cart(), *make_second("cart-loader")))
    assert (found.service, found.kind, found.latent) == ("cart", "config", True)
    assert "cart-loader" in found.text


def test_canary_beside_the_stable_workload_is_in_order() -> None:
    assert found_by(find_broken_services, view(*make_cart(), *make_second("cart-canary"))) == []


def test_session_affinity_that_was_switched_on() -> None:
    sticky = service("cart", sessionAffinity="ClientIP")
    pods = [pod("cart"), pod("cart", number=2)]
    assert found_by(find_broken_services, view(sticky, *pods)) == []
    sticky["metadata"]["managedFields"] = [{"manager": "kubectl-edit", "time": "2026-01-05T07:29:00Z"}]
    [found] = found_by(find_broken_services, view(sticky, *pods))
    assert (found.kind, found.latent) == ("traffic", True)


def test_workload_that_was_not_recorded_is_derived_from_its_pods() -> None:
    owner = {"ownerReferences": [{"kind": "ReplicaSet", "name": "cart-6d5c7f8b4"}]}
    [alone] = objects(pod("cart", labels={"pod-template-hash": "6d5c7f8b4"}, metadata=owner))
    made = Cluster([alone]).workload_of(alone)
    assert made is not None
    assert made.ref == ("Deployment", "store", "cart")


def test_sealed_file_system_is_the_rule_and_no_broken_disk() -> None:
    sealed = {"containers": [{"name": "cart", "securityContext": {"readOnlyRootFilesystem": True}}]}
    lines = make_errors("cart", "open /tmp/cart.pid: Read-only file system")
    metrics = [make_failures("web", 0.1, 40.0), make_failures("cart", 0.1, 90.0)]
    plain = recorded(*SHOP, calls=CALLS, metrics=metrics, logs=lines)
    assert find_blamed(plain)[:2] == ("cart", "disk")
    shop = [d for d in SHOP if d["metadata"]["name"] != "cart"]
    strict = recorded(*shop, deployment("cart", template=sealed), calls=CALLS, metrics=metrics, logs=lines)
    assert find_blamed(strict) == ("cart", "config", "Deployment store/cart")


def test_policy_that_was_made_just_now_is_a_change_of_what_it_selects() -> None:
    meta = {
        "creationTimestamp": "2026-01-05T07:29:00Z",
        "managedFields": [{"manager": "helm", "time": "2026-01-05T07:29:00Z"}],
    }
    policy = whole(
        "PeerAuthentication", "strict", {"selector": {"matchLabels": {"app": "cart"}}}, metadata=meta
    )
    shop = [*(d for d in SHOP if d["metadata"]["name"] != "cart"), deployment("cart", **OLD)]
    refused = make_errors("web", "connect ECONNREFUSED 172.20.0.9:80")
    recording = recorded(*shop, policy, calls=CALLS, metrics=GOING_DARK, logs=refused)
    assert find_blamed(recording) == ("cart", "certificate", "PeerAuthentication store/strict")


def test_flag_is_found_in_the_map_that_holds_it() -> None:
    flags = whole("ConfigMap", "flags", data={"flags.json": '{"cart-new-pricing": {"state": "ENABLED"}}'})
    change = ServiceChange(ONSET - 30.0, "cart", "flag", "flag cart-new-pricing: off to on")
    metrics = [make_failures("web", 0.1, 40.0), make_failures("cart", 0.1, 90.0)]
    lines = make_errors("cart", "cart-new-pricing: invalid state")
    recording = recorded(*SHOP, flags, calls=CALLS, metrics=metrics, logs=lines, changes=[change])
    assert find_blamed(recording) == ("cart", "config", "ConfigMap store/flags")


def test_clock_that_is_far_off_is_its_nodes() -> None:
    node = whole("Node", "node-a", namespace=None)
    lines = [
        LogLine(ONSET, "node-a", f"chronyd[812]: System clock wrong by {off} seconds")
        for off in ("0.002", "-881.3")
    ]
    recording = recorded(node, *SHOP, logs=lines)
    [found] = find_wrong_clocks(recording, view(node, *SHOP))
    assert (found.entity.name, found.kind, found.figures["seconds"]) == ("node-a", "certificate", -881.3)
    assert "cart" in found.victims


def test_network_agent_that_is_not_ready() -> None:
    node = whole("Node", "node-a", namespace=None)
    agents = [pod("calico-node", ready=False, number=7), pod("calico-node-test", number=8)]
    [found] = found_by(find_failing_network_agents, view(node, *SHOP, *agents))
    assert (found.entity.name, found.kind, found.latent) == ("node-a", "network_loss", True)

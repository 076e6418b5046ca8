"""Mesh rules about who may call whom and how a call is sent."""

from typing import Any

import pytest
from cluster_objects import SHOP, found_by, view, whole

from opsleuth.analysis.cluster.mesh import find_mesh_faults
from opsleuth.analysis.cluster.mesh_access import find_harmful_destinations, find_refused_callers

CALLS = [("web", "cart")]


def make_allow_policy(source: dict[str, Any]) -> dict[str, Any]:
    rules = [{"from": [{"source": source}]}]
    selector = {"matchLabels": {"app": "cart"}}
    return whole("AuthorizationPolicy", "cart-allow", {"selector": selector, "rules": rules})


@pytest.mark.parametrize(
    "source",
    [{"principals": ["cluster.local/ns/store/sa/other"]}, {"namespaces": ["elsewhere"]}],
)
def test_allow_policy_that_does_not_name_the_caller_refuses_it(source: dict[str, Any]) -> None:
    [found] = found_by(find_refused_callers, view(make_allow_policy(source), *SHOP, calls=CALLS))
    assert (found.entity.name, found.service, found.kind, found.latent) == (
        "cart-allow",
        "cart",
        "permission",
        True,
    )
    assert found.victims == ("web",)


@pytest.mark.parametrize(
    "source",
    [
        {"principals": ["cluster.local/ns/store/sa/default"]},
        {"principals": ["*/sa/default"]},
        {"namespaces": ["store"]},
    ],
)
def test_allow_policy_that_names_the_caller_is_in_order(source: dict[str, Any]) -> None:
    assert found_by(find_refused_callers, view(make_allow_policy(source), *SHOP, calls=CALLS)) == []


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        ({"tls": {"mode": "SIMPLE"}}, "certificate"),
        ({"connectionPool": {"tcp": {"maxConnections": 1}}}, "config"),
    ],
)
def test_destination_rule_that_harms_calls(policy: dict[str, Any], kind: str) -> None:
    rule = whole("DestinationRule", "cart", {"host": "cart.store.svc", "trafficPolicy": policy})
    [found] = found_by(find_harmful_destinations, view(rule, *SHOP))
    assert (found.service, found.kind, found.latent) == ("cart", kind, True)


def test_plain_text_towards_mutual_tls() -> None:
    rule = whole("DestinationRule", "cart", {"host": "cart", "trafficPolicy": {"tls": {"mode": "DISABLE"}}})
    strict = whole("PeerAuthentication", "default", {"mtls": {"mode": "STRICT"}})
    assert found_by(find_harmful_destinations, view(rule, *SHOP)) == []
    [found] = found_by(find_harmful_destinations, view(rule, strict, *SHOP))
    assert found.kind == "certificate"


def test_destination_rule_with_ample_limits_is_in_order() -> None:
    policy = {"tls": {"mode": "ISTIO_MUTUAL"}, "connectionPool": {"tcp": {"maxConnections": 1000}}}
    rule = whole("DestinationRule", "cart", {"host": "cart", "trafficPolicy": policy})
    assert found_by(find_harmful_destinations, view(rule, *SHOP)) == []


@pytest.mark.parametrize(
    ("namespace", "selected", "guards"),
    [
        ("store", {}, True),
        ("store", {"app": "cart"}, True),
        ("store", {"app": "other"}, False),
        ("elsewhere", {}, False),
        ("istio-system", {}, True),
        ("istio-system", {"app": "cart"}, True),
        ("istio-system", {"app": "other"}, False),
    ],
)
def test_policy_of_the_root_namespace_is_for_every_namespace(
    namespace: str, selected: dict[str, str], guards: bool
) -> None:
    spec = {"action": "DENY", "rules": [{}], **({"selector": {"matchLabels": selected}} if selected else {})}
    policy = whole("AuthorizationPolicy", "deny", spec, namespace=namespace)
    found = found_by(find_mesh_faults, view(policy, *SHOP, calls=CALLS))
    assert [(d.service, d.kind) for d in found] == ([("cart", "permission")] if guards else [])

"""Who calls whom, read from the callers' own lines where nobody recorded it; and a dump that is all there is."""

from typing import Any

import pytest
from cluster_objects import ONSET, SHOP, deployment, pod, recorded, service, whole

from opsleuth.analysis.cluster.detector import find_cluster_deviations, weigh_latent
from opsleuth.analysis.records import AlertFacts, LogLine, Recording

ASKED = AlertFacts("What went wrong?")
CART = (*SHOP, service("cart", clusterIP="10.96.4.4"))
POLICIES: dict[str, dict[str, Any]] = {
    "NetworkPolicy": {
        "podSelector": {"matchLabels": {"app": "cart"}},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"role": "admin"}}}]}],
    },
    "AuthorizationPolicy": {
        "selector": {"matchLabels": {"app": "cart"}},
        "rules": [{"from": [{"source": {"principals": ["cluster.local/ns/store/sa/other"]}}]}],
    },
}


def recording_of(policy: str, message: str, who: str) -> Recording:
    lines = [LogLine(ONSET + place, who, message, "error") for place in range(5)]
    document = whole(
        policy, "guard", POLICIES[policy], metadata={"creationTimestamp": "2026-01-05T07:28:00Z"}
    )
    return recorded(document, *CART, logs=lines)


@pytest.mark.parametrize("policy", list(POLICIES))
@pytest.mark.parametrize(
    "message",
    [
        "Get http://cart/items: i/o timeout",
        "POST https://cart.store.svc.cluster.local:8443/x: 403 Forbidden",
        "dial tcp 10.96.4.4:80: i/o timeout",
    ],
)
def test_policy_that_cuts_a_call_seen_in_lines_is_found(policy: str, message: str) -> None:
    found = [f for f in find_cluster_deviations(recording_of(policy, message, "web")) if f.service == "cart"]
    assert [f.figures["entity"]["name"] for f in found] == ["guard"]


@pytest.mark.parametrize("policy", list(POLICIES))
@pytest.mark.parametrize(
    ("message", "who"),
    [
        ("Get http://elsewhere/items: i/o timeout", "web"),
        ("Get http://cart/items: i/o timeout", "somebody"),
        ("cart is slow", "web"),
    ],
)
def test_policy_that_cuts_nothing_that_was_seen_is_in_order(policy: str, message: str, who: str) -> None:
    assert find_cluster_deviations(recording_of(policy, message, who)) == []


LATENT = whole(
    "Ingress",
    "front",
    {"rules": [{"http": {"paths": [{"backend": {"service": {"name": "gone", "port": {"number": 80}}}}]}}]},
)
CHOSEN = (
    (deployment("old", replicas=0),),
    (whole("CronJob", "nightly", {"schedule": "0 2 * * *", "suspend": True}),),
)


def accused(recording: Recording) -> set[str]:
    found = weigh_latent(recording, find_cluster_deviations(recording))
    return {f.figures["entity"]["name"] for f in found if f.direction == "cause"}


def test_deviation_counts_where_a_dump_is_all_there_is() -> None:
    assert accused(recorded(LATENT, *CART, alert=ASKED)) == {"front"}


def test_deviation_is_background_of_an_alert_about_another() -> None:
    assert accused(recorded(LATENT, *CART)) == set()


def test_deviation_is_background_of_an_object_that_is_broken_outright() -> None:
    broken = (deployment("cart", ready=0), pod("cart", ready=False, number=2))
    assert "front" not in accused(
        recorded(LATENT, deployment("web"), pod("web"), *broken, service("web", "nobody"), alert=ASKED)
    )


@pytest.mark.parametrize("chosen", CHOSEN)
def test_what_somebody_chose_is_no_fault(chosen: tuple[dict[str, Any], ...]) -> None:
    assert accused(recorded(*chosen, *CART, alert=ASKED)) == set()

"""What lies beneath several services: a server that refuses, the resolver, a node, one of several replicas."""

import pytest
from cluster_objects import ONSET, deployment, pod, recorded, whole
from shop_recordings import (
    CALLS,
    GOING_DARK,
    SHOP,
    TIMES,
    find_blamed,
    make_errors,
    make_failures,
    make_requests,
    make_series,
    rank_recording,
)

from opsleuth.analysis.records import AlertFacts, MetricSeries

NOAUTH = "Cannot reach storage: RedisServerException: NOAUTH Authentication required."
FULL = "RedisServerException: OOM command not allowed when used memory > 'maxmemory'."


@pytest.mark.parametrize(("message", "kind"), [(NOAUTH, "permission"), (FULL, "out_of_memory")])
def test_server_that_refuses_is_blamed_and_not_its_client(message: str, kind: str) -> None:
    redis = [
        deployment("cart-db", template={"containers": [{"name": "db", "image": "valkey/valkey:8"}]}),
        pod("cart-db", number=9),
    ]
    metrics = [make_failures("web", 0.1, 40.0), make_failures("cart", 0.1, 90.0)]
    recording = recorded(*SHOP, *redis, calls=CALLS, metrics=metrics, logs=make_errors("cart", message))
    assert find_blamed(recording) == ("cart-db", kind, "Pod store/cart-db-6d5c7f8b4-x9k2p")


def test_client_that_alone_is_refused_has_stale_credentials() -> None:
    message = 'psycopg.OperationalError: FATAL:  password authentication failed for user "cart"'
    use = {"containers": [{"name": "cart", "envFrom": [{"secretRef": {"name": "cart-login"}}]}]}
    postgres = deployment("cart-db", template={"containers": [{"name": "db", "image": "postgres:17"}]})
    metrics = [make_failures("cart", 0.1, 90.0), make_failures("stock", 0.1, 0.1)]
    recording = recorded(
        deployment("cart", template=use), pod("cart"), postgres, calls=CALLS, metrics=metrics, logs=make_errors("cart", message),
        alert=AlertFacts("cart fails", service="cart", onset=ONSET),
    )  # fmt: skip
    assert find_blamed(recording) == ("cart", "permission", "Secret store/cart-login")


def test_names_that_do_not_resolve_for_several_services_are_one_fault() -> None:
    calls = [*CALLS, ("web", "stock")]
    logs = [
        *make_errors("web", "dial tcp: lookup ads on 10.96.0.10:53: server misbehaving"),
        *make_errors("stock", "getaddrinfo EAI_AGAIN cart-db"),
        *make_errors("cart", "Name or service not known: cart-db"),
    ]
    recording = recorded(
        *SHOP, whole("Deployment", "coredns", namespace="kube-system"), calls=calls, logs=logs
    )
    assert find_blamed(recording)[:2] == ("coredns", "dns")
    assert rank_recording(recording).causes == 1


def test_name_that_alone_does_not_exist_is_its_service_that_is_gone() -> None:
    recording = recorded(
        *SHOP, calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", "Error: getaddrinfo ENOTFOUND cart")
    )
    assert find_blamed(recording) == ("cart", "dns", "Service store/cart")


def test_node_explains_what_its_pods_suffer() -> None:
    lost = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }
    node = whole("Node", "node-z", namespace=None, status={"conditions": [lost]})
    away = [d for d in SHOP if d["metadata"]["name"].startswith("web")]
    there = [deployment("cart"), pod("cart", node="node-z", number=2)]
    recording = recorded(
        *away,
        *there,
        node,
        calls=CALLS,
        metrics=GOING_DARK,
        logs=make_errors("web", "connect EHOSTUNREACH 10.1.0.2:80"),
    )
    assert find_blamed(recording) == ("node-z", "crash", "Node node-z")


def test_replica_that_takes_over_the_requests_of_the_others() -> None:
    shares = [("cart-1", 3.0, 8.0), ("cart-2", 3.0, 0.5), ("cart-3", 3.0, 0.5)]
    replicas = [
        MetricSeries(
            "cart", "requests", "requests/s", TIMES, [now if t >= ONSET else usual for t in TIMES], name
        )
        for name, usual, now in shares
    ]
    slow = [make_series("cart", "latency_p50", 20.0, 900.0, "ms"), make_requests("cart", 9.0, 9.0)]
    recording = recorded(
        *SHOP,
        calls=CALLS,
        metrics=[*slow, *replicas],
        alert=AlertFacts("cart is slow", service="cart", onset=ONSET),
    )
    assert find_blamed(recording)[:2] == ("cart", "traffic")

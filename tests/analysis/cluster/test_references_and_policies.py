"""References that point nowhere, policies that cut paths, and what is used up; each beside what is in order."""

from typing import Any

import pytest
from cluster_objects import SHOP, deployment, found_by, pod, service, told, view, whole

from opsleuth.analysis.cluster.admission import find_admission_trouble
from opsleuth.analysis.cluster.capacity import find_exhausted_capacity
from opsleuth.analysis.cluster.conditions import find_failing_conditions
from opsleuth.analysis.cluster.mesh import find_mesh_faults
from opsleuth.analysis.cluster.naming import find_broken_naming
from opsleuth.analysis.cluster.network_policies import find_cut_paths
from opsleuth.analysis.cluster.quantities import parse_amount
from opsleuth.analysis.cluster.references import find_dangling_references
from opsleuth.analysis.cluster.storage import find_unbound_storage

READS = {
    "containers": [
        {
            "name": "cart",
            "env": [
                {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "cart-config", "key": "mode"}}}
            ],
        }
    ]
}
OTHER = whole("ConfigMap", "kube-root-ca.crt", data={"ca.crt": "x"})


def test_config_map_that_does_not_exist() -> None:
    looked = view(deployment("cart", ready=0, template=READS), pod("cart", ready=False), OTHER)
    [found] = found_by(find_dangling_references, looked)
    assert (found.entity.kind, found.entity.name, found.latent) == ("ConfigMap", "cart-config", False)


def test_key_that_a_config_map_does_not_have() -> None:
    config = whole("ConfigMap", "cart-config", data={"modus": "x"})
    [found] = found_by(find_dangling_references, view(deployment("cart", ready=0, template=READS), config))
    assert "key mode of ConfigMap store/cart-config" in found.text


@pytest.mark.parametrize(
    "documents",
    [
        [whole("ConfigMap", "cart-config", data={"mode": "x"})],
        [],  # no ConfigMap was recorded: that this one is missing says nothing
        [whole("ConfigMap", "other", namespace="elsewhere")],
    ],
)
def test_reference_that_is_met_or_not_known(documents: list[dict[str, Any]]) -> None:
    assert found_by(find_dangling_references, view(deployment("cart", template=READS), *documents)) == []


def test_reference_that_is_optional() -> None:
    source = {"configMapRef": {"name": "extra", "optional": True}}
    template = {"containers": [{"name": "cart", "envFrom": [source]}]}
    assert found_by(find_dangling_references, view(deployment("cart", template=template), OTHER)) == []


def test_secret_known_by_metadata_alone_has_no_missing_keys() -> None:
    source = {"valueFrom": {"secretKeyRef": {"name": "cart-db", "key": "password"}}}
    template = {"containers": [{"name": "cart", "env": [{"name": "P", **source}]}]}
    assert (
        found_by(
            find_dangling_references, view(deployment("cart", template=template), whole("Secret", "cart-db"))
        )
        == []
    )


def test_service_account_that_does_not_exist() -> None:
    looked = view(
        deployment("cart", ready=0, template={"serviceAccountName": "cart"}),
        whole("ServiceAccount", "default"),
    )
    [found] = found_by(find_dangling_references, looked)
    assert found.undo == "kubectl -n store create serviceaccount cart"


def ingress(name: str, port: int, *, older: bool = False) -> dict[str, Any]:
    backend = (
        {"serviceName": name, "servicePort": port}
        if older
        else {"service": {"name": name, "port": {"number": port}}}
    )
    return whole("Ingress", "front", {"rules": [{"http": {"paths": [{"path": "/", "backend": backend}]}}]})


@pytest.mark.parametrize("older", [False, True])
def test_ingress_to_a_service_or_port_that_is_not_there(older: bool) -> None:
    for name, port, words in (("crt", 80, "does not exist"), ("cart", 81, "no such port")):
        [found] = found_by(find_dangling_references, view(ingress(name, port, older=older), service("cart")))
        assert words in found.text
    assert found_by(find_dangling_references, view(ingress("cart", 80, older=older), service("cart"))) == []


def test_binding_to_a_role_that_does_not_exist() -> None:
    binding = whole(
        "RoleBinding",
        "cart",
        roleRef={"kind": "Role", "name": "reader"},
        subjects=[{"kind": "ServiceAccount", "name": "cart"}],
    )
    [found] = found_by(find_dangling_references, view(binding, whole("Role", "writer")))
    assert (found.entity.name, found.service, found.kind) == ("reader", "cart", "permission")


def policy(selects: str, **spec: Any) -> dict[str, Any]:
    meta = {"creationTimestamp": "2026-01-05T07:29:00Z"}
    return whole(
        "NetworkPolicy", "limits", {"podSelector": {"matchLabels": {"app": selects}}, **spec}, metadata=meta
    )


def test_policy_that_lets_nobody_in() -> None:
    looked = view(policy("cart", policyTypes=["Ingress"]), *SHOP, calls=[("web", "cart")])
    [found] = found_by(find_cut_paths, looked)
    assert (found.entity.kind, found.service, found.kind, found.latent) == (
        "NetworkPolicy",
        "cart",
        "network_loss",
        False,
    )
    assert "web to cart" in found.text


def test_policy_that_lets_the_caller_in() -> None:
    allowed = policy("cart", ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}]}])
    assert found_by(find_cut_paths, view(allowed, *SHOP, calls=[("web", "cart")])) == []


def test_policies_are_a_union_of_what_they_allow() -> None:
    allowing = policy("cart", ingress=[{}])
    allowing["metadata"]["name"] = "open"
    looked = view(policy("cart", policyTypes=["Ingress"]), allowing, *SHOP, calls=[("web", "cart")])
    assert found_by(find_cut_paths, looked) == []


def test_policy_of_the_caller_that_lets_nothing_out() -> None:
    closed = policy(
        "web", policyTypes=["Egress"], egress=[{"to": [{"podSelector": {"matchLabels": {"app": "db"}}}]}]
    )
    [found] = found_by(find_cut_paths, view(closed, *SHOP, calls=[("web", "cart")]))
    assert found.service == "web"


def test_policy_that_keeps_pods_from_asking_for_names() -> None:
    closed = policy("web", policyTypes=["Egress"], egress=[{"ports": [{"port": 8080}]}])
    [found] = found_by(find_cut_paths, view(closed, *SHOP))
    assert (found.kind, found.latent) == ("dns", True)


@pytest.mark.parametrize(("port", "cut"), [(8080, False), ("http", False), (9090, True)])
def test_policy_that_opens_a_port(port: object, cut: bool) -> None:
    listening = {"containers": [{"name": "cart", "ports": [{"containerPort": 8080, "name": "http"}]}]}
    rule = {"from": [{"podSelector": {}}], "ports": [{"port": port}]}
    shop = [*SHOP[:3], pod("cart", number=2, spec=listening)]
    found = found_by(find_cut_paths, view(policy("cart", ingress=[rule]), *shop, calls=[("web", "cart")]))
    assert bool(found) == cut


@pytest.mark.parametrize(("left_out", "blocked"), [(["10.0.0.0/8"], True), ([], False)])
def test_policy_whose_block_leaves_the_resolver_out(left_out: list[str], blocked: bool) -> None:
    block = {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": left_out}}]}
    resolver = pod("coredns", number=9, namespace="kube-system")
    found = found_by(
        find_cut_paths, view(policy("web", policyTypes=["Egress"], egress=[block]), *SHOP, resolver)
    )
    assert bool(found) == blocked


def test_quota_that_is_used_up_while_pods_are_missing() -> None:
    status = {"hard": {"limits.memory": "2Gi"}, "used": {"limits.memory": "2048Mi"}}
    [found] = found_by(
        find_exhausted_capacity,
        view(whole("ResourceQuota", "compute", status=status), deployment("cart", replicas=2, ready=1)),
    )
    assert (found.entity.name, found.service) == ("compute", "cart")


def test_quota_that_is_used_up_while_all_pods_run() -> None:
    status = {"hard": {"pods": "1"}, "used": {"pods": "1"}}
    assert (
        found_by(
            find_exhausted_capacity,
            view(whole("ResourceQuota", "compute", status=status), deployment("cart")),
        )
        == []
    )


def test_pod_that_made_way_for_another() -> None:
    event = told("Pod/cart-6d5c7f8b4-x1k2p", "Preempted", "Preempted by pod 1234 on node node-a")
    [found] = found_by(find_exhausted_capacity, view(deployment("cart"), pod("cart"), events=[event]))
    assert (found.entity.name, found.kind) == ("cart", "scheduling")


@pytest.mark.parametrize(
    ("text", "number"),
    [("500m", 0.5), ("2Gi", 2.0**31), ("1e3", 1000.0), (3, 3.0), ("lots", None), (None, None)],
)
def test_quantities(text: object, number: float | None) -> None:
    assert parse_amount(text) == number


def test_webhook_that_nobody_answers() -> None:
    hook = {
        "name": "check.example.com",
        "clientConfig": {"service": {"name": "checker", "namespace": "store"}},
    }
    configuration = whole("ValidatingWebhookConfiguration", "checker", namespace=None, webhooks=[hook])
    looked = view(configuration, service("checker"), pod("checker", ready=False))
    [found] = found_by(find_admission_trouble, looked)
    assert "has no ready pod" in found.text
    assert found_by(find_admission_trouble, view(configuration, service("checker"), pod("checker"))) == []


def test_webhook_that_refuses_pods_is_named_by_its_configuration() -> None:
    hook = {"name": "check.example.com", "failurePolicy": "Ignore"}
    configuration = whole("ValidatingWebhookConfiguration", "checker", namespace=None, webhooks=[hook])
    event = told(
        "ReplicaSet/cart-6d5c7f8b4",
        "FailedCreate",
        'admission webhook "check.example.com" denied the request: no team label',
    )
    [found] = found_by(find_admission_trouble, view(configuration, events=[event]))
    assert (found.entity.name, found.service) == ("checker", "cart")


def test_claim_whose_class_does_not_exist() -> None:
    claim = whole("PersistentVolumeClaim", "data", {"storageClassName": "fast"}, status={"phase": "Pending"})
    mounts = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    slow = whole("StorageClass", "standard", namespace=None)
    [found] = found_by(find_unbound_storage, view(claim, slow, deployment("db", ready=0, template=mounts)))
    assert (found.kind, found.service) == ("config", "db")


def test_claim_that_waits_for_its_first_pod_is_in_order() -> None:
    claim = whole("PersistentVolumeClaim", "data", {"storageClassName": "fast"}, status={"phase": "Pending"})
    late = whole("StorageClass", "fast", namespace=None, volumeBindingMode="WaitForFirstConsumer")
    assert found_by(find_unbound_storage, view(claim, late)) == []


@pytest.mark.parametrize(
    ("line", "deviates"),
    [
        ("template ANY ANY cluster.local { rcode NXDOMAIN }", True),
        ("kubernetes cluster.local in-addr.arpa", False),
    ],
)
def test_configuration_of_the_resolver(line: str, deviates: bool) -> None:
    text = f".:53 {{\n  errors\n  kubernetes cluster.local\n  {line}\n}}"
    config = whole("ConfigMap", "coredns", namespace="kube-system", data={"Corefile": text})
    assert bool(found_by(find_broken_naming, view(config))) == deviates


def test_pods_that_ask_a_resolver_outside() -> None:
    template = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.1"]}}
    [found] = found_by(find_broken_naming, view(deployment("cart", template=template)))
    assert (found.kind, found.latent) == ("dns", True)


@pytest.mark.parametrize(
    ("server", "deviates"), [("10.43.0.10", False), ("169.254.20.10", False), ("8.8.8.8", True)]
)
def test_pods_that_name_the_resolver_of_the_cluster_themselves(server: str, deviates: bool) -> None:
    resolver = whole("Service", "kube-dns", {"clusterIP": "10.43.0.10"}, namespace="kube-system")
    template = {"dnsPolicy": "None", "dnsConfig": {"nameservers": [server]}}
    found = found_by(find_broken_naming, view(resolver, deployment("cart", template=template)))
    assert [deviation.kind for deviation in found] == (["dns"] if deviates else [])


def test_strict_mutual_tls_towards_a_caller_without_a_proxy() -> None:
    strict = whole("PeerAuthentication", "default", {"mtls": {"mode": "STRICT"}})
    proxied = pod("cart", number=2, spec={"containers": [{"name": "cart"}, {"name": "istio-proxy"}]})
    looked = view(strict, deployment("web"), pod("web"), deployment("cart"), proxied, calls=[("web", "cart")])
    [found] = found_by(find_mesh_faults, looked)
    assert (found.service, found.kind) == ("cart", "certificate")


def test_fault_that_a_route_injects() -> None:
    fault = {"abort": {"httpStatus": 500, "percentage": {"value": 30}}}
    route = whole("VirtualService", "cart", {"hosts": ["cart"], "http": [{"fault": fault}]})
    [found] = found_by(find_mesh_faults, view(route))
    assert "30 %" in found.text


def test_condition_of_a_controller_that_nothing_else_reads() -> None:
    row = {
        "type": "Ready",
        "status": "False",
        "reason": "SecretSyncedError",
        "message": "could not get secret data from provider",
    }
    [found] = found_by(
        find_failing_conditions, view(whole("ExternalSecret", "cart-db", status={"conditions": [row]}))
    )
    assert "SecretSyncedError" in found.text

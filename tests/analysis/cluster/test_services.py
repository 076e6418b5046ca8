"""Services whose traffic does not arrive, beside ones that only look like it."""

from cluster_objects import deployment, found_by, pod, service, view, whole

from opsleuth.analysis.cluster.services import find_broken_services


def test_selector_that_no_pod_has_names_the_labels_of_the_pods_that_are_meant() -> None:
    [found] = found_by(
        find_broken_services, view(service("cart", "cart-v2"), deployment("cart"), pod("cart"))
    )
    assert (found.entity.kind, found.entity.name, found.kind, found.latent) == (
        "Service",
        "cart",
        "config",
        False,
    )
    assert "app=cart-v2" in found.text
    assert "app=cart" in found.undo


def test_selector_that_matches_is_in_order() -> None:
    assert found_by(find_broken_services, view(service("cart"), deployment("cart"), pod("cart"))) == []


def test_service_of_a_scaled_down_workload_is_not_at_fault_itself() -> None:
    looked = view(service("cart"), deployment("cart", replicas=0), pod("web"))
    assert found_by(find_broken_services, looked) == []


def test_service_without_a_workload_of_its_name_counts_only_with_other_trouble() -> None:
    [found] = found_by(find_broken_services, view(service("archive"), pod("web")))
    assert found.latent


def test_endpoints_that_are_empty_although_pods_are_ready() -> None:
    endpoints = whole("Endpoints", "cart", subsets=[])
    [found] = found_by(find_broken_services, view(service("cart"), endpoints, pod("cart")))
    assert "no endpoints" in found.text


def test_endpoint_slices_are_read_in_the_place_of_endpoints() -> None:
    labels = {"labels": {"kubernetes.io/service-name": "cart"}}
    slices = whole("EndpointSlice", "cart-x", metadata=labels, endpoints=[{"addresses": ["10.1.0.1"]}])
    assert found_by(find_broken_services, view(service("cart"), slices, pod("cart"))) == []


def ported(name: str | None = "http") -> dict[str, object]:
    port = {"containerPort": 8080, **({"name": name} if name else {})}
    return {"containers": [{"name": "cart", "ports": [port]}]}


def test_target_port_that_no_container_declares() -> None:
    wrong = service("cart", ports=[{"port": 80, "targetPort": 9999}])
    [found] = found_by(find_broken_services, view(wrong, pod("cart", spec=ported())))
    assert found.latent  # a program may listen on a port that it does not declare
    assert "9999" in found.text


def test_port_name_that_no_container_has_is_certain() -> None:
    wrong = service("cart", ports=[{"port": 80, "targetPort": "grpc"}])
    [found] = found_by(find_broken_services, view(wrong, pod("cart", spec=ported())))
    assert not found.latent


def test_ports_say_nothing_where_none_is_declared() -> None:
    wrong = service("cart", ports=[{"port": 80, "targetPort": 9999}])
    assert found_by(find_broken_services, view(wrong, pod("cart"))) == []


def test_local_traffic_policy_leaves_callers_on_other_nodes_without_an_answer() -> None:
    local = service("cart", internalTrafficPolicy="Local")
    looked = view(local, pod("cart", node="node-a"), pod("web", node="node-b", number=2))
    [found] = found_by(find_broken_services, looked)
    assert (found.kind, found.latent) == ("network_loss", True)
    assert "Cluster" in found.undo


def test_local_traffic_policy_of_a_daemon_set_is_in_order() -> None:
    local = service("agent", internalTrafficPolicy="Local")
    agent = deployment("agent", kind="DaemonSet")
    looked = view(local, agent, pod("agent", node="node-a"), pod("web", node="node-b", number=2))
    assert found_by(find_broken_services, looked) == []


def test_external_name_of_a_service_that_is_not_there() -> None:
    alias = whole("Service", "db", {"type": "ExternalName", "externalName": "pg.store.svc.cluster.local"})
    [found] = found_by(find_broken_services, view(alias, service("cart"), pod("cart")))
    assert found.entity.name == "db"

"""Objects as tools print and record them: lists, YAML, descriptions, parts."""

import json

from cluster_objects import READ_AT, deployment, pod, recorded, service, states
from shop_recordings import DESCRIBED_SERVICE

from opsleuth.analysis.cluster.documents import cluster_objects
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.records import ObjectState


def test_printed_lists_hold_each_of_their_objects() -> None:
    document = {"apiVersion": "v1", "kind": "List", "items": [service("cart"), pod("cart")]}
    as_json = ObjectState(READ_AT, "kubectl", "all", json.dumps(document))
    as_yaml = ObjectState(
        READ_AT,
        "kubectl",
        "service",
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: cart\n  namespace: store\n  creationTimestamp: 2026-01-01T00:00:00Z\n",
    )
    assert [o.ref.kind for o in cluster_objects([as_json])] == ["Service", "Pod"]
    [read] = cluster_objects([as_yaml])
    assert (read.ref, read.created) == (("Service", "store", "cart"), 1_767_225_600.0)


def test_addresses_have_the_names_of_what_is_behind_them() -> None:
    cluster = Cluster.of(recorded(service("cart", clusterIP="172.20.0.9"), deployment("cart"), pod("cart")))
    assert cluster.names_of_ips() == {"10.1.0.1": "cart", "172.20.0.9": "cart"}


def test_rows_that_hold_parts_only_are_read_as_far_as_they_go() -> None:
    [found] = cluster_objects([ObjectState(READ_AT, "Pod", "cart-1", {"phase": "Running"}, "store")])
    assert (found.ref.namespace, found.spec, found.labels) == ("store", {}, {})
    assert states(service("cart"))[0].extra == {"metadata": service("cart")["metadata"]}


def test_service_as_kubectl_describes_it() -> None:
    found = {
        o.ref.kind: o for o in cluster_objects([ObjectState(READ_AT, "Service", "cart", DESCRIBED_SERVICE)])
    }
    assert found["Service"].spec["selector"] == {"app": "cart-v2"}
    assert found["Service"].labels == {"app": "cart", "team": "shop"}
    assert found["Endpoints"].body == {"subsets": []}

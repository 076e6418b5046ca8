"""Changes of objects: whose they are, what the cluster remembers of them, and when they are blamed."""

import pytest
from cluster_objects import ONSET, READ_AT, recorded, whole
from shop_recordings import (
    CALLS,
    GOING_DARK,
    REFUSED,
    SHOP,
    find_blamed,
    make_errors,
    make_failures,
    rank_recording,
)

from opsleuth.analysis.cluster import memory
from opsleuth.analysis.cluster.entities import object_behind
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.records import PlatformEvent, Recording, ServiceChange, Suspect


def test_change_of_a_policy_that_its_service_suffers_from_is_the_object() -> None:
    change = ServiceChange(
        ONSET - 20.0, "cart", "config", "PeerAuthentication store/default changed: mode PERMISSIVE -> STRICT"
    )
    recording = recorded(
        *SHOP, calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED), changes=[change]
    )
    assert find_blamed(recording) == ("cart", "certificate", "PeerAuthentication store/default")


def test_flag_that_names_its_service_by_the_head_of_its_key() -> None:
    change = ServiceChange(
        ONSET - 10.0, "flags", "flag", "ConfigMap store/flags changed: cartFailure off -> on"
    )
    metrics = [make_failures("web", 0.1, 40.0), make_failures("cart", 0.1, 90.0)]
    recording = recorded(
        *SHOP, calls=CALLS, metrics=metrics, logs=make_errors("cart", "Invalid token"), changes=[change]
    )
    assert find_blamed(recording) == ("cart", "config", "ConfigMap store/flags")


def test_change_of_a_neighbours_object_is_not_blamed() -> None:
    change = ServiceChange(
        ONSET - 20.0, "ads", "config", "Service store/ads changed: sessionAffinity None -> ClientIP"
    )
    recording = recorded(
        *SHOP, calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED), changes=[change]
    )
    assert find_blamed(recording)[0] == "cart"
    assert "ads" not in {s.service for s in rank_recording(recording).suspects}


def make_written(kind: str, name: str, manager: str, time: str) -> dict[str, object]:
    meta = {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": manager, "operation": "Update", "time": time}],
    }
    return whole(kind, name, metadata=meta)


def list_remembered(recording: Recording) -> list[ServiceChange]:
    return memory.remembered_changes(recording, Cluster.of(recording))


def test_last_write_of_an_object_is_a_change_with_its_author() -> None:
    [change] = list_remembered(
        recorded(make_written("Service", "cart", "kubectl-edit", "2026-01-05T07:29:40Z"))
    )
    assert (change.service, change.kind, change.author) == ("cart", "config", "kubectl-edit")
    assert memory.object_of_change(change) == ("Service", "store", "cart")


@pytest.mark.parametrize(
    ("manager", "time"),
    [("kube-controller-manager", "2026-01-05T07:29:40Z"), ("kubectl-edit", "2025-12-01T00:00:00Z")],
)
def test_writes_of_the_machinery_and_old_ones_are_no_news(manager: str, time: str) -> None:
    assert list_remembered(recorded(make_written("Service", "cart", manager, time))) == []


def test_change_that_a_record_holds_is_not_told_twice() -> None:
    known = ServiceChange(READ_AT - 1825.0, "cart", "config", "cart was changed")
    assert (
        list_remembered(
            recorded(make_written("Service", "cart", "helm", "2026-01-05T07:29:40Z"), changes=[known])
        )
        == []
    )


def test_helm_release_and_scaling_are_remembered() -> None:
    labels = {
        "owner": "helm",
        "name": "shop",
        "version": "7",
        "status": "deployed",
        "modifiedAt": str(int(ONSET - 60)),
    }
    secret = whole("Secret", "sh.helm.release.v1.shop.v7", metadata={"labels": labels})
    down = PlatformEvent(
        ONSET,
        "kubernetes",
        "Deployment/cart",
        "Normal",
        "ScalingReplicaSet",
        "Scaled down replica set cart-x from 2 to 0",
    )
    found = list_remembered(recorded(secret, events=[down]))
    assert [(c.service, c.kind) for c in found] == [("shop", "deploy"), ("cart", "scale")]


@pytest.mark.parametrize(
    ("changes", "undo"),
    [
        ([], ""),
        (
            [ServiceChange(ONSET - 60.0, "cart", "deploy", "cart 2.0")],
            "kubectl -n store rollout undo deployment cart",
        ),
    ],
)
def test_rollout_is_undone_only_where_a_change_is_on_record(changes: list[ServiceChange], undo: str) -> None:
    recording = recorded(*SHOP, changes=changes)
    suspect = Suspect("cart", "crash", 0.9, [], None, None)
    found = object_behind(suspect, recording, Cluster.of(recording))
    assert found is not None
    assert (str(found.ref), found.undo) == ("Deployment store/cart", undo)

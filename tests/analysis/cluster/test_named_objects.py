"""Objects that messages of the platform name as the reason, whether or not they were recorded."""

import pytest
from cluster_objects import ONSET, deployment, pod, recorded, whole
from shop_recordings import CALLS, GOING_DARK, REFUSED, SHOP, find_blamed, make_errors, make_failures

from opsleuth.analysis.cluster.deviation import ClusterView
from opsleuth.analysis.cluster.named_objects import find_named_objects
from opsleuth.analysis.object_owners import collect_object_owners
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import PlatformEvent


def test_account_that_lacks_a_right_names_its_role() -> None:
    message = 'configmaps "settings" is forbidden: User "system:serviceaccount:store:cart" cannot get resource "configmaps" in API group ""'
    binding = whole(
        "RoleBinding",
        "cart",
        roleRef={"kind": "Role", "name": "cart-reader"},
        subjects=[{"kind": "ServiceAccount", "name": "cart"}],
    )
    recording = recorded(
        *SHOP,
        binding,
        calls=CALLS,
        metrics=[make_failures("cart", 0.1, 90.0)],
        logs=make_errors("cart", message),
    )
    assert find_blamed(recording) == ("cart", "permission", "Role store/cart-reader")


@pytest.mark.parametrize(
    ("reason", "message", "kind", "entity"),
    [
        ("Failed", 'Error: configmap "cart-config" not found', "config", "ConfigMap store/cart-config"),
        (
            "Failed",
            "Error: couldn't find key token in Secret store/cart-api",
            "config",
            "Secret store/cart-api",
        ),
        (
            "FailedScheduling",
            'persistentvolumeclaim "cart-data" not found. preemption: 0/3 nodes are available.',
            "config",
            "PersistentVolumeClaim store/cart-data",
        ),
        (
            "FailedCreate",
            'pods "cart-" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4',
            "quota",
            "ResourceQuota store/compute",
        ),
        (
            "FailedCreate",
            'pods "cart-" is forbidden: error looking up service account store/cart-runner: serviceaccount "cart-runner" not found',
            "config",
            "ServiceAccount store/cart-runner",
        ),
    ],
)
def test_object_that_a_message_of_the_platform_names(
    reason: str, message: str, kind: str, entity: str
) -> None:
    waiting = pod("cart", ready=False, number=2, status={"phase": "Pending"})
    event = PlatformEvent(
        ONSET, "kubernetes", f"Pod/{waiting['metadata']['name']}", "Warning", reason, message, extra={"namespace": "store"}
    )  # fmt: skip
    shop = [d for d in SHOP if not d["metadata"]["name"].startswith("cart")]
    recording = recorded(
        *shop, deployment("cart", ready=0), waiting, calls=CALLS, metrics=GOING_DARK, logs=make_errors("web", REFUSED), events=[event]
    )  # fmt: skip
    assert find_blamed(recording) == ("cart", kind, entity)


def test_object_known_by_kind_alone_is_reported_without_a_name() -> None:
    message = "pods is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi"
    event = PlatformEvent(
        ONSET, "kubernetes", "ReplicaSet/report-6d5c7f8b4", "Warning", "FailedCreate", message, extra={"namespace": "store"}
    )  # fmt: skip
    found = [
        f for f in run_detectors(recorded(*SHOP, calls=CALLS, events=[event])) if f.detector == "cluster"
    ]
    assert [f.figures["entity"] for f in found] == [
        {"kind": "LimitRange", "namespace": "store", "name": None}
    ]
    assert rank_findings(recorded(*SHOP, calls=CALLS), found).causes == 0


@pytest.mark.parametrize(
    ("message", "undo"),
    [
        ('pods "cart-7d" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', "kubectl edit namespace store"),
        ('pods "cart-7d" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4', "kubectl -n store edit resourcequota compute"),
        ('Error: configmap "cart-config" not found', ""),
    ],
)  # fmt: skip
def test_what_forbids_by_a_label_or_a_figure_is_corrected_there(message: str, undo: str) -> None:
    event = PlatformEvent(
        ONSET, "kubernetes", "ReplicaSet/cart-7d", "Warning", "FailedCreate", message, extra={"namespace": "store"}
    )  # fmt: skip
    recording = recorded(deployment("cart"), events=[event])
    found = list(find_named_objects(ClusterView.of(recording), collect_object_owners(recording)))
    assert [deviation.undo for deviation in found] == [undo]

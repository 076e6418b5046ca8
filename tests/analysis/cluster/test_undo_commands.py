"""The command that would undo a fault, for faults whose object is missing, held back or full."""

from dataclasses import replace
from typing import Any

import pytest
from cluster_objects import FAILING, ONSET, WINDOW, deployment, found_by, pod, service, states, view, whole

from opsleuth.analysis.cluster.deletion import find_undeleted_objects
from opsleuth.analysis.cluster.entities import object_behind
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.cluster.references import find_dangling_references
from opsleuth.analysis.records import Finding, Recording, ServiceChange, Suspect

OTHER = {
    "ConfigMap": whole("ConfigMap", "other", data={"a": "b"}),
    "Secret": whole("Secret", "other"),
    "PersistentVolumeClaim": whole("PersistentVolumeClaim", "other"),
    "PriorityClass": whole("PriorityClass", "other", namespace=None),
}
TEMPLATES: dict[str, dict[str, Any]] = {
    "ConfigMap": {"volumes": [{"name": "c", "configMap": {"name": "gone"}}]},
    "Secret": {"volumes": [{"name": "c", "secret": {"secretName": "gone"}}]},
    "PersistentVolumeClaim": {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "gone"}}]},
    "PriorityClass": {"priorityClassName": "gone"},
}


@pytest.mark.parametrize("kind", OTHER)
def test_reference_to_what_is_missing_is_corrected_where_it_stands(kind: str) -> None:
    made = deployment("web", ready=0, template=TEMPLATES[kind])
    [found] = found_by(find_dangling_references, view(made, OTHER[kind]))
    assert (found.entity.kind, found.undo) == (kind, "kubectl -n store edit deployment web")


def test_account_that_is_missing_is_created() -> None:
    made = deployment("web", ready=0, template={"serviceAccountName": "gone"})
    [found] = found_by(find_dangling_references, view(made, whole("ServiceAccount", "other")))
    assert found.undo == "kubectl -n store create serviceaccount gone"


@pytest.mark.parametrize("kind", ["PersistentVolumeClaim", "Namespace", "Certificate"])
def test_finalizer_that_holds_an_object_is_removed_in_it(kind: str) -> None:
    metadata = {"deletionTimestamp": "2026-01-05T07:00:00Z", "finalizers": ["example.com/hold"]}
    [found] = found_by(find_undeleted_objects, view(whole(kind, "data", metadata=metadata)))
    assert found.undo == f"kubectl -n store edit {kind.lower()} data"


@pytest.mark.parametrize(
    ("kind", "claims", "undo"),
    [
        ("storage_full", ["data-db-0"], "kubectl -n store edit persistentvolumeclaim data-db-0"),
        ("storage_full", ["data-db-0", "wal-db-0"], ""),
        ("storage_full", [], ""),
        ("crash", ["data-db-0"], ""),
    ],
)
def test_full_claim_is_made_larger_where_it_is_the_only_one(kind: str, claims: list[str], undo: str) -> None:
    owner = {"ownerReferences": [{"kind": "StatefulSet", "name": "db"}]}
    volumes = [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]
    rows = states(
        deployment("db", kind="StatefulSet"),
        pod("db", spec={"volumes": volumes}, metadata=owner),
    )
    recording = Recording(FAILING, WINDOW, objects=rows)
    suspect = Suspect("db", kind, 1.0, ())
    found = object_behind(suspect, recording, Cluster.of(recording))
    assert found is not None
    assert found.undo == undo


CHANGED = ServiceChange(ONSET - 60.0, "web", "config", "settings of web were changed")
MOUNTED = {"volumes": [{"name": "c", "configMap": {"name": "web-settings"}}]}
TWICE = {"volumes": [*MOUNTED["volumes"], {"name": "d", "configMap": {"name": "web-more"}}]}
EVERYWHERE = {"volumes": [*MOUNTED["volumes"], {"name": "d", "configMap": {"name": "kube-root-ca.crt"}}]}


def find_object(kind: str, change: ServiceChange, template: dict[str, Any]) -> tuple[str, str]:
    """Kind of the object behind a suspect `web` with this change, and the command that undoes it."""
    recording = Recording(
        FAILING, WINDOW, objects=states(deployment("web", template=template), pod("web")), changes=[change]
    )
    found = object_behind(Suspect("web", kind, 1.0, ()), recording, Cluster.of(recording))
    assert found is not None
    return found.ref.kind, found.undo


@pytest.mark.parametrize("template", [MOUNTED, EVERYWHERE])
@pytest.mark.parametrize("kind", ["config", "flag"])
def test_changed_configuration_is_the_one_that_the_workload_reads(
    kind: str, template: dict[str, Any]
) -> None:
    found = find_object("crash", replace(CHANGED, kind=kind), template)
    assert found == ("ConfigMap", "kubectl -n store edit configmap web-settings")


@pytest.mark.parametrize(
    ("change", "template", "undo"),
    [
        (CHANGED, {}, ""),
        (CHANGED, TWICE, ""),
        (replace(CHANGED, time=ONSET - 7200.0), MOUNTED, ""),
        (replace(CHANGED, kind="deploy"), MOUNTED, "kubectl -n store rollout undo deployment web"),
    ],
)
def test_workload_itself_is_named_where_no_single_configuration_is(
    change: ServiceChange, template: dict[str, Any], undo: str
) -> None:
    assert find_object("crash", change, template) == ("Deployment", undo)


@pytest.mark.parametrize("kind", ["scheduling", "image_pull"])
def test_pod_that_never_starts_is_the_fault_of_its_template_and_of_no_configuration(kind: str) -> None:
    assert find_object(kind, CHANGED, MOUNTED) == ("Deployment", "")


@pytest.mark.parametrize("listed", [True, False])
def test_service_that_was_deleted_is_made_anew_and_not_edited(listed: bool) -> None:
    others = [service("cart")] if listed else []
    rows = states(deployment("web"), pod("web"), *others)
    entity = {"kind": "Service", "namespace": "store", "name": "web"}
    missing = Finding("missing_name", "logs", "web", "dns", 24.0, "no such host", figures={"entity": entity})
    recording = Recording(FAILING, WINDOW, objects=rows)
    found = object_behind(Suspect("web", "dns", 1.0, [missing]), recording, Cluster.of(recording))
    assert found is not None
    assert found.undo == (
        "kubectl -n store expose deployment web --name=web" if listed else "kubectl -n store edit service web"
    )

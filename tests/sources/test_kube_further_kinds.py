"""Further kinds of a cluster: in which version they are asked for, what of Secrets is read, what their writers tell."""

from pathlib import Path
from typing import Any

import pytest
from contract_server import Asked, Reply, contract_server
from kube_cluster import cluster, unknown
from kube_sources import FURTHER, WRITER, serving, source_at
from live_rig import SPAN, ask


async def test_further_kinds_in_the_versions_that_the_cluster_serves(tmp_path: Path) -> None:
    with contract_server(serving(FURTHER, "batch/v1beta1", "networking.k8s.io/v1")) as server:
        found = (await source_at(server, tmp_path).read(["objects"], SPAN)).objects or ()
        paths = server.paths()
    assert {"Service", "CronJob", "Secret"} <= {o.kind for o in found}
    assert "/apis/batch/v1beta1/cronjobs" in paths
    assert not [
        path for path in paths if "/apis/policy/" in path
    ]  # a group that it does not have costs nothing


async def test_secrets_are_asked_for_by_metadata_alone(tmp_path: Path) -> None:
    """Also of a server that sends more than it was asked for nothing but metadata is kept."""
    with contract_server(serving(FURTHER)) as server:
        found = await source_at(server, tmp_path).read(["objects"], SPAN)
        [asked] = [a for a in server.asked if a.path.endswith("/secrets")]
    assert "PartialObjectMetadataList" in asked.headers["accept"]
    assert "helm.sh/release.v1" in asked.query["fieldSelector"]
    [secret] = [o for o in found.objects or () if o.kind == "Secret"]
    assert "geheim" not in repr(secret)
    assert "Z2Vo" not in repr(secret)


async def test_kind_that_the_role_may_not_list_is_said_once_and_the_rest_is_used(tmp_path: Path) -> None:
    with contract_server(serving(FURTHER, refused="configmaps")) as server:
        found = await source_at(server, tmp_path).read(["objects"], SPAN)
    assert [m for m in found.missed if "configmaps" in m] == ["the role may not list configmaps"]
    assert "Service" in {o.kind for o in found.objects or ()}


async def test_last_writer_of_an_object_is_a_change(tmp_path: Path) -> None:
    with contract_server(serving(FURTHER)) as server:
        found = (await source_at(server, tmp_path).read(["changes"], SPAN)).changes or ()
    [change] = [c for c in found if c.author == "kubectl-edit"]
    assert (change.service, change.kind) == ("orders", "config")


async def test_selector_that_points_nowhere_is_found_in_a_live_cluster(tmp_path: Path) -> None:
    with contract_server(serving(FURTHER)) as server:
        result = await ask([source_at(server, tmp_path)], "objects_get", kind="Service")
    assert any("selects app=order" in f["text"] for f in result.record["findings"])


OWNED = {
    "manager": "argocd",
    "time": "2026-03-03T13:00:00Z",
    "fieldsV1": {"f:data": {".": {}, "f:password": {}}},
}


@pytest.mark.parametrize(("secret_keys", "kept"), [(False, {}), (True, {"password": ""})])
async def test_names_of_secret_keys_are_kept_only_where_the_source_says_so(
    tmp_path: Path, secret_keys: bool, kept: dict[str, str]
) -> None:
    secret = FURTHER["secrets"][0]
    named = secret | {"metadata": secret["metadata"] | {"managedFields": [OWNED]}}
    with contract_server(serving(FURTHER | {"secrets": [named]})) as server:
        found = await source_at(server, tmp_path, secret_keys=secret_keys).read(["objects"], SPAN)
        [asked] = [a for a in server.asked if a.path.endswith("/secrets")]
    [state] = [o for o in found.objects or () if o.kind == "Secret"]
    assert (state.extra or {}).get("data", {}) == kept
    assert ("password" in repr(state)) is secret_keys
    assert "PartialObjectMetadataList" in asked.headers["accept"]


async def test_change_names_its_author_and_the_workloads_that_it_touches(tmp_path: Path) -> None:
    """Alike whether the objects were listed before, or only what remembers its writers is."""
    mounted = {"volumes": [{"name": "c", "configMap": {"name": "limits"}}]}
    used = {"template": {"spec": {"containers": [{"name": "app"}], **mounted}}}
    config = {
        "metadata": {"name": "limits", "namespace": "shop", "managedFields": WRITER},
        "data": {"rate": "1"},
    }
    makers = [{"metadata": {"name": name, "namespace": "shop"}, "spec": used} for name in ("orders", "stock")]
    with contract_server(serving({"configmaps": [config], "deployments": makers})) as server:
        alone = (await source_at(server, tmp_path).read(["changes"], SPAN)).changes or ()
        both = (await source_at(server, tmp_path).read(["objects", "changes"], SPAN)).changes or ()
    for changes in (alone, both):
        [change] = [c for c in changes if c.author == "kubectl-edit"]
        assert (change.extra or {})["workloads"] == ["orders", "stock"]
        assert "ConfigMap shop/limits" in change.summary


async def test_rollout_names_who_wrote_its_template(tmp_path: Path) -> None:
    def answering(asked: Asked) -> Reply:
        reply = cluster(asked)
        if asked.path.endswith("/deployments"):
            fields: dict[str, Any] = {"f:spec": {"f:template": {"f:spec": {}}}}
            row = {"manager": "flux", "time": "2026-03-03T13:49:58Z", "fieldsV1": fields}
            first = reply.body["items"][0]
            return Reply({"items": [first | {"metadata": first["metadata"] | {"managedFields": [row]}}]})
        return reply

    with contract_server(answering) as server:
        changes = (await source_at(server, tmp_path).read(["changes"], SPAN)).changes or ()
    assert [(c.version, c.author) for c in changes] == [("2.13.2", None), ("2.14.0", "flux")]


async def test_ingress_of_an_old_cluster_lies_in_another_group(tmp_path: Path) -> None:
    way = {
        "metadata": {"name": "front", "namespace": "shop"},
        "spec": {"backend": {"serviceName": "gone", "servicePort": 80}},
    }

    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/ingresses"):
            return Reply({"items": [way]}) if asked.path.startswith("/apis/extensions/") else unknown()
        return serving(FURTHER, "networking.k8s.io/v1", "extensions/v1beta1")(asked)

    with contract_server(answering) as server:
        found = await source_at(server, tmp_path).read(["objects"], SPAN)
    assert [o.name for o in found.objects or () if o.kind == "Ingress"] == ["front"]

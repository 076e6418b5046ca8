"""Who we are to a real cluster, and what it then allows: certificates, tokens, a program; roles, and their gaps by name."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from certificates import certificates
from kube_place import Namespace
from kube_real import TOKENS, ControlPlane
from live_rig import ask, one

from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources.live_source import LiveSource
from opsleuth.tools.spec import NotPermittedError, UnavailableError

pytestmark = pytest.mark.kubernetes

READS = ("get", "list")
Opened = Callable[..., LiveSource]


@pytest.fixture
def opened(plane: ControlPlane, shop: Namespace, tmp_path: Path) -> Opened:
    """The source as this user of a kubeconfig; `cluster` may name another authority."""

    def open_as(user: Mapping[str, Any], cluster: Mapping[str, Any] | None = None, **more: Any) -> LiveSource:
        file = plane.kubeconfig(tmp_path, user, namespace=shop.name, **(cluster or {}))
        return one(kind="kubernetes", kubeconfig=str(file), **more)

    return open_as


def by_token(name: str) -> dict[str, str]:
    return {"token": TOKENS[name]}


def by_program(folder: Path, says: str) -> dict[str, Any]:
    """A user whose credential is the status that a program prints."""
    program = folder / "login.py"
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    program.write_text(f"import json\nprint(json.dumps({document!r} | {{'status': {says}}}))\n")
    return {"exec": {"apiVersion": document["apiVersion"], "command": sys.executable, "args": [str(program)]}}


@pytest.mark.parametrize("way", ["certificate", "token", "token of a program", "certificate of a program"])
async def test_the_role_view_is_enough_however_it_is_proven_who_we_are(
    plane: ControlPlane, shop: Namespace, opened: Opened, tmp_path: Path, way: str
) -> None:
    shop.bind("oncall", "view")
    shop.release("orders", "shop/orders:1.0")
    pair = [(plane.folder / f"oncall.{kind}").read_text() for kind in ("pem", "key")]
    users: Mapping[str, Mapping[str, Any]] = {
        "certificate": plane.of_certificate("oncall"),
        "token": by_token("oncall"),
        "token of a program": by_program(tmp_path, json.dumps(by_token("oncall"))),
        "certificate of a program": by_program(tmp_path, json.dumps(dict(zip(("clientCertificateData", "clientKeyData"), pair, strict=True)))),
    }  # fmt: skip
    source = opened(users[way], namespaces=[shop.name])
    found = await ask([source], "objects_get", kind="Deployment", name="orders")
    assert found.record["objects"][0]["name"] == "orders"
    checks = {check.what: check for check in await source.check()}
    assert {what for what, check in checks.items() if check.state == "failed"} == {"nodes"}
    assert "allow list on nodes" in checks["nodes"].remedy


async def test_a_role_that_lists_pods_and_no_events(shop: Namespace, opened: Opened) -> None:
    """What may not be listed is named as the cluster words it, and is not taken for absent."""
    shop.allow("narrow", "pods", ("", ["pods"], READS))
    shop.release("orders", "shop/orders:1.0")
    source = opened(by_token("narrow"), namespaces=[shop.name])
    pods = await ask([source], "objects_get", kind="Pod", name="orders")
    assert pods.status is ResultStatus.OK
    assert len(pods.record["objects"]) == 1
    missed = pods.record["not_read"]["s (objects)"]
    assert 'deployments.apps is forbidden: User "narrow" cannot list resource "deployments"' in missed
    events = await ask([source], "events_list")
    assert events.status is ResultStatus.NOT_PERMITTED
    assert f'cannot list resource "events" in API group "" in the namespace "{shop.name}"' in events.headline


async def test_without_a_namespace_that_of_the_context_is_taken_where_only_it_may_be_seen(
    shop: Namespace, opened: Opened
) -> None:
    shop.bind("oncall", "view")
    shop.release("orders", "shop/orders:1.0")
    found = await ask([opened(by_token("oncall"))], "objects_get", kind="Pod", name="orders")
    assert len(found.record["objects"]) == 1
    assert f"pods outside namespace {shop.name} may not be listed" in found.record["not_read"]["s (objects)"]


async def test_logs_that_the_role_does_not_hold(shop: Namespace, opened: Opened) -> None:
    shop.allow("narrow", "pods", ("", ["pods"], READS))
    shop.release("orders", "shop/orders:1.0")
    found = await ask([opened(by_token("narrow"), namespaces=[shop.name])], "logs_search", text="x")
    assert found.status is ResultStatus.NOT_RECORDED
    assert 'cannot get resource "pods/log"' in found.record["not_read"]["s (logs)"]


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"token": "unknown"}, "does not accept the credentials"),
        (by_token("nobody"), 'User "nobody" cannot list resource'),
        ({}, 'User "system:anonymous" cannot list resource'),
    ],
)
async def test_nobody_that_the_cluster_knows_or_lets_in(opened: Opened, user: Any, said: str) -> None:
    found = await ask([opened(user)], "objects_get", kind="Pod")
    assert found.status is ResultStatus.NOT_PERMITTED
    assert said in found.headline


async def test_an_authority_that_did_not_sign_for_the_cluster(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    certificates(tmp_path / "other")
    source = opened(by_token("oncall"), {"certificate-authority": str(tmp_path / "other" / "ca.pem")})
    with pytest.raises(UnavailableError, match=r"cannot be trusted.*CERTIFICATE_VERIFY_FAILED"):
        await source.check()


async def test_a_password_is_no_longer_a_way_in(opened: Opened) -> None:
    """Clusters have not taken basic authentication since 1.19; whoever still has one in his file is told so."""
    with pytest.raises(NotPermittedError):
        await opened({"username": "me", "password": "right"}).discover()

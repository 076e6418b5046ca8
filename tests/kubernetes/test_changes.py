"""Changes of deployments on a real API server: rehearsed by its own dry run, asked, made once, and seen by its controllers."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from acting import RUN, Acting, calls
from kube_place import Namespace
from kube_real import TOKENS, ControlPlane
from kubelet import Kubelet, not_pulled
from loop_rig import concludes

from opsleuth.tools.declared.load_declarations import build_declared_tools
from opsleuth.tools.extra_tools import ExtraTools
from opsleuth.tools.sources.http_client import HttpSession

pytestmark = pytest.mark.kubernetes

DONE = concludes("nothing more to do")
# What docs/extending.md says that a role for changes needs.
NEEDED = (("apps", ["deployments"], ["get", "patch"]), ("apps", ["replicasets"], ["list"]))


@pytest.fixture
def shop(shop: Namespace) -> Namespace:
    """Two revisions of one deployment, and somebody who may change it."""
    shop.allow("narrow", "changes", *NEEDED)
    shop.release("orders", "shop/orders:2.13.4", replicas=2, CACHE_MB="256")
    shop.release("orders", "shop/orders:2.14.0", replicas=2, CACHE_MB="4096")
    return shop


@contextmanager
def acting(plane: ControlPlane, shop: Namespace, folder: Path, *, settles: float = 30.0) -> Iterator[Acting]:
    file = plane.kubeconfig(folder / "access", {"token": TOKENS["narrow"]}, namespace=shop.name)
    row = {"namespace": shop.name, "services": {"orders-api": "orders"}, "kubeconfig": str(file)}
    tools = tuple(
        replace(tool, settles=settles) for tool in build_declared_tools({"kubernetes": {"eu": row}})
    )
    rig = Acting(folder, "http://127.0.0.1:9")
    rig.parts = rig.replaced(effects=lambda _: (), added=lambda *_: ExtraTools(tools))
    yield rig


def asked(tool: str, **arguments: Any) -> dict[str, Any]:
    return calls((tool, {"service": "orders-api"} | arguments))


def state(shop: Namespace) -> tuple[str, int, str | None]:
    spec = shop.deployment("orders")["spec"]
    [container] = spec["template"]["spec"]["containers"]
    cache = next((v["value"] for v in container.get("env", ()) if v["name"] == "CACHE_MB"), None)
    return container["image"], spec["replicas"], cache


@pytest.mark.parametrize(
    ("tool", "arguments", "shown", "now", "revisions"),
    [
        ("service_restart", {}, "new pods", ("shop/orders:2.14.0", 2, "4096"), [1, 2, 3]),
        ("service_rollback", {"version": "2.13.4"}, "version 2.14.0 to 2.13.4", ("shop/orders:2.13.4", 2, "256"), [2, 3]),
        ("service_scale", {"replicas": 4}, "replicas 2 to 4", ("shop/orders:2.14.0", 4, "4096"), [1, 2]),
    ],
)  # fmt: skip
def test_a_change_is_rehearsed_asked_made_once_and_seen(
    plane: ControlPlane,
    shop: Namespace,
    tmp_path: Path,
    tool: str,
    arguments: Mapping[str, Any],
    shown: str,
    now: tuple[str, int, str | None],
    revisions: list[int],
) -> None:
    before = shop.deployment("orders")["metadata"]["resourceVersion"]
    with acting(plane, shop, tmp_path) as rig:
        rig.start(asked(tool, **arguments), DONE)
        (question,) = rig.pending()
        assert f"dry run accepted: {shown}" in json.dumps(question.document)
        assert shop.deployment("orders")["metadata"]["resourceVersion"] == before
        rig.approve(question)
        outcome = rig.resume()
        assert [row.status for row in rig.store.effects.list(RUN)] == ["done"]
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is True
    assert state(shop) == now
    assert shop.revisions("orders") == revisions
    assert shop.runs("orders", now[0])


def test_a_release_that_changed_the_configuration_alone_is_rolled_back(
    plane: ControlPlane, shop: Namespace, tmp_path: Path
) -> None:
    """Same image, another variable: the older of the two is named by the hash of its template."""
    shop.release("orders", "shop/orders:2.14.0", replicas=2, CACHE_MB="1")
    before = shop.exact("orders", revision=2)
    with acting(plane, shop, tmp_path) as rig:
        rig.start(asked("service_rollback", version=f"2.14.0+{before}"), DONE)
        (question,) = rig.pending()
        assert "dry run accepted: new pods, with -CACHE_MB=1 +CACHE_MB=4096" in json.dumps(question.document)
        rig.approve(question)
        outcome = rig.resume()
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is True
    assert state(shop) == ("shop/orders:2.14.0", 2, "4096")
    assert shop.revisions("orders") == [1, 3, 4]


def test_what_the_cluster_would_refuse_is_refused_before_anybody_is_asked(
    plane: ControlPlane, shop: Namespace, tmp_path: Path
) -> None:
    """Admission has its say in a dry run: here validation, which knows no negative or absurd rollouts; and the role."""
    shop.change(shop.within("roles/changes", "/apis/rbac.authorization.k8s.io/v1"), {"rules": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}, {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list"]}]})  # fmt: skip
    with acting(plane, shop, tmp_path) as rig:
        rig.start(asked("service_scale", replicas=4), DONE)
        assert rig.pending() == ()
        assert any('User "narrow" cannot patch resource "deployments"' in text for text in rig.observed())
    assert state(shop)[1] == 2


def test_a_release_between_approval_and_change_makes_it_another_change(
    plane: ControlPlane, shop: Namespace, tmp_path: Path
) -> None:
    """Approved was to go back from 2.14.0; somebody else has mended it by 2.14.1 meanwhile."""
    with acting(plane, shop, tmp_path) as rig:
        rig.start(asked("service_rollback", version="2.13.4"), DONE)
        rig.approve_all()
        shop.release("orders", "shop/orders:2.14.1", replicas=2)
        rig.resume()
        assert rig.store.effects.list(RUN) == ()
        assert any("no longer the change that was approved" in text for text in rig.observed())
        assert any("version 2.14.1 to 2.13.4" in text for text in rig.observed())
    assert shop.image("orders") == "shop/orders:2.14.1"


def test_somebody_elses_change_between_look_and_patch_is_not_undone(
    plane: ControlPlane, shop: Namespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers 409: the patch names the resource version that was looked at."""
    real = HttpSession.send

    async def send(self: HttpSession, method: str, path: str, document: Any, kind: str, **more: Any) -> Any:
        if "dryRun" not in more:
            shop.change(shop.path("orders"), {"spec": {"replicas": 5}})
        return await real(self, method, path, document, kind, **more)

    with acting(plane, shop, tmp_path) as rig:
        rig.start(asked("service_scale", replicas=3), DONE)
        rig.approve_all()
        monkeypatch.setattr(HttpSession, "send", send)
        rig.resume()
        [row] = rig.store.effects.list(RUN)
        assert row.status == "failed_clean"
        assert "the object has been modified" in json.dumps(dict(row.result))
    assert state(shop)[1] == 5


@pytest.mark.parametrize(
    ("tool", "arguments"), [("service_restart", {}), ("service_rollback", {"version": "2.13.4"})]
)
def test_an_answer_that_is_lost_is_told_by_the_key_in_the_deployment(
    plane: ControlPlane, shop: Namespace, tmp_path: Path, tool: str, arguments: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    real, sent = HttpSession.send, list[str]()

    async def send(self: HttpSession, method: str, path: str, document: Any, kind: str, **more: Any) -> Any:
        answer = await real(self, method, path, document, kind, **more)
        if "dryRun" not in more:
            sent.append(path)
            raise TimeoutError("no answer in time")
        return answer

    monkeypatch.setattr(HttpSession, "send", send)
    with acting(plane, shop, tmp_path) as rig:
        rig.start(asked(tool, **arguments), DONE)
        rig.approve_all()
        rig.resume()
        assert [row.status for row in rig.store.effects.list(RUN)] == ["done"]
    assert len(sent) == 1


def test_the_api_server_is_killed_before_the_patch(
    plane: ControlPlane, shop: Namespace, tmp_path: Path
) -> None:
    """Nothing was sent: the run ends, and the change can be asked for again when the server is there."""
    with acting(plane, shop, tmp_path) as rig:
        rig.start(asked("service_scale", replicas=3), DONE)
        rig.approve_all()
        plane.kill()
        try:
            rig.resume()
        finally:
            plane.start()
        assert [row.status for row in rig.store.effects.list(RUN) if row.status != "failed_clean"] == []
    assert state(shop)[1] == 2


def test_a_version_that_does_not_come_up_any_more_is_not_taken_for_well(
    plane: ControlPlane, shop: Namespace, node: Kubelet, tmp_path: Path
) -> None:
    """The patch is made, but its pods do not run: the report says that the change was not seen to work."""
    node.states["2.13.4"] = not_pulled
    with acting(plane, shop, tmp_path, settles=2.0) as rig:
        rig.start(asked("service_rollback", version="2.13.4"), DONE)
        rig.approve_all()
        outcome = rig.resume()
    assert outcome.report is not None
    [effect] = outcome.report["effects"]
    assert effect["verified"] is False
    assert "available" in json.dumps(effect)

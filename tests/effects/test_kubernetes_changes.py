"""Changes of deployments, against a server that takes patches by the API's contract: conditional, rehearsed, once."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from acting import RUN, Acting, calls
from contract_server import contract_server
from kube_cluster import kubeconfig
from kube_shop import Shop, replica_set
from loop_rig import concludes

from opsleuth.state.errors import ConfigError
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.declared.load_declarations import build_declared_tools
from opsleuth.tools.extra_tools import ExtraTools

DONE = concludes("nothing more to do")
ROW = {"namespace": "shop", "services": {"orders-api": "orders"}}


@contextmanager
def cluster(folder: Path, shop: Shop, **row: Any) -> Iterator[Acting]:
    with contract_server(shop) as server:
        file = kubeconfig(folder, server.url)
        tools = tuple(build_declared_tools({"kubernetes": {"eu": ROW | {"kubeconfig": str(file)} | row}}))
        rig = Acting(folder, "http://127.0.0.1:9", settles=0.0)
        rig.parts = rig.replaced(effects=lambda _: (), added=lambda *_: ExtraTools(tools))
        yield rig


def acted(rig: Acting, tool: str, arguments: Mapping[str, Any]) -> Any:
    rig.start(calls((tool, {"service": "orders-api"} | dict(arguments))), DONE)
    rig.approve_all()
    return rig.resume()


@pytest.mark.parametrize(
    ("tool", "arguments", "shown", "now"),
    [
        ("service_restart", {}, "new pods", ("shop/orders:2.14.0", 3)),
        ("service_rollback", {"version": "2.13.4"}, "version 2.14.0 to 2.13.4", ("shop/orders:2.13.4", 3)),
        ("service_scale", {"replicas": 6}, "replicas 3 to 6", ("shop/orders:2.14.0", 6)),
    ],
)
def test_a_change_is_rehearsed_asked_made_once_and_seen(
    tmp_path: Path, tool: str, arguments: Mapping[str, Any], shown: str, now: tuple[str, int]
) -> None:
    shop = Shop()
    with cluster(tmp_path, shop) as rig:
        rig.start(calls((tool, {"service": "orders-api"} | dict(arguments))), DONE)
        (asked,) = rig.pending()
        assert f"dry run accepted: {shown}" in json.dumps(asked.document)
        assert (shop.moved, len(shop.patches)) == (0, 0)
        rig.approve(asked)
        outcome = rig.resume()
    spec = shop.deployment["spec"]
    assert (spec["template"]["spec"]["containers"][0]["image"], spec["replicas"]) == now
    assert "pod-template-hash" not in spec["template"]["metadata"]["labels"]
    assert (shop.moved, len(shop.patches)) == (1, 1)
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is True


def test_a_change_in_between_that_makes_it_another_one_is_not_what_was_approved(tmp_path: Path) -> None:
    shop = Shop()
    with cluster(tmp_path, shop) as rig:
        rig.start(calls(("service_scale", {"service": "orders-api", "replicas": 6})), DONE)
        rig.approve_all()
        shop.deployment["spec"]["replicas"] = 5
        rig.resume()
        assert rig.store.effects.list(RUN) == ()
        assert any("no longer the change that was approved" in text for text in rig.observed())
    assert shop.moved == 0


def test_of_two_configurations_of_one_version_the_older_is_named_by_its_template(tmp_path: Path) -> None:
    """The image is the same; what the person decides on shows what differs, but no secret."""
    shop = Shop()
    old = replica_set(1, "shop/orders:2.14.0", CACHE_MB="256", DB_PASSWORD="geheim-4711")
    shop.sets = [old, replica_set(2, "shop/orders:2.14.0")]
    with cluster(tmp_path, shop) as rig:
        rig.start(calls(("service_rollback", {"service": "orders-api", "version": "2.14.0+hash1"})), DONE)
        (asked,) = rig.pending()
        shown = json.dumps(asked.document)
        assert "dry run accepted: new pods, with" in shown
        assert "+CACHE_MB=256" in shown
        assert "geheim" not in shown
        rig.approve(asked)
        outcome = rig.resume()
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is True
    assert shop.deployment["spec"]["template"]["spec"] == old["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("behave", "patches", "status"), [("lost", 1, "done"), ("never", 2, "done"), ("full", 0, None)]
)
@pytest.mark.parametrize(("tool", "arguments"), [("service_restart", {}), ("service_scale", {"replicas": 6})])
def test_a_lost_answer_is_told_by_the_key_in_the_deployment(
    tmp_path: Path, behave: str, patches: int, status: str | None, tool: str, arguments: Mapping[str, Any]
) -> None:
    shop = Shop(behave)
    with cluster(tmp_path, shop) as rig:
        acted(rig, tool, arguments)
        rows = rig.store.effects.list(RUN)
    assert len(shop.patches) == patches
    assert shop.moved == (status == "done")
    assert [row.status for row in rows] == ([status] if status else [])


def test_somebody_elses_change_in_between_is_not_undone(tmp_path: Path) -> None:
    class Moving(Shop):
        """The deployment is changed by another one right before every patch that counts."""

        def patch(self, asked: Any) -> Any:
            if "dryRun" not in asked.query:
                self.deployment["metadata"]["resourceVersion"] = "999"
            return super().patch(asked)

    shop = Moving()
    with cluster(tmp_path, shop) as rig:
        acted(rig, "service_scale", {"replicas": 6})
        assert rig.store.effects.list(RUN)[0].status == "failed_clean"
    assert shop.moved == 0


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("service_rollback", {"version": "9.9"}, "never ran"),
        ("service_rollback", {"version": "2.14.0"}, "already"),
        ("service_rollback", {"version": "2.14.0+hash2"}, "already"),
        ("service_scale", {"replicas": 3}, "so already"),
        ("service_restart", {"service": "nobody"}, "no service 'nobody'"),
    ],
)
def test_what_makes_no_sense_is_not_asked(
    tmp_path: Path, tool: str, arguments: Mapping[str, Any], said: str
) -> None:
    shop = Shop()
    with cluster(tmp_path, shop) as rig:
        rig.start(calls((tool, {"service": "orders-api"} | dict(arguments))), DONE)
        assert rig.pending() == ()
        assert any(said in text for text in rig.observed())
    assert shop.patches == []


def test_a_cluster_that_is_not_there_was_sent_nothing(tmp_path: Path) -> None:
    shop = Shop()
    with cluster(tmp_path, shop) as rig:
        rig.start(calls(("service_restart", {"service": "orders-api"})), DONE)
        rig.approve_all()
    outcome = rig.resume()
    assert outcome.exit_code is not ExitCode.EFFECT_UNKNOWN
    assert shop.patches == []


def test_only_declared_changes_are_offered() -> None:
    names = {t.name for t in build_declared_tools({"kubernetes": {"eu": ROW | {"changes": ["scale"]}}})}
    assert names == {"service_state", "service_scale"}
    with pytest.raises(ConfigError, match="changes"):
        build_declared_tools({"kubernetes": {"eu": {"changes": ["delete"]}}})

"""Objects, events, rollouts and logs of a cluster; what it refuses is named and never counts as absent."""

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from contract_server import Asked, ContractServer, Reply, contract_server
from kube_cluster import cluster, forbidden, kubeconfig, no_kubelet, unknown
from kube_sources import CLOCK, refusing, source_at
from live_rig import SPAN, ask, one

from opsleuth.redaction.redactor import Redactor
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.tools.spec import NotPermittedError, UnavailableError


@pytest.fixture
def server() -> Iterator[ContractServer]:
    with contract_server(cluster) as running:
        yield running


async def test_objects_and_what_the_detectors_see_in_them(server: ContractServer, tmp_path: Path) -> None:
    result = await ask([source_at(server, tmp_path)], "objects_get", kind="Pod", name="orders")
    [pod] = result.record["objects"]
    assert (pod["namespace"], pod["restarts"], pod["ready"]) == ("shop", 3, 0)
    assert "CrashLoopBackOff" in pod["reasons"]
    assert any(f["service"] == "orders" for f in result.record["findings"])
    assert result.record.get("not_read") is None  # a kind that the cluster does not have is not missing


async def test_a_rollout_is_a_change_with_its_difference(server: ContractServer, tmp_path: Path) -> None:
    changes = (await source_at(server, tmp_path).read(["changes"], SPAN)).changes or ()
    assert [(c.service, c.kind, c.version) for c in changes] == [("orders", "deploy", "2.13.2"), ("orders", "deploy", "2.14.0")]  # fmt: skip
    assert changes[1].time == datetime(2026, 3, 3, 13, 50, tzinfo=UTC).timestamp()
    assert "-  - CACHE_MB=256" in (changes[1].diff or "")
    assert "+  - CACHE_MB=4096" in (changes[1].diff or "")


async def test_an_undone_rollout_has_the_time_of_its_undoing(tmp_path: Path) -> None:
    """The replica set that is used again keeps the time of its making; who wrote the template says when that was."""

    def answering(asked: Asked) -> Reply:
        reply = cluster(asked)
        if asked.path.endswith("/replicasets"):
            items = [dict(item) for item in reply.body["items"]]
            notes = {
                "deployment.kubernetes.io/revision": "5",
                "deployment.kubernetes.io/revision-history": "3",
            }
            items[1] = items[1] | {"metadata": items[1]["metadata"] | {"annotations": notes}}
            return Reply({"items": items})
        if asked.path.endswith("/deployments"):
            first = reply.body["items"][0]
            moved = {"type": "Progressing", "status": "True", "lastUpdateTime": "2026-03-03T14:25:00Z"}
            owner: dict[str, Any] = {"f:spec": {"f:template": {"f:spec": {}}}}
            fields = [
                {"manager": "helm", "time": "2026-03-01T09:00:00Z", "fieldsV1": owner},  # as it was at first
                {"manager": "kubectl", "time": "2026-03-03T14:24:00Z", "fieldsV1": owner},
                {"manager": "kube-controller-manager", "time": "2026-03-03T14:29:00Z", "fieldsV1": {}},
            ]
            meta = first["metadata"] | {"managedFields": fields}
            return Reply({"items": [first | {"metadata": meta, "status": {"conditions": [moved]}}]})
        return reply

    with contract_server(answering) as server:
        changes = (await source_at(server, tmp_path).read(["changes"], SPAN)).changes or ()
    assert [(c.kind, c.version, (c.extra or {})["revision"]) for c in changes] == [
        ("deploy", "2.13.2", 3),
        ("deploy", "2.14.0", 4),
        ("rollback", "2.13.2", 5),
    ]
    assert changes[2].time == datetime(2026, 3, 3, 14, 24, tzinfo=UTC).timestamp()
    assert "-  - CACHE_MB=4096" in (changes[2].diff or "")


async def test_events(server: ContractServer, tmp_path: Path) -> None:
    result = await ask([source_at(server, tmp_path)], "events_list", type="Warning")
    [event] = result.record["events"]
    assert (event["object"], event["reason"], event["count"]) == ("Pod/orders-6d5c7f8b4-x7k2p", "BackOff", 12)
    assert result.scanned == 2


async def test_logs_of_this_run_and_of_the_one_before(server: ContractServer, tmp_path: Path) -> None:
    lines = (await source_at(server, tmp_path).read(["logs"], SPAN)).logs or ()
    assert [(line.service, line.level, line.previous) for line in lines] == [
        ("payments", "warn", False),
        ("orders", "ERROR", True),
        ("orders", "INFO", False),
    ]
    assert lines[0].message == "slow call to orders"
    assert "OutOfMemoryError" in lines[1].message
    asked = [a.query for a in server.asked if a.path.endswith("/log")]
    assert {query["timestamps"] for query in asked} == {"true"}
    assert int(asked[0]["sinceSeconds"]) == 2.5 * 3600  # the window and an hour before it


async def test_what_may_not_be_seen_is_named_and_is_not_absent(tmp_path: Path) -> None:
    """No node matches, but no node could be looked at."""
    with contract_server(refusing("/nodes")) as server:
        source = source_at(server, tmp_path)
        present = await ask([source], "objects_get", kind="Pod")
        absent = await ask([source], "objects_get", kind="Node")
    assert present.status is ResultStatus.OK
    assert "nodes may not be listed" in present.record["not_read"]["s (objects)"]
    assert absent.status is ResultStatus.NOT_RECORDED


async def test_where_only_one_namespace_may_be_seen_that_is_taken(tmp_path: Path) -> None:
    with contract_server(refusing("/pods", but="/namespaces/shop")) as server:
        found = await source_at(server, tmp_path).read(["logs"], SPAN)
    assert len(found.logs or ()) == 3
    assert found.missed == ("pods outside namespace shop may not be listed",)


async def test_namespaces_that_are_configured_are_all_that_is_asked(
    server: ContractServer, tmp_path: Path
) -> None:
    await source_at(server, tmp_path, namespaces=["shop", "web"]).read(["events"], SPAN)
    assert sorted(server.paths()) == ["/api/v1/namespaces/shop/events", "/api/v1/namespaces/web/events"]


async def test_logs_that_may_not_be_read(tmp_path: Path) -> None:
    with contract_server(refusing("/log")) as server:
        result = await ask([source_at(server, tmp_path)], "logs_search", text="x")
    assert result.status is ResultStatus.NOT_RECORDED
    assert "may not be read" in result.record["not_read"]["s (logs)"]


async def test_a_node_that_is_gone_costs_its_own_logs_alone(tmp_path: Path) -> None:
    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/log") and "orders" in asked.path:
            return no_kubelet("node-1")
        reply = cluster(asked)
        if asked.path.endswith("/pods"):
            orders, payments = reply.body["items"]
            return Reply({"items": [orders, payments | {"spec": {"nodeName": "node-2"}}]})
        return reply

    with contract_server(answering) as server:
        found = await source_at(server, tmp_path).read(["logs"], SPAN)
    assert [line.service for line in found.logs or ()] == ["payments"]
    [missed] = found.missed
    assert missed.startswith("logs of pods on node-1 could not be read")
    assert "connection refused" in missed


async def test_an_older_cluster_has_autoscalers_under_another_version(tmp_path: Path) -> None:
    """Also where only one namespace may be seen: what may not be listed there is asked before what there is."""

    def answering(asked: Asked) -> Reply:
        if "/namespaces/" not in asked.path:
            return forbidden(asked)
        if asked.path.endswith("/horizontalpodautoscalers"):
            scaler = {"metadata": {"name": "orders"}, "status": {"currentReplicas": 2}}
            return Reply({"items": [scaler]}) if "/v2beta2/" in asked.path else unknown()
        return cluster(asked)

    with contract_server(answering) as server:
        found = await source_at(server, tmp_path).read(["objects"], SPAN)
    assert [o.name for o in found.objects or () if o.kind == "HorizontalPodAutoscaler"] == ["orders"]


async def test_doctor_names_a_namespace_that_is_not_there(server: ContractServer, tmp_path: Path) -> None:
    """Its lists are empty and no error: nobody would notice."""
    checks = {c.what: c for c in await source_at(server, tmp_path, namespaces=["shop", "shpo"]).check()}
    assert checks["namespace shpo"].state == "failed"
    assert "namespace shop" not in checks


async def test_nothing_may_be_seen(tmp_path: Path) -> None:
    with (
        contract_server(refusing("/")) as server,
        pytest.raises(NotPermittedError, match="cannot list resource"),
    ):
        await source_at(server, tmp_path).read(["objects"], SPAN)


async def test_what_is_no_cluster(tmp_path: Path) -> None:
    with (
        contract_server(lambda _: Reply({"hello": "world"})) as server,
        pytest.raises(UnavailableError, match="did not answer with a Kubernetes list"),
    ):
        await source_at(server, tmp_path).read(["objects"], SPAN)


async def test_services_by_label_or_by_name(server: ContractServer, tmp_path: Path) -> None:
    source = source_at(server, tmp_path)
    await source.discover()
    assert source.services == {"orders", "payments"}


async def test_doctor_says_permission_by_permission(tmp_path: Path) -> None:
    with contract_server(refusing("/nodes")) as server:
        checks = {c.what: c for c in await source_at(server, tmp_path).check()}
    assert (checks["version"].text, checks["context"].text) == ("v1.31.4", "test, namespace shop")
    assert checks["nodes"].state == "failed"
    assert "allow list on nodes" in checks["nodes"].remedy
    assert checks["pods"].state == checks["further kinds"].state == "ok"


async def test_no_variable_that_is_a_secret_comes_out(server: ContractServer, tmp_path: Path) -> None:
    """The redactor sees a variable by its name, in a document and in the difference of two."""
    source = source_at(server, tmp_path)
    shown = [await ask([source], "changes_list"), await ask([source], "objects_get", kind="Deployment")]
    text = json.dumps([Redactor()(result.record).value for result in shown])
    assert "CACHE_MB" in text
    assert "geheim" not in text


async def test_fetch_that_is_cut_short_is_gone_on_with(tmp_path: Path) -> None:
    """A large or slow cluster is not begun anew with each call: pages that came are kept."""
    pages = {"": "1", "1": "2", "2": ""}
    reached, released = threading.Event(), threading.Event()

    def answering(asked: Asked) -> Reply:
        if not asked.path.endswith("/pods"):
            return cluster(asked)
        token = asked.query.get("continue", "")
        if token == "1":
            reached.set()
            released.wait(60)
        pod = {"metadata": {"name": f"p-{token}", "namespace": "shop"}, "spec": {}, "status": {}}
        return Reply({"metadata": {"continue": pages[token]}, "items": [pod]})

    with contract_server(answering) as server:
        source = one(CLOCK, kind="kubernetes", kubeconfig=str(kubeconfig(tmp_path, server.url)), timeout=50)
        source.fetch_seconds = 55.0
        first = asyncio.create_task(source.read(["objects"], SPAN))
        assert await asyncio.to_thread(reached.wait, 50)
        first.cancel()
        await asyncio.wait([first])
        released.set()
        assert source.advances
        found = (await source.read(["objects"], SPAN)).objects or ()
        tokens = [a.query.get("continue", "") for a in server.asked if a.path.endswith("/pods")]
    assert [o.name for o in found if o.kind == "Pod"] == ["p-", "p-1", "p-2"]
    assert tokens.count("") == 1


async def test_logs_of_pods_in_trouble_are_read_first_where_there_are_too_many(tmp_path: Path) -> None:
    def answering(asked: Asked) -> Reply:
        reply = cluster(asked)
        return (
            Reply({"items": list(reversed(reply.body["items"]))}) if asked.path.endswith("/pods") else reply
        )

    with contract_server(answering) as server:
        found = await source_at(server, tmp_path, max_pods=1).read(["logs"], SPAN)
    assert {line.service for line in found.logs or ()} == {"orders"}
    assert "logs of 1 of 2 pods were not read" in found.missed[0]


@pytest.mark.parametrize(("seconds", "pause", "times"), [(0.0, 20.0, 2), (10.0, 20.0, 1), (10.0, 60.0, 2)])
async def test_what_took_long_to_fetch_stays_fresh_for_longer(
    tmp_path: Path, seconds: float, pause: float, times: int
) -> None:
    clock = FakeClock(datetime(2026, 3, 3, 14, 30, tzinfo=UTC))

    def answering(asked: Asked) -> Reply:
        if asked.path.endswith("/events"):
            clock.advance(seconds)
        return cluster(asked)

    with contract_server(answering) as server:
        source = one(clock, kind="kubernetes", kubeconfig=str(kubeconfig(tmp_path, server.url)))
        await source.read(["events"], SPAN)
        clock.advance(pause)
        await source.read(["events"], SPAN)
        assert len([path for path in server.paths() if path.endswith("/events")]) == times

"""A run tells what changed in a cluster since the run before it: two runs, one database, a served cluster between them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from contract_server import Asked, ContractServer, Reply, contract_server
from kube_cluster import kubeconfig
from kube_sources import serving
from live_rig import SPAN, one

from opsleuth.analysis.records import ServiceChange
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.object_memory import attach_object_memory
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock

Document = dict[str, Any]
Further = dict[str, list[Document]]


def named(name: str, **parts: Any) -> Document:
    return {"metadata": {"name": name, "namespace": "shop", "resourceVersion": "1"}, **parts}


USED = {
    "template": {"spec": {"containers": [{"name": "app", "envFrom": [{"configMapRef": {"name": "limits"}}]}]}}
}
BEFORE: Further = {
    "configmaps": [named("limits", data={"rate": "100", "password": "geheim-4711-xyz"})],
    "networkpolicies": [named("open", spec={"podSelector": {}, "ingress": [{}]})],
    "deployments": [named("orders", spec=USED)],
}
AFTER = BEFORE | {
    "configmaps": [named("limits", data={"rate": "1", "password": "geheim-4711-xyz"})],
    "networkpolicies": [],
}
START = datetime(2026, 3, 3, 13, 10, tzinfo=UTC)
GROUP = "networking.k8s.io/v1"


class ServedCluster:
    """A cluster whose objects change between the runs, at one address."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.further, self.refused = folder, BEFORE, "\0"
        self.server: ContractServer | None = None
        self.clock = FakeClock(START)

    def __call__(self, asked: Asked) -> Reply:
        return serving(self.further, GROUP, refused=self.refused)(asked)

    async def read(self, store: Store, run: str, further: Further, **more: Any) -> list[ServiceChange]:
        """The changes of objects that a run of this id reads while the cluster holds these objects."""
        assert self.server is not None
        row = RunRow(id=run, question="orders fail", project=more.pop("project", "shop"))
        if store.runs.get(run) is None:
            store.runs.create(row)
        self.further, self.refused = further, more.pop("refused", "\0")
        file = str(kubeconfig(self.folder, self.server.url))
        source = one(self.clock, kind="kubernetes", kubeconfig=file, **more)
        attach_object_memory([source], store, row)
        found = await source.read(["objects", "changes"], SPAN)
        self.clock.advance(300)
        return [c for c in found.changes or () if (c.extra or {}).get("object_kind")]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ServedCluster]:
    served = ServedCluster(tmp_path)
    with contract_server(served) as served.server:
        yield served


@pytest.fixture
def store(tmp_path: Path, cluster: ServedCluster) -> Iterator[Store]:
    with Store.open(tmp_path / "opsleuth.db", cluster.clock, Redactor()) as opened:
        yield opened


async def test_second_run_tells_of_what_was_changed_and_deleted(cluster: ServedCluster, store: Store) -> None:
    assert await cluster.read(store, "inv-1", BEFORE) == []
    changes = await cluster.read(store, "inv-2", AFTER)
    told = {c.summary.partition(" after")[0]: c for c in changes}
    assert set(told) == {"ConfigMap shop/limits was changed", "NetworkPolicy shop/open was deleted"}
    assert (told["ConfigMap shop/limits was changed"].extra or {})["workloads"] == ["orders"]


@pytest.mark.slow
async def test_third_run_shows_the_difference_and_no_secret_is_stored(
    cluster: ServedCluster, store: Store
) -> None:
    later = AFTER | {"configmaps": [named("limits", data={"rate": "0", "password": "geheim-4711-xyz"})]}
    for run, further in (("inv-1", BEFORE), ("inv-2", AFTER)):
        await cluster.read(store, run, further)
    (change,) = await cluster.read(store, "inv-3", later)
    shown = [line for line in (change.diff or "").splitlines() if line.startswith(("-", "+"))][2:]
    assert shown == ["-  rate: '1'", "+  rate: '0'"]
    assert "geheim-4711-xyz" not in (change.diff or "")


@pytest.mark.slow
async def test_run_that_is_resumed_compares_with_the_same_run_as_before(
    cluster: ServedCluster, store: Store
) -> None:
    await cluster.read(store, "inv-1", BEFORE)
    first = await cluster.read(store, "inv-2", AFTER)
    again = await cluster.read(store, "inv-2", AFTER)
    assert [c.summary for c in again] == [c.summary for c in first]


@pytest.mark.slow
@pytest.mark.parametrize("other", [{"project": "bank"}, {"namespaces": ["shop"]}])
async def test_runs_of_another_project_or_part_are_not_compared(
    cluster: ServedCluster, store: Store, other: dict[str, Any]
) -> None:
    await cluster.read(store, "inv-1", BEFORE, **other)
    assert await cluster.read(store, "inv-2", AFTER) == []


@pytest.mark.slow
@pytest.mark.parametrize("refused_to", [("networkpolicies", "\0"), ("\0", "networkpolicies")])
async def test_kind_that_one_of_the_runs_may_not_list_is_not_deleted(
    cluster: ServedCluster, store: Store, refused_to: tuple[str, str]
) -> None:
    kept = AFTER | {"configmaps": BEFORE["configmaps"]}
    await cluster.read(store, "inv-1", BEFORE, refused=refused_to[0])
    assert await cluster.read(store, "inv-2", kept, refused=refused_to[1]) == []


async def test_what_was_seen_goes_with_its_run(cluster: ServedCluster, store: Store) -> None:
    await cluster.read(store, "inv-1", BEFORE)
    assert store.prune.remove("inv-1", cluster.clock.now() + timedelta(days=1))
    assert store.database.rows("SELECT run FROM seen_objects") == []
    assert await cluster.read(store, "inv-2", AFTER) == []


@pytest.mark.slow
async def test_damaged_row_costs_the_comparison_alone(cluster: ServedCluster, store: Store) -> None:
    await cluster.read(store, "inv-1", BEFORE)
    store.database.change("UPDATE seen_objects SET data = ?", (b"not compressed",))
    assert await cluster.read(store, "inv-2", AFTER) == []

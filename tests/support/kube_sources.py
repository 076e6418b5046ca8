"""A source of kind `kubernetes` at a served cluster, and clusters that refuse or hold more than the usual one."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contract_server import Asked, ContractServer, Reply
from kube_cluster import cluster, forbidden, kubeconfig
from live_rig import one

from opsleuth.state.clock import FakeClock
from opsleuth.tools.sources.live_source import LiveSource

CLOCK = FakeClock(datetime(2026, 3, 3, 14, 30, tzinfo=UTC))


def source_at(server: ContractServer, folder: Path, **more: Any) -> LiveSource:
    return one(CLOCK, kind="kubernetes", kubeconfig=str(kubeconfig(folder, server.url)), **more)


def refusing(*words: str, but: str = "\0") -> Callable[[Asked], Reply]:
    """The cluster, which forbids every path that holds one of these words."""

    def answering(asked: Asked) -> Reply:
        if any(word in asked.path for word in words) and but not in asked.path:
            return forbidden(asked)
        return cluster(asked)

    return answering


def serving(
    further: dict[str, list[dict[str, Any]]], *groups: str, refused: str = "\0"
) -> Callable[[Asked], Reply]:
    """The cluster with groups that it says it has (`group/version`), objects of further kinds, and one kind refused."""

    def answering(asked: Asked) -> Reply:
        kind = asked.path.split("/")[-1]
        if asked.path == "/apis":
            rows = [
                {"name": g.partition("/")[0], "versions": [{"version": g.partition("/")[2]}]} for g in groups
            ]
            return Reply({"kind": "APIGroupList", "groups": rows})
        if kind == refused:
            return forbidden(asked)
        return Reply({"metadata": {}, "items": further[kind]}) if kind in further else cluster(asked)

    return answering


WRITER = [
    {
        "manager": "kubectl-edit",
        "operation": "Update",
        "time": "2026-03-03T13:58:00Z",
        "fieldsV1": {"f:data": {}},
    }
]
FURTHER: dict[str, list[dict[str, Any]]] = {
    "services": [
        {
            "metadata": {"name": "orders", "namespace": "shop", "managedFields": WRITER},
            "spec": {"selector": {"app": "order"}, "ports": [{"port": 80}]},
        }
    ],
    "cronjobs": [{"metadata": {"name": "nightly", "namespace": "shop"}, "spec": {"suspend": True}}],
    "secrets": [
        {
            "metadata": {"name": "db", "namespace": "shop", "annotations": {"note": "geheim-4711"}},
            "data": {"password": "Z2VoZWltLTQ3MTE="},
        }
    ],
}

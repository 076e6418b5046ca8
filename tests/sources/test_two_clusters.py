"""Two clusters with a service of one name, through the program: every observation names its cluster, none mixes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contract_server import Asked, ContractServer, Reply, contract_server
from kube_cluster import cluster, kubeconfig
from stored_runs import Program

from opsleuth.state.run_status import ExitCode

WINDOW = ("--since", "2026-03-03T13:00:00Z", "--until", "2026-03-03T14:30:00Z")


def healthy(asked: Asked) -> Reply:
    """The same names as in `cluster`, nothing wrong with them: one pod each, another version."""
    reply = cluster(asked)
    kind = asked.path.split("/")[-1]
    if kind == "pods":
        return Reply({"items": [_well(pod) for pod in reply.body["items"]]})
    if kind == "replicasets":
        return Reply({"items": reply.body["items"][1:]})
    if kind == "events":
        return Reply({"items": []})
    if kind == "log":
        return Reply("2026-03-03T14:00:00Z INFO all is well in the west\n")
    return reply


def _well(pod: dict[str, Any]) -> dict[str, Any]:
    up = {
        "name": "app",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-03-01T00:00:00Z"}},
    }
    return pod | {"status": {"phase": "Running", "containerStatuses": [up]}}


@pytest.fixture
def east() -> Iterator[ContractServer]:
    with contract_server(cluster) as server:
        yield server


@pytest.fixture
def west() -> Iterator[ContractServer]:
    with contract_server(healthy) as server:
        yield server


@pytest.fixture
def program(tmp_path: Path, east: ContractServer, west: ContractServer) -> Program:
    file = tmp_path / ".config" / "opsleuth" / "config.toml"
    file.parent.mkdir(parents=True)
    parts = []
    for name, server in (("east", east), ("west", west)):
        (tmp_path / name).mkdir()
        path = kubeconfig(tmp_path / name, server.url)
        parts.append(
            f'[environments.prod.sources.{name}]\nkind = "kubernetes"\nkubeconfig = "{path}"\ntarget = "{name}"\n'
        )
    file.write_text("\n".join(parts))
    return Program(tmp_path / "db" / "opsleuth.db", tmp_path)


def asked(program: Program, tool: str, **arguments: Any) -> dict[str, Any]:
    ended = program("tools", "test", tool, "--args", json.dumps(arguments), *WINDOW, "--json")
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


@pytest.mark.slow
def test_every_row_names_its_cluster(program: Program) -> None:
    changes = asked(program, "changes_list", since="2026-02-01T00:00:00Z")["record"]["changes"]
    assert sorted((c["service"], c["version"]) for c in changes) == [
        ("east:orders", "2.13.2"),
        ("east:orders", "2.14.0"),
        ("west:orders", "2.13.2"),
    ]
    pods = asked(program, "objects_get", kind="Pod", name="orders", limit=10)["record"]["objects"]
    assert {pod["name"].partition(":")[0]: pod["restarts"] for pod in pods} == {"east": 3, "west": 0}
    lines = asked(program, "logs_search", service="west:orders")["record"]["lines"]
    assert {line["message"] for line in lines} == {"INFO all is well in the west"}
    neither = asked(program, "logs_search", service="orders")
    assert neither["status"] == "invalid_arguments"
    assert "east:orders" in json.dumps(neither)


@pytest.mark.slow
def test_a_run_asks_which_is_meant_and_never_mixes_them(program: Program) -> None:
    ended = program("run", "east:orders keeps restarting: why?", *WINDOW, "--planner", "offline", "--json")
    assert ended.returncode == ExitCode.OK, ended.stderr
    report = json.loads(program("report", "-", "--format", "json").stdout)
    named = [cause["service"] for cause in report["causes"]]
    assert named
    assert {name.partition(":")[0] for name in named} == {"east"}
    told = program("show", "-").stdout + json.dumps(report)
    assert "west:orders keeps" not in told
    unclear = program(
        "run", "orders keeps restarting: why?", *WINDOW, "--planner", "offline", "--json", "--no-input"
    )
    about = json.loads(program("report", "-", "--format", "json").stdout)
    assert unclear.returncode == ExitCode.OK, unclear.stderr
    assert (about.get("alert") or {}).get("service") is None

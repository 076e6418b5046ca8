"""The whole program over a real cluster: from an alert to the cause, to a rollback that somebody else approves, and back."""

import json
import re
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from kube_place import Namespace
from kube_real import TOKENS, ControlPlane, control_plane
from kubelet import Containers, Kubelet, kubelet, moment, not_pulled, out_of_memory
from servers import until
from stored_runs import Program

from opsleuth.state.run_status import ExitCode

pytestmark = pytest.mark.kubernetes

NEEDED = (("apps", ["deployments"], ["get", "patch"]), ("apps", ["replicasets"], ["list"]))


def configured(program: Program, **files: str) -> None:
    folder = program.home / ".config" / "opsleuth"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)


def source(name: str, file: Path, namespace: str, *more: str) -> str:
    lines = ('kind = "kubernetes"', f'kubeconfig = "{file}"', f'namespaces = ["{namespace}"]', *more)
    return "\n".join((f"[environments.prod.sources.{name}]", *lines, ""))


def document(program: Program, *arguments: str) -> dict[str, Any]:
    ended = program(*arguments)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


@pytest.fixture
def program(plane: ControlPlane, shop: Namespace, tmp_path: Path) -> Program:
    """Reads by the role `view`, changes by a role of its own."""
    shop.bind("oncall", "view")
    shop.allow("narrow", "changes", *NEEDED)
    reads = plane.kubeconfig(tmp_path / "reads", {"token": TOKENS["oncall"]}, namespace=shop.name)
    changes = plane.kubeconfig(tmp_path / "changes", {"token": TOKENS["narrow"]}, namespace=shop.name)
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
    policy = f'[kubernetes.eu]\nkubeconfig = "{changes}"\nnamespace = "{shop.name}"\n'
    configured(program, config=source("cluster", reads, shop.name), policy=policy)
    return program


def alert(folder: Path, shop: Namespace) -> Path:
    """What Alertmanager sends."""
    labels = {
        "alertname": "KubePodNotReady",
        "namespace": shop.name,
        "service": "orders",
        "severity": "critical",
    }
    said = {"summary": "orders has pods that are not ready"}
    path = folder / "alert.json"
    one = {"status": "firing", "labels": labels, "annotations": said, "startsAt": moment()}
    path.write_text(json.dumps({"version": "4", "status": "firing", "alerts": [one]}))
    return path


@pytest.mark.parametrize(
    ("states", "reason", "kind", "said"),
    [
        (not_pulled, "ImagePullBackOff", "image_pull", "ImagePullBackOff"),
        (out_of_memory, "CrashLoopBackOff", "out_of_memory", "OOMKilled; exit code 137; 4 restarts"),
    ],
)
def test_from_a_failing_rollout_to_the_rollback(
    program: Program, shop: Namespace, node: Kubelet, tmp_path: Path, states: Containers, reason: str, kind: str, said: str
) -> None:  # fmt: skip
    _fails(shop, node, states, reason)
    ended = program("run", "--alert", str(alert(tmp_path, shop)), "--planner", "offline", "--no-input")
    assert ended.returncode == ExitCode.WAITING, ended.stderr
    [approval] = document(program, "--json", "approvals", "-")["approvals"]
    assert approval["document"]["arguments"] == {"service": "orders", "version": "2.13.4"}
    assert "dry run accepted: version 2.14.0 to 2.13.4" in json.dumps(approval["document"])
    assert shop.image("orders") == "shop/orders:2.14.0"
    approved = program("approve", "-", "A1", "--digest", approval["digest"])
    assert approved.returncode == ExitCode.OK, approved.stderr
    assert shop.runs("orders", "shop/orders:2.13.4")
    report = document(program, "report", "-", "--format", "json")
    assert report["causes"][0]["service"] == "orders"
    assert report["causes"][0]["kind"] in (
        kind,
        "deploy",
    )  # what the pods die of, or the release that brought it
    assert [(e["status"], e["verified"]) for e in report["effects"]] == [("done", True)]
    claims = " ".join(claim["text"] for claim in report["claims"])
    assert said in claims
    assert re.search(r"deploy 2\.14\.0 of orders \d+ s before the onset", claims)
    assert 'cannot list resource "nodes"' in " ".join(report["not_available"])


def _fails(shop: Namespace, node: Kubelet, states: Containers, reason: str) -> None:
    """A rollout whose pods do not come up, beside a service that is well."""
    shop.release("payments", "shop/payments:1.0.0")
    shop.release("orders", "shop/orders:2.13.4", replicas=2, CACHE_MB="256")
    node.states["2.14.0"] = states
    time.sleep(
        2.5
    )  # the cluster tells ages in whole seconds, and a release is older than the one that follows it
    shop.deploy("orders", "shop/orders:2.14.0", replicas=2, CACHE_MB="4096")
    until(lambda: shop.waits("orders", reason))


def test_the_api_server_dies_in_the_middle_of_a_run(
    program: Program, plane: ControlPlane, shop: Namespace, node: Kubelet, tmp_path: Path
) -> None:
    """What was read until then is used, the report says what was not, and nothing is changed."""
    _fails(shop, node, out_of_memory, "CrashLoopBackOff")
    command = program.command(
        "run", "--alert", str(alert(tmp_path, shop)), "--planner", "offline", "--no-input"
    )
    try:
        with subprocess.Popen(command, env=program.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:  # fmt: skip
            assert run.stdout is not None
            for line in run.stdout:
                if " act " in line:
                    plane.kill()
                    break
            rest = run.stdout.read()
        assert run.returncode in (ExitCode.OK, ExitCode.INCONCLUSIVE), rest
    finally:
        plane.kill()
        plane.start()
    report = document(program, "report", "-", "--format", "json")
    assert "nothing answers at https://localhost" in " ".join(report["not_available"])
    assert [e["status"] for e in report["evidence"]].count("ok") >= 1
    assert report["effects"] == []
    assert shop.image("orders") == "shop/orders:2.14.0"


def test_two_clusters_with_a_namespace_and_a_service_of_one_name(
    plane: ControlPlane, admin: httpx.Client, node: Kubelet, tmp_path: Path
) -> None:
    """Every row names its cluster, and nothing of the healthy cluster is blamed."""
    with ExitStack() as stack:
        west = stack.enter_context(control_plane(tmp_path / "west"))
        other = stack.enter_context(west.admin())
        stack.enter_context(kubelet(other, west.folder))
        here, there = Namespace(admin, "shop"), Namespace(other, "shop")
        node.states.clear()
        there.release("orders", "shop/orders:2.13.4", replicas=2)
        _fails(here, node, out_of_memory, "CrashLoopBackOff")
        program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
        files = {name: p.kubeconfig(tmp_path / f"to-{name}", p.of_certificate("admin")) for name, p in (("east", plane), ("west", west))}  # fmt: skip
        parts = (source(name, file, "shop", f'target = "{name}"') for name, file in files.items())
        configured(program, config="\n".join(parts))
        changes = document(program, "tools", "test", "changes_list", "--args", "{}", "--json")
        assert {(c["service"], c["version"]) for c in changes["record"]["changes"]} == {
            ("east:orders", "2.13.4"),
            ("east:orders", "2.14.0"),
            ("east:payments", "1.0.0"),
            ("west:orders", "2.13.4"),
        }
        ended = program("run", "east:orders keeps restarting: why?", "--planner", "offline", "--read-only")
        assert ended.returncode == ExitCode.OK, ended.stderr
        report = document(program, "report", "-", "--format", "json")
    assert {cause["service"] for cause in report["causes"]} == {"east:orders"}

"""What a run costs on a cluster of 5,000 pods and 20,000 objects.

    PYTHONPATH=tests/support python benchmarks/cluster_cost.py [--pods 5000] [--namespace team-07] [--tries 3]

The cluster is behind a real HTTP server in a process of its own. Printed are CPU, time and peak memory of whole
runs without a model, and what they name: one Service of the cluster selects pods that do not exist.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from contract_server import contract_server
from kube_cluster import kubeconfig
from large_cluster import BROKEN, ClusterSize, LargeCluster

MEGABYTE = 1_000_000
# CPU and memory are measured: where others use the machine too, seconds must not end a call.
PATIENT = """
from opsleuth.cli import main
from opsleuth.state.budget import RunLimits
from opsleuth.tools.sources.kubernetes import KubernetesSource
KubernetesSource.fetch_seconds = 300.0
RunLimits.model_fields["call_seconds"].default = 400.0
RunLimits.model_rebuild(force=True)
main()
"""


def serve(pods: int) -> None:
    """Serve the cluster until standard input ends; its address and its counts are one line of JSON."""
    cluster = LargeCluster(datetime.now(UTC).timestamp(), ClusterSize(pods=pods))
    with contract_server(cluster) as server:
        sys.stdout.write(json.dumps({"url": server.url, "counts": dict(cluster.counts)}) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


def investigate(folder: Path, url: str, namespace: str | None) -> Mapping[str, Any]:
    """One run without a model: CPU, seconds, peak memory, the causes that it names."""
    (folder / ".config" / "opsleuth").mkdir(parents=True, exist_ok=True)
    narrowed = f"namespaces = [{namespace!r}]\n" if namespace else ""
    source = f'kind = "kubernetes"\nkubeconfig = "{kubeconfig(folder, url, namespace=namespace or "default")}"\ntimeout = 60\n{narrowed}'
    (folder / ".config" / "opsleuth" / "config.toml").write_text(
        f"[environments.shop.sources.cluster]\n{source}"
    )
    since = datetime.now(UTC) - timedelta(hours=1)
    question = f"requests to {BROKEN[1]} fail: why?"
    argv = [sys.executable, "-c", PATIENT, "--db", str(folder / "runs.db"), "--json", "--read-only", "run",
            question, "--since", since.strftime("%Y-%m-%dT%H:%M:%SZ"), "--planner", "offline"]  # fmt: skip
    began = time.monotonic()
    with subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, env=os.environ | {"HOME": str(folder)}
    ) as running:
        text = running.stdout.read() if running.stdout else b""
        _, code, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(code)
    last = json.loads(text.splitlines()[-1])
    shown = subprocess.run(
        [sys.executable, "-m", "opsleuth", "--db", str(folder / "runs.db"), "report", last["run"], "--format", "json"],
        capture_output=True, check=True, env=os.environ | {"HOME": str(folder)},
    )  # fmt: skip
    report = json.loads(shown.stdout)
    causes = report["causes"]
    return {
        "cpu": usage.ru_utime + usage.ru_stime,
        "seconds": time.monotonic() - began,
        "memory": usage.ru_maxrss * 1024 / MEGABYTE,
        "code": running.returncode,
        "causes": [(c["service"], c["kind"]) for c in causes[:3]],
        "missing": report["not_available"],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=5_000)
    parser.add_argument("--namespace")
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--serve", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve(options.pods)
        return
    argv = [sys.executable, __file__, "--serve", "--pods", str(options.pods)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        told = json.loads(server.stdout.readline() if server.stdout else "{}")
        print(f"{sum(told['counts'].values()):,} objects: {told['counts']}")
        print(
            "| CPU s | seconds | peak MB | exit | named | missing |\n| ---: | ---: | ---: | ---: | --- | --- |"
        )
        for _ in range(options.tries):
            with tempfile.TemporaryDirectory() as folder:
                found = investigate(Path(folder), told["url"], options.namespace)
            named = ", ".join(" ".join(pair) for pair in found["causes"])
            print(
                f"| {found['cpu']:.1f} | {found['seconds']:.1f} | {found['memory']:.0f} | {found['code']} | {named} | {found['missing']} |"
            )
        if server.stdin:
            server.stdin.close()


if __name__ == "__main__":
    main()

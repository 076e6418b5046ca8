"""A real Kubernetes control plane on loopback: etcd, API server and controllers, as `.ci/kubernetes` builds them.

TLS with an authority of its own, certificates and tokens, RBAC. Whoever needs what a kubelet does takes `kubelet.py`.
"""

import os
import ssl
import subprocess
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from certificates import certificates, signed
from kube_cluster import kubeconfig
from servers import answers, free_port, running

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PROGRAMS = _CACHE / "opsleuth-tests" / "kubernetes" / "bin"
TOKENS = {
    "oncall": "token-of-oncall",
    "reader": "token-of-reader",
    "narrow": "token-of-narrow",
    "nobody": "token-of-nobody",
}
CONTROLLERS = ("deployment", "replicaset", "statefulset", "daemonset", "job", "garbagecollector", "namespace", "resourcequota", "clusterrole-aggregation")  # fmt: skip
_MERGE = {"content-type": "application/merge-patch+json"}


def program(name: str) -> str:
    """Its path. Skips the test where it was not built: also in CI, for it takes too long there."""
    path = PROGRAMS / name
    if not path.exists():
        pytest.skip(f"{name} is not built: make kubernetes-test builds it")
    return str(path)


class ControlPlane:
    """One cluster. `folder` holds its authority; `admin` may do everything."""

    def __init__(self, folder: Path, etcd: str) -> None:
        self.folder, self._etcd = folder, etcd
        self._port = free_port()
        self.url = f"https://localhost:{self._port}"
        self._stack = ExitStack()
        self._trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        self._trust.load_cert_chain(folder / "admin.pem", folder / "admin.key")
        self._server: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = [program("kube-apiserver"), *(f"--{name}={value}" for name, value in self._options().items())]
        self._server = self._stack.enter_context(running(argv, _made(self.folder / "api"), self._ready))

    def kill(self) -> None:
        """At once, as a machine that loses its power."""
        if self._server:
            self._server.kill()
        self._stack.close()

    def compact(self) -> str:
        """The store forgets everything but what is now; the revision until which it did."""
        post = partial(httpx.post, timeout=10)
        now = post(f"{self._etcd}/v3/kv/range", json={"key": b64encode(b"x").decode()}).json()["header"][
            "revision"
        ]
        post(f"{self._etcd}/v3/kv/compaction", json={"revision": now, "physical": True}).raise_for_status()
        return str(now)

    def admin(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, verify=self._trust, timeout=30)

    def kubeconfig(
        self, folder: Path, user: Mapping[str, Any], *, namespace: str = "shop", **cluster: Any
    ) -> Path:
        """One that leads here, by the right authority unless `cluster` names another one."""
        own = {"certificate-authority": str(self.folder / "ca.pem")} | cluster
        return kubeconfig(_made(folder), self.url, user, namespace=namespace, **own)

    def of_certificate(self, name: str) -> dict[str, str]:
        """The user of a kubeconfig with this certificate."""
        return {"client-certificate": str(self.folder / f"{name}.pem"), "client-key": str(self.folder / f"{name}.key")}  # fmt: skip

    def _options(self) -> Mapping[str, str]:
        folder = self.folder
        return {
            "etcd-servers": self._etcd,
            "bind-address": "127.0.0.1",
            "secure-port": str(self._port),
            "insecure-port": "0",
            "tls-cert-file": str(folder / "server.pem"),
            "tls-private-key-file": str(folder / "server.key"),
            "client-ca-file": str(folder / "ca.pem"),
            "token-auth-file": str(folder / "tokens.csv"),
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://localhost",
            "service-account-key-file": str(folder / "ca.key"),
            "service-account-signing-key-file": str(folder / "ca.key"),
            "service-cluster-ip-range": "10.96.0.0/16",
            "disable-admission-plugins": "ServiceAccount",  # nobody here makes accounts for pods
            "kubelet-client-certificate": str(folder / "admin.pem"),
            "kubelet-client-key": str(folder / "admin.key"),
            "shutdown-delay-duration": "0s",
        }

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2, context=self._trust) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """A cluster with nothing in it but its own roles."""
    etcd, controllers = program("etcd"), program("kube-controller-manager")
    certificates(_made(folder))
    signed(folder, "admin", "/O=system:masters/CN=admin")
    signed(folder, "oncall", "/CN=oncall")
    rows = (f'{token},{name},{name},""\n' for name, token in TOKENS.items())
    (folder / "tokens.csv").write_text("".join(rows))
    with ExitStack() as stack:
        plane = ControlPlane(folder, stack.enter_context(_etcd(folder / "etcd", etcd)))
        plane.start()
        stack.callback(plane.kill)
        stack.enter_context(_controllers(plane, controllers))
        yield plane


@contextmanager
def _etcd(folder: Path, program: str) -> Iterator[str]:
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    argv = [program, f"--data-dir={folder / 'data'}", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"]  # fmt: skip
    with running(argv, _made(folder), answers(f"{client}/health")):
        yield client


@contextmanager
def _controllers(plane: ControlPlane, program: str) -> Iterator[None]:
    folder, port = _made(plane.folder / "controllers"), free_port()
    file = plane.kubeconfig(folder, plane.of_certificate("admin"))
    argv = [program, f"--kubeconfig={file}", "--leader-elect=false", "--port=0", "--bind-address=127.0.0.1", f"--secure-port={port}",
            f"--authorization-kubeconfig={file}", f"--authentication-kubeconfig={file}", f"--cert-dir={folder}",
            f"--controllers={','.join(CONTROLLERS)}", "--kube-api-qps=200", "--kube-api-burst=400"]  # fmt: skip
    with plane.admin() as admin, running(argv, folder, lambda: _rules_of_view(admin)):
        yield


def _rules_of_view(admin: httpx.Client) -> bool:
    """The role `view` has its rules by a controller: then they are at work."""
    answer = admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")
    return bool(answer.status_code == 200 and answer.json().get("rules"))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder

"""Stands in for the nodes of a real control plane: it runs nothing, but says of every pod what a kubelet would.

A pod's image decides: one whose tag is in `states` gets that state, any other runs and is ready. Logs are served as a
kubelet serves them to the API server.
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from contract_server import Asked, Reply, contract_server

NODE = "node-1"
Document = Mapping[str, Any]
Containers = Callable[[str], dict[str, Any]]
"""What a container's status adds to its name and image, given the image."""
Logs = dict[tuple[str, bool], str]
"""Texts by pod, and whether of the run before."""


def runs(_: str) -> dict[str, Any]:
    return {"ready": True, "started": True, "state": {"running": {"startedAt": moment()}}}


def not_pulled(image: str) -> dict[str, Any]:
    said = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
    return {"ready": False, "started": False, "state": {"waiting": said}}


def out_of_memory(image: str) -> dict[str, Any]:
    del image
    ended = {"reason": "OOMKilled", "exitCode": 137, "startedAt": moment(-40), "finishedAt": moment(-20)}
    said = {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container=app"}
    return {"ready": False, "started": False, "restartCount": 4, "state": {"waiting": said}, "lastState": {"terminated": ended}}  # fmt: skip


_TOLD: Mapping[str, tuple[str, str]] = {
    "ImagePullBackOff": ("Failed", "Failed to pull image: rpc error: code = NotFound: manifest unknown"),
    "CrashLoopBackOff": ("BackOff", "Back-off restarting failed container"),
}


def moment(seconds: float = 0.0) -> str:
    """Now, or so many seconds from now, as the API writes it."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """The one node. `states` may be changed at any time: it holds for pods that come afterwards."""

    def __init__(self, admin: httpx.Client, port: int, logs: Logs) -> None:
        self.states: dict[str, Containers] = {}
        self.logs = logs
        self._admin, self._port = admin, port
        self._stopped = threading.Event()

    def register(self) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": moment()}
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
            "conditions": [ready],
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        }
        done = self._admin.post("/api/v1/nodes", json={"metadata": {"name": NODE}, "status": status})
        done.raise_for_status()

    def watch(self) -> None:
        """Until `stop`: every pod that comes is placed, given its state, and taken away when it is deleted."""
        while not self._stopped.is_set():
            try:
                self._watched()
            except httpx.TransportError:
                self._stopped.wait(0.2)  # the API server is away: it may come again

    def stop(self) -> None:
        self._stopped.set()

    def _watched(self) -> None:
        # A watch of a second begins with what there is: nothing is lost between two of them.
        with self._admin.stream(
            "GET", "/api/v1/pods", params={"watch": "1", "timeoutSeconds": "1"}
        ) as stream:
            for line in stream.iter_lines():
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._seen(event["object"])

    def _seen(self, pod: Document) -> None:
        meta, path = pod["metadata"], _path(pod)
        if meta.get("deletionTimestamp"):
            self._admin.request("DELETE", path, json={"gracePeriodSeconds": 0})
        elif not pod["spec"].get("nodeName"):
            target = {"kind": "Node", "name": NODE}
            self._admin.post(f"{path}/binding", json={"metadata": {"name": meta["name"]}, "target": target})
        elif not pod["status"].get("containerStatuses"):
            self.tell(pod)

    def tell(self, pod: Document) -> None:
        """Its status, and an event where something is wrong with it."""
        containers = [self._container(c) for c in pod["spec"]["containers"]]
        ready = "True" if all(c["ready"] for c in containers) else "False"
        started = all("waiting" not in c["state"] or c["restartCount"] for c in containers)
        conditions = [
            {"type": kind, "status": value, "lastTransitionTime": moment()}
            for kind, value in (("Initialized", "True"), ("Ready", ready), ("ContainersReady", ready), ("PodScheduled", "True"))
        ]  # fmt: skip
        status = {
            "phase": "Running" if started else "Pending",
            "conditions": conditions,
            "containerStatuses": containers,
            "startTime": moment(),
        }
        headers = {"content-type": "application/strategic-merge-patch+json"}
        self._admin.patch(f"{_path(pod)}/status", json={"status": status}, headers=headers)
        for container in containers:
            reason = container["state"].get("waiting", {}).get("reason")
            if reason in _TOLD:
                self._event(pod, *_TOLD[reason])

    def _container(self, container: Document) -> dict[str, Any]:
        image = str(container["image"])
        state = self.states.get(image.rpartition(":")[2], runs)(image)
        return {"name": container["name"], "image": image, "imageID": "", "restartCount": 0, **state}

    def _event(self, pod: Document, reason: str, message: str) -> None:
        meta = pod["metadata"]
        about = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]}  # fmt: skip
        event = {
            "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
            "involvedObject": about,
            "reason": reason,
            "message": message,
            "type": "Warning",
            "count": 7,
            "firstTimestamp": moment(),
            "lastTimestamp": moment(),
            "source": {"component": "kubelet", "host": NODE},
        }
        self._admin.post(f"/api/v1/namespaces/{meta['namespace']}/events", json=event)


def _path(pod: Document) -> str:
    meta = pod["metadata"]
    return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


@contextmanager
def kubelet(admin: httpx.Client, keys: Path) -> Iterator[Kubelet]:
    """One that watches while the block runs; `keys` is the folder of the cluster's authority."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(keys / "server.pem", keys / "server.key")
    logs: Logs = {}
    with contract_server(partial(_log, logs), tls) as server:
        node = Kubelet(admin, server.server_address[1], logs)
        node.register()
        thread = threading.Thread(target=node.watch)
        thread.start()
        try:
            yield node
        finally:
            node.stop()
            thread.join()


def _log(logs: Logs, asked: Asked) -> Reply:
    """What a kubelet tells the API server of a container's log."""
    *_, pod, container = asked.path.split("/")
    text = logs.get((pod, asked.query.get("previous") == "true"))
    if text is None:
        return Reply(f'previous terminated container "{container}" in pod "{pod}" not found', 400)
    return Reply(text)

"""The keeper of the lab: one process that starts all others, breaks and mends them, and ends with them.

    python -m opsleuth.scenarios.lab.keeper FOLDER --orders N --seconds S [--parent PID]

Each line of its output is something done; `ready` is the last. It ends at SIGTERM, after `seconds`, and when the
process PID is gone; if it is killed, the kernel ends what it started.

    GET  /lab          what runs, and how it is     POST /faults/NAME   POST /heal   POST /down
    POST /alerts       where Alertmanager sends     and the control plane's routes, for rollback and restart
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import psycopg

from opsleuth.scenarios.lab.faults import LabFaults
from opsleuth.scenarios.lab.processes import LabStartError
from opsleuth.scenarios.lab.shop import LabShop
from opsleuth.scenarios.lab.world import LabWorld
from opsleuth.scenarios.plane.engine import PlaneEngine, PlaneResponse
from opsleuth.scenarios.plane.ledger import PlaneLedger
from opsleuth.scenarios.plane.state import OPERATIONS
from opsleuth.scenarios.plane.switches import FaultSwitches
from opsleuth.scenarios.plane.web import UNMEASURED_READS, PlaneHandler, PlaneServer

_SNAPSHOT_EVERY = 2.0
_LOOK_EVERY = 0.5


class LabKeeper:
    """What the keeper knows besides its shop: the last alerts, since when all has been well, and when it ends."""

    def __init__(self, shop: LabShop, world: LabWorld, seconds: float) -> None:
        self.shop, self.world = shop, world
        self.faults = LabFaults(
            shop,
            lambda subject, file, edit, kind: world.deploy(subject, file, edit, kind, time.time()),
            lambda: world.undo_release(time.time()),
        )
        self.began = time.time()
        self.until = self.began + seconds
        self.well_since: float | None = None
        self.fault_at: float | None = None
        self.alerted_at: float | None = None
        self.stop = threading.Event()

    def watch(self, parent: int | None) -> None:
        """Look after the shop until it is time to end."""
        snapshot_at = 0.0
        while not self.stop.wait(_LOOK_EVERY):
            now = time.time()
            if now >= self.until or (parent is not None and not _is_running(parent)):
                return
            wrong = self.shop.wrong()
            self.well_since = None if wrong or self.faults.now else self.well_since or now
            if now >= snapshot_at:
                snapshot_at = now + _SNAPSHOT_EVERY
                self._snapshot()

    def _snapshot(self) -> None:
        try:
            self.shop.watch()
        except psycopg.Error as error:
            sys.stderr.write(f"no snapshot: {error}\n")

    def document(self) -> dict[str, Any]:
        fault = self.faults.now
        return {
            "folder": str(self.shop.folder),
            "began": self.began,
            "until": self.until,
            "version": self.shop.version,
            "wrong": self.shop.wrong(),
            "well_since": self.well_since,
            "fault": fault and {"name": fault.name, "happens": fault.happens, "service": fault.service, "kind": fault.kind},
            "fault_at": self.fault_at,
            "alerted_at": self.alerted_at,
            "processes": [{"name": "keeper", "pid": os.getpid(), "port": None, "runs": True}, *self.shop.processes.listed()],
        }  # fmt: skip

    def inject_fault(self, name: str) -> dict[str, Any]:
        self.alerted_at, self.well_since, self.fault_at = None, None, time.time()
        self.faults.begin(name)
        return self.document()

    def heal(self) -> dict[str, Any]:
        self.faults.heal()
        self.well_since = None
        return self.document()

    def alerted(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Keep what fires, as Alertmanager sent it; that it is over is no alert."""
        if document.get("status") == "firing":
            part = self.shop.folder / "alert.part"
            part.write_text(json.dumps(document, indent=1), encoding="utf-8")
            part.replace(self.shop.folder / "alert.json")
            self.alerted_at = self.alerted_at or time.time()
        return {}


class KeeperServer(PlaneServer):
    """The control plane with the lab's own routes. `keeper` is set once the shop is up."""

    def __init__(self, engine: PlaneEngine) -> None:
        super().__init__(0, engine)
        self.reads = UNMEASURED_READS
        self.RequestHandlerClass = _KeeperHandler
        self.keeper: LabKeeper | None = None


class _KeeperHandler(PlaneHandler):
    server: KeeperServer

    def _get(self) -> PlaneResponse:
        keeper = self.server.keeper
        if keeper is not None and urlsplit(self.path).path == "/lab":
            return PlaneResponse(HTTPStatus.OK, keeper.document())
        return super()._get()

    def _post(self) -> PlaneResponse:
        keeper = self.server.keeper
        first, *rest = urlsplit(self.path).path.strip("/").split("/")
        if keeper is None or first not in ("alerts", "faults", "heal", "down"):
            return super()._post()
        body = self._body()
        if first == "alerts":
            return PlaneResponse(HTTPStatus.OK, keeper.alerted(body))
        if first == "down":
            keeper.stop.set()
            return PlaneResponse(HTTPStatus.OK, keeper.document())
        return PlaneResponse(
            HTTPStatus.OK, keeper.heal() if first == "heal" else keeper.inject_fault("/".join(rest))
        )


def _is_running(pid: int) -> bool:
    """Whether the process is there and has not ended (one that nobody has waited for yet has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--orders", type=int, required=True)
@click.option("--seconds", type=float, required=True)
@click.option("--parent", type=int)
def main(folder: Path, orders: int, seconds: float, parent: int | None) -> None:
    shop = LabShop(folder, orders, _print_progress)
    try:
        _keep_shop(shop, seconds, parent)
    except (LabStartError, subprocess.CalledProcessError, psycopg.Error, OSError) as error:
        _print_progress(f"failed: {error}")
        sys.exit(1)
    finally:
        shop.end()
        (folder / "lab.json").unlink(missing_ok=True)


def _keep_shop(shop: LabShop, seconds: float, parent: int | None) -> None:
    """Everything between up and down."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ledger = PlaneLedger(shop.folder / "done.jsonl", time.time())
    world = LabWorld(ledger, shop)
    server = KeeperServer(PlaneEngine(world, FaultSwitches(frozenset(OPERATIONS))))
    url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    (shop.folder / "lab.json").write_text(json.dumps({"pid": os.getpid(), "url": url}))
    shop.begin(url, seconds)
    world.begin()
    server.keeper = keeper = LabKeeper(shop, world, seconds)
    place = shop.folder / ".opsleuth" / "config.toml"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    place.write_text(shop.config(url))
    place.chmod(0o600)
    _print_progress("ready")
    try:
        keeper.watch(parent)
    finally:
        keeper.faults.leave()
        server.shutdown()
        server.stop()


def _print_progress(text: str) -> None:
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        return  # nobody listens any more


if __name__ == "__main__":
    main()

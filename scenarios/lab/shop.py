"""The shop that the keeper holds: starts every process in order, runs releases, and knows whether all is well."""

import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from opsleuth.scenarios.lab import monitoring
from opsleuth.scenarios.lab.database import CUSTOMERS, HISTORY, LabDatabase
from opsleuth.scenarios.lab.processes import LabProcesses, LabProgram, free_ports, make_readiness_check
from opsleuth.scenarios.lab.releases import SERVICE, ReleaseRepository

RATE = 30.0
"""Requests a second that the customers send."""
_CONFIG = """\
# Written by opsleuth lab: what it may look at, and through what it may act.
[options]
environment = "lab"

[environments.lab.sources.metrics]
kind = "prometheus"
url = "http://127.0.0.1:{prometheus}"
service_labels = ["service"]
step = 1
rate = 5
before = 0

[environments.lab.sources.database]
kind = "postgres"
name = "orders-db"
dsn = "host=127.0.0.1 port={database} dbname=postgres user=watcher"
history = "{history}"
before = 0

[environments.lab.sources.changes]
kind = "git"
path = "repository"
service = "orders-api"

[environments.lab.sources.logs]
kind = "logfiles"
files = ["logs/*.log"]
before = 0

[environments.lab.platform]
url = "{keeper}"
name = "lab"

[services.orders-api]
aliases = ["orders"]
calls = ["orders-db", "payments"]
"""


class LabShop:
    """All of the lab but the keeper itself. `tell` is given each thing that is done, in words."""

    def __init__(self, folder: Path, orders: int, tell: Callable[[str], None]) -> None:
        self.folder, self._orders, self._tell = folder, orders, tell
        names = ("orders", "payments", "database", "prometheus", "alertmanager")
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.processes = LabProcesses(folder)
        self.database = LabDatabase(folder / "db", self.ports["database"])
        self.releases = ReleaseRepository(folder / "repository", folder / "running")
        self.version = ""

    @property
    def orders_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['orders']}"

    @property
    def payments_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['payments']}"

    def begin(self, keeper: str, seconds: float) -> None:
        """Start everything; customers come for `seconds`. Raises NotStarted, CalledProcessError."""
        for name in ("logs", "output"):
            (self.folder / name).mkdir()
        self.database.create()
        self.processes.start(self.database.server(self._log("orders-db")))
        self._tell(f"PostgreSQL is up; it gets {self._orders:,} orders")
        self.database.fill(self._orders)
        first = self.releases.create(self.database.dsn("postgres"), self.payments_url)
        self.processes.start(self._payments())
        self.run_release(first)
        self._tell(f"orders-api {first} is up")
        watched = {SERVICE: self.ports["orders"], "payments": self.ports["payments"]}
        alerts, metrics = self.ports["alertmanager"], self.ports["prometheus"]
        self.processes.start(
            monitoring.prepare_alertmanager(self.folder / "alertmanager", alerts, f"{keeper}/alerts")
        )
        self.processes.start(
            monitoring.prepare_prometheus(self.folder / "prometheus", metrics, alerts, watched)
        )
        self.processes.start(self._load(seconds))
        self._tell("Prometheus, Alertmanager and the customers are up")

    def end(self) -> None:
        """End every process, and remove what is large."""
        self.processes.end_all()
        for name in ("db", "prometheus", "alertmanager"):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def run_release(self, version: str) -> None:
        """Stop the release that runs and start this one."""
        self.processes.end(SERVICE)
        self.processes.start(self._orders_api(version, self.releases.check_out(version)))
        self.version = version

    def restart(self, service: str) -> None:
        if service == SERVICE:
            self.run_release(self.version)
        else:
            self.processes.end(service)
            self.processes.start(self._payments())

    def wrong(self) -> list[str]:
        """What is not as it should be, by Prometheus; also if that cannot be asked."""
        with suppress(OSError):
            return monitoring.list_firing_conditions(self.ports["prometheus"])
        return ["prometheus"]

    def watch(self) -> None:
        """Keep a snapshot of the database's statements."""
        self.database.snapshot()

    def config(self, keeper: str) -> str:
        """The configuration file for investigations in the lab's folder."""
        return _CONFIG.format(**self.ports, keeper=keeper, history=HISTORY)

    # --- programs ----------------------------------------------------------------------------------------------

    def _orders_api(self, version: str, folder: Path) -> LabProgram:
        port = self.ports["orders"]
        argv = [
            *(sys.executable, str(folder / "orders_api.py"), "--folder", str(folder), "--port", str(port)),
            *("--log", str(self._log(SERVICE)), "--version", version),
        ]
        return LabProgram(
            name=SERVICE, argv=argv, ready=make_readiness_check(f"{self.orders_url}/metrics"), port=port
        )

    def _payments(self) -> LabProgram:
        port = self.ports["payments"]
        argv = [
            *(sys.executable, "-m", "opsleuth.scenarios.lab.payments"),
            *("--port", str(port), "--log", str(self._log("payments"))),
        ]
        return LabProgram(
            name="payments", argv=argv, ready=make_readiness_check(f"{self.payments_url}/metrics"), port=port
        )

    def _load(self, seconds: float) -> LabProgram:
        argv = [
            *(sys.executable, "-m", "opsleuth.scenarios.lab.load", "--url", self.orders_url),
            *("--rate", str(RATE), "--seconds", str(seconds), "--customers", str(CUSTOMERS)),
        ]
        return LabProgram(name="customers", argv=argv, ready=lambda: True)

    def _log(self, service: str) -> Path:
        return self.folder / "logs" / f"{service}.log"

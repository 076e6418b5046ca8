"""The shop as the control plane offers it: services that can be rolled back and restarted, really."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from threading import RLock
from typing import Any

from opsleuth.scenarios.lab.releases import SERVICE, Edit
from opsleuth.scenarios.lab.shop import LabShop
from opsleuth.scenarios.plane.ledger import AppliedOperation, PlaneLedger
from opsleuth.scenarios.plane.state import PlaneError, PlaneWorld, ServiceState

_OFFERED = ("restart", "rollback")


@dataclass(slots=True)
class MonitoredService(ServiceState):
    """A service whose health is what its monitoring says."""

    wrong: Callable[[], list[str]] = list

    def document(self) -> dict[str, Any]:
        wrong = self.wrong()
        health = ", ".join(wrong) if wrong else "healthy"
        return ServiceState.document(self) | {"health": health, "versions": self._good()}

    def _good(self) -> list[str]:
        """What ran, without the releases that were taken back: nobody should go back to those."""
        good: list[str] = []
        for _, version in self.history:
            good = good[: good.index(version)] if version in good else good
            good.append(version)
        return good


class LabWorld(PlaneWorld):
    """The services of the shop; what is applied to them is done to the processes before it is answered."""

    def __init__(self, ledger: PlaneLedger, shop: LabShop) -> None:
        self._ledger = ledger
        self._shop = shop
        self.lock = RLock()
        self.born = ledger.born
        self.services = {}
        self.messages: Counter[str] = Counter()
        self.refunded_cents: Counter[str] = Counter()

    def begin(self) -> None:
        """The shop is up: what runs there is what can be changed."""
        now = self.born
        self.services[SERVICE] = MonitoredService(
            SERVICE, [(now, self._shop.version)], 1, wrong=self._shop.wrong
        )
        self.services["payments"] = MonitoredService("payments", [(now, "5.2.0")], 1)

    def check(self, operation: str, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if operation not in _OFFERED:
            raise PlaneError(
                HTTPStatus.CONFLICT, f"the lab does not {operation}; it does {' and '.join(_OFFERED)}"
            )
        return super().check(operation, target, arguments)

    def apply(
        self, operation: str, target: str, arguments: Mapping[str, Any], key: str | None, now: float
    ) -> AppliedOperation:
        with self.lock:
            application = super().apply(operation, target, arguments, key, now)
            if operation == "restart":
                self._shop.restart(target)
            else:
                self._take_back(application.arguments["version"])
            return application

    def deploy(self, subject: str, file: str, edit: Edit, kind: str, now: float) -> None:
        """Make a release of the edit and run it."""
        with self.lock:
            service = self.services[SERVICE]
            version = next_version(service.history[0][1], len(service.history), kind)
            self._shop.releases.release(version, subject, file, edit, kind)
            self._shop.run_release(version)
            service.history.append((now, version))
            service.revision += 1

    def undo_release(self, now: float) -> None:
        """Back to the first release, unless it runs already."""
        with self.lock:
            service = self.services[SERVICE]
            first = service.history[0][1]
            if service.version != first:
                self.apply("rollback", SERVICE, {"version": first}, None, now)

    def _take_back(self, version: str) -> None:
        self._shop.releases.take_back(version)
        self._shop.run_release(version)


def next_version(first: str, releases: int, kind: str) -> str:
    """The version after so many releases: a change of configuration counts the patch, a deploy the minor number."""
    major, minor, patch = first.split(".")
    return (
        f"{major}.{minor}.{int(patch) + releases}"
        if kind == "config"
        else f"{major}.{int(minor) + releases}.0"
    )

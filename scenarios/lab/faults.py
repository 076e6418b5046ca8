"""The seven ways in which the lab can be broken, each with its truth and how it is undone."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.request import Request, urlopen

import psycopg

from opsleuth.scenarios.lab.database import INDEX
from opsleuth.scenarios.lab.load import send_request as request
from opsleuth.scenarios.lab.releases import BAD_SETTING, SERVICE, WORSE_QUERY, Edit
from opsleuth.scenarios.lab.shop import LabShop
from opsleuth.state.errors import UsageError

LEAKS = 40
"""Exports that are asked for at most: more than the pool has connections."""
_SECONDS_BETWEEN = 0.2


class UnknownFaultError(UsageError, ValueError):
    """A fault that the lab does not have."""


@dataclass(slots=True)
class ActiveFault:
    """What holds a fault up: whatever must be let go of to undo it."""

    undo: list[Callable[[], None]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)


Break = Callable[["LabFaults", ActiveFault], None]


@dataclass(frozen=True, slots=True)
class LabFault:
    """One fault: what happens, and its truth, the service and kind that an investigation should name first."""

    name: str
    happens: str
    service: str
    kind: str
    begin: Break


class LabFaults:
    """The faults of one shop: at most one at a time. `deploy` makes a release of an edit and runs it."""

    def __init__(
        self, shop: LabShop, deploy: Callable[[str, str, Edit, str], None], back: Callable[[], None]
    ) -> None:
        self.shop, self.deploy, self.back = shop, deploy, back
        self.now: LabFault | None = None
        self._broken = ActiveFault()

    def begin(self, name: str) -> LabFault:
        """Raises UnknownFaultError."""
        if name not in FAULTS:
            raise UnknownFaultError(f"there is no fault {name!r}; choose from {', '.join(FAULTS)}")
        self.now, self._broken = FAULTS[name], ActiveFault()
        self.now.begin(self, self._broken)
        return self.now

    def heal(self) -> None:
        """Undo what was done, unless an operator has already."""
        self._broken.ended.set()
        for undo in reversed(self._broken.undo):
            undo()
        self.now, self._broken = None, ActiveFault()

    def leave(self) -> None:
        """Let go of everything, for the end."""
        self._broken.ended.set()

    def behave(self, **values: float) -> None:
        """Tell the payments service how to be; without values as usual."""
        query = "&".join(f"{name}={value}" for name, value in values.items())
        with urlopen(Request(f"{self.shop.payments_url}/behave?{query}", method="POST"), timeout=5) as answer:
            answer.read()


def _release_worse_query(faults: LabFaults, broken: ActiveFault) -> None:
    faults.deploy(
        "Find orders whatever the customer's number is written like", "queries.toml", WORSE_QUERY, "deploy"
    )
    broken.undo.append(faults.back)


def _release_bad_setting(faults: LabFaults, broken: ActiveFault) -> None:
    faults.deploy("Tighten the time limit of payments", "settings.toml", BAD_SETTING, "config")
    broken.undo.append(faults.back)


def _drop_index(faults: LabFaults, broken: ActiveFault) -> None:
    faults.shop.database.execute("DROP INDEX orders_customer")
    broken.undo.append(lambda: faults.shop.database.execute(INDEX))


def _hold_lock(faults: LabFaults, broken: ActiveFault) -> None:
    """Somebody corrects the stock by hand and goes for lunch before the commit."""
    holder = psycopg.connect(faults.shop.database.dsn("postgres"), application_name="psql")
    holder.execute("UPDATE stock SET reserved = 0")
    broken.undo.append(holder.close)


def _leak_connections(faults: LabFaults, broken: ActiveFault) -> None:
    def export() -> None:
        for page in range(LEAKS):
            if broken.ended.wait(_SECONDS_BETWEEN):
                return
            request(faults.shop.orders_url, "GET", f"/export?page={page}")

    threading.Thread(target=export, daemon=True).start()
    broken.undo.append(lambda: faults.shop.restart(SERVICE))


def _slow_payments(faults: LabFaults, broken: ActiveFault) -> None:
    faults.behave(delay=0.4)
    broken.undo.append(faults.behave)


def _fail_payments(faults: LabFaults, broken: ActiveFault) -> None:
    faults.behave(fails=0.6)
    broken.undo.append(faults.behave)


FAULTS: Mapping[str, LabFault] = {
    fault.name: fault
    for fault in (
        LabFault("release", "a release with a worse query", SERVICE, "deploy", _release_worse_query),
        LabFault("index", "an index is dropped", "orders-db", "slow_query", _drop_index),
        LabFault("lock", "an idle transaction holds a lock", "orders-db", "locks", _hold_lock),
        LabFault("pool", "connections are never given back", SERVICE, "connections", _leak_connections),
        LabFault("slow", "payments become slow", "payments", "latency", _slow_payments),
        LabFault("config", "a setting is wrong", SERVICE, "config", _release_bad_setting),
        LabFault("errors", "payments fail", "payments", "errors", _fail_payments),
    )
}

"""The world behind the control plane: services that can be changed, and two things that only add up."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from threading import RLock
from typing import Any

from opsleuth.scenarios.orders_incident import BAD_VERSION, GOOD_VERSION, PROFILE
from opsleuth.scenarios.plane.ledger import AppliedOperation, PlaneLedger
from opsleuth.state.errors import OpsleuthError

# How long before the world was born the bad release came, in seconds.
RELEASE_AGE = 1920.0


class PlaneError(OpsleuthError):
    """A request that the control plane cannot carry out; `status` is its HTTP status."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True)
class ServiceState:
    """One service. `revision` grows with every change; `history` holds (time, version), oldest first."""

    name: str
    history: list[tuple[float, str]]
    replicas: int = 3
    restarts: list[float] = field(default_factory=list)
    flags: dict[str, bool] = field(default_factory=dict)
    revision: int = 1
    deleted_at: float | None = None

    @property
    def version(self) -> str:
        return self.history[-1][1]

    def version_at(self, moment: float) -> str:
        """The version that ran at `moment`; the oldest known one before that."""
        return next((v for at, v in reversed(self.history) if at <= moment), self.history[0][1])

    def previous(self) -> str:
        """The version before the present one; raises PlaneError if there is none."""
        other = next((v for _, v in reversed(self.history) if v != self.version), None)
        if other is None:
            raise PlaneError(HTTPStatus.CONFLICT, f"{self.name} has no version before {self.version}")
        return other

    def document(self) -> dict[str, Any]:
        """The service as clients see it."""
        return {
            "name": self.name,
            "version": self.version,
            "versions": list(dict.fromkeys(version for _, version in self.history)),
            "replicas": self.replicas,
            "instances": [f"{self.name}-{i}" for i in range(self.replicas)],
            "restarts": len(self.restarts),
            "flags": dict(self.flags),
            "health": "degraded" if self.version == BAD_VERSION else "healthy",
            "revision": self.revision,
        }


OperationCheck = Callable[["PlaneWorld", str, Mapping[str, Any]], dict[str, Any]]
OperationEffect = Callable[["PlaneWorld", AppliedOperation], None]


class PlaneWorld:
    """All services, messages by channel, refunds by order: what the ledger says was applied, and nothing else."""

    def __init__(self, ledger: PlaneLedger) -> None:
        self._ledger = ledger
        self.lock = RLock()
        self.born = ledger.born
        self.services = {name: _initial_service(name, ledger.born) for name in PROFILE}
        self.messages: Counter[str] = Counter()
        self.refunded_cents: Counter[str] = Counter()
        for application in ledger.applications:
            OPERATIONS[application.operation][1](self, application)

    @property
    def applications(self) -> Iterable[AppliedOperation]:
        return self._ledger.applications

    def check(self, operation: str, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in full (defaults filled in); raises PlaneError if this cannot be done now."""
        if operation not in OPERATIONS:
            known = ", ".join(OPERATIONS)
            raise PlaneError(HTTPStatus.NOT_FOUND, f"no operation {operation!r}; choose from {known}")
        return OPERATIONS[operation][0](self, target, arguments)

    def apply(
        self, operation: str, target: str, arguments: Mapping[str, Any], key: str | None, now: float
    ) -> AppliedOperation:
        """Carry it out: written to the ledger first, then done. Raises PlaneError if it cannot be done now."""
        with self.lock:
            full = self.check(operation, target, arguments)
            application = self._ledger.append(operation, target, full, key, now)
            OPERATIONS[operation][1](self, application)
            return application

    def service(self, name: str) -> ServiceState:
        """A service that is there; raises PlaneError with the names otherwise."""
        found = self.services.get(name)
        if found is None or found.deleted_at is not None:
            known = ", ".join(n for n, s in self.services.items() if s.deleted_at is None)
            raise PlaneError(HTTPStatus.NOT_FOUND, f"no service {name!r}; there are {known}")
        return found


def _initial_service(name: str, born: float) -> ServiceState:
    weeks_ago = born - 1_209_600
    if name == "orders-api":
        return ServiceState(name, [(weeks_ago, GOOD_VERSION), (born - RELEASE_AGE, BAD_VERSION)])
    if name == "payments":
        return ServiceState(name, [(weeks_ago, "5.2.0"), (born - RELEASE_AGE - 3250, "5.2.1")])
    return ServiceState(name, [(weeks_ago, "1.8.2"), (born - 604_800, "1.9.0")])


def _refuse_unknown_arguments(arguments: Mapping[str, Any], **kinds: type) -> None:
    """Refuse unknown argument names and values of another type."""
    for name, value in arguments.items():
        # A bool is an int to Python; it is no number of replicas.
        if name not in kinds or type(value) is not kinds[name]:
            wanted = ", ".join(f"{n} ({k.__name__})" for n, k in kinds.items()) or "none"
            raise PlaneError(
                HTTPStatus.BAD_REQUEST, f"argument {name}={value!r}: this operation takes {wanted}"
            )


def _require_arguments(arguments: Mapping[str, Any], *names: str) -> None:
    missing = [name for name in names if name not in arguments]
    if missing:
        raise PlaneError(HTTPStatus.BAD_REQUEST, f"argument missing: {', '.join(missing)}")


def _check_restart(world: PlaneWorld, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_unknown_arguments(arguments)
    world.service(target)
    return {}


def _apply_restart(world: PlaneWorld, application: AppliedOperation) -> None:
    service = world.services[application.target]
    service.restarts.append(application.at)
    service.revision += 1


def _check_rollback(world: PlaneWorld, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_unknown_arguments(arguments, version=str)
    service = world.service(target)
    version = arguments.get("version") or service.previous()
    known = list(dict.fromkeys(v for _, v in service.history))
    if version not in known:
        raise PlaneError(HTTPStatus.BAD_REQUEST, f"{target} never ran {version!r}; it ran {', '.join(known)}")
    return {"version": version}


def _apply_rollback(world: PlaneWorld, application: AppliedOperation) -> None:
    service = world.services[application.target]
    service.history.append((application.at, application.arguments["version"]))
    service.revision += 1


def _check_scale(world: PlaneWorld, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_unknown_arguments(arguments, replicas=int)
    _require_arguments(arguments, "replicas")
    world.service(target)
    if not 0 <= arguments["replicas"] <= 50:
        raise PlaneError(HTTPStatus.BAD_REQUEST, f"replicas={arguments['replicas']}: give 0 to 50")
    return dict(arguments)


def _apply_scale(world: PlaneWorld, application: AppliedOperation) -> None:
    service = world.services[application.target]
    service.replicas = application.arguments["replicas"]
    service.revision += 1


def _check_flag(world: PlaneWorld, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_unknown_arguments(arguments, flag=str, on=bool)
    _require_arguments(arguments, "flag", "on")
    world.service(target)
    return dict(arguments)


def _apply_flag(world: PlaneWorld, application: AppliedOperation) -> None:
    service = world.services[application.target]
    service.flags[application.arguments["flag"]] = application.arguments["on"]
    service.revision += 1


def _apply_delete(world: PlaneWorld, application: AppliedOperation) -> None:
    service = world.services[application.target]
    service.deleted_at = application.at
    service.revision += 1


def _check_message(_world: PlaneWorld, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_unknown_arguments(arguments, text=str)
    _require_arguments(arguments, "text")
    if not target:
        raise PlaneError(HTTPStatus.BAD_REQUEST, "a message needs a channel as its target")
    return dict(arguments)


def _apply_message(world: PlaneWorld, application: AppliedOperation) -> None:
    world.messages[application.target] += 1


def _check_refund(_world: PlaneWorld, target: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    _refuse_unknown_arguments(arguments, amount_cents=int)
    _require_arguments(arguments, "amount_cents")
    if not target or arguments["amount_cents"] <= 0:
        raise PlaneError(
            HTTPStatus.BAD_REQUEST, "a refund needs an order as its target and amount_cents above 0"
        )
    return dict(arguments)


def _apply_refund(world: PlaneWorld, application: AppliedOperation) -> None:
    world.refunded_cents[application.target] += application.arguments["amount_cents"]


OPERATIONS: Mapping[str, tuple[OperationCheck, OperationEffect]] = {
    "restart": (_check_restart, _apply_restart),
    "rollback": (_check_rollback, _apply_rollback),
    "scale": (_check_scale, _apply_scale),
    "flag": (_check_flag, _apply_flag),
    "delete": (_check_restart, _apply_delete),
    "message": (_check_message, _apply_message),
    "refund": (_check_refund, _apply_refund),
}

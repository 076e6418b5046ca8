"""One request through the control plane: checked, matched against known keys, applied or not as the switch says."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from http import HTTPStatus
from threading import Timer
from typing import Any

from opsleuth.scenarios.plane.ledger import AppliedOperation
from opsleuth.scenarios.plane.state import PlaneError, PlaneWorld
from opsleuth.scenarios.plane.switches import MODES, FaultSwitch, FaultSwitches, How


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """An operation as it was asked for. `if_match` is the revision that the target must still have."""

    operation: str
    target: str
    arguments: Mapping[str, Any]
    key: str | None = None
    if_match: str | None = None


@dataclass(frozen=True, slots=True)
class PlaneResponse:
    """What goes back, and how: `reset` and `silence` send nothing at all."""

    status: HTTPStatus
    document: Mapping[str, Any]
    how: How = "done"


class PlaneEngine:
    """The operations of one world under its switches."""

    def __init__(
        self, world: PlaneWorld, switches: FaultSwitches, now: Callable[[], float] = time.time
    ) -> None:
        self.world = world
        self.switches = switches
        self.now = now
        self._waiting: dict[str, OperationRequest] = {}
        self._timers: list[Timer] = []

    def submit(self, request: OperationRequest) -> PlaneResponse:
        """Carry the request out as the switch of its operation says. Raises PlaneError for one that cannot be."""
        with self.world.lock:
            full = self.world.check(request.operation, request.target, request.arguments)
            request = OperationRequest(request.operation, request.target, full, request.key, request.if_match)
            switch = self.switches.use(request.operation)
            when, how = MODES[switch.mode]
            if how == "refused":
                return PlaneResponse(
                    HTTPStatus(switch.status), {"error": f"{request.operation} is refused"}, how
                )
            known = self._known(request) if switch.honours_keys else False
            if not known:
                self._match(request)
                if when == "now":
                    self._apply(request)
                elif when == "late":
                    self._later(request, switch)
            return self._answer(request, how, replayed=known)

    def _answer(self, request: OperationRequest, how: How, *, replayed: bool) -> PlaneResponse:
        if how == "error":
            return PlaneResponse(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "internal error"}, how)
        accepted = how == "accepted"
        document: dict[str, Any] = {
            "status": "accepted" if accepted else "done",
            "operation": request.operation,
            "target": request.target,
            "arguments": dict(request.arguments),
        }
        if replayed:
            document["replayed"] = True
        return PlaneResponse(HTTPStatus.ACCEPTED if accepted else HTTPStatus.OK, document, how)

    def _known(self, request: OperationRequest) -> bool:
        """Whether this key was applied or is waiting; a key that came with another request is refused."""
        if request.key is None:
            return False
        earlier: list[OperationRequest | AppliedOperation] = [
            a for a in self.world.applications if a.key == request.key
        ]
        if request.key in self._waiting:
            earlier.append(self._waiting[request.key])
        for other in earlier:
            same = (other.operation, other.target) == (request.operation, request.target)
            if not same or other.arguments != request.arguments:
                text = f"key {request.key!r} was used for {other.operation} of {other.target}"
                raise PlaneError(HTTPStatus.UNPROCESSABLE_ENTITY, text)
        return bool(earlier)

    def _match(self, request: OperationRequest) -> None:
        if request.if_match is None:
            return
        service = self.world.services.get(request.target)
        revision = None if service is None else service.revision
        if request.if_match.strip('"') != str(revision):
            text = f"{request.target} is at revision {revision}, not {request.if_match}"
            raise PlaneError(HTTPStatus.PRECONDITION_FAILED, text)

    def _apply(self, request: OperationRequest) -> None:
        self.world.apply(request.operation, request.target, request.arguments, request.key, self.now())

    def _later(self, request: OperationRequest, switch: FaultSwitch) -> None:
        if request.key is not None:
            self._waiting[request.key] = request
        timer = Timer(switch.seconds, self._apply_late, [request])
        timer.daemon = True
        self._timers.append(timer)
        timer.start()

    def _apply_late(self, request: OperationRequest) -> None:
        with self.world.lock:
            self._waiting.pop(request.key or "", None)
            try:
                self._apply(request)
            except PlaneError:
                # The world has moved on (the service was deleted): nothing was done, and nobody is there to tell.
                return

    def applied(self, operation: str, **wanted: str | None) -> list[dict[str, Any]]:
        """What a client may look up: applications of one operation, by `target` and `key` where given."""
        if not self.switches.look(operation).readable:
            raise PlaneError(HTTPStatus.FORBIDDEN, f"{operation} cannot be looked up")
        given = {name: value for name, value in wanted.items() if value is not None}
        with self.world.lock:
            rows = [asdict(a) for a in self.world.applications if a.operation == operation]
        return [row for row in rows if all(row[name] == value for name, value in given.items())]

    def wait(self) -> None:
        """Until everything that was to be applied late has been."""
        for timer in self._timers:
            timer.join()

    def stop(self) -> None:
        """Forget what was to be applied late."""
        for timer in self._timers:
            timer.cancel()

"""How the control plane misbehaves, per operation.

A mode says when an accepted request is applied and how it is answered:

    normal        applied, answered
    drop          applied, then the connection is reset
    drop_before   the connection is reset, nothing is done
    late          answered 202, applied after `seconds`
    late_drop     the connection is reset, applied after `seconds`
    error         applied, answered 500
    refuse        not applied, answered `status` (409 or 403)
    lie           not applied, answered as if it were
    hang          not applied, never answered
    hang_applied  applied, never answered
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal

from opsleuth.state.errors import UsageError

When = Literal["now", "late", "never"]
How = Literal["done", "accepted", "reset", "error", "refused", "silence"]
MODES: Mapping[str, tuple[When, How]] = {
    "normal": ("now", "done"),
    "drop": ("now", "reset"),
    "drop_before": ("never", "reset"),
    "late": ("late", "accepted"),
    "late_drop": ("late", "reset"),
    "error": ("now", "error"),
    "refuse": ("never", "refused"),
    "lie": ("never", "done"),
    "hang": ("never", "silence"),
    "hang_applied": ("now", "silence"),
}
EVERY = "*"


class InvalidSwitchError(UsageError, ValueError):
    """A switch that does not exist, or a value that it cannot have; the text says the choices."""


@dataclass(frozen=True, slots=True)
class FaultSwitch:
    """The setting of one operation.

    `times` is for how many requests the mode holds (None: for ever; then normal again), `honours_keys` whether
    a known idempotency key keeps a request from being applied again, `readable` whether clients may look up
    what was applied.
    """

    mode: str = "normal"
    seconds: float = 1.0
    status: int = 409
    times: int | None = None
    honours_keys: bool = True
    readable: bool = True

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidSwitchError(f"no mode {self.mode!r}; choose from {', '.join(MODES)}")
        if self.status not in {403, 409}:
            raise InvalidSwitchError(f"status {self.status} is no refusal; choose 403 or 409")
        if not 0 <= self.seconds <= 3600:
            raise InvalidSwitchError(f"seconds is {self.seconds}; give 0 to 3600")


class FaultSwitches:
    """The switches by operation; `*` stands for all that have none of their own."""

    def __init__(self, operations: frozenset[str]) -> None:
        self._known = operations | {EVERY}
        self._switches: dict[str, FaultSwitch] = {}
        self._lock = Lock()

    def set(self, operation: str, values: Mapping[str, Any]) -> FaultSwitch:
        """Replace the switch of one operation; raises InvalidSwitchError."""
        if operation not in self._known:
            raise InvalidSwitchError(
                f"no operation {operation!r}; choose from {', '.join(sorted(self._known))}"
            )
        try:
            switch = FaultSwitch(**values)
        except TypeError:
            known = ", ".join(FaultSwitch.__dataclass_fields__)
            raise InvalidSwitchError(f"cannot read {dict(values)}; a switch has {known}") from None
        with self._lock:
            self._switches[operation] = switch
        return switch

    def look(self, operation: str) -> FaultSwitch:
        """The switch as it stands."""
        with self._lock:
            return self._switches.get(operation) or self._switches.get(EVERY) or FaultSwitch()

    def use(self, operation: str) -> FaultSwitch:
        """The switch for one request, which counts as one of its `times`."""
        with self._lock:
            name = operation if operation in self._switches else EVERY
            switch = self._switches.get(name, FaultSwitch())
            if switch.times is None:
                return switch
            if switch.times <= 0:
                return replace(switch, mode="normal")
            self._switches[name] = replace(switch, times=switch.times - 1)
            return switch

    def all(self) -> dict[str, FaultSwitch]:
        with self._lock:
            return dict(self._switches)

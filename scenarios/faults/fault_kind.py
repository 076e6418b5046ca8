"""What a fault leaves for the key, and how it is declared."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from opsleuth.scenarios.scene import Scene
from opsleuth.scenarios.synthetic_system import Role


@dataclass(frozen=True, slots=True)
class FaultAnswer:
    """The cause of one fault. `also` are services and kinds that a careful engineer could name as well.

    `alert` is what the platform itself would send about it, if it would.
    """

    service: str
    also: Collection[str] = ()
    also_kinds: Collection[str] = ()
    alert: str | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault. `needs` are roles that the world must have, `shows` the sources that hold its traces.

    `shows` names sources beyond metrics and logs: `traces`, `platform` (events and objects), `statements`.
    """

    kind: str
    apply: Callable[[Scene], FaultAnswer]
    needs: Collection[Role] = ()
    shows: Collection[str] = field(default=())

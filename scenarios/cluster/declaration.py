"""How a cluster fault is declared, and what it returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from opsleuth.scenarios.cluster.scene import ClusterScene, Target
from opsleuth.scenarios.cluster.state import EntityRef

# What an oddity sits on: a service of its own code, one that calls others, the way in, a store, a node, a job.
Place = Literal["app", "caller", "edge", "database", "cache", "node", "job", "dns"]
# Writes the object; wrong, or right and looking like it. Returns the guilty entities, the first one first.
Apply = Callable[[ClusterScene, Target, bool], Sequence[EntityRef]]


@dataclass(frozen=True, slots=True)
class ClusterFault:
    """One kind of fault.

    `answer` and `also` are kinds of the case format; `source` names the public catalogues that list the fault.
    `alert` is what the platform's own rules would send, for a fault that no request notices; `{name}`, `{namespace}`.
    `culprits` are other names under which its service may be named.
    """

    kind: str
    place: Place
    answer: str
    apply: Apply
    source: str
    also: tuple[str, ...] = ()
    alert: str | None = None
    culprits: tuple[str, ...] = ()

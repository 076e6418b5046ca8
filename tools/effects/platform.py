"""What the effect tools act through: a platform that holds services, and a messenger that speaks to people."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, get_args

Kind = Literal["restart", "rollback", "scale", "flag", "delete", "message"]
KINDS: frozenset[Kind] = frozenset(get_args(Kind))


class PlatformOperation(NamedTuple):
    """One change: what is done to what. `target` is the platform's own name of a service or channel."""

    kind: Kind
    target: str
    arguments: Mapping[str, Any]


class MeasureReading(NamedTuple):
    """A metric at one moment."""

    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service as the platform reports it.

    `versions` holds all that ran, oldest first; `also` are other names of the one that runs; `restarts` counts them;
    `revision` changes with every change of the service; `health` is the platform's word, `healthy` when all is well;
    `measures` are its metrics at this moment, of a platform that measures.
    """

    name: str
    version: str
    versions: tuple[str, ...]
    replicas: int
    restarts: int
    health: str
    revision: str
    flags: Mapping[str, bool] = field(default_factory=dict)
    also: tuple[str, ...] = ()
    measures: Mapping[str, MeasureReading] = field(default_factory=dict)

    def runs(self, version: str) -> bool:
        """Whether this is the version that runs, by any of its names."""
        return version == self.version or version in self.also

    def line(self) -> str:
        """One line for screens."""
        return f"{self.name} runs {self.version}, {self.replicas} replicas, {self.health}"

    def facts(self) -> dict[str, Any]:
        """The same as JSON, for records."""
        return {
            "service": self.name,
            "version": self.version,
            "versions": list(self.versions),
            "replicas": self.replicas,
            "restarts": self.restarts,
            "health": self.health,
            "revision": self.revision,
            "flags": dict(self.flags),
        }


def describe_location(platform: "Platform") -> dict[str, Any]:
    """Which system a platform reaches, for whoever approves a change; a platform that cannot say has its name alone."""
    location = getattr(platform, "describe_place", None)
    return {"system": location() if location is not None else platform.name}


class Platform(Protocol):
    """A place where changes can be made.

    `kinds` are the changes that it can make. `keys` says whether it applies two requests with the same key only once: without that a request whose reply
    was lost is never sent again. `environment` is what policy rules call it (`production`, `staging`).
    """

    @property
    def name(self) -> str: ...

    @property
    def environment(self) -> str: ...

    @property
    def keys(self) -> bool: ...

    @property
    def kinds(self) -> frozenset[Kind]: ...

    async def service(self, name: str) -> ServiceView | None:
        """The service, None if there is none of this name. Raises the errors of `opsleuth.tools.spec`."""
        ...

    async def dry_run(self, operation: PlatformOperation, revision: str) -> str:
        """What a dry run of the change says, in words; empty where there is none.

        Raises NotPermittedError and InvalidArgumentsError where the platform would refuse it.
        """
        ...

    async def submit(
        self, operation: PlatformOperation, key: str, revision: str | None = None
    ) -> Mapping[str, Any]:
        """Ask for the change; with `revision` only if the service still has it.

        Raises UnavailableError if nothing was sent, NotPermittedError or InvalidArgumentsError if the platform refused, and
        OutcomeUnknownError for everything that leaves open whether the change was made.
        """
        ...

    async def applied(
        self, operation: PlatformOperation, key: str, begun: datetime | None = None
    ) -> bool | None:
        """Whether the change that was asked for with this key, and begun at that time, was made; None if the platform cannot tell."""
        ...

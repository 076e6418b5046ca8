"""Invented systems: services that call each other, with their loads and times at rest."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from opsleuth.scenarios.invented_names import (
    choose_table_names,
    invent_pod_names,
    invent_service_name,
    invent_word,
)

Role = Literal["edge", "app", "database", "replica", "cache", "external"]
STATEFUL = frozenset({"database", "replica"})


@dataclass(frozen=True, slots=True)
class SyntheticService:
    """One service at rest.

    `self_ms` is its own time per request (callees not counted), `cpu` and `memory` are percent of its limit,
    `fail_share` the share of its requests that fail by its own doing, `noise` the relative spread of its latency.
    """

    name: str
    role: Role
    runtime: str
    self_ms: float
    cpu: float
    memory: float
    fail_share: float
    noise: float
    pods: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceCall:
    """`caller` sends `fan` requests to `callee` for each of its own; `gap_ms` is the way there and back."""

    caller: str
    callee: str
    fan: float
    gap_ms: float


@dataclass(frozen=True, slots=True)
class SyntheticStatement:
    """One statement of a database: its share of the calls and its mean time, relative to the database's own."""

    database: str
    text: str
    share: float
    weight: float


@dataclass(frozen=True, slots=True)
class SyntheticSystem:
    """A system at rest. `services` stand callers first; `entry_rps` is the load of the first, requests a second."""

    services: tuple[SyntheticService, ...]
    calls: tuple[ServiceCall, ...]
    statements: tuple[SyntheticStatement, ...]
    entry_rps: float
    namespace: str
    nodes: tuple[str, ...]

    @property
    def edge(self) -> SyntheticService:
        return self.services[0]

    def service(self, name: str) -> SyntheticService:
        """The service of that name; raises KeyError if there is none."""
        for service in self.services:
            if service.name == name:
                return service
        raise KeyError(f"no service {name!r} in this world")

    def with_role(self, *roles: Role) -> list[SyntheticService]:
        return [s for s in self.services if s.role in roles]

    def callers(self, name: str) -> list[ServiceCall]:
        return [c for c in self.calls if c.callee == name]

    def callees(self, name: str) -> list[ServiceCall]:
        return [c for c in self.calls if c.caller == name]

    def upstream(self, name: str) -> list[str]:
        """Everybody who calls `name`, directly or through others, nearest first."""
        found: list[str] = []
        queue = [name]
        while queue:
            for call in self.callers(queue.pop(0)):
                if call.caller not in found:
                    found.append(call.caller)
                    queue.append(call.caller)
        return found

    def with_noise(self, name: str, noise: float) -> "SyntheticSystem":
        """The same system, where the latency of one service strays by `noise` (relative)."""
        return replace(
            self, services=tuple(replace(s, noise=noise) if s.name == name else s for s in self.services)
        )


def draw_world(random: Random, needs: Collection[Role] = ()) -> SyntheticSystem:
    """A system of 7 to 13 services with at least one of each role in `needs`."""
    taken: set[str] = set()
    edge = _draw_app(random, "edge", taken)
    apps = [_draw_app(random, "app", taken) for _ in range(random.randrange(4, 8))]
    databases = [_draw_database(random, taken) for _ in range(random.choice((1, 1, 2)))]
    extras = [*_draw_extras(random, databases[0], needs, taken)]
    services = (edge, *apps, *databases, *extras)
    return SyntheticSystem(
        services=services,
        calls=tuple(_draw_calls(random, edge, apps, databases, extras)),
        statements=tuple(s for d in databases for s in _draw_statements(random, d.name)),
        entry_rps=random.uniform(25, 90),
        namespace=invent_word(random),
        nodes=tuple(f"node-{invent_word(random)}-{i}" for i in range(random.randrange(3, 6))),
    )


def _draw_app(random: Random, role: Role, taken: set[str]) -> SyntheticService:
    name = invent_service_name(random, role, taken)
    return SyntheticService(
        name=name,
        role=role,
        runtime=random.choice(("jvm", "jvm", "go", "python", "node")),
        self_ms=random.uniform(6, 45),
        cpu=random.uniform(18, 45),
        memory=random.uniform(30, 62),
        fail_share=random.uniform(0.0004, 0.002),
        noise=random.uniform(0.05, 0.1),
        pods=invent_pod_names(random, name, random.randrange(2, 5)),
    )


def _draw_database(random: Random, taken: set[str]) -> SyntheticService:
    return SyntheticService(
        name=invent_service_name(random, "database", taken),
        role="database",
        runtime="postgres",
        self_ms=random.uniform(2, 7),
        cpu=random.uniform(15, 35),
        memory=random.uniform(50, 75),
        fail_share=0.0001,
        noise=random.uniform(0.05, 0.1),
    )


def _draw_extras(
    random: Random, primary: SyntheticService, needs: Collection[Role], taken: set[str]
) -> Iterator[SyntheticService]:
    if "replica" in needs or random.random() < 0.35:
        yield replace(primary, name=f"{primary.name}-replica-1", role="replica", cpu=primary.cpu * 0.6)
    if random.random() < 0.5:
        name = invent_service_name(random, "cache", taken)
        yield SyntheticService(
            name, "cache", "redis", 0.6, random.uniform(5, 15), random.uniform(40, 70), 0.0, 0.06
        )
    if "external" in needs or random.random() < 0.4:
        name = f"api.{invent_word(random)}.example"
        yield SyntheticService(name, "external", "external", random.uniform(60, 160), 0, 0, 0.001, 0.08)


def _draw_calls(
    random: Random,
    edge: SyntheticService,
    apps: list[SyntheticService],
    databases: list[SyntheticService],
    extras: list[SyntheticService],
) -> Iterator[ServiceCall]:
    placed = [edge]
    for app in apps:
        # The newest few of the placed ones: chains as well as stars come out.
        for caller in random.sample(placed, min(len(placed), random.choice((1, 1, 2)))):
            yield _draw_call(random, caller, app)
        placed.append(app)
    for database in databases:
        for app in random.sample(apps, random.randrange(1, 4)):
            yield _draw_call(random, app, database, fan=random.uniform(1, 3))
    for extra in extras:
        if extra.role == "replica":
            yield ServiceCall(random.choice(apps).name, extra.name, 0.8, 0.5)
        else:
            yield _draw_call(random, random.choice(apps), extra)


def _draw_call(
    random: Random, caller: SyntheticService, callee: SyntheticService, fan: float | None = None
) -> ServiceCall:
    gap = random.uniform(8, 20) if callee.role == "external" else random.uniform(0.4, 3)
    return ServiceCall(caller.name, callee.name, fan or random.uniform(0.5, 1.4), gap)


def _draw_statements(random: Random, database: str) -> Iterator[SyntheticStatement]:
    first, second, third = choose_table_names(random, 3)
    texts = (
        (
            f"SELECT id, state, owner_id, updated_at FROM {first} WHERE owner_id = $1 AND state = $2",
            0.38,
            1.0,
        ),
        (f"SELECT * FROM {second} WHERE id = $1", 0.34, 0.35),
        (f"UPDATE {first} SET state = $1, updated_at = now() WHERE id = $2", 0.14, 1.6),
        (f"INSERT INTO {third} ({first}_id, amount, created_at) VALUES ($1, $2, now())", 0.12, 1.5),
        (
            f"SELECT owner_id, count(*), sum(amount) FROM {third} GROUP BY owner_id ORDER BY 3 DESC LIMIT $1",
            0.02,
            12.0,
        ),
    )
    scale = 1 / sum(share * weight for _, share, weight in texts)
    for text, share, weight in texts:
        yield SyntheticStatement(database, text, share, weight * scale)

"""How a system answers a disturbance: load flows down the calls, time and failures flow up.

Rates are requests a second, times milliseconds, shares lie in [0, 1], cpu and memory are percent of the limit.
A call's `cut` is the share that never reaches the callee; its caller waits `wait_ms` for each of those.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from opsleuth.scenarios.synthetic_system import STATEFUL, SyntheticService, SyntheticSystem

Shape = Callable[[float], float]

# Relative spread of a quantity at rest, where it is not the service's own (latency).
SPREAD = {
    "rps": 0.05,
    "cpu": 0.07,
    "memory": 0.025,
    "connections": 0.06,
    "sessions": 0.15,
    "queue": 0.2,
    "read_ms": 0.1,
    "write_ms": 0.1,
    "iops": 0.08,
    "lag_s": 0.3,
    "gap_ms": 0.08,
    "retransmits": 0.3,
}
FAIL_FLOOR = 0.001  # share of requests; the failures of a minute stray by at least this much
BURSTS = 6.0  # shape of the gamma by which failures come in bursts; larger is steadier
RETRIES = 0.5  # share of the failed calls that callers try again
STORAGE_BYTES = 200e9
MAX_CONNECTIONS = 200
MEMORY_LIMIT_BYTES = 1024 * 2**20


@dataclass(slots=True)
class ServiceLevels:
    """One service at one moment, before measurement noise."""

    rps: float = 0.0
    self_ms: float = 0.0
    latency_ms: float = 0.0
    tail: float = 2.2
    fail_share: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0
    children: float = 0.0
    retransmits: float = 1.0
    connections: float = 0.0
    sessions: float = 0.0
    free_bytes: float = 0.0
    queue: float = 0.0
    read_ms: float = 0.0
    write_ms: float = 0.0
    iops: float = 0.0
    lag_s: float = 0.0


class Disturbances:
    """What disturbs the system: amounts over time, by target (a service, or `caller>callee`) and quantity."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], list[tuple[float, Shape]]] = {}

    def add(self, target: str, quantity: str, amount: float, shape: Shape) -> None:
        """Add `amount` (in the quantity's unit) times `shape(time)`, a factor that is 1 at full strength."""
        self._parts.setdefault((target, quantity), []).append((amount, shape))

    def at(self, target: str, quantity: str, moment: float) -> float:
        """The sum of all amounts at `moment`."""
        return sum(amount * shape(moment) for amount, shape in self._parts.get((target, quantity), ()))


def seasonal_factor(moment: float) -> float:
    """The day's wave of the load around 1, with its peak in the afternoon and a small quarter-hour job on top."""
    day = math.sin(2 * math.pi * (moment / 86_400 - 0.37))
    return 1 + 0.15 * day + 0.03 * math.sin(2 * math.pi * moment / 900)


def compute_levels(world: SyntheticSystem, effects: Disturbances, moment: float) -> dict[str, ServiceLevels]:
    """All services at `moment`."""
    now = {s.name: ServiceLevels() for s in world.services}
    usual = usual_rates(world)
    now[world.edge.name].rps = world.entry_rps * seasonal_factor(moment)
    # Callers stand before callees, so one pass down moves all load and one pass up all time.
    for service in world.services:
        _pass_load_down(world, effects, moment, service, now)
    for service in reversed(world.services):
        _pass_latency_up(world, effects, moment, service, now, usual[service.name])
    return now


def usual_rates(world: SyntheticSystem) -> dict[str, float]:
    """Requests a second of each service at the mean load."""
    rates = dict.fromkeys((s.name for s in world.services), 0.0)
    rates[world.edge.name] = world.entry_rps
    for service in world.services:
        for call in world.callees(service.name):
            rates[call.callee] += rates[service.name] * call.fan
    return rates


def _pass_load_down(
    world: SyntheticSystem,
    effects: Disturbances,
    moment: float,
    service: SyntheticService,
    now: dict[str, ServiceLevels],
) -> None:
    level = now[service.name]
    level.rps = max(0.0, level.rps + effects.at(service.name, "rps", moment))
    for call in world.callees(service.name):
        again = RETRIES * min(0.5, max(0.0, effects.at(call.callee, "fail", moment)))
        cut = effects.at(f"{call.caller}>{call.callee}", "cut", moment)
        now[call.callee].rps += level.rps * call.fan * (1 + again) * (1 - cut)
        level.children += call.fan


def _pass_latency_up(
    world: SyntheticSystem,
    effects: Disturbances,
    moment: float,
    service: SyntheticService,
    now: dict[str, ServiceLevels],
    usual: float,
) -> None:
    level = now[service.name]
    load = level.rps / usual if usual else 1.0
    lost = min(0.8, effects.at(service.name, "capacity_lost", moment))
    level.cpu = min(
        99.0, service.cpu * (0.35 + 0.65 * load / (1 - lost)) + effects.at(service.name, "cpu", moment)
    )
    level.memory = min(
        99.0, service.memory * (0.95 + 0.05 * load) + effects.at(service.name, "memory", moment)
    )
    queueing = 1 + 0.8 * max(0.0, (level.cpu - 65) / 35) ** 2
    level.self_ms = service.self_ms * queueing + effects.at(service.name, "self_ms", moment)
    level.tail += effects.at(service.name, "tail", moment)
    level.retransmits += effects.at(service.name, "retransmits", moment)
    level.latency_ms = level.self_ms
    good = 1 - min(0.95, service.fail_share + effects.at(service.name, "fail", moment))
    for call in world.callees(service.name):
        callee = now[call.callee]
        gap = call.gap_ms + effects.at(f"{call.caller}>{call.callee}", "gap_ms", moment)
        cut = effects.at(f"{call.caller}>{call.callee}", "cut", moment)
        wait = effects.at(f"{call.caller}>{call.callee}", "wait_ms", moment)
        level.latency_ms += call.fan * ((1 - cut) * (callee.latency_ms + gap) + cut * wait)
        lost_calls = callee.fail_share + effects.at(f"{call.caller}>{call.callee}", "fail", moment)
        lost_calls = cut + (1 - cut) * lost_calls
        good *= 1 - min(0.95, 0.75 * min(1.0, call.fan) * lost_calls)
    level.fail_share = 1 - good
    if service.role in STATEFUL:
        _fill_database_figures(effects, moment, service, level, load)


def _fill_database_figures(
    effects: Disturbances, moment: float, service: SyntheticService, level: ServiceLevels, load: float
) -> None:
    """What only a database shows: sessions by Little's law, devices by load, the rest by disturbance."""
    name = service.name
    level.sessions = level.rps * level.latency_ms / 1000 + effects.at(name, "sessions", moment)
    level.connections = min(
        MAX_CONNECTIONS, 60 * (0.9 + 0.1 * load) + effects.at(name, "connections", moment)
    )
    free = 0.55 * STORAGE_BYTES + effects.at(name, "free_bytes", moment)
    level.free_bytes = max(2e6, free)
    level.queue = 0.8 * load + effects.at(name, "queue", moment)
    level.read_ms = 1.1 + effects.at(name, "read_ms", moment)
    level.write_ms = 1.7 + effects.at(name, "write_ms", moment)
    level.iops = 420 * load + effects.at(name, "iops", moment)
    level.lag_s = (4.0 if service.role == "replica" else 0.0) + effects.at(name, "lag_s", moment)


def baseline_spread(
    world: SyntheticSystem, target: str, quantity: str, rest: dict[str, ServiceLevels]
) -> float:
    """How far a quantity strays at rest, in its own unit; `rest` are the levels of an undisturbed moment."""
    if quantity == "fail":
        return _fail_spread(rest[target.split(">", maxsplit=1)[0]])
    if quantity == "gap_ms":
        caller, callee = target.split(">")
        gap = next(c.gap_ms for c in world.callees(caller) if c.callee == callee)
        return gap * SPREAD["gap_ms"]
    if quantity == "self_ms":
        return rest[target].latency_ms * world.service(target).noise
    if quantity == "memory":
        return 1.5  # points: memory is steady, and a share of it would be nearly nothing
    return float(getattr(rest[target], quantity)) * SPREAD[quantity]


def _fail_spread(level: ServiceLevels) -> float:
    """The spread of one minute's share of failures: Poisson counts whose mean itself strays (gamma)."""
    requests = max(1.0, 60 * level.rps)
    failures = requests * level.fail_share
    return max(FAIL_FLOOR, math.sqrt(failures + failures**2 / BURSTS) / requests)

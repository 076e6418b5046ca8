"""One incident in the making: a system, what disturbs it and when, and the rows that people left behind.

A fault writes what happens (effects, log lines, events, object states, changes) into a `Scene`; rendering
turns the scene into a case folder. Times are seconds since the epoch, UTC.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from opsleuth.scenarios.case_folder import format_utc, parse_epoch
from opsleuth.scenarios.fault_propagation import (
    Disturbances,
    ServiceLevels,
    Shape,
    baseline_spread,
    compute_levels,
)
from opsleuth.scenarios.invented_names import choose_person, invent_versions
from opsleuth.scenarios.synthetic_system import STATEFUL, SyntheticService, SyntheticSystem
from opsleuth.state.json_types import JSON


@dataclass(frozen=True, slots=True)
class SceneTiming:
    """`start` to `end` is the window, `onset` when the fault begins, `fired` when the alert was sent.

    `baseline` is the start of an undisturbed period of `baseline_minutes` at the same time of an earlier day.
    """

    start: float
    onset: float
    fired: float
    end: float
    step: int
    baseline: float
    baseline_minutes: int


@dataclass(frozen=True, slots=True)
class FaultLogLines:
    """Log lines that a fault causes: `text` makes one message, `per_minute` is their rate at full strength."""

    service: str
    level: str
    text: Callable[[Random], str]
    per_minute: float
    shape: Shape
    pod: str | None = None


@dataclass(slots=True)
class Scene:
    """`size` is the strength of the fault in spreads of the baseline (8, 4, 2)."""

    random: Random
    world: SyntheticSystem
    timing: SceneTiming
    size: float
    rest: dict[str, ServiceLevels]
    effects: Disturbances = field(default_factory=Disturbances)
    chatter: list[FaultLogLines] = field(default_factory=list)
    rows: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    ready: dict[str, int] = field(default_factory=dict)
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    slower: dict[tuple[str, str], float] = field(default_factory=dict)
    statement_waits: dict[str, dict[str, float]] = field(default_factory=dict)
    new_statements: list[tuple[str, str, float, float]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def lasting(self, moment: float) -> float:
        """From the onset to the end, at full strength after two minutes."""
        return min(1.0, max(0.0, (moment - self.timing.onset) / 120))

    def growing(self, moment: float) -> float:
        """From nothing at the onset to full strength at the end."""
        return min(1.0, max(0.0, (moment - self.timing.onset) / (self.timing.end - self.timing.onset)))

    def spread(self, target: str, quantity: str) -> float:
        """The baseline's spread of a quantity in its own unit."""
        return baseline_spread(self.world, target, quantity, self.rest)

    def push(self, target: str, quantity: str, spreads: float = 1.0, shape: Shape | None = None) -> float:
        """Disturb a quantity by `spreads` times the size; return the amount in the quantity's unit."""
        amount = spreads * self.size * self.spread(target, quantity)
        self.effects.add(target, quantity, amount, shape or self.lasting)
        return amount

    def say(
        self,
        service: str,
        level: str,
        text: Callable[[Random], str],
        *,
        per_minute: float | None = None,
        shape: Shape | None = None,
        pod: str | None = None,
    ) -> None:
        """Let a service write lines of this kind; by default as many as the size is, a minute."""
        rate = self.size / 2 if per_minute is None else per_minute
        self.chatter.append(FaultLogLines(service, level, text, rate, shape or self.lasting, pod))

    def event(self, reason: str, obj: str, message: str, **more: JSON) -> None:
        """A platform event; `at` and `first` are times (default: end of window, onset), `source`, `type`, `count`."""
        last = more.get("at", self.timing.end - self.random.uniform(20, 150))
        first = more.get("first", self.timing.onset + self.random.uniform(5, 60))
        row = {
            "timestamp": format_utc(last),
            "first_timestamp": format_utc(min(first, last)),
            "source": more.get("source", "kubernetes"),
            "object": obj,
            "type": more.get("type", "Warning"),
            "reason": reason,
            "message": message,
            "count": more.get("count", max(1, round(self.size * self.random.uniform(0.8, 1.6)))),
        }
        self.rows.append(("events.jsonl", row))

    def change(self, moment: float, service: str, kind: str, summary: str, **more: str | None) -> None:
        """A change by people or pipelines; `version` and `diff` are optional."""
        row = {
            "timestamp": format_utc(moment),
            "service": service,
            "kind": kind,
            "version": more.get("version"),
            "author": choose_person(self.random),
            "summary": summary,
            "diff": more.get("diff"),
        }
        self.rows.append(("changes.jsonl", row))

    def deploy(self, moment: float, service: str, what: str, diff: str | None = None) -> tuple[str, str]:
        """A release; returns the versions before and after."""
        before, after = invent_versions(self.random)
        self.change(
            moment, service, "deploy", f"{service} {after} (from {before}): {what}", version=after, diff=diff
        )
        return before, after

    def object(self, kind: str, name: str, status: JSON, **more: JSON) -> None:
        """The state of an object as read at the end of the window."""
        row = {
            "captured_at": format_utc(self.timing.end),
            "kind": kind,
            "name": name,
            **more,
            "status": status,
        }
        self.rows.append(("objects.jsonl", row))

    def pod_state(self, pod: str, **state: JSON) -> None:
        """Override fields of a pod's state at the end of the window."""
        self.pods.setdefault(pod, {}).update(state)

    def chance(self, share: float) -> bool:
        """Whether something that is so in this share of all systems is so here."""
        return self.random.random() < share

    def take(self, candidates: Sequence[SyntheticService]) -> SyntheticService:
        """One of the candidates that no other fault of this scene has taken yet."""
        free = [s for s in candidates if s.name not in self.taken]
        chosen = self.random.choice(free or candidates)
        self.taken.add(chosen.name)
        return chosen

    def app(self) -> SyntheticService:
        """Any service with code of its own that is not the entry."""
        return self.take(self.world.with_role("app"))

    def calling_app(self) -> SyntheticService:
        """A service with code of its own that calls a further one."""
        apps = self.world.with_role("app")
        return self.take([s for s in apps if self.world.callees(s.name)] or apps)

    def database(self) -> SyntheticService:
        return self.take(self.world.with_role("database"))

    def stateful(self) -> list[SyntheticService]:
        return [s for s in self.world.services if s.role in STATEFUL]


def draw_timing(random: Random) -> SceneTiming:
    """A window of an hour or so on some day, with the onset 12 to 25 minutes before its end."""
    day = parse_epoch("2025-01-06T00:00:00Z") + 86_400 * random.randrange(300)
    end = day + 60 * random.randrange(8 * 60, 22 * 60)
    onset = end - 60 * random.randrange(12, 26) + random.randrange(60)
    return SceneTiming(
        start=end - 60 * random.randrange(45, 75),
        onset=onset,
        fired=onset + random.uniform(180, 420),
        end=end,
        step=random.choice((60, 60, 60, 120)),
        baseline=end - 86_400 * random.choice((1, 7)) - 3600,
        baseline_minutes=60,
    )


def draw_scene(random: Random, world: SyntheticSystem, size: float) -> Scene:
    """An undisturbed scene in `world`."""
    timing = draw_timing(random)
    return Scene(random, world, timing, size, compute_levels(world, Disturbances(), timing.onset))

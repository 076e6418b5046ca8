"""Whole runs that act on a control plane: a scripted planner, the real effect tools, a person that is simulated.

The control plane is served by this process or by one of its own; what it really did is in its ledger, whatever
became of the run.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from loop_rig import SINCE, UNTIL, World

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.graph import decisions
from opsleuth.graph.decisions import Asker, Person
from opsleuth.graph.outcome import Outcome
from opsleuth.graph.prepare import Opened, Settings, StartRequest
from opsleuth.graph.session import Runner
from opsleuth.graph.wiring import Parts, effects_of
from opsleuth.scenarios.control_plane import build
from opsleuth.scenarios.plane.ledger import Application
from opsleuth.scenarios.plane.web import PlaneServer
from opsleuth.state.clock import Clock, SystemClock
from opsleuth.tools.policy import Policy
from opsleuth.tools.sources.base import Sources
from opsleuth.tools.spec import ToolSpec

RUN = "inv-20240501-acts"
ROLLBACK = {"service": "orders-api", "version": "2.13.4"}
MESSAGE = {"channel": "#incidents", "text": "orders-api is rolled back"}
PERSON = Person("operator", "command")


def calls(*requests: tuple[str, Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """A decision that asks for these calls; `more` goes to the first one."""
    return {
        "reason": "act",
        "calls": [
            {"tool": tool, "arguments": dict(arguments)} | (more if i == 0 else {})
            for i, (tool, arguments) in enumerate(requests)
        ],
    }


@contextmanager
def serving(state: Path, *switches: Mapping[str, Any]) -> Iterator[PlaneServer]:
    """A control plane in a thread of this process."""
    server = build(state)
    for switch in switches:
        values = dict(switch)
        server.engine.switches.set(values.pop("operation", "*"), values)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.stop()


class Acting:
    """Runs of one world, on the control plane at `url`."""

    def __init__(
        self,
        folder: Path,
        url: str,
        *,
        keys: bool = True,
        policy: Policy | None = None,
        clock: Clock | None = None,
        more: Sequence[ToolSpec] = (),
        settles: float | None = None,
    ) -> None:
        self.world, self.clock = World(folder), clock or SystemClock()
        self.settings = Settings(platform={"url": url, "keys": keys})
        self.store = Store.open(folder / "store.db", self.clock, Redactor())
        self.events: list[Mapping[str, Any]] = []
        self.asker: Asker | None = None
        self.parts = Parts(
            sources=lambda _: Opened(Sources()),
            planner=lambda _: self.world.planner(),
            specs=(*self.world.specs(), *more),
            effects=lambda settings: [
                replace(spec, settles=spec.settles if settles is None else settles)
                for spec in effects_of(settings)
            ],
            policy=lambda _: policy or Policy(),
        )

    def replaced(self, **parts: Any) -> Parts:
        """The parts with some of them replaced."""
        return replace(self.parts, **parts)

    @property
    def runner(self) -> Runner:
        return Runner(self.store, self.events.append, self.clock, self.parts, asker=self.asker)

    def start(self, *script: Any, read_only: bool = False, **limits: Any) -> Outcome:
        if script:
            self.world.write(*script)
        settings = Settings(platform=self.settings.platform, read_only=read_only)
        request = StartRequest(
            run=RUN, question="what is the matter", since=SINCE, until=UNTIL, limits=limits, settings=settings
        )
        return asyncio.run(self.runner.start(request))

    def resume(self, run: str = RUN, **limits: Any) -> Outcome:
        return asyncio.run(self.runner.resume(run, limits))

    def pending(self, run: str = RUN) -> tuple[Approval, ...]:
        return self.store.approvals.list(run, "pending")

    def approve(self, approval: Approval) -> None:
        confirm = approval.document.get("target")
        decisions.approve(self.store, approval.run, approval.id, approval.digest, PERSON, confirm=confirm)

    def deny(self, approval: Approval, reason: str = "not now") -> None:
        decisions.deny(self.store, approval.run, approval.id, reason, PERSON)

    def resolve(self, approval: Approval, *, happened: bool) -> None:
        outcome: Any = "happened" if happened else "absent"
        decisions.resolve(self.store, approval.run, approval.id, outcome, "looked at the target", PERSON)

    def approve_all(self, run: str = RUN) -> None:
        for approval in self.pending(run):
            self.approve(approval)

    def observed(self, run: str = RUN) -> list[str]:
        return [o.headline for o in self.store.observations.list(run)]


def applied(server: PlaneServer) -> list[tuple[str, str]]:
    """What the control plane really did: operation and target, in order."""
    return [(a.operation, a.target) for a in server.engine.world.applications]


def twice(applications: Sequence[Application]) -> list[Any]:
    """What was done more than once."""
    key: Callable[[Application], Any] = lambda a: (a.operation, a.target, str(sorted(a.arguments.items())))  # noqa: E731
    return [what for what, count in Counter(map(key, applications)).items() if count > 1]

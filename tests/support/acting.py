"""Whole runs that act on a control plane: a scripted planner, the real effect tools, a person that is simulated.

The control plane is served by this process or by one of its own; what it really did is in its ledger, whatever
became of the run.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from loop_rig import SINCE, UNTIL, World

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.store import Store
from opsleuth.graph.approvals import decisions
from opsleuth.graph.approvals.decisions import AnsweringPerson, ApprovalPrompt
from opsleuth.graph.lifecycle.first_state import OpenedSources, RunSettings, StartRequest
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.lifecycle.wiring import AttemptParts, effects_of
from opsleuth.redaction.redactor import Redactor
from opsleuth.scenarios.control_plane import build_plane_server
from opsleuth.scenarios.plane.ledger import AppliedOperation, PlaneLedger
from opsleuth.scenarios.plane.web import PlaneServer
from opsleuth.state.clock import Clock, SystemClock
from opsleuth.tools.policy import Policy
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import ToolSpec

RUN = "inv-20240501-acts"
ROLLBACK = {"service": "orders-api", "version": "2.13.4"}
MESSAGE = {"channel": "#incidents", "text": "orders-api is rolled back"}
PERSON = AnsweringPerson("operator", "command")


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
    server = build_plane_server(state)
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
        self.settings = RunSettings(platform={"url": url, "keys": keys})
        self.store = Store.open(folder / "store.db", self.clock, Redactor())
        self.events: list[Mapping[str, Any]] = []
        self.asker: ApprovalPrompt | None = None
        self.parts = AttemptParts(
            sources=lambda _: OpenedSources(RunSources()),
            planner=lambda _: self.world.planner(),
            specs=(*self.world.specs(), *more),
            effects=lambda settings: [
                replace(spec, settles=spec.settles if settles is None else settles)
                for spec in effects_of(settings)
            ],
            policy=lambda _: policy or Policy(),
        )

    def replaced(self, **parts: Any) -> AttemptParts:
        """The parts with some of them replaced."""
        return replace(self.parts, **parts)

    @property
    def runner(self) -> Runner:
        return Runner(self.store, self.events.append, self.clock, self.parts, asker=self.asker)

    def start(self, *script: Any, read_only: bool = False, **limits: Any) -> AttemptOutcome:
        if script:
            self.world.write(*script)
        settings = RunSettings(platform=self.settings.platform, read_only=read_only)
        request = StartRequest(
            run=RUN, question="what is the matter", since=SINCE, until=UNTIL, limits=limits, settings=settings
        )
        return asyncio.run(self.runner.start(request))

    def resume(self, run: str = RUN, **limits: Any) -> AttemptOutcome:
        return asyncio.run(self.runner.resume(run, limits))

    def pending(self, run: str = RUN) -> tuple[Approval, ...]:
        return self.store.approvals.list(run, "pending")

    def approve(self, approval: Approval) -> None:
        confirm = approval.document.get("target")
        self._answer(approval, decisions.OperatorReply("approved", digest=approval.digest, confirm=confirm))

    def deny(self, approval: Approval, reason: str = "not now") -> None:
        self._answer(approval, decisions.OperatorReply("denied", reason=reason))

    def resolve(self, approval: Approval, *, happened: bool) -> None:
        outcome: Any = "happened" if happened else "absent"
        self._answer(
            approval, decisions.OperatorReply("resolved", reason="looked at the target", outcome=outcome)
        )

    def _answer(self, approval: Approval, reply: decisions.OperatorReply) -> None:
        decisions.record_answer(self.store, approval.run, approval.id, reply, PERSON)

    def approve_all(self, run: str = RUN) -> None:
        for approval in self.pending(run):
            self.approve(approval)

    def observed(self, run: str = RUN) -> list[str]:
        return [o.headline for o in self.store.observations.list(run)]


def applied_by(folder: Path) -> list[tuple[str, str]]:
    """What the control plane of this folder really did, read from its own ledger."""
    return [(a.operation, a.target) for a in PlaneLedger(folder / "plane.jsonl", 0.0).applications]


def applied(server: PlaneServer) -> list[tuple[str, str]]:
    """What the control plane really did: operation and target, in order."""
    return [(a.operation, a.target) for a in server.engine.world.applications]


def twice(applications: Sequence[AppliedOperation]) -> list[Any]:
    """What was done more than once."""

    def key(a: AppliedOperation) -> tuple[str, str, str]:
        return a.operation, a.target, str(sorted(a.arguments.items()))

    return [what for what, count in Counter(map(key, applications)).items() if count > 1]

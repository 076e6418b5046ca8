"""Runs of a scripted world that branch, wait and are approved, each step a process of its own.

As a program: `branch_rig.py FOLDER PLACE VERB RUN [MORE…]` prints how the run stands as one JSON line. The verbs are
`start`, `resume`, `answer` (approve all that waits), `deny` (what waits or was approved and not used), `fork RUN NEW CHECKPOINT`. FOLDER holds the script and
what was really done (see `loop_rig`); a `policy.toml` in it is the policy file of the run.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loop_rig import SINCE, UNTIL, World
from places import place_of, told

from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.store import Store
from opsleuth.console.approval_questions import render_question
from opsleuth.graph.approvals.decisions import OperatorReply, local_operator, record_answer
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import NothingToDoError, Runner
from opsleuth.graph.stepping.fork import ForkRequest, call_checker_for, fork_run
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock

RUN = "inv-20240501-root"
HANG = 120


@dataclass(frozen=True)
class Branching:
    """A world of runs, each step of which is a process; `before` is put before every program, such as faketime."""

    folder: Path
    place: Place
    before: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def world(self) -> World:
        return World(self.folder)

    def __call__(self, verb: str, run: str = RUN, *more: str, before: Sequence[str] = ()) -> Any:
        """How the run stands after this step. Raises AssertionError where the program failed."""
        done = subprocess.run(
            [
                *before,
                *self.before,
                sys.executable,
                __file__,
                str(self.folder),
                told(self.place),
                verb,
                run,
                *more,
            ],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | self.variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        assert done.stdout.startswith("{"), (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


def step(folder: Path, place: Place, verb: str, run: str, *more: str) -> dict[str, Any]:
    world, clock = World(folder), SystemClock()
    with Store.open(place, clock, Redactor()) as store:
        runner = Runner(store, lambda _: None, clock, world.parts())
        outcome: AttemptOutcome | None = None
        if verb == "start":
            rules = folder / "policy.toml"
            settings = RunSettings(policy=str(rules) if rules.exists() else None)
            request = StartRequest(
                run=run, question="what is the matter", since=SINCE, until=UNTIL, settings=settings
            )
            outcome = asyncio.run(runner.start(request))
        elif verb == "resume":
            try:
                outcome = asyncio.run(runner.resume(run, {}))
            except NothingToDoError as over:
                return {"status": "nothing to do", "text": str(over)}
        elif verb == "newest":
            return {"run": store.runs.find(run).id, "listed": [row.id for row in store.runs.list()]}
        elif verb in ("answer", "deny"):
            open_to = ("pending",) if verb == "answer" else ("pending", "approved")
            for asked in (row for row in store.approvals.list(run) if row.status in open_to):
                reply = (
                    OperatorReply("approved", digest=asked.digest, confirm=asked.document.get("target"))
                    if verb == "answer"
                    else OperatorReply("denied", reason="not now")
                )
                record_answer(store, run, asked.id, reply, local_operator("command"))
        else:
            new, spec = more
            check = call_checker_for(world.parts(), store.runs.find(run))
            fork_run(
                store, store.history.find(run, spec), lambda: new, check, ForkRequest(parts=world.parts())
            )
            run = new
        return _standing(store, run, outcome)


def _standing(store: Store, run: str, outcome: AttemptOutcome | None) -> dict[str, Any]:
    pending = store.approvals.list(run, "pending")
    return {
        "status": outcome.status if outcome else "",
        "code": int(outcome.exit_code) if outcome else None,
        "reason": outcome.stop_reason if outcome else None,
        "pending": [asked.id for asked in pending],
        "panel": [line for asked in pending for line in render_question(asked, 100)],
        "digests": [asked.digest for asked in pending],
        "content": [asked.document.get("digest") for asked in pending],
        "checkpoints": [[point.name, point.next] for point in store.history.list(run)],
        "effects": [[row.run, row.call_id, row.status] for row in store.effects.list(run)],
        "approvals": [[a.id, a.status, a.reason] for a in store.approvals.list(run)],
    }


if __name__ == "__main__":
    _, folder_given, place_given, *words = sys.argv
    print(json.dumps(step(Path(folder_given), place_of(place_given, folder_given), *words)))

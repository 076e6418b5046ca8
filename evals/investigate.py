"""One case, from the start of its run to its score. The framework is loaded by whoever investigates, not before."""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opsleuth.evals import misses
from opsleuth.evals.cases import Case
from opsleuth.evals.results import Key
from opsleuth.evals.score import Course, Score, score
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.outcome import Status
from opsleuth.state.run_id import new_run_id

if TYPE_CHECKING:
    from opsleuth.checkpoints.store import Store
    from opsleuth.graph.outcome import Outcome
    from opsleuth.graph.prepare import StartRequest
    from opsleuth.graph.wiring import Parts


class Job(NamedTuple):
    """One case to be investigated for the `repeat`th time, with its database in `store`.

    `kept` is where the database is found from the results file, "" if it is not kept. `model` holds the settings
    of a model, where one decides. `tape` is recorded, or heard instead of model and tools where `replays`.
    """

    case: Case
    repeat: int
    planner: str
    limits: Mapping[str, Any]
    store: Path
    kept: str = ""
    model: Mapping[str, Any] | None = None
    tape: Path | None = None
    replays: bool = False

    @property
    def key(self) -> Key:
        return self.case.set, self.case.id, self.repeat


def investigate(job: Job, parts: "Parts | None" = None) -> Score:
    """The score of one case, in this process. A run that cannot start scores as an empty report.

    Raises KeyboardInterrupt if the run was stopped from outside: that says nothing of the case.
    """
    from opsleuth.checkpoints.redact import Redactor
    from opsleuth.checkpoints.store import Store
    from opsleuth.evals.acting import acting
    from opsleuth.evals.builtin import generated
    from opsleuth.graph.session import Runner
    from opsleuth.graph.wiring import Parts

    clock, parts = SystemClock(), parts or Parts()
    shutil.rmtree(job.store.parent, ignore_errors=True)
    job = job._replace(case=generated(job.case, job.store.parent))
    with Store.open(job.store, clock, Redactor()) as store, acting(job.case, job.store.parent) as plane:
        try:
            parts = _decided(job, _taped(job, store, parts))
            runner = Runner(store, clock=clock, parts=parts, asker=plane.asker)
            outcome = asyncio.run(runner.start(_request(job, new_run_id(clock.now()), plane.settings)))
        except (OpsleuthError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
            found = score(job.case, {}, Course(repeat=job.repeat, problem=problem))
            return _explained(job, found, misses.NOTHING)
        if outcome.status in (Status.INTERRUPTED, Status.PAUSED):
            raise KeyboardInterrupt
        return _scored(job, store, outcome, parts, plane.twice())


def _taped(job: Job, store: "Store", parts: "Parts") -> "Parts":
    """The parts with the case's tape in them; one that is recorded begins anew."""
    from opsleuth.models.tape import Tape

    if job.tape is None:
        return parts
    if job.replays:
        return replace(parts, tape=Tape.playing(job.tape))
    job.tape.parent.mkdir(parents=True, exist_ok=True)
    job.tape.unlink(missing_ok=True)
    return replace(parts, tape=Tape.recording(job.tape, store.redactor))


def _decided(job: Job, parts: "Parts") -> "Parts":
    """The parts with the case's script for a planner, where it has one.

    The world is then looked at once after a change, not until it is as it should be or a minute is over: what a script
    did wrong stays wrong, and no limit of time must be met by a slow machine.
    """
    from opsleuth.models.scripted import ScriptedPlanner
    from opsleuth.state.decision import Decision

    if not job.case.script:
        return parts
    script = [Decision.model_validate(entry) for entry in job.case.script]
    return replace(
        parts,
        planner=lambda _: ScriptedPlanner(script),
        effects=lambda settings: [replace(spec, settles=0.0) for spec in parts.effects(settings)],
    )


def _request(job: Job, run: str, platform: Mapping[str, Any] | None) -> "StartRequest":
    from opsleuth.evals.tasks import asked_fields
    from opsleuth.graph.prepare import Settings, StartRequest

    return StartRequest(
        run=run,
        question=job.case.question,
        limits=job.limits,
        demands=asked_fields(job.case),
        settings=Settings(
            case=str(job.case.folder),
            planner=job.planner,
            read_only=platform is None,
            model=job.model,
            platform=platform,
        ),
    )


def _scored(job: Job, store: "Store", outcome: "Outcome", parts: "Parts", twice: int) -> Score:
    observations = store.observations.list(outcome.run)
    course = Course(
        approvals=len(store.approvals.list(outcome.run)),
        twice=twice,
        seen="\n".join(f"{o.headline} {o.record}" for o in observations),
        specs={spec.name: spec for spec in parts.specs},
        repeat=job.repeat,
        store=job.kept,
        problem="" if outcome.report else outcome.detail,
    )
    report = outcome.report or {}
    left = misses.Course(report, observations, store.events.read(outcome.run))
    return _explained(job, score(job.case, report, course), left)


def _explained(job: Job, found: Score, left: misses.Course) -> Score:
    """The score with why it is not right, if it is not."""
    miss = misses.diagnose(job.case, found, left)
    return replace(found, miss=miss.to_json()) if miss else found

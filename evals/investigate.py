"""One case, from the start of its run to its score. The framework is loaded by whoever investigates, not before."""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opsleuth.evals import misses
from opsleuth.evals.cases import EvalCase
from opsleuth.evals.results_file import Key
from opsleuth.evals.score import CaseScore, RunFacts, score_report
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.run_id import new_run_id
from opsleuth.state.run_status import Status

if TYPE_CHECKING:
    from opsleuth.checkpoints.store import Store
    from opsleuth.graph.lifecycle.first_state import StartRequest
    from opsleuth.graph.lifecycle.outcome import AttemptOutcome
    from opsleuth.graph.lifecycle.wiring import AttemptParts


class EvalJob(NamedTuple):
    """One case to be investigated for the `repeat`th time, with its database in `store`.

    `kept` is where the database is found from the results file, "" if it is not kept. `model` holds the settings
    of a model, where one decides. `tape` is recorded, or heard instead of model and tools where `replays`.
    """

    case: EvalCase
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


def investigate_case(job: EvalJob, parts: "AttemptParts | None" = None) -> CaseScore:
    """The score of one case, in this process. A run that cannot start scores as an empty report.

    Raises KeyboardInterrupt if the run was stopped from outside: that says nothing of the case.
    """
    from opsleuth.checkpoints.errors import StoreError
    from opsleuth.checkpoints.store import Store
    from opsleuth.evals.acting_plane import serve_control_plane
    from opsleuth.evals.builtin_cases import generate_case
    from opsleuth.graph.lifecycle.session import Runner
    from opsleuth.graph.lifecycle.wiring import AttemptParts
    from opsleuth.redaction.redactor import Redactor

    clock, parts = SystemClock(), parts or AttemptParts()
    shutil.rmtree(job.store.parent, ignore_errors=True)
    job = job._replace(case=generate_case(job.case, job.store.parent))
    with (
        Store.open(job.store, clock, Redactor()) as store,
        serve_control_plane(job.case, job.store.parent) as plane,
    ):
        try:
            parts = _add_scripted_planner(job, _add_tape(job, store, parts))
            runner = Runner(store, clock=clock, parts=parts, asker=plane.asker)
            outcome = asyncio.run(
                runner.start(_build_start_request(job, new_run_id(clock.now()), plane.settings))
            )
        except StoreError:
            raise  # it says nothing of the case
        except (OpsleuthError, ValueError) as error:
            problem = f"{type(error).__name__}: {error}"
            found = score_report(job.case, {}, RunFacts(repeat=job.repeat, problem=problem))
            return _add_miss_diagnosis(job, found, misses.NOTHING)
        if outcome.status in (Status.INTERRUPTED, Status.PAUSED):
            raise KeyboardInterrupt
        return _score_outcome(job, store, outcome, parts, plane.twice())


def _add_tape(job: EvalJob, store: "Store", parts: "AttemptParts") -> "AttemptParts":
    """The parts with the case's tape in them; one that is recorded starts over."""
    from opsleuth.tools.tape import Tape

    if job.tape is None:
        return parts
    if job.replays:
        return replace(parts, tape=Tape.playing(job.tape))
    job.tape.parent.mkdir(parents=True, exist_ok=True)
    job.tape.unlink(missing_ok=True)
    return replace(parts, tape=Tape.recording(job.tape, store.redactor))


def _add_scripted_planner(job: EvalJob, parts: "AttemptParts") -> "AttemptParts":
    """The parts with the case's script for a planner, where it has one.

    The world is then looked at once after a change, not until it is as it should be or a minute is over: what a script
    did wrong stays wrong, and no limit of time must be met by a slow machine.
    """
    from opsleuth.models.scripted_planner import ScriptedPlanner
    from opsleuth.state.decision import Decision

    if not job.case.script:
        return parts
    script = [Decision.model_validate(entry) for entry in job.case.script]
    return replace(
        parts,
        planner=lambda _: ScriptedPlanner(script),
        effects=lambda settings: [replace(spec, settles=0.0) for spec in parts.effects(settings)],
    )


def _build_start_request(job: EvalJob, run: str, platform: Mapping[str, Any] | None) -> "StartRequest":
    from opsleuth.evals.task_files import demands_for_fields
    from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest

    return StartRequest(
        run=run,
        question=job.case.question,
        limits=job.limits,
        demands=demands_for_fields(job.case),
        settings=RunSettings(
            case=str(job.case.folder),
            planner=job.planner,
            read_only=platform is None,
            model=job.model,
            platform=platform,
        ),
    )


def _score_outcome(
    job: EvalJob, store: "Store", outcome: "AttemptOutcome", parts: "AttemptParts", twice: int
) -> CaseScore:
    observations = store.observations.list(outcome.run)
    course = RunFacts(
        approvals=len(store.approvals.list(outcome.run)),
        twice=twice,
        seen="\n".join(f"{o.headline} {o.record}" for o in observations),
        specs={spec.name: spec for spec in parts.specs},
        repeat=job.repeat,
        store=job.kept,
        problem="" if outcome.report else outcome.detail,
    )
    report = outcome.report or {}
    left = misses.RunRecord(report, observations, store.events.read(outcome.run))
    return _add_miss_diagnosis(job, score_report(job.case, report, course), left)


def _add_miss_diagnosis(job: EvalJob, found: CaseScore, left: misses.RunRecord) -> CaseScore:
    """The score with why it is not right, if it is not."""
    miss = misses.diagnose_miss(job.case, found, left)
    return replace(found, miss=miss.to_json()) if miss else found

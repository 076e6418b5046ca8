"""Investigate every case of a set, in several processes, and score the reports.

Each case has a database of its own, so that no case can see another one; what is scored already in the results
file is not run again.
"""

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from opsleuth.evals.cases import Case, load_set
from opsleuth.evals.results import Document, Key, document, key_of, load, save, scores_in
from opsleuth.evals.score import Course, Score, score
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import OpsleuthError, UsageError
from opsleuth.state.outcome import Status
from opsleuth.state.run_id import new_run_id

if TYPE_CHECKING:
    from opsleuth.checkpoints.store import Store
    from opsleuth.graph.wiring import Parts


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """What to evaluate. `output` holds the results; an existing one is gone on with.

    The runs are kept in a folder beside `output`, or nowhere without one. `limits` are overrides by name.
    `parts` replaces parts of the loop, in one process only.
    """

    folder: Path
    key: Path | None = None
    planner: str = "offline"
    jobs: int = 1
    output: Path | None = None
    repeat: int = 1
    limits: Mapping[str, Any] = field(default_factory=dict)
    parts: "Parts | None" = None


PRELOAD = [
    "opsleuth.graph.session",
    "opsleuth.models.offline",
    "opsleuth.evals.builtin",
    "opsleuth.evals.tasks",
]
"""What every process needs: loaded once, before the first is forked."""


class Job(NamedTuple):
    """One case to be investigated for the `repeat`th time, with its database in `store`."""

    case: Case
    repeat: int
    planner: str
    limits: Mapping[str, Any]
    store: Path
    kept: str = ""

    @property
    def key(self) -> Key:
        return self.case.set, self.case.id, self.repeat


def evaluate(request: EvalRequest, on_score: Callable[[Score, int], None] = lambda *_: None) -> Document:
    """The results document: settings, summary, one score per case. `on_score` hears each score and the total."""
    cases = load_set(request.folder, request.key)
    with TemporaryDirectory(prefix="opsleuth-eval-") as work:
        jobs = _jobs(cases, request, Path(work))
        done = _earlier(request, {job.key for job in jobs})

        def results() -> Document:
            return document(
                request.folder.stem, request.planner, [done[j.key] for j in jobs if j.key in done]
            )

        for found in _scores([job for job in jobs if job.key not in done], request):
            done[key_of(found)] = found
            if request.output is not None:
                save(request.output, results())
            on_score(found, len(jobs))
    return results()


def investigate(job: Job, parts: "Parts | None" = None) -> Score:
    """One case from start to score, in this process. A run that cannot start scores as an empty report.

    Raises KeyboardInterrupt if the run was stopped from outside: that says nothing of the case.
    """
    from opsleuth.checkpoints.redact import Redactor
    from opsleuth.checkpoints.store import Store
    from opsleuth.evals.builtin import generated
    from opsleuth.evals.tasks import asked_fields
    from opsleuth.graph.prepare import Settings, StartRequest
    from opsleuth.graph.session import Runner
    from opsleuth.graph.wiring import Parts

    clock, parts = SystemClock(), parts or Parts()
    shutil.rmtree(job.store.parent, ignore_errors=True)
    case = generated(job.case, job.store.parent) if job.case.recipe else job.case
    with Store.open(job.store, clock, Redactor()) as store:
        request = StartRequest(
            run=new_run_id(clock.now()),
            question=case.question,
            limits=job.limits,
            demands=asked_fields(case),
            settings=Settings(case=str(case.folder), planner=job.planner, read_only=True),
        )
        try:
            outcome = asyncio.run(Runner(store, clock=clock, parts=parts).start(request))
        except (OpsleuthError, ValueError) as error:
            return score(case, {}, Course(repeat=job.repeat, problem=f"{type(error).__name__}: {error}"))
        if outcome.status in (Status.INTERRUPTED, Status.PAUSED):
            raise KeyboardInterrupt
        specs = {spec.name: spec for spec in parts.specs}
        course = Course(
            approvals=len(store.approvals.list(outcome.run)),
            seen=_seen(store, outcome.run),
            specs=specs,
            repeat=job.repeat,
            store=job.kept,
            problem="" if outcome.report else outcome.detail,
        )
        return score(case, outcome.report or {}, course)


def _seen(store: "Store", run: str) -> str:
    """All that the run observed, as one text."""
    return "\n".join(f"{o.headline} {o.record}" for o in store.observations.list(run))


def _jobs(cases: Sequence[Case], request: EvalRequest, work: Path) -> list[Job]:
    kept = request.output.with_suffix(".runs") if request.output else None
    jobs = []
    for repeat in range(1, request.repeat + 1):
        for case in cases:
            name = f"{case.set}-{case.id}" + (f"-{repeat}" if request.repeat > 1 else "")
            store = (kept or work) / name / "opsleuth.db"
            link = f"{kept.name}/{name}/opsleuth.db" if kept else ""
            jobs.append(Job(case, repeat, request.planner, request.limits, store, link))
    return jobs


def _scores(jobs: Sequence[Job], request: EvalRequest) -> Iterator[Score]:
    if request.jobs == 1 or len(jobs) <= 1:
        yield from (investigate(job, request.parts) for job in jobs)
        return
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    with ProcessPoolExecutor(request.jobs, mp_context=context) as pool:
        waiting: list[Future[Score]] = [pool.submit(investigate, job) for job in jobs]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _earlier(request: EvalRequest, wanted: set[Key]) -> dict[Key, Score]:
    if request.output is None or not request.output.exists():
        return {}
    stored = load(request.output)
    if stored.get("planner") != request.planner:
        raise UsageError(
            f"{request.output} holds results of the planner {stored.get('planner')}: "
            f"give another file for {request.planner}"
        )
    return {key_of(s): s for s in scores_in(stored) if key_of(s) in wanted}

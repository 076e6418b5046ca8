"""Investigate every case of a set, in several processes, and score the reports.

Each case has a database of its own, so that no case can see another one; what is scored already in the results
file is not run again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from opsleuth.evals.cases import Case, load_set
from opsleuth.evals.investigate import Job, investigate
from opsleuth.evals.results import Document, Key, document, key_of, load, save, scores_in
from opsleuth.evals.score import Score
from opsleuth.state.errors import UsageError

if TYPE_CHECKING:
    from opsleuth.graph.wiring import Parts


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """What to evaluate. `output` holds the results; an existing one is gone on with.

    The runs are kept in a folder beside `output`, or nowhere without one. `limits` are overrides by name.
    `model` holds the settings of a model, where one decides. `record` and `replay` are folders of recorded traffic,
    one file a case. `only` are shell patterns of the ids of cases to run. `parts` replaces parts of the loop, in one process only.
    """

    folder: Path
    key: Path | None = None
    planner: str = "offline"
    jobs: int = 1
    output: Path | None = None
    repeat: int = 1
    limits: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] | None = None
    record: Path | None = None
    replay: Path | None = None
    only: tuple[str, ...] = ()
    parts: "Parts | None" = None


PRELOAD = [
    "opsleuth.graph.session",
    "opsleuth.models.offline",
    "opsleuth.evals.builtin",
    "opsleuth.evals.tasks",
]
"""What every process needs: loaded once, before the first is forked."""


def evaluate(request: EvalRequest, on_score: Callable[[Score, int], None] = lambda *_: None) -> Document:
    """The results document: settings, summary, one score per case. `on_score` hears each score and the total."""
    if request.record and request.replay:
        raise UsageError("--record and --replay exclude each other: give one of them")
    cases = _wanted(load_set(request.folder, request.key), request.only)
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


def _wanted(cases: Sequence[Case], only: Sequence[str]) -> Sequence[Case]:
    if not only:
        return cases
    found = [case for case in cases if any(fnmatchcase(case.id, pattern) for pattern in only)]
    if not found:
        raise UsageError(f"no case is called {' or '.join(only)}; the first is {cases[0].id}")
    return found


def _jobs(cases: Sequence[Case], request: EvalRequest, work: Path) -> list[Job]:
    kept = request.output.with_suffix(".runs") if request.output else None
    jobs = []
    for repeat in range(1, request.repeat + 1):
        for case in cases:
            name = f"{case.set}-{case.id}" + (f"-{repeat}" if request.repeat > 1 else "")
            store = (kept or work) / name / "opsleuth.db"
            link = f"{kept.name}/{name}/opsleuth.db" if kept else ""
            tapes = request.replay or request.record
            jobs.append(
                Job(
                    case=case,
                    repeat=repeat,
                    planner=request.planner,
                    limits=request.limits,
                    store=store,
                    kept=link,
                    model=request.model,
                    tape=tapes / f"{name}.jsonl" if tapes else None,
                    replays=request.replay is not None,
                )
            )
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

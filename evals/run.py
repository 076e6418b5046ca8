"""Investigate every case of a set, in several processes, and score the reports.

Each case has a database of its own, so that no case can see another one; what is scored already in the results
file is not run again.
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from opsleuth.evals.cases import Case, load_set
from opsleuth.evals.investigate import Job, investigate
from opsleuth.evals.results import (
    Document,
    Key,
    difference,
    document,
    key_of,
    load,
    made_by,
    save,
    scores_in,
)
from opsleuth.evals.score import Score
from opsleuth.state.errors import OpsleuthError, UsageError
from opsleuth.state.outcome import ExitCode

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


class Occupied(OpsleuthError):
    """Another process writes these results."""

    exit_code = ExitCode.BUSY


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
    whole = load_set(request.folder, request.key)
    cases = _wanted(whole, request.only)
    with TemporaryDirectory(prefix="opsleuth-eval-") as work, _alone(request.output):
        jobs = _jobs(cases, request, Path(work))
        made = made_by(request.planner, request.model, request.limits)
        done = _earlier(request, made, whole)
        order = dict.fromkeys((*(job.key for job in jobs), *done))

        def results() -> Document:
            return document(request.folder.stem, made, [done[key] for key in order if key in done])

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
    kept = _kept(request.output) if request.output else None
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


def _kept(output: Path) -> Path:
    """Where the runs behind a results file lie."""
    return output.with_suffix(".runs")


@contextmanager
def _alone(output: Path | None) -> Iterator[None]:
    """One evaluation writes a file, found out before a case is run. Raises Occupied, UsageError; OSError."""
    if output is None:
        yield
        return
    if output.is_dir():
        raise UsageError(f"{output} is a folder: name a file for the results")
    _kept(output).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(_kept(output), os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise Occupied(
            f"another evaluation writes {output}: wait for it, or give another file with -o"
        ) from None
    finally:
        os.close(descriptor)


def _earlier(request: EvalRequest, made: Mapping[str, Any], whole: Sequence[Case]) -> dict[Key, Score]:
    """What the output holds already of the whole set. Raises UsageError where that is of something else."""
    if request.output is None or not request.output.exists():
        return {}
    stored = load(request.output)
    scores = scores_in(stored)
    known = {(case.set, case.id) for case in whole}
    others = sorted({score.set for score in scores} - {name for name, _ in known})
    other = f"results of the set {others[0]}" if others else difference(stored, made)
    if other:
        raise UsageError(f"{request.output} holds {other}: give another file with -o")
    return {key_of(score): score for score in scores if (score.set, score.case) in known}

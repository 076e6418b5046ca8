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

from opsleuth.evals.case_sets import load_case_set
from opsleuth.evals.cases import EvalCase
from opsleuth.evals.investigate import EvalJob, investigate_case
from opsleuth.evals.results_file import (
    Document,
    Key,
    build_results_document,
    describe_eval_setup,
    explain_setup_difference,
    load_results,
    read_scores,
    save_results,
    score_key,
)
from opsleuth.evals.score import CaseScore
from opsleuth.state.errors import OpsleuthError, UsageError
from opsleuth.state.run_status import ExitCode

if TYPE_CHECKING:
    from opsleuth.graph.lifecycle.wiring import AttemptParts


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """What to evaluate. `output` holds the results; an existing file is continued.

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
    parts: "AttemptParts | None" = None


class ResultsInUseError(OpsleuthError):
    """Another process writes these results."""

    exit_code = ExitCode.BUSY


PRELOAD = [
    "opsleuth.graph.lifecycle.session",
    "opsleuth.models.offline_planner",
    "opsleuth.evals.builtin_cases",
    "opsleuth.evals.task_files",
]
"""What every process needs: loaded once, before the first is forked."""


def evaluate_set(
    request: EvalRequest, on_score: Callable[[CaseScore, int], None] = lambda *_: None
) -> Document:
    """The results document: settings, summary, one score per case. `on_score` receives each score and the total."""
    if request.record and request.replay:
        raise UsageError("--record and --replay exclude each other: give one of them")
    whole = load_case_set(request.folder, request.key)
    cases = _select_cases(whole, request.only)
    with TemporaryDirectory(prefix="opsleuth-eval-") as work, _lock_results(request.output):
        jobs = _plan_jobs(cases, request, Path(work))
        made = describe_eval_setup(request.planner, request.model, request.limits)
        done = _load_earlier_scores(request, made, whole)
        order = dict.fromkeys((*(job.key for job in jobs), *done))

        def results() -> Document:
            return build_results_document(
                request.folder.stem, made, [done[key] for key in order if key in done]
            )

        for found in _run_jobs([job for job in jobs if job.key not in done], request):
            done[score_key(found)] = found
            if request.output is not None:
                save_results(request.output, results())
            on_score(found, len(jobs))
    return results()


def _select_cases(cases: Sequence[EvalCase], only: Sequence[str]) -> Sequence[EvalCase]:
    if not only:
        return cases
    found = [case for case in cases if any(fnmatchcase(case.id, pattern) for pattern in only)]
    if not found:
        raise UsageError(f"no case is called {' or '.join(only)}; the first is {cases[0].id}")
    return found


def _plan_jobs(cases: Sequence[EvalCase], request: EvalRequest, work: Path) -> list[EvalJob]:
    kept = _runs_folder(request.output) if request.output else None
    jobs = []
    for repeat in range(1, request.repeat + 1):
        for case in cases:
            name = f"{case.set}-{case.id}" + (f"-{repeat}" if request.repeat > 1 else "")
            store = (kept or work) / name / "opsleuth.db"
            link = f"{kept.name}/{name}/opsleuth.db" if kept else ""
            tapes = request.replay or request.record
            jobs.append(
                EvalJob(
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


def _run_jobs(jobs: Sequence[EvalJob], request: EvalRequest) -> Iterator[CaseScore]:
    if request.jobs == 1 or len(jobs) <= 1:
        yield from (investigate_case(job, request.parts) for job in jobs)
        return
    context = get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    with ProcessPoolExecutor(request.jobs, mp_context=context) as pool:
        waiting: list[Future[CaseScore]] = [pool.submit(investigate_case, job) for job in jobs]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _runs_folder(output: Path) -> Path:
    """Where the runs behind a results file lie."""
    return output.with_suffix(".runs")


@contextmanager
def _lock_results(output: Path | None) -> Iterator[None]:
    """One evaluation writes a file, found out before a case is run. Raises ResultsInUseError, UsageError; OSError."""
    if output is None:
        yield
        return
    if output.is_dir():
        raise UsageError(f"{output} is a folder: name a file for the results")
    _runs_folder(output).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(_runs_folder(output), os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ResultsInUseError(
            f"another evaluation writes {output}: wait for it, or give another file with -o"
        ) from None
    finally:
        os.close(descriptor)


def _load_earlier_scores(
    request: EvalRequest, made: Mapping[str, Any], whole: Sequence[EvalCase]
) -> dict[Key, CaseScore]:
    """What the output holds already of the whole set. Raises UsageError where that is of something else."""
    if request.output is None or not request.output.exists():
        return {}
    stored = load_results(request.output)
    scores = read_scores(stored)
    known = {(case.set, case.id) for case in whole}
    others = sorted({score.set for score in scores} - {name for name, _ in known})
    other = f"results of the set {others[0]}" if others else explain_setup_difference(stored, made)
    if other:
        raise UsageError(f"{request.output} holds {other}: give another file with -o")
    return {score_key(score): score for score in scores if (score.set, score.case) in known}

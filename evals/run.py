"""Investigate every case of a set, in several processes, and score the reports.

Each case has a database of its own in a working folder, so that no case can see another one; what is scored
already in the results file is not run again.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from opsleuth.evals.cases import Case, load_set
from opsleuth.evals.score import Score, score
from opsleuth.evals.summary import summarise
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_id import new_run_id


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """What to evaluate. `output` holds the results; an existing one is gone on with."""

    folder: Path
    key: Path | None = None
    planner: str = "offline"
    jobs: int = 1
    output: Path | None = None


def evaluate(
    request: EvalRequest, on_score: Callable[[Score, int], None] = lambda *_: None
) -> dict[str, Any]:
    """The results document: settings, summary, one score per case. `on_score` hears each score and the total."""
    cases = load_set(request.folder, request.key)
    scores = _earlier(request, cases)
    todo = [case for case in cases if case.id not in scores]
    with TemporaryDirectory(prefix="opsleuth-eval-") as work:
        for found in _scores(todo, request, Path(work)):
            scores[found.case] = found
            on_score(found, len(cases))
            _save(request, [scores[c.id] for c in cases if c.id in scores])
    return _save(request, [scores[case.id] for case in cases])


def investigate(case: Case, planner: str, work: Path) -> Score:
    """One case from start to score, in this process. A run that fails scores as an empty report."""
    from opsleuth.checkpoints.redact import Redactor
    from opsleuth.checkpoints.store import Store
    from opsleuth.graph.prepare import Settings, StartRequest
    from opsleuth.graph.session import Runner

    clock = SystemClock()
    with Store.open(work / f"{case.id}.db", clock, Redactor()) as store:
        request = StartRequest(
            run=new_run_id(clock.now()),
            settings=Settings(case=str(case.folder), planner=planner, read_only=True),
        )
        outcome = asyncio.run(Runner(store, clock=clock).start(request))
    return score(case, outcome.report or {})


def _scores(cases: Sequence[Case], request: EvalRequest, work: Path) -> Iterator[Score]:
    if request.jobs == 1:
        yield from (investigate(case, request.planner, work) for case in cases)
        return
    context = get_context("forkserver")
    context.set_forkserver_preload(["opsleuth.graph.session", "opsleuth.models.offline"])
    with ProcessPoolExecutor(request.jobs, mp_context=context) as pool:
        yield from pool.map(investigate, cases, [request.planner] * len(cases), [work] * len(cases))


def _earlier(request: EvalRequest, cases: Sequence[Case]) -> dict[str, Score]:
    if request.output is None or not request.output.exists():
        return {}
    known = {case.id for case in cases}
    stored = json.loads(request.output.read_text(encoding="utf-8"))["scores"]
    return {s["case"]: Score(**s) for s in stored if s["case"] in known}


def _save(request: EvalRequest, scores: Sequence[Score]) -> dict[str, Any]:
    document = {
        "set": request.folder.name,
        "planner": request.planner,
        "summary": summarise(scores),
        "scores": [s.to_json() for s in scores],
    }
    if request.output is not None:
        part = request.output.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
        part.replace(request.output)
    return document

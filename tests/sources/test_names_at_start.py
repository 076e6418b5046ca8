"""Names that sources tell before the first decision count as known in every later turn, whoever goes on with the run."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pexpect
import pytest
from contract_server import Asked, Reply, contract_server
from live_rig import END, START
from stored_runs import HANG, Program

from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.graph.lifecycle.wiring import AttemptParts
from opsleuth.models.planner import PlannerResult, PlannerView
from opsleuth.models.scripted_planner import ScriptedPlanner
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import PlannerNotice

RUN = "inv-20260303-name"


def backend(asked: Asked) -> Reply:
    """A Prometheus that knows two services, and no samples of them."""
    if asked.path == "/api/v1/label/service/values":
        return Reply({"status": "success", "data": ["cart", "ledger"]})
    data: Any = {"result": []} if "query" in asked.path else {} if "metadata" in asked.path else []
    return Reply({"status": "success", "data": data})


class Listening(ScriptedPlanner):
    """Follows its script and keeps what it was told."""

    def __init__(self, script: Sequence[Decision]) -> None:
        super().__init__(script)
        self.told: list[PlannerNotice] = []

    async def decide(self, view: PlannerView) -> PlannerResult:
        self.told += view.state.notices
        return await super().decide(view)


def asks(service: str) -> Decision:
    call = {"tool": "metrics_list", "arguments": {"service": service}}
    return Decision.model_validate({"reason": "look", "calls": [call]})


DONE = Decision.model_validate(
    {"reason": "enough", "conclusion": {"verdict": "inconclusive", "answer": "Nothing was found."}}
)


@pytest.mark.parametrize(("service", "known"), [("ledger", True), ("ledgers", False)])
def test_a_name_that_the_source_told_is_not_unseen(tmp_path: Path, service: str, known: bool) -> None:
    planner = Listening([asks(service), DONE])
    with (
        contract_server(backend) as server,
        Store.open(tmp_path / "store.db", SystemClock(), Redactor()) as store,
    ):
        settings = RunSettings(sources={"metrics": {"kind": "prometheus", "url": server.url}})
        request = StartRequest(
            run=RUN, question="Why is cart slow?", since=START, until=END, settings=settings
        )
        asyncio.run(Runner(store, parts=AttemptParts(planner=lambda _: planner)).start(request))
        row = store.runs.get(RUN)
    assert row is not None
    assert row.settings["services"] == ["cart", "ledger"]
    unseen = [notice.text for notice in planner.told if notice.code == "unseen"]
    assert (not unseen) is known, unseen


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The command line, configured for the backend that knows two services."""
    file = tmp_path / ".config" / "opsleuth" / "config.toml"
    file.parent.mkdir(parents=True)
    with contract_server(backend) as server:
        file.write_text(f'[environments.shop.sources.metrics]\nkind = "prometheus"\nurl = "{server.url}"\n')
        yield Program(tmp_path / "db" / "opsleuth.db", tmp_path)


UNCLEAR = ("run", "it is slow: why?", "--since", "2026-03-03T13:00:00Z", "--until", "2026-03-03T14:30:00Z",
           "--planner", "offline")  # fmt: skip


def report(program: Program) -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(program("report", "-", "--format", "json").stdout)
    return document


@pytest.mark.slow
def test_a_service_that_the_question_does_not_name_is_asked_for(program: Program) -> None:
    first, *rest = program.command(*UNCLEAR)
    child = pexpect.spawn(
        first, rest, env={**program.environment(), "TERM": "xterm"}, encoding="utf-8", timeout=HANG
    )
    child.expect_exact("Which service")
    child.send("ledgers\r")
    child.expect_exact("No service is called ledgers (nearest: ledger)")
    child.expect_exact("Which service")
    child.send("ledger\r")
    child.expect(pexpect.EOF)
    child.close()
    told = report(program)
    assert told["alert"]["service"] == "ledger"
    assert not any("which service is meant" in text for text in told["not_available"])


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "service"), [((), "ledger"), (("-q",), None)], ids=["asked", "quiet"])
def test_a_number_is_enough_and_quiet_never_asks(
    program: Program, flags: tuple[str, ...], service: str | None
) -> None:
    first, *rest = program.command(*UNCLEAR, *flags)
    child = pexpect.spawn(
        first, rest, env={**program.environment(), "TERM": "xterm"}, encoding="utf-8", timeout=HANG
    )
    if service:
        child.expect_exact(f"2  {service}")
        child.expect_exact("Number or name")
        child.send("2\r")
    child.expect(pexpect.EOF)
    child.close()
    assert "Which service" not in str(child.before)
    assert (report(program)["alert"] or {}).get("service") == service


def test_where_nobody_is_asked_it_stays_open_and_is_said(program: Program) -> None:
    program(*UNCLEAR, "--json", "--no-input")
    told = report(program)
    assert (told["alert"] or {}).get("service") is None
    assert any("which service is meant" in text for text in told["not_available"])

"""Names that sources tell before the first decision count as known in every later turn, whoever goes on with the run."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from contract_server import Asked, Reply, contract_server
from live_rig import END, START

from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.graph.prepare import Settings, StartRequest
from opsleuth.graph.session import Runner
from opsleuth.graph.wiring import Parts
from opsleuth.models.planner import Decided, PlannerView
from opsleuth.models.scripted import ScriptedPlanner
from opsleuth.state.clock import SystemClock
from opsleuth.state.decision import Decision
from opsleuth.state.investigation import Notice

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
        self.told: list[Notice] = []

    async def decide(self, view: PlannerView) -> Decided:
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
        settings = Settings(sources={"metrics": {"kind": "prometheus", "url": server.url}})
        request = StartRequest(
            run=RUN, question="Why is cart slow?", since=START, until=END, settings=settings
        )
        asyncio.run(Runner(store, parts=Parts(planner=lambda _: planner)).start(request))
        row = store.runs.get(RUN)
    assert row is not None
    assert row.settings["services"] == ["cart", "ledger"]
    unseen = [notice.text for notice in planner.told if notice.code == "unseen"]
    assert (not unseen) is known, unseen

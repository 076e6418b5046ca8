"""A store with a few runs in it, and the command line as a program."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forked import run_python
from package_path import PACKAGE_PATH

from opsleuth.checkpoints.evidence import EvidenceMeta
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.state.clock import FakeClock
from opsleuth.state.results import ResultStatus
from opsleuth.state.run_status import Status, StopReason, Verdict

REPOSITORY = Path(__file__).parents[2]
DONE, STOPPED, FORK = "inv-20261129-7k3f", "inv-20261129-2mqd", "inv-20261129-9x2c"
HOSTILE = "paid [/db] [prod] \x1b[31mred\x1b]8;;http://x\x07link \x9b2J \u202eevil \U0001f469\u200d\U0001f692 订单服务"
HANG = 60

DOCUMENT: Mapping[str, Any] = {
    "run": DONE,
    "question": "The orders API [/db] became slow: why?",
    "verdict": "cause_found",
    "answer": "Release 2.14.0 of orders-api reads the whole orders table, because its new look-up by e-mail "
    "cannot use the index.\nRoll it back, then add the index.",
    "causes": [
        {"service": "orders-api", "kind": "slow_query", "metric": "latency_p95", "confidence": "likely", "claims": ["C1", "C2"]}
    ],
    "propagation": [["orders-api", "gateway"], ["gateway", "web"]],
    "ruled_out": [{"id": "H2", "hypothesis": "the deploy of payments", "claims": ["C3"]}],
    "not_available": ["logs: the case holds none"],
    "recommendations": [
        {"text": "Roll orders-api back to 2.13.4", "action": {"tool": "service_rollback", "arguments": {"service": "orders-api"}}, "risk": "high", "claims": ["C1"]},
        {"text": "Add an index on lower(customer_email)", "action": None, "risk": "read", "claims": ["C2"]},
    ],
    "fields": {"service": "orders-api"},
    "claims": [
        {"id": "C1", "text": "p95 of orders-api rose from 96 to 2,210 ms at 14:01Z", "evidence": ["E1", "E2"], "status": "verified"},
        {"id": "C2", "text": "one statement takes 900 ms a call", "evidence": ["E5"], "status": "verified"},
        {"id": "C3", "text": "payments is flat", "evidence": ["E3"], "status": "verified"},
        {"id": "C4", "text": "the cache is cold", "evidence": ["E3"], "status": "unsupported", "problems": ["E3 does not name a cache"]},
    ],
    "effects": [],
    "window": {"start": "2026-03-03T13:30:00.000Z", "end": "2026-03-03T14:30:00.000Z"},
    "status": "completed",
    "stop_reason": "concluded",
    "usage": {"turns": 4, "seconds": 1.2, "tool_calls": 6, "tokens_in": 0, "tokens_out": 0, "cost": "0"},
    "timeline": [
        {"time": "2026-03-03T13:58:20.000Z", "text": "orders-api 2.14.0 is rolled out", "evidence": "E4"},
        {"time": "2026-03-03T14:01:00.000Z", "text": "p95 begins to rise", "evidence": "E1"},
    ],
    "hypotheses": [
        {"id": "H1", "text": "the release of orders-api", "status": "supported", "supporting": ["E1", "E4"], "contradicting": []},
        {"id": "H2", "text": "the deploy of payments", "status": "refuted", "supporting": [], "contradicting": ["E3"]},
    ],
    "evidence": [
        {"id": f"E{i}", "tool": tool, "source": "case", "arguments": {"service": "orders-api"}, "purpose": "see what moved", "status": "ok", "headline": headline, "target": None, "turn": 1}
        for i, (tool, headline) in enumerate(
            [
                ("metrics_anomalies", "7 of 42 series moved, orders-api first"),
                ("metrics_query", "60 points, peak 2,210 ms at 14:12Z"),
                ("metrics_query", "60 points, flat"),
                ("changes_list", "3 changes"),
                ("database_statements", "12 statements, one at 900 ms"),
                ("topology", "7 calls between 6 services"),
            ],
            start=1,
        )
    ],
}  # fmt: skip

TRACE: tuple[tuple[str, int, str, Mapping[str, Any]], ...] = (
    ("run.started", 0, "", {"question": "The orders API [/db] became slow: why?", "window": {"from": "2026-11-29T13:40:00.000Z", "to": "2026-11-29T14:20:00.000Z"}, "versions": {"model": "offline"}, "limits": {"turns": 30}, "read_only": True}),
    ("decision.made", 1, "plan", {"reason": "the alert names orders-api: look at it first", "calls": [f"{DONE}/t1c1"]}),
    ("hypothesis.updated", 1, "plan", {"id": "H1", "text": "the release of 订单服务", "status": "open", "for": [], "against": []}),
    ("tool.started", 1, "act", {"id": f"{DONE}/t1c1", "tool": "metrics_query"}),
    (
        "tool.completed",
        1,
        "act",
        {
            "id": f"{DONE}/t1c1",
            "tool": "metrics_query",
            "args": {"service": "订单服务", "metric": "latency_p95", "step": 60},
            "status": "ok",
            "evidence": "E1",
            "headline": "60 points, peak 2,210 ms at 14:12Z",
            "spark": [1, 1, 1, 2, 6, 9, 9, 8],
            "ms": 812,
        },
    ),
    (
        "tool.completed",
        1,
        "act",
        {
            "id": f"{DONE}/t1c2",
            "tool": "logs_search",
            "args": {"text": HOSTILE},
            "status": "timeout",
            "evidence": "E2",
            "headline": HOSTILE,
            "error": "no answer within 10 s",
            "ms": 10_020,
        },
    ),
    ("step.completed", 1, "act", {"changed": ["pending"], "ms": 12}),
    ("hypothesis.updated", 2, "plan", {"id": "H1", "text": "the release of 订单服务", "status": "supported", "for": ["E1"], "against": []}),
    ("claim.verified", 2, "verify", {"id": "C4", "text": "the cache is cold", "status": "unsupported", "evidence": ["E3"], "problems": ["E3 does not name a cache"]}),
    ("limit.near", 2, "plan", {"code": "turns", "message": "28 of 30 turns are used", "hint": "conclude"}),
    ("something.new", 2, "plan", {"field": "value"}),
    ("run.completed", 2, "verify", {"status": "completed", "stop_reason": "concluded", "verdict": "cause_found", "exit_code": 0}),
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    """The command line as a program of its own, with this database and a folder for all that it writes."""

    database: Path
    home: Path
    variables: Mapping[str, str] = field(default_factory=dict)

    def environment(self, **variables: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PACKAGE_PATH),
            "PYTHONWARNINGS": "default",
            "PYTHONIOENCODING": "utf-8",
            "HOME": str(self.home),
            "OPSLEUTH_DB": str(self.database),
            **self.variables,
            **variables,
        }

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "opsleuth", *arguments]

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; `variables` join its environment."""
        return run_python(
            ["-m", "opsleuth", *arguments],
            env=self.environment(**variables),
            encoding=variables.get("PYTHONIOENCODING", "utf-8"),
            timeout=HANG,
        )


def fill(store: Store, clock: FakeClock) -> None:
    """Three runs: one concluded, one that was interrupted with a trace and evidence, and a fork of it."""
    store.runs.create(
        RunRow(
            id=STOPPED,
            question=f"login latency {HOSTILE}",
            status=Status.RUNNING,
            turn=4,
            node="act",
            name="late",
        )
    )
    for kind, turn, node, data in TRACE[:-1]:
        clock.advance(1)
        store.events.append(STOPPED, kind, data, turn=turn, node=node, attempt=1)
    meta = EvidenceMeta(
        call_id=f"{STOPPED}/t1c1",
        tool="logs_search",
        status=ResultStatus.OK,
        headline=HOSTILE,
        source="case",
        query="text ~ pool",
        scanned=14_200,
        matched=1,
    )
    store.evidence.put(STOPPED, 1, meta, {"rows": [{"message": HOSTILE}], "matched": 1})
    clock.advance(3_600)
    done = RunRow(
        id=DONE,
        question="The orders API [/db] became slow: why?",
        status=Status.COMPLETED,
        stop_reason=StopReason.CONCLUDED,
        verdict=Verdict.CAUSE_FOUND,
        turn=4,
        node="verify",
    )
    store.runs.create(done)
    store.reports.put(DONE, DOCUMENT)
    for kind, turn, node, data in TRACE:
        store.events.append(DONE, kind, data, turn=turn, node=node, attempt=1)
    clock.advance(60)
    store.runs.create(
        RunRow(id=FORK, question="订单接口变慢", parent=STOPPED, parent_checkpoint="c6", status=Status.PAUSED, turn=6, node="plan")
    )  # fmt: skip

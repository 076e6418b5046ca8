"""Incidents under every kind of model: offline, good, bad by rule, and spoiled by every fault.

    python benchmarks/models_on_incidents.py FOLDER [COUNT]

FOLDER holds recorded incidents. Prints a line for each kind of model: how the runs ended, how many requests they
took, and how many findings of their reports rest on nothing that was verified (there should be none).
"""

import asyncio
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.graph.outcome import Outcome
from opsleuth.graph.prepare import Settings, StartRequest
from opsleuth.graph.session import Runner
from opsleuth.models.server.faults import NAMES
from opsleuth.models.server.rules import RULES
from opsleuth.models.server.serve import ModelServer
from opsleuth.models.server.spoil import Spoiled
from opsleuth.models.settings import ModelSettings
from opsleuth.state.base import to_json
from opsleuth.state.clock import SystemClock


class Ended(NamedTuple):
    """How one run ended."""

    code: int
    reason: str
    verdict: str
    requests: int
    unfounded: int


def main(folder: Path, count: int) -> None:
    found = sorted(path.parent for path in folder.rglob("incident.json"))
    cases = found[:: max(len(found) // count, 1)][:count]
    kinds = ["offline", *RULES, *(f"{name}@2" for name in NAMES)]
    print(
        f"{len(cases)} incidents\n{'model':<22}{'exit codes':<22}{'requests':<12}unfounded  verdicts, stop reasons"
    )
    for kind in kinds:
        ended = [_run(case, kind) for case in cases]
        codes = " ".join(f"{code}×{n}" for code, n in sorted(Counter(e.code for e in ended).items()))
        requests = sorted({e.requests for e in ended})
        said = Counter(e.verdict for e in ended) + Counter(e.reason for e in ended)
        print(
            f"{kind:<22}{codes:<22}{f'{requests[0]} to {requests[-1]}':<12}{sum(e.unfounded for e in ended):<11}"
            + ", ".join(f"{name} {n}" for name, n in said.most_common()),
            flush=True,
        )


def _run(case: Path, kind: str) -> Ended:
    rule, _, fault = ("investigator", "", kind) if "@" in kind else (kind, "", "")
    if kind == "offline":
        return _ended(_investigate(case, None), 0)
    with ModelServer(Spoiled(RULES[rule], [fault] if fault else [])) as server:
        settings = ModelSettings(
            model="scripted", base_url=server.base_url, tries=2, timeout=1.0 if "stall" in kind else 30.0
        )
        outcome = _investigate(case, settings)
        return _ended(outcome, len(server.requests))


def _investigate(case: Path, settings: ModelSettings | None) -> Outcome:
    with (
        tempfile.TemporaryDirectory() as folder,
        Store.open(Path(folder) / "x.db", SystemClock(), Redactor()) as store,
    ):
        request = StartRequest(
            run="inv-20240501-test",
            settings=Settings(
                case=str(case),
                planner="model" if settings else "offline",
                model=to_json(settings) if settings else None,
            ),
        )
        return asyncio.run(Runner(store).start(request))


def _ended(outcome: Outcome, requests: int) -> Ended:
    report: Mapping[str, Any] = outcome.report or {}
    verified = {claim["id"] for claim in report.get("claims", ()) if claim["status"] == "verified"}
    unfounded = [cause for cause in report.get("causes", ()) if not verified.intersection(cause["claims"])]
    return Ended(
        int(outcome.exit_code), str(outcome.stop_reason), str(outcome.verdict), requests, len(unfounded)
    )


if __name__ == "__main__":
    os.environ.setdefault("LANGSMITH_TRACING", "false")
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10)

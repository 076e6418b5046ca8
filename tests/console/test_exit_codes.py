"""Every exit code of the table is reached: by the program itself, or by a whole run whose outcome holds it."""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from acting import Acting, calls, serving
from loop_rig import World, concludes, looks
from seat_rig import RUN
from seats import away
from stored_runs import REPOSITORY, Program

from opsleuth.checkpoints.store import Store
from opsleuth.evals.results_file import build_results_document, describe_eval_setup
from opsleuth.evals.score import CaseScore
from opsleuth.graph.approvals import decisions
from opsleuth.graph.approvals.decisions import AnsweringPerson
from opsleuth.redaction.redactor import Redactor
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_status import EXIT_CODE_MEANING, ExitCode

ACTS = looks("gateway", tool="restart")
ENDS = concludes("done", "E1")


def run(folder: Path, *script: Any, verb: str = "start") -> int:
    World(folder).write(*script)
    return away(World(folder), verb, "--no-input").returncode


def opened(folder: Path) -> Store:
    return Store.open(folder / "store.db", SystemClock(), Redactor())


def internal(folder: Path) -> int:
    (folder / "broken").touch()
    return run(folder, ENDS)


def denied(folder: Path) -> int:
    assert run(folder, ACTS, ENDS) == ExitCode.WAITING
    with opened(folder) as store:
        decisions.record_answer(
            store,
            RUN,
            "A1",
            decisions.OperatorReply("denied", reason="not now"),
            AnsweringPerson("a person", "command"),
        )
    return run(folder, ACTS, ENDS, verb="resume")


def busy(folder: Path) -> int:
    run(folder, ACTS, ENDS)
    with opened(folder) as store, store.lock(RUN):
        return run(folder, ACTS, ENDS, verb="resume")


def unreadable(folder: Path) -> int:
    with opened(folder):
        pass
    with sqlite3.connect(folder / "store.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    return Program(folder / "store.db", folder)("list").returncode


def check_failed(folder: Path) -> int:
    with serving(folder / "plane.jsonl") as plane:
        acting = Acting(folder, f"http://127.0.0.1:{plane.server_port}")
        acting.start(calls(("service_restart", {"service": "orders-api"})), concludes("well again"))
        acting.approve_all()
        return int(acting.resume(seconds=1.5).exit_code)


def unknown(folder: Path) -> int:
    with serving(folder / "plane.jsonl") as plane:
        acting = Acting(folder, f"http://127.0.0.1:{plane.server_port}", keys=False)
        acting.start(calls(("service_rollback", {"service": "orders-api", "version": "2.13.4"})), ENDS)
        plane.engine.switches.set("*", {"mode": "drop", "readable": False, "times": 1})
        acting.approve_all()
        return int(acting.resume().exit_code)


def canceled(folder: Path) -> int:
    limited(folder)
    program = Program(folder / "store.db", folder)
    program("fork", "@c1")
    return program("cancel", "-").returncode


def worse(folder: Path) -> int:
    common: dict[str, Any] = {
        "set": "shop", "fault_type": "cpu", "expected": "cause_found", "verdict": "cause_found",
        "verdict_right": True, "top3": True, "kind": True, "all_causes": None, "blamed": False, "claims": 2,
        "unsupported": 0, "calls": 8, "repeated": 0, "turns": 4, "tokens": 0, "seconds": 0.5,
        "status": "completed", "answered": "a (cpu)", "store": "", "repeat": 1,
    }  # fmt: skip
    for name, right in (("a", True), ("b", False)):
        scores = [CaseScore(**common, case=f"c{n:02}", top1=right, run=f"inv-{n}") for n in range(20)]
        (folder / name).write_text(
            json.dumps(build_results_document("shop", describe_eval_setup("offline"), scores))
        )
    (folder / "gate.toml").write_text('[[rule]]\nmetric = "top1"\nmax_drop = 0\n')
    program = Program(folder / "store.db", folder)
    compared = ("eval", "compare", str(folder / "a"), str(folder / "b"), "--gate", str(folder / "gate.toml"))
    return program(*compared).returncode


def command(*words: str) -> Callable[[Path], int]:
    return lambda folder: Program(folder / "store.db", folder)(*words).returncode


def limited(folder: Path) -> int:
    case = str(write_case(folder / "case"))
    return Program(folder / "store.db", folder)("run", "--case", case, "--max-turns", "1").returncode


REACHED: Mapping[ExitCode, Callable[[Path], int]] = {
    ExitCode.OK: command("version"),
    ExitCode.INTERNAL: internal,
    ExitCode.USAGE: command("resume"),
    ExitCode.INCONCLUSIVE: lambda folder: run(folder, concludes("nobody knows")),
    ExitCode.WAITING: lambda folder: run(folder, ACTS, ENDS),
    ExitCode.DENIED: denied,
    ExitCode.LIMIT: limited,
    ExitCode.UNREACHABLE: lambda folder: run(folder, {"error": "unavailable"}),
    ExitCode.CONFIG: command("run", "why?"),
    ExitCode.NOT_FOUND: command("show", "nothing"),
    ExitCode.BUSY: busy,
    ExitCode.UNREADABLE: unreadable,
    ExitCode.CHECK_FAILED: check_failed,
    ExitCode.EFFECT_UNKNOWN: unknown,
    ExitCode.CANCELED: canceled,
    ExitCode.WORSE: worse,
}
ELSEWHERE: Mapping[ExitCode, str] = {
    ExitCode.SIGINT: "tests/console/test_seat.py",
    ExitCode.SIGTERM: "tests/console/test_seat.py",
    ExitCode.SIGPIPE: "tests/console/test_running.py",
}


@pytest.mark.parametrize("code", REACHED, ids=lambda code: f"{int(code)}-{code.name}")
def test_it_is_reached(tmp_path: Path, code: ExitCode) -> None:
    assert REACHED[code](tmp_path) == code


def test_none_is_left_out() -> None:
    assert REACHED.keys() | ELSEWHERE.keys() == set(EXIT_CODE_MEANING)
    for code, path in ELSEWHERE.items():
        text = (REPOSITORY / path).read_text("utf-8")
        assert re.search(rf"ExitCode\.{code.name}\b|== {int(code)}\b", text), (
            f"{path} does not reach {code.name}"
        )

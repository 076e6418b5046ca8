"""From stored runs to groups of failures, and to cases."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from loop_rig import Loop, concludes, looks
from stored_runs import Program

from opsleuth.checkpoints.store import Store
from opsleuth.evals.case_from_run import make_case_from_run
from opsleuth.evals.evaluation import EvalRequest, evaluate_set
from opsleuth.evals.run_failures import group_failures
from opsleuth.graph.lifecycle.first_state import RunSettings, StartRequest
from opsleuth.graph.lifecycle.session import Runner
from opsleuth.redaction.redactor import Redactor
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
RUN = "inv-20261129-adpt"
EXPECT = {
    "root_cause_service": "orders-api",
    "acceptable_services": ["orders-db"],
    "acceptable_kinds": ["slow_query", "deploy"],
    "tags": ["seen"],
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one finished run over an incident in whose logs a token stands."""
    folder = tmp_path_factory.mktemp("stored")
    case = write_case(folder / "incident")
    line = {
        "timestamp": "2026-03-03T14:02:00Z",
        "service": "orders-api",
        "level": "info",
        "message": f"token {SECRET}",
    }
    (logs,) = case.glob("logs.jsonl*")
    packed = logs.suffix == ".gz"
    text = (
        (gzip.decompress(logs.read_bytes()) if packed else logs.read_bytes()).decode()
        + json.dumps(line)
        + "\n"
    )
    logs.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with Store.open(folder / "opsleuth.db", SystemClock(), Redactor()) as store:
        request = StartRequest(
            run=RUN,
            question="Why is the orders API slow?",
            settings=RunSettings(case=str(case), planner="offline"),
        )
        asyncio.run(Runner(store).start(request))
    return folder / "opsleuth.db"


def opened(database: Path) -> Store:
    return Store.open(database, SystemClock(), Redactor(), read_only=True)


def everything(folder: Path) -> bytes:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes() for p in files)


def test_a_stored_run_becomes_a_case_that_can_be_evaluated(database: Path, tmp_path: Path) -> None:
    with opened(database) as store:
        made = make_case_from_run(store, RUN[:-2], EXPECT, tmp_path / "cases")
    assert SECRET.encode() not in everything(tmp_path)
    assert json.loads((made / "incident.json").read_text())["question"] == "Why is the orders API slow?"
    found = evaluate_set(EvalRequest(tmp_path / "cases"))
    (score,) = found["scores"]
    assert (score["case"], score["verdict_right"], score["top1"], score["problem"]) == (RUN, True, True, "")
    assert found["summary"]["by_tag"]["seen"]["cases"] == 1


def test_a_second_case_joins_the_key_and_none_is_written_twice(database: Path, tmp_path: Path) -> None:
    with opened(database) as store:
        make_case_from_run(store, RUN, EXPECT, tmp_path)
        make_case_from_run(store, RUN, {"verdict": "healthy"}, tmp_path, name="quiet")
        with pytest.raises(UsageError, match="exists already"):
            make_case_from_run(store, RUN, EXPECT, tmp_path)
    assert json.loads((tmp_path / "answers.json").read_text()).keys() == {RUN, "quiet"}


@pytest.mark.parametrize("expect", [{"cause": "orders"}, {"kind": "slowness"}, {"at_most": {"turns": 0}}])
def test_an_expectation_that_is_none_writes_nothing(
    database: Path, tmp_path: Path, expect: dict[str, Any]
) -> None:
    with opened(database) as store, pytest.raises(UsageError, match="write for example"):
        make_case_from_run(store, RUN, expect, tmp_path / "cases")
    assert not (tmp_path / "cases").exists()


def test_a_run_without_a_recorded_incident_is_refused(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    loop.start(looks("a"), concludes("nothing"))
    with pytest.raises(UsageError, match="did not look at a recorded incident"):
        make_case_from_run(loop.store, "inv-20240501-test", {"verdict": "healthy"}, tmp_path / "cases")


def test_failures_of_stored_runs_are_grouped(tmp_path: Path) -> None:
    loop = Loop(tmp_path)
    broken = [{"thing": f"shop-{n}", "behave": "down"} for n in range(2)]
    for number in (1, 2):
        loop.start(
            looks(*broken),
            {"error": "malformed", "text": f"no call t{number}c1 there"},
            concludes("the value is 123456", "E1"),
            concludes("the value is 123456", "E1"),
            concludes("the value is 123456", "E1"),
            run=f"inv-2024050{number}-test",
        )
    found = {(f.group, f.what): f for f in group_failures(loop.store, None)}
    (tool,) = [f for f in found.values() if f.group == "tool failed"]
    assert tool.count == 4
    assert tool.what.startswith("look unavailable (behave: text, limit: number, thing: text): ")
    assert {run for run, _ in tool.where} == {"inv-20240501-test", "inv-20240502-test"}
    assert found["decision not valid", "no call … there"].count == 2
    assert any(group == "claim removed" and f.count == 2 for (group, _), f in found.items())


def test_the_commands(database: Path, tmp_path: Path) -> None:
    program = Program(database, tmp_path)
    added = program(
        "eval", "add", "-", "--expect", json.dumps({"verdict": "healthy"}), "--to", str(tmp_path / "set")
    )
    assert added.returncode == 0, added.stderr
    results = str(tmp_path / "r.json")
    assert program("eval", "run", str(tmp_path / "set"), "-o", results).returncode == 0
    shown = program("eval", "misses", results).stdout
    assert shown.startswith("1 of 1 not right\n\nlooked and misread: 1\n")
    assert "opsleuth show inv-" in shown
    assert json.loads(program("eval", "misses", results, "--json").stdout)["misses"]["looked and misread"]
    assert program("eval", "misses", "--runs", "--since", "now-30d").returncode == 0
    assert program("eval", "misses").returncode == 2
    assert program("eval", "add", RUN, "--expect", "[").returncode == 2


@pytest.mark.parametrize("broken", ['{"a": ', "[1]"])
def test_a_broken_key_leaves_no_case_behind(database: Path, tmp_path: Path, broken: str) -> None:
    (tmp_path / "answers.json").write_text(broken, encoding="utf-8")
    with opened(database) as store, pytest.raises(UsageError, match="key"):
        make_case_from_run(store, RUN, EXPECT, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    assert (tmp_path / "answers.json").read_text(encoding="utf-8") == broken

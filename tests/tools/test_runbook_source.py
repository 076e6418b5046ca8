"""Runbooks in runs: found by the offline planner, named in the report, and only data when they give orders."""

import asyncio
import json
from pathlib import Path

import pytest
from stored_runs import Program
from tool_rig import context

from opsleuth.analysis.records import AlertFacts, Recording, Runbook, TimeRange
from opsleuth.analysis.runbooks import parse_runbook
from opsleuth.scenarios.injected_texts import plant_hostile_texts
from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.calls import ResultStatus
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.runbooks import LONGEST, RunbooksFindArguments, runbooks_find
from opsleuth.tools.sources.memory_source import MemorySource
from opsleuth.tools.sources.runbook_files import read_runbooks
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import ToolResult


def found(*books: Runbook, **arguments: str) -> ToolResult:
    recording = Recording(alert=AlertFacts(text=""), window=TimeRange(0, 1), runbooks=books)
    return asyncio.run(
        runbooks_find(RunbooksFindArguments(**arguments), context(RunSources([MemorySource(recording)])))
    )


def test_what_fits_is_shown_in_full_and_bounded() -> None:
    long = parse_runbook("long.md", "---\nservice: cart\n---\n# Cart\n" + "step\n" * 5_000)
    result = found(long, parse_runbook("other.md", "---\nservice: mail\n---\n# Mail"), service="cart")
    (shown,) = result.record["runbooks"]
    assert (shown["name"], shown["fits_by"]) == ("long.md", "service cart")
    assert len(shown["text"]) < LONGEST + 100
    assert (result.scanned, result.matched) == (2, 1)


def test_nothing_that_fits_is_no_error() -> None:
    assert (
        found(parse_runbook("a.md", "---\nservice: mail\nlabels: {a: b}\n---\n"), service="mail").status
        is ResultStatus.NONE_MATCHED
    )


def test_a_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "slow.md").write_bytes(b"---\r\nservice: cart\r\n---\r\n# Slow\xff\r\n")
    (tmp_path / "notes.txt").write_text("# no runbook")
    assert [(b.name, b.services) for b in read_runbooks(tmp_path)] == [("team/slow.md", ("cart",))]


def test_a_folder_in_the_configuration(tmp_path: Path) -> None:
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
    file = tmp_path / ".config" / "opsleuth" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[environments.shop.sources.books]\nkind = "runbooks"\nfolder = "{tmp_path / "books"}"\n'
    )
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "cart.md").write_text(
        "---\nservice: cart\n---\n# Cart is slow\n\nLook at the cache.\n"
    )
    arguments = json.dumps({"service": "cart"})
    tried = json.loads(program("tools", "test", "runbooks_find", "--args", arguments, "--json").stdout)
    assert tried["record"]["runbooks"][0]["title"] == "Cart is slow"
    (examined,) = json.loads(program("doctor", "--json").stdout)["sources"]
    assert "1 runbook" in examined["checks"][0]["text"]


def test_the_report_names_the_runbook_of_the_built_in_incident(tmp_path: Path) -> None:
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
    case = write_case(tmp_path / "case")
    assert program("run", "--case", str(case), "--planner", "offline", "-q").returncode == ExitCode.OK
    (book,) = json.loads(program("report", "--json").stdout)["runbooks"]
    assert book["title"] == "orders-api is slow"
    assert "RUNBOOKS" in program("report").stdout


@pytest.mark.slow
@pytest.mark.parametrize("front", ["", "---\nservices: [orders-api]\n---\n"])
def test_orders_in_a_runbook_are_data(tmp_path: Path, front: str) -> None:
    """A runbook that fits and gives orders changes no call and no verdict; that it did is mentioned."""
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
    clean, hostile = write_case(tmp_path / "clean"), write_case(tmp_path / "hostile")
    plant_hostile_texts(hostile)
    for path in hostile.iterdir():  # the runbook alone is hostile
        if path.is_file():
            (clean / path.name).exists() and path.write_bytes((clean / path.name).read_bytes())
    book = hostile / "runbooks" / "restart.md"
    book.write_text(front + book.read_text())
    told = []
    for case in (clean, hostile):
        ended = program("run", "--case", str(case), "--planner", "offline", "-q", "--json")
        assert ended.returncode == ExitCode.OK
        told.append(json.loads(program("report", "--json").stdout))
    for key in ("verdict", "causes", "answer", "effects", "recommendations"):
        assert told[0][key] == told[1][key]
    assert len(told[1]["runbooks"]) == 1 + bool(front)
    assert bool(told[1]["orders_in_data"]) is bool(front)

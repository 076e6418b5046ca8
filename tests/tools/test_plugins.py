"""Tools of other packages: the example installed for real, and packages that are wrong in every way."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acting import Acting, calls
from loop_rig import concludes
from package_path import PACKAGE_PATH
from servers import lacking
from stored_runs import REPOSITORY, Program

from opsleuth.state.calls import Risk
from opsleuth.tools.plugins import load_plugins

EXAMPLE = REPOSITORY / "examples" / "opsleuth-tickets"
DONE = concludes("nothing more to do")
GOOD = """
from opsleuth.tools.spec import Arguments, ToolResult, ToolSpec
from opsleuth.state.calls import Risk
from pydantic import Field
class Nothing(Arguments): pass
class Why(Arguments):
    why: str = ""
class Needs(Arguments):
    what: str
async def run(arguments, context): return ToolResult(record={}, headline="h")
def tool(name="plug_look", **fields):
    return ToolSpec(**({"name": name, "purpose": "p", "not_for": "n", "arguments": Nothing, "example": {}, "run": run} | fields))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "opsleuth_tickets.py"):
        (copy / name).write_text((EXAMPLE / name).read_text())
    done = subprocess.run(
        [*pip, "--target", str(folder / "site"), str(copy)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        lacking(f"pip cannot build the example here: {done.stderr[-500:]}")
    return folder / "site"


@pytest.fixture
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tickets.json"
    path.write_text(json.dumps({"OPS-7": {"title": "Checkout slow", "open": True, "closed_by": None}}))
    monkeypatch.setenv("TICKETS_FILE", str(path))
    return path


def package(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch, name: str = "plug") -> None:
    """An installed package whose entry point is `tools`."""
    (folder / f"{name}.py").write_text(GOOD + code)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[opsleuth.tools]\n{name} = {name}:tools\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.slow
def test_the_example_is_listed_and_tried(site: Path, tickets: Path, tmp_path: Path) -> None:
    variables = {"PYTHONPATH": f"{PACKAGE_PATH}:{site}", "TICKETS_FILE": str(tickets)}
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path, variables)
    rows = {tool["name"]: tool for tool in json.loads(program("tools", "--json").stdout)["tools"]}
    assert rows["tickets_find"]["origin"] == "package opsleuth-tickets 0.1.0"
    assert rows["ticket_close"]["risk"] == "high"
    found = program("tools", "test", "tickets_find", "--args", '{"text": "CHECKOUT"}', "--json")
    assert json.loads(found.stdout)["record"] == {"tickets": [{"id": "OPS-7", "title": "Checkout slow"}]}
    none = program("tools", "test", "tickets_find", "--args", '{"text": "search"}', "--json")
    assert json.loads(none.stdout)["status"] == "none_matched"


@pytest.mark.slow
def test_the_example_closes_a_ticket_once_and_a_run_sees_it(
    site: Path, tickets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(site))
    rig = Acting(tmp_path, "http://127.0.0.1:9")
    rig.start(calls(("ticket_close", {"ticket": "OPS-7"})), DONE)
    (asked,) = rig.pending()
    assert json.loads(tickets.read_text())["OPS-7"]["open"] is True
    rig.approve(asked)
    outcome = rig.resume()
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is True
    assert json.loads(tickets.read_text())["OPS-7"]["open"] is False


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemError('no')", "SystemError"),
        ("import no_such_module_anywhere\ntools = []", "no_such_module"),
        ("", "tools"),
        ("tools = 7", "TypeError"),
        ("tools = [7]", "not a ToolSpec"),
        ("def tools(): return 1 / 0", "ZeroDivisionError"),
        ("tools = tool('calculate')", "already in use"),
        ("tools = tool('Bad Name')", "invalid or already in use"),
        ("tools = [tool('plug_a'), tool('plug_b', arguments=Needs)]", "example of plug_b"),
        ("tools = tool(arguments=Why)", "every call carries"),
        ("tools = tool(undo='by hand')", "give its risk"),
    ],
)
def test_a_package_that_is_wrong_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    package(tmp_path, code, monkeypatch)
    found = load_plugins(["calculate"])
    assert found.specs == ()
    (problem,) = found.problems
    assert "package plug 1.0" in problem
    assert said in problem


def test_a_good_package_is_used_beside_a_bad_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "tools = tool('good_look', risk=Risk.LOW)", monkeypatch, "plug_good")
    package(tmp_path, "raise RuntimeError", monkeypatch, "plug_bad")
    found = load_plugins()
    assert [(spec.name, spec.risk, spec.origin) for spec in found.specs] == [
        ("good_look", Risk.LOW, "package plug_good 1.0")
    ]
    assert len(found.problems) == 1


def test_a_run_warns_of_a_package_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "raise RuntimeError('boom')", monkeypatch)
    rig = Acting(tmp_path, "http://127.0.0.1:9")
    outcome: Any = rig.start(DONE)
    assert any("package plug 1.0" in text for text in outcome.report["warnings"])

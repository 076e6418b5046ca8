"""The errors are one tree, the one that is drawn in `opsleuth.state.errors`; the command line relies on its root alone."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from nonempty import nonempty

from opsleuth.console.error_reporting import report_error
from opsleuth.state import errors
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.run_status import ExitCode

TOP = Path(__file__).resolve().parent.parent
ROOMS = sorted(p.parent for p in TOP.glob("*/__init__.py") if p.parent.name not in ("tests", "benchmarks"))
ROOT = OpsleuthError.__name__
SIGNALS = {"PaceStoppedError", "RetryLaterError", "_CountsChangedError"}
"""What is raised to steer, and caught one call further up."""
BUILT_IN = {
    "Exception",
    "BaseException",
    "ValueError",
    "TimeoutError",
    "RuntimeError",
    "LookupError",
    "OSError",
}
DRAWN = re.compile(r"^((?:│   |    )*)(?:├── |└── )?(\w+)(?: \((\d+)\))?(?:: .+)?$")


class Line(NamedTuple):
    """One error: its name, the name of the one above it, and its own exit code, None where it inherits it."""

    name: str
    above: str
    code: int | None


def classes() -> Iterator[Line]:
    """Every error that a room defines."""
    found = [node for room in ROOMS for path in sorted(room.rglob("*.py")) for node in _classes_of(path)]
    names = {ROOT}
    while more := {n.name for n in found if _bases(n) & (names | BUILT_IN)} - names:
        names |= more
    for node in found:
        if node.name in names and node.name != ROOT:
            yield Line(node.name, ast.unparse(node.bases[0]), _code(node))


def _classes_of(path: Path) -> list[ast.ClassDef]:
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)]


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base) for base in node.bases}


def _code(node: ast.ClassDef) -> int | None:
    for line in node.body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "exit_code":
            return int(ExitCode[ast.unparse(line.value).removeprefix("ExitCode.")])
    return None


def drawn() -> Iterator[Line]:
    """Every error of the drawing, below the root."""
    tree = (errors.__doc__ or "").partition(f"\n{ROOT} (1)\n")[2]
    above = [ROOT]
    for text in tree.splitlines():
        found = DRAWN.match(text)
        assert found, f"not a line of the tree: {text}"
        depth = len(found[1]) // 4 + 1
        del above[depth:]
        yield Line(found[2], above[-1], int(found[3]) if found[3] else None)
        above.append(found[2])


def test_every_error_has_its_line_in_the_tree() -> None:
    defined = Counter((line.name, line.above) for line in classes() if line.name not in SIGNALS)
    assert defined == Counter((line.name, line.above) for line in drawn())


def test_the_tree_tells_the_exit_codes() -> None:
    own = {line for line in classes() if line.code is not None}
    told_of = {line for line in drawn() if line.code is not None}
    assert own <= told_of
    inherited = told_of - own
    assert all(line.code in (1, None) for line in nonempty(inherited)), "a code that the class does not set"


def test_signals_are_no_errors() -> None:
    assert {line.name for line in classes() if line.above == "Exception"} == SIGNALS


@pytest.mark.parametrize("code", [ExitCode.CONFIG, ExitCode.UNREADABLE])
def test_a_command_ends_with_the_code_of_the_error(
    code: ExitCode, capsys: pytest.CaptureFixture[str]
) -> None:
    class NewError(OpsleuthError):
        exit_code = code

    assert report_error(NewError("the disk is gone: bring it back")) == code
    assert capsys.readouterr().err == "opsleuth: the disk is gone: bring it back\n"


def test_an_error_outside_the_tree_is_internal_whatever_it_carries(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class StrangeError(Exception):
        exit_code = ExitCode.CONFIG

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert report_error(StrangeError("words of a library")) == ExitCode.INTERNAL
    assert "internal error: StrangeError" in capsys.readouterr().err

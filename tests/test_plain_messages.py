"""No message that puzzled people, or that is not English, stands in the source again."""

import ast
import re
from pathlib import Path

import pytest
from stored_runs import REPOSITORY

ROOMS = (
    "alerts", "analysis", "checkpoints", "configuration", "console", "evals", "graph", "models", "nodes", "questions",
    "redaction", "service", "state", "tools", "verification",
)  # fmt: skip
FILES = [path for room in ROOMS for path in sorted((REPOSITORY / room).rglob("*.py"))]
REFUSED = (
    r"is no way to", r"is taken or none", r"\b(answer|reply) is none of", r"is gone on with", r"replay has left",
    r"is no digest", r"the world is read", r"neither blamed nor ruled out", r"forth and back", r"is no folder",
    r"says? this or the like", r"sources know no", r"findings about it weigh", r"^Log head", r"\(a new total\)$", r"^1 moments",
    r"(?<!here )\b(is|are) no (?!longer|more|such)[a-zA-Z]", r"\banew\b", r"\bmend(s|ed)?\b", r"\bnot told by\b",
    r"\bin each other\b", r"\bstands? in (no|none)\b", r"stretch of time", r"\bshall be told\b", r"^At most so many",
)  # fmt: skip


def find_texts(path: Path) -> list[str]:
    """Every text in a file, with those parts of a formatted one that stand in it; without docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    found = {
        str(path.relative_to(REPOSITORY)): find_texts(path) for path in FILES if path.name != "stored_runs.py"
    }
    assert sum(map(len, found.values())) > 5000
    return found


@pytest.mark.parametrize("words", REFUSED)
def test_no_message_that_puzzled_people_is_left(words: str, texts: dict[str, list[str]]) -> None:
    assert [file for file, said in texts.items() if any(re.search(words, text) for text in said)] == []

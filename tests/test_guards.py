"""Every guard that the documentation lists is there, and so is its test."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
ROWS = [
    [cell.strip() for cell in line.strip("|\n ").split(" | ")]
    for line in (TOP / "docs" / "guards.md").read_text().splitlines()
    if line.startswith("| ") and "`" in line
]


def test_there_are_guards() -> None:
    assert len(ROWS) > 40


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[-1].strip("`"))
def test_a_guard_and_its_test_exist(row: list[str]) -> None:
    failure, rule, file, test = row
    assert failure
    assert rule
    assert (TOP / file.strip("`")).is_file()
    path, _, name = test.strip("`").partition("::")
    assert re.search(rf"^(?:async )?def {name}\(", (TOP / path).read_text(), re.MULTILINE), test

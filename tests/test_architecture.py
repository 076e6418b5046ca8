"""The walks of docs/architecture.md lead through files that exist, and each file hands over by a name that the next one knows."""

import itertools
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from nonempty import nonempty

TOP = Path(__file__).resolve().parent.parent
TEXT = (TOP / "docs" / "architecture.md").read_text("utf-8")
ROW = re.compile(r"^\| (\d+) \| `([^`]+)` \| [^|]+ \| (?:`(\w+)` )?\|$")
MOST_FILES = 8


class Stage(NamedTuple):
    """One row of a walk; the last one hands over nothing."""

    number: int
    file: str
    name: str | None


def read_walks() -> list[list[Stage]]:
    """The tables with numbered rows, in their order."""
    walks: list[list[Stage]] = []
    for line in TEXT.splitlines():
        if found := ROW.match(line):
            stage = Stage(int(found[1]), found[2], found[3])
            if stage.number == 1:
                walks.append([])
            walks[-1].append(stage)
    return walks


def has_name(file: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", (TOP / file).read_text("utf-8")) is not None


def test_there_are_two_walks_of_few_files() -> None:
    assert [len(walk) <= MOST_FILES for walk in read_walks()] == [True, True]


@pytest.mark.parametrize("walk", read_walks(), ids=lambda walk: f"from {walk[0].file} to {walk[-1].file}")
def test_each_file_hands_over_to_the_next(walk: list[Stage]) -> None:
    assert [stage.number for stage in walk] == list(range(1, len(walk) + 1))
    for stage, following in nonempty(itertools.pairwise(walk)):
        assert stage.name is not None, f"{stage.file} names nothing by which it hands over"
        for file in (stage.file, following.file):
            assert has_name(file, stage.name), f"{file} does not know {stage.name}"
    assert (TOP / walk[-1].file).is_file()


def test_every_file_of_the_page_exists() -> None:
    named = re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|md|sql|toml))?|cli\.py|pyproject\.toml)`", TEXT)
    missing = [path for path in nonempty(named) if not (TOP / path).exists()]
    assert missing == []

"""A line of any length: its beginning is read, the rest is skipped in little memory, and the cut is told once."""

import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from live_rig import SPAN, ask, one

from opsleuth.analysis.records import LogLine
from opsleuth.tools.sources.counting_units import RawLines
from opsleuth.tools.sources.file_kinds import recognize_file
from opsleuth.tools.sources.log_formats.assembly import MOST_CHARACTERS, CutTally, OpenRecord
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules
from opsleuth.tools.sources.long_lines import (
    LONGEST_LINE,
    read_line_starts,
    skip_rest_of_line,
    without_half_character,
)
from opsleuth.tools.sources.time_seek import find_time_offset

SIZE = 20_000_000
BEFORE = b"2026-03-03T14:56:%02dZ INFO cart: order taken\n"
LONG = b"2026-03-03T14:57:00Z ERROR cart: body "


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "cart.log"
    with path.open("wb") as file:
        file.writelines(BEFORE % second for second in range(60))
        file.write(LONG)
        file.writelines(b"x" * 1_000_000 for _ in range(SIZE // 1_000_000))
        file.write(b"\n2026-03-03T14:58:00Z ERROR cart: pool empty\n")
    return path


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_no_reader_holds_a_long_line(log: Path) -> None:
    def open_file() -> LogFile:
        return LogFile(log, ReadingRules())

    file = open_file()
    readers: dict[str, Callable[[], object]] = {
        "the kind of the file": lambda: recognize_file(log),
        "records": lambda: sum(1 for _ in file.records(RawLines(file, 0, None))),
        "the place of a time": lambda: find_time_offset(log, SPAN.start, open_file().time_of),
    }
    peaks = {name: peak_of(work) for name, work in readers.items()}
    assert {name: peak for name, peak in peaks.items() if peak > SIZE / 4} == {}


def test_the_lines_around_a_long_one_are_found_and_the_cut_is_told_once(log: Path) -> None:
    kind = recognize_file(log)
    assert kind.lines == 62
    cut = f"of 1 line longer than {LONGEST_LINE:,} bytes, only the beginning was read"
    assert [note for note in kind.notes if "longer than" in note] == [cut]


async def test_a_search_reads_the_beginning_of_a_long_line(log: Path) -> None:
    source = one(kind="logfiles", files=[f"{log.parent}/*.log"])
    found = await ask(
        [source], "logs_search", level="error", since="2026-03-03T14:00:00Z", until="2026-03-03T14:59:00Z"
    )
    assert "2 of 62 lines match" in found.headline
    assert "cart.log: of 1 line longer than 64,000 bytes, only the beginning was read" in str(found)


@pytest.mark.parametrize("size", [LONGEST_LINE - 1, LONGEST_LINE, LONGEST_LINE + 1, 3 * LONGEST_LINE])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_is_cut_at_the_limit_only(size: int, end: bytes) -> None:
    cut = set[int]()
    lines = list(read_line_starts(io.BytesIO(b"first\n" + b"x" * size + end), cut))
    kept = b"x" * size + end
    assert lines == [b"first\n", kept[:LONGEST_LINE]]
    assert cut == ({6} if len(kept) > LONGEST_LINE else set())


@pytest.mark.parametrize("letter", ["é", "語", "😀"])
def test_no_character_is_cut_in_two(letter: str) -> None:
    raw = ("ab" + letter).encode()
    assert [without_half_character(raw[:size]) for size in range(2, len(raw) + 1)] == [
        *[b"ab"] * (len(raw) - 2),
        raw,
    ]


def test_the_rest_of_a_line_ends_with_the_line_or_the_file() -> None:
    file = io.BytesIO(b"x" * 2_500_000 + b"\nnext")
    assert (skip_rest_of_line(file), file.read(4)) == (2_500_001, b"next")
    assert skip_rest_of_line(io.BytesIO(b"")) == 0


def test_a_record_of_many_long_lines_is_bounded() -> None:
    record = OpenRecord(LogLine(0.0, "cart", "boom"), None, "")
    for number in range(400):
        record.add(f"{number:05d}" + "x" * (LONGEST_LINE - 5))
    whole = record.whole(CutTally())
    assert len(whole.message) < 3 * MOST_CHARACTERS
    assert whole.message.splitlines()[-1].startswith("00399")

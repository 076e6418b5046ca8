"""Every log format: time, level, service and message of each of its lines, without configuration."""

import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from live_rig import ask, one
from log_samples import FIRST_LIST, HEADS, SECOND_LIST, START, Expected, FormatCase, written
from nonempty import nonempty

from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources.log_formats.compiled_formats import TEXT_FORMATS
from opsleuth.tools.sources.log_formats.json_formats import JSON_FORMATS
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules
from opsleuth.tools.sources.logformat import LogLineReader

AFTER = (START + timedelta(hours=1)).timestamp()
WINDOW: dict[str, Any] = {"since": "2026-11-29T13:50:00Z", "until": "2026-11-29T14:20:00Z"}


def put(folder: Path, case: FormatCase, text: str, encoding: str = "utf-8") -> Path:
    path = folder / case.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    os.utime(path, (AFTER, AFTER))
    return path


def read(path: Path) -> list[LogLine]:
    file = LogFile(path, ReadingRules())
    with file.open() as raws:
        return list(file.records(file.documents() if file.is_document else raws))


def told(lines: Iterable[LogLine]) -> list[Expected]:
    return [
        Expected(None if line.time is None else round(line.time, 3), line.level, line.service, line.message)
        for line in lines
    ]


def _records(lines: list[LogLine], case: FormatCase) -> list[LogLine]:
    return lines[1:] if case.name in HEADS else lines


@pytest.mark.parametrize("case", [*FIRST_LIST, *SECOND_LIST], ids=lambda case: case.name)
def test_lines_of_a_format_are_read_right(case: FormatCase, tmp_path: Path) -> None:
    text, expected = written(case)
    assert told(_records(read(put(tmp_path, case, text)), case)) == expected


@pytest.mark.parametrize("case", [*FIRST_LIST, *SECOND_LIST], ids=lambda case: case.name)
async def test_a_search_finds_a_word_of_the_last_line(case: FormatCase, tmp_path: Path) -> None:
    text, _ = written(case)
    last = "needle-4711" if case.levels["error"][0] != "502" else "needle-4711.example.com"
    text = _with_needle(text, last)
    path = put(tmp_path, case, text)
    source = one(kind="logfiles", files=[str(path)])
    found = await ask([source], "logs_search", text=last, **WINDOW)
    assert (found.status, found.matched) == (ResultStatus.OK, 1)
    absent = await ask([source], "logs_search", text="no such word anywhere", **WINDOW)
    assert absent.status is ResultStatus.NONE_MATCHED
    assert absent.scanned
    assert absent.scanned >= 36


def _with_needle(text: str, needle: str) -> str:
    """The text with a word put in the place of one of the last record's own."""
    for word in ("HikariPool", "curl", "51532", "HTTP/2", "ChargeService", "charge", "10.0.0.1"):
        head, found, tail = text.rpartition(word)
        if found and text.count("\n", len(head)) < 12:
            return f"{head}{needle}{tail}"
    raise AssertionError("no word to replace")


@pytest.mark.parametrize("declared", [*TEXT_FORMATS, *JSON_FORMATS], ids=lambda declared: declared.name)
def test_a_format_reads_its_own_examples(declared: Any) -> None:
    reader = LogLineReader()
    for example in nonempty(declared.examples):
        first = example if declared.name == "zap-console" else example.split("\n")[0]
        parsed = reader.parse(first, AFTER)
        assert parsed.format == declared.name
        assert parsed.line.time is not None or declared.name in (
            "python-basic", "logback-clock", "dmesg-uptime", "mysql-slow", "journal-export", "dotnet", "logrus-console",
        )  # fmt: skip


def test_names_of_formats_are_unique() -> None:
    names = [*(one.name for one in TEXT_FORMATS), *(one.name for one in JSON_FORMATS)]
    assert len(names) == len(set(names))


def test_the_documentation_lists_every_format() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "formats.md").read_text()
    rows = {
        tuple(cell.strip() for cell in line.split("|")[1:3])
        for line in text.splitlines()
        if line.startswith("| ")
    }
    declared = [
        *((one.name, one.title) for one in TEXT_FORMATS),
        *((one.name, one.title) for one in JSON_FORMATS),
    ]
    assert set(declared) <= rows


def test_the_first_list_has_thirty_lines_each() -> None:
    assert all(len(list(case.records())) >= 30 for case in FIRST_LIST)


def test_of_a_mixed_file_each_line_has_its_own_format(tmp_path: Path) -> None:
    cases = [case for case in FIRST_LIST if case.name in ("klog", "zap", "nginx-error", "logback")]
    rows = [
        next(iter([r for i, r in enumerate(case.records()) if i == n])) for n in range(30) for case in cases
    ]
    path = put(tmp_path, cases[0], "\n".join(line for line, _ in rows) + "\n")
    assert told(read(path)) == [expected for _, expected in rows]


def test_no_claim_about_time_from_an_unknown_zone(tmp_path: Path) -> None:
    path = tmp_path / "tills.log"
    path.write_text("2026-11-29 19:30:02 IST [314] ERROR:  charge failed\n" * 3)
    file = LogFile(path, ReadingRules())
    with file.open() as raws:
        assert {line.time for line in file.records(raws)} == {None}
    [trouble] = file.troubles(timed=True)
    assert (
        "the time zone IST is not understood (it may mean India +05:30, Israel +02:00, Ireland +01:00)"
        in trouble
    )
    known = LogFile(path, ReadingRules(meanings={"IST": 19_800.0}))
    with known.open() as raws:
        assert [line.time for line in known.records(raws)] == [
            TimeRange(START.timestamp() - 0.149, 0).start
        ] * 3

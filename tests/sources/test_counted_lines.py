"""Windows with more lines than a source holds: exact counts, evenly spread samples, and what was left out is said."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from live_rig import one

from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.tools.sources.counted_lines import CountedLines, CountingWork
from opsleuth.tools.sources.logfiles import LogFilesSource

START = datetime(2026, 11, 29, 14, 0, tzinfo=UTC)


def test_counts_are_exact_and_samples_spread_evenly() -> None:
    counted = CountedLines(100)
    for second in range(1_200):
        assert counted.add(LogLine(float(second), "tills", f"basket {second} settled"))
    rows = counted.pattern_counts()
    assert [row.count for row in rows] == [60] * 20
    assert len({row.pattern for row in rows}) == 1
    assert len(counted.sample) <= 100
    gaps = {b.time - a.time for a, b in zip(counted.sample, counted.sample[1:], strict=False) if a.time and b.time}  # fmt: skip
    assert gaps == {float(counted.step)}


def test_what_lies_behind_the_limit_is_said() -> None:
    counted = CountedLines(10, CountingWork(most_lines=30, size=300, read=90))
    added = [counted.add(LogLine(float(second), "tills", "x")) for second in range(31)]
    assert added == [True] * 30 + [False]
    assert (
        "more than 30 lines, and the counting ended at 1970-01-01T00:00:30Z: about 30% of the"
        in counted.missed
    )
    assert "log counts are exact for 30 lines" in counted.note


@pytest.mark.parametrize(
    ("work", "why"),
    [
        (CountingWork(most_bytes=1_000, read=2_000), "there is more than"),
        (CountingWork(seconds_left=lambda: -1.0), "the time for it was used up"),
    ],
    ids=["bytes", "time"],
)
def test_work_ends_by_bytes_and_by_time(work: CountingWork, why: str) -> None:
    counted = CountedLines(10, work)
    assert not counted.add(LogLine(0.0, "tills", "x"))
    assert counted.missed.startswith(why)


async def test_a_file_above_the_limit_is_counted_whole(tmp_path: Path) -> None:
    with (tmp_path / "tills.log").open("w") as file:
        for number in range(5_000):
            time = START + timedelta(milliseconds=100 * number)
            file.write(f"{time:%Y-%m-%dT%H:%M:%S}.{number % 10}00Z INFO basket {number} settled\n")
    source = one(kind="logfiles", files=[str(tmp_path / "*.log")], max_lines=1_000)
    window = TimeRange(START.timestamp(), START.timestamp() + 600)
    found = await source.read(["logs"], window)
    assert sum(row.count for row in found.patterns or ()) == 5_000
    assert len(found.logs or ()) <= 1_000
    assert any("exact for 5,000 lines" in text for text in source.warnings)


async def test_a_machine_that_is_too_busy_gets_a_partial_answer_with_its_share(tmp_path: Path) -> None:
    with (tmp_path / "tills.log").open("w") as file:
        for number in range(20_000):
            time = START + timedelta(milliseconds=25 * number)
            file.write(
                f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03d}Z INFO basket {number} settled\n"
            )
    source = one(kind="logfiles", files=[str(tmp_path / "*.log")], max_lines=1_000)
    assert isinstance(source, LogFilesSource)
    source.counting_seconds = 0.0
    found = await source.read(["logs"], TimeRange(START.timestamp(), START.timestamp() + 600))
    assert found.patterns == []
    assert "the time for it was used up" in found.missed[0]

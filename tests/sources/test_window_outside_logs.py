"""A window that misses the logs: where they begin and end is said, by the source and before a run on files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from live_rig import END, START, one

from opsleuth.analysis.records import TimeRange

WINDOW = TimeRange(START.timestamp(), END.timestamp())


def write_lines(folder: Path, first: datetime, lines: int = 400) -> None:
    moments = [first + timedelta(seconds=number) for number in range(lines)]
    (folder / "cart.log").write_text("".join(f"{at:%Y-%m-%dT%H:%M:%S}Z INFO order sent\n" for at in moments))


@pytest.mark.parametrize("days", [-40, -1, 1, 40])
async def test_where_the_logs_begin_and_end_is_said(tmp_path: Path, days: int) -> None:
    first = START.astimezone(UTC) + timedelta(days=days)
    write_lines(tmp_path, first)
    found = await one(kind="logfiles", files=[f"{tmp_path}/*.log"]).read(["logs"], WINDOW)
    last = first + timedelta(seconds=399)
    said = f"which begin at {first:%Y-%m-%dT%H:%M:%SZ} and end at {last:%Y-%m-%dT%H:%M:%SZ}"
    assert said in "; ".join(found.missed)


@pytest.mark.parametrize("minutes", [-5, 0, 30, 89])
async def test_nothing_is_said_where_the_window_holds_lines(tmp_path: Path, minutes: int) -> None:
    write_lines(tmp_path, START + timedelta(minutes=minutes))
    found = await one(kind="logfiles", files=[f"{tmp_path}/*.log"]).read(["logs"], WINDOW)
    assert found.logs
    assert found.missed == ()


async def test_a_gap_in_the_logs_is_no_window_outside_of_them(tmp_path: Path) -> None:
    lines = [START - timedelta(days=1), END + timedelta(days=1)]
    (tmp_path / "cart.log").write_text("".join(f"{at:%Y-%m-%dT%H:%M:%S}Z INFO order sent\n" for at in lines))
    found = await one(kind="logfiles", files=[f"{tmp_path}/*.log"]).read(["logs"], WINDOW)
    assert found.missed == ()

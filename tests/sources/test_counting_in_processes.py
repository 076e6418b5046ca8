"""Large logs are counted in parts, by one process or several: the result is that of one pass over all lines."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live_rig import ask, one
from tiers import COSTLY

import opsleuth
from opsleuth.analysis.line_numbers import number_series
from opsleuth.analysis.records import LogLine, TimeRange
from opsleuth.analysis.template_counts import MaskCounter, TemplateCounter
from opsleuth.state.clock import SystemClock
from opsleuth.tools.sources import counting_units, log_file_set
from opsleuth.tools.sources.counting_pool import CountingPool, CountingProcessError
from opsleuth.tools.sources.counting_units import (
    CountedPart,
    CountingRules,
    CountingUnit,
    UnitFacts,
    UnitFailure,
)
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules
from opsleuth.tools.sources.logfiles import LogFilesSource

START = datetime(2026, 3, 3, 13, 0, tzinfo=UTC)  # where the window of the rig begins
WINDOW = TimeRange(START.timestamp(), START.timestamp() + 5_400)
LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")
STATEMENTS = (
    "order {n} charged in {n} ms",
    "basket {n} of anna.{w} saved to /srv/{w}/{n}",
    "pool exhausted after {n} retries",
    "page {n} rendered for session {h}",
    "{w} {w} {w} done",
)


def write_log(path: Path, lines: int, seed: int, *, step: float = 0.4, traces: bool = True) -> None:
    """Lines of some statements, in order of time, a few followed by a stack trace."""
    dice = random.Random(seed)
    with path.open("w") as file:
        for number in range(lines):
            moment = START + timedelta(seconds=step * number - 300)
            words = {"n": dice.randint(1, 9_999), "w": dice.choice(("tea", "ink", "oak")), "h": f"{dice.getrandbits(64):016x}"}  # fmt: skip
            text = dice.choice(STATEMENTS).format(**words)
            file.write(f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z {dice.choice(LEVELS)} {text}\n")  # fmt: skip
            if traces and dice.random() < 0.05:
                file.write("java.lang.IllegalStateException: closed\n\tat shop.Pool.get(Pool.java:7)\n" * 3)


def source_of(folder: Path, *, processes: int, worth: float) -> LogFilesSource:
    source = one(kind="logfiles", files=[f"{folder}/*"], max_lines=200)
    assert isinstance(source, LogFilesSource)
    source.counting_processes, source.worth_processes = processes, worth  # type: ignore[assignment]
    return source


class LaterClock(SystemClock):
    """A clock by which a source that failed has rested long enough."""

    def monotonic(self) -> float:
        return super().monotonic() + 3_600.0


async def counts_of(source: LogFilesSource) -> dict[str, Any]:
    """All that a run sees of the logs."""
    found = await source.read(["logs"], WINDOW)
    return {
        "patterns": list(found.patterns or ()),
        "logs": list(found.logs or ()),
        "series": number_series(found.logs or ()),
        "summaries": source.summarize_logs(WINDOW),
        "notes": source.warnings,
        "services": source.services,
    }


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units and parts of a few lines, so that small logs have many."""
    monkeypatch.setattr(log_file_set, "UNIT_BYTES", 4_000)
    monkeypatch.setattr(counting_units, "PART_LINES", 170)


LINES = st.lists(
    st.builds(
        LogLine,
        st.one_of(st.none(), st.floats(0, 7_200)),
        st.sampled_from(("cart", "web")),
        st.from_regex(r"(order|page) [0-9]{1,5} (sent|lost|kept) (in [0-9]{1,4} ms|to (tea|ink|oak))?", fullmatch=True),
        st.sampled_from(("INFO", "ERROR", None)),
    ),
    max_size=60,
)  # fmt: skip


@given(LINES, st.lists(st.integers(0, 60), max_size=4))
def test_counts_of_parts_are_those_of_one_pass(lines: Sequence[LogLine], cuts: Sequence[int]) -> None:
    whole = TemplateCounter().add_all(lines)
    joined, edges = TemplateCounter(), [0, *sorted(cuts), len(lines)]
    for begin, end in pairwise(edges):
        part = MaskCounter()
        for line in lines[begin:end]:
            part.add(line)
        joined.add_rows(part.rows())
    assert joined.lines == whole.lines
    assert joined.rows() == whole.rows()


@pytest.mark.slow
@settings(COSTLY, max_examples=3)
@given(st.lists(st.integers(0, 700), min_size=1, max_size=3), st.integers(0, 10**6))
async def test_two_processes_count_what_one_does(sizes: Sequence[int], seed: int) -> None:
    with TemporaryDirectory() as name:
        for number, lines in enumerate([*sizes, 600]):
            write_log(Path(name) / f"shop{number}.log", lines, seed + number)
        two, alone = [
            await counts_of(source_of(Path(name), processes=processes, worth=0.0)) for processes in (2, 1)
        ]
        straight = await counts_of(source_of(Path(name), processes=1, worth=float("inf")))
    assert two == alone
    assert two["patterns"] == straight["patterns"]
    assert two["services"] == straight["services"]
    exact = [[note.partition(";")[0] for note in one["notes"]] for one in (two, straight)]
    assert exact[0] == exact[1]  # which lines are kept as examples depends on how the log is cut
    for key, summary in two["summaries"].items():
        other = straight["summaries"][key]
        assert (summary.count, summary.first, summary.last) == (other.count, other.first, other.last)
        shown = [[placed.line for placed in (*one.head, *one.tail)] for one in (summary, other)]
        assert shown[0] == shown[1]
    assert two["summaries"].keys() == straight["summaries"].keys()


async def test_a_search_for_a_level_reads_nothing_again_and_finds_the_same(tmp_path: Path) -> None:
    write_log(tmp_path / "shop.log", 3_000, 4)
    counted, fresh = (source_of(tmp_path, processes=1, worth=0.0) for _ in range(2))
    await ask([counted], "logs_patterns")
    for wanted in ({"level": "error"}, {"level": "warn", "limit": 100}, {}, {"service": "shop", "limit": 1}):
        known = await ask([counted], "logs_search", **wanted)
        (tmp_path / "shop.log").rename(tmp_path / "away")  # whoever read it now would find nothing
        (tmp_path / "away").rename(tmp_path / "shop.log")
        assert known.record == (await ask([fresh], "logs_search", **wanted)).record
    assert counted.summarize_logs(WINDOW) is not None
    assert fresh.summarize_logs(WINDOW) is None


async def test_what_was_counted_of_a_file_is_forgotten_when_it_grows(tmp_path: Path) -> None:
    write_log(tmp_path / "shop.log", 1_000, 4)
    source = source_of(tmp_path, processes=1, worth=0.0)
    await source.read(["logs"], WINDOW)
    assert source.summarize_logs(WINDOW)
    with (tmp_path / "shop.log").open("a") as file:
        file.write("2026-03-03T13:50:00.000Z ERROR one more\n")
    assert source.summarize_logs(WINDOW) is None


@pytest.mark.parametrize("trace_lines", [0, 40])
def test_units_begin_with_records_and_hold_all_bytes(tmp_path: Path, trace_lines: int) -> None:
    path = tmp_path / "shop.log"
    with path.open("w") as file:
        for number in range(500):
            file.write(f"2026-03-03T13:{number // 60:02d}:{number % 60:02d}Z ERROR order {number} failed\n")
            file.write("\tat shop.Pool.get(Pool.java:7)\n" * trace_lines)
    log = LogFile(path, ReadingRules())
    ranges = counting_units.cut_file(log, 0, 4_000)
    text = path.read_bytes()
    pieces = [text[begin:end] for begin, end in ranges]
    assert len(pieces) > 3
    assert b"".join(pieces) == text
    assert all(piece.startswith(b"2026") for piece in pieces)


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[CountingPool]:
    write_log(tmp_path / "shop.log", 200, 1)
    rules = CountingRules(WINDOW, WINDOW, 1, ReadingRules())
    with CountingPool(rules, 2) as pool:
        yield pool


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_killed_process_is_an_error_that_says_so(pool: CountingPool, tmp_path: Path) -> None:
    units = [CountingUnit(number, tmp_path / "shop.log") for number in range(20)]
    messages = pool.count(units, lambda: False)
    next(messages)
    for pid in pool.process_ids:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(
        CountingProcessError, match="was killed by SIGKILL, which the system sends where memory"
    ):
        list(messages)


@pytest.mark.slow
def test_a_unit_that_cannot_be_read_is_named_and_nothing_is_left_running(
    pool: CountingPool, tmp_path: Path
) -> None:
    units = [CountingUnit(0, tmp_path / "gone.log"), CountingUnit(1, tmp_path / "shop.log")]
    failure, *others = pool.count(units, lambda: False)
    assert failure == UnitFailure(0, tmp_path / "gone.log", "No such file or directory", refused=False)
    assert [type(message) for message in others] == [CountedPart, UnitFacts]
    running = pool.process_ids
    pool.__exit__(None, None, None)
    assert not any(map(is_running, running))


@pytest.mark.slow
async def test_after_a_killed_process_the_next_look_counts_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "shop.log", 2_000, 3)
    source = source_of(tmp_path, processes=2, worth=0.0)
    real = CountingPool.count

    def kill_and_count(pool: CountingPool, *arguments: Any) -> Iterator[Any]:
        for pid in pool.process_ids:
            os.kill(pid, signal.SIGKILL)
        return real(pool, *arguments)

    monkeypatch.setattr(CountingPool, "count", kill_and_count)
    broken = await ask([source], "logs_patterns")
    assert broken.status == "unavailable"
    assert "was killed by SIGKILL" in broken.headline
    source.clock = LaterClock()
    again = await ask([source], "logs_patterns")
    assert again.status == "ok"


PARENT = """
import signal, sys, time
from pathlib import Path
from opsleuth.analysis.records import TimeRange
from opsleuth.tools.sources.counting_pool import CountingPool
from opsleuth.tools.sources.counting_units import CountingRules
from opsleuth.tools.sources.log_formats.log_file import ReadingRules
span = TimeRange(0.0, 1.0)
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell runs the tests in the background
with CountingPool(CountingRules(span, span, 1, ReadingRules()), 2) as pool:
    print(*pool.process_ids, flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_one_that_started_them(number: int) -> None:
    here = str(Path(opsleuth.__file__).absolute().parent.parent)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": here},
    ) as parent:  # fmt: skip
        assert parent.stdout
        children = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(children) == 2
        assert all(map(is_running, children))
        parent.send_signal(number)
        parent.wait(20)
    until = time.monotonic() + 20
    while any(map(is_running, children)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, children))

"""Results and logs that are larger than anybody expects: real processes, and the memory that they really took.

Fifty megabytes from one tool, and logs of several gigabytes.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from loop_rig import HUGE, World, concludes, looks
from seat_rig import RUN
from seats import RIG, environment, told
from stored_runs import Program

from opsleuth.checkpoints.bodies import CAP
from opsleuth.state.run_status import ExitCode

MB = 1_000_000


# What a process took counts from its fork on, when it still has its parent's memory: so its parent is a small one.
_MEASURE = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
print(json.dumps((done.returncode, done.stdout, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)))
"""


def measured(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, int]:
    """Run a program: its exit code, its stdout, and the most memory (bytes, resident) that it took."""
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command],
        env=dict(environment),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    code, said, most = json.loads(done.stdout)
    return code, said, most


@pytest.mark.slow
def test_fifty_megabytes_from_one_tool(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write(looks({"thing": "a", "behave": "huge"}, "b"), concludes("b is 4087330", "E2"))
    code, _, most = measured(
        [sys.executable, RIG, str(tmp_path), "start", "--json", "--no-input"], environment(world)
    )
    assert code == ExitCode.INCONCLUSIVE  # the script concludes without a cause
    assert most < 300 * MB
    piece = json.loads(told(world, "evidence", RUN, "E1", "--json").stdout)
    text = piece["record"]["text"]
    assert text.startswith("first line\n")
    assert text.endswith("last line")
    assert "characters cut" in text
    assert piece["record"]["cut"]["bytes"] > HUGE
    raw = told(world, "evidence", RUN, "E1", "--raw").stdout
    assert json.loads(raw)["text"] == text
    assert len(raw) < CAP
    assert (tmp_path / "store.db").stat().st_size < CAP


LINES, FILES = 600_000, 24
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
FILLING = "GET /orders/search?page=7 took 12 ms for a customer whose list of orders is very long indeed"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The command line over log files of more than 2 GB together, in order of time; one file under many names."""
    home = tmp_path_factory.mktemp("logs")
    first = home / "orders.log"
    with first.open("w", encoding="utf-8") as out:
        for second in range(LINES // 10):
            at = (BEGIN + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
            level = "ERROR pool exhausted" if second % 60 == 0 else "INFO"
            out.write("".join(f"{at}.{tenth}00Z {level} {FILLING} {FILLING}\n" for tenth in range(10)))
    for number in range(1, FILES):
        os.link(first, home / f"orders-{number}.log")
    assert first.stat().st_size * FILES > 2_000 * MB
    config = home / "conf" / "opsleuth" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        f'[environments.prod.sources.logs]\nkind = "logfiles"\nfiles = ["{home}/*.log"]\n', encoding="utf-8"
    )
    return Program(home / "opsleuth.db", home, {"XDG_CONFIG_HOME": str(home / "conf")})


def search(program: Program, since: timedelta, until: timedelta) -> Mapping[str, Any]:
    """A search between two moments of the log, in the memory that is allowed."""
    command = program.command(
        "tools", "test", "logs_search", "--json", "--args", '{"text": "pool exhausted"}',
        "--since", (BEGIN + since).isoformat(), "--until", (BEGIN + until).isoformat(),
    )  # fmt: skip
    code, said, most = measured(command, program.environment())
    assert code == 0
    assert most < 300 * MB
    answer: Mapping[str, Any] = json.loads(said)
    return answer


@pytest.mark.slow
def test_a_minute_of_gigabytes_is_found_without_reading_the_rest(searched: Program) -> None:
    answer = search(searched, timedelta(hours=10), timedelta(hours=10, minutes=1))
    assert answer["matched"] == 10 * FILES
    assert answer["scanned"] == 600 * FILES
    assert "incomplete" not in answer["record"]


@pytest.mark.slow
def test_a_search_goes_through_all_of_it_or_says_how_far_it_came(searched: Program) -> None:
    answer = search(searched, timedelta(), timedelta(seconds=LINES // 10))
    assert 0 < answer["scanned"] <= LINES * FILES
    told = re.search(r"ended after [\d,]+ lines, at 2026-03-0", answer["record"].get("incomplete", ""))
    assert (answer["scanned"] == LINES * FILES) is (told is None)

"""`--log-format`, `--log-pattern` and `--log-zone`: a log is read as a person says, in `sources explain` and in `run`."""

import json
from pathlib import Path

import pytest
from stored_runs import Program

from opsleuth.console.reading_flags import ReadingFlags, read_reading_flags

ODD = (
    "[2026-11-29 19:30:02 IST] <<tills>> E| charge failed\n"
    "[2026-11-29 19:30:03 IST] <<tills>> I| charge made\n"
)
PATTERN = r"\[(?P<time>[^]]+)\] <<(?P<service>\w+)>> (?P<level>\w)\| (?P<message>.*)"


@pytest.fixture
def odd(tmp_path: Path) -> str:
    path = tmp_path / "odd.log"
    path.write_text(ODD)
    return str(path)


def test_flags_are_keys_of_a_source() -> None:
    flags = read_reading_flags("klog", None, ("+05:30", "IST=+0530", "CST=UTC-06"))
    assert flags.settings == {"format": "klog", "zone": 5.5, "zones": {"IST": "+05:30", "CST": "-06:00"}}
    assert flags.rules.meanings == {"IST": 19_800.0, "CST": -21_600.0}
    assert ReadingFlags().settings == {}


def test_an_unknown_abbreviation_is_named(bare: Program, odd: str) -> None:
    done = bare("sources", "explain", odd)
    assert "IST" in done.stdout.splitlines()[0]
    assert "none" in done.stdout


def test_explain_reads_as_it_is_told(bare: Program, odd: str) -> None:
    done = bare("sources", "explain", odd, "--log-zone", "IST=+05:30", "--log-pattern", PATTERN, "--json")
    first, _ = json.loads(done.stdout)["lines"]
    assert first == {
        "time": "2026-11-29T14:00:02.000Z",
        "level": "E",
        "service": "tills",
        "message": "charge failed",
    }


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--log-format", "klogg"), "no log format is called klogg: choose klog"),
        (("--log-zone", "XX"), "write +05:30, UTC, or IST=+05:30"),
        (("--log-zone", "+19:00"), "write +05:30"),
        (("--log-pattern", "(?P<time"), "not a regular expression"),
    ],
)
def test_what_cannot_be_meant_is_refused(bare: Program, odd: str, flags: tuple[str, str], said: str) -> None:
    done = bare("sources", "explain", odd, *flags)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())


def test_flags_without_a_file_are_refused(bare: Program) -> None:
    done = bare("run", "--log-zone", "+01:00", "why?")
    assert done.returncode == 2
    assert "name a file" in done.stderr


@pytest.mark.slow
def test_a_run_takes_its_window_from_the_zone_and_keeps_it(bare: Program, tmp_path: Path) -> None:
    log = tmp_path / "tills.log"
    lines = [
        f"2026-11-29 15:{n // 60:02d}:{n % 60:02d} ERROR charge {n} failed: disk full\n" for n in range(600)
    ]
    log.write_text("".join(lines))
    done = bare("run", str(log), "--log-zone", "+02:00", "--planner", "offline")
    assert "2026-11-29 13:00–13:09 UTC" in done.stderr
    window = json.loads(bare("report", "-", "--json").stdout)["window"]
    assert window["start"].startswith("2026-11-29T13:00:00")

"""`opsleuth why`, `help` and `-V`, and what a slip of the fingers is answered with."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from stored_runs import DONE, Program

from opsleuth.console.time_formats import parse_moment


def test_why_tells_the_chain_the_rivals_and_what_would_overturn_it(program: Program) -> None:
    shown = program("why", DONE, COLUMNS="80").stdout
    flat = " ".join(shown.split())
    assert shown.startswith("CAUSE       orders-api: a slow database statement")
    assert "measured" not in flat
    assert "inferred: p95 of orders-api rose from 96 to 2,210 ms at 14:01Z [E1 E2]" in flat
    assert "13:58:20Z orders-api 2.14.0 is rolled out [E4]" in flat
    assert "PASSES ON orders-api → gateway" in flat
    assert "RIVALS the deploy of payments: payments is flat [E3]" in flat
    assert "OVERTURNED if orders-api is as usual" in flat
    assert f"opsleuth evidence {DONE} E1" in flat
    assert max(map(len, shown.splitlines())) <= 80


def test_why_fits_one_screen_and_all_shows_the_rest(bare: Program) -> None:
    assert bare("demo").returncode == 0
    short, whole = (bare("why", *flags, COLUMNS="80").stdout.splitlines() for flags in ((), ("--all",)))
    assert len(short) < 24 < len(whole)
    assert [line[:12].strip() for line in short if line[:1] != " "] == [
        "CAUSE", "SURE", "SET OFF BY", "FACTS", "IN ORDER", "PASSES ON", "RIVALS", "OVERTURNED", "NOT CHECKED", "MORE",
    ]  # fmt: skip
    assert any(line.endswith("lines: --all") for line in short)
    assert re.search(r"MORE +opsleuth why inv-\S+ --all$", "\n".join(short), re.MULTILINE)


def test_why_takes_the_newest_run_a_cause_by_name_and_json(program: Program) -> None:
    named = program("why", DONE, "orders-api")
    assert (named.returncode, named.stdout) == (0, program("why", DONE, "1").stdout)
    told = json.loads(program("why", DONE, "--json").stdout)
    assert told["run"] == DONE
    assert told["rivals"] == ["the deploy of payments: payments is flat [E3]"]


def test_why_names_the_causes_that_there_are(program: Program) -> None:
    wrong = program("why", DONE, "orders-apj")
    assert wrong.returncode == 2
    assert "the report blames no 'orders-apj'" in wrong.stderr
    assert "orders-api" in wrong.stderr.partition("orders-apj")[2]


def test_help_and_version_in_the_ways_that_people_try(program: Program) -> None:
    assert program("help", "eval", "run").stdout == program("eval", "run", "--help").stdout
    assert program("help").stdout == program("--help").stdout
    assert program("-V").stdout == program("--version").stdout
    wrong = program("help", "raport")
    assert wrong.returncode == 2
    assert "report" in wrong.stderr


@pytest.mark.parametrize("name", ["x.pdf", "x.docx", "x.PNG"])
def test_a_report_that_cannot_be_written_is_refused_before_a_file_is_made(
    program: Program, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    done = program("report", DONE, "-o", str(path))
    assert done.returncode == 2
    assert "choose a name that ends in .html, .md, .json or .txt" in done.stderr
    assert not path.exists()
    assert program("report", DONE, "--format", "text", "-o", str(path)).returncode == 0


def test_a_time_ago_is_a_time() -> None:
    now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    assert parse_moment("1h", now) == parse_moment("now-1h", now)
    assert parse_moment("1h30m", now) == parse_moment("now-90m", now)
    with pytest.raises(ValueError, match="is not a time"):
        parse_moment("1x", now)


def test_doctor_answers_in_json_where_there_is_nothing_to_try(bare: Program) -> None:
    done = bare("doctor", "--json")
    assert done.returncode == 8
    told = json.loads(done.stdout)
    assert told["sources"] == []
    assert "opsleuth init" in told["error"]

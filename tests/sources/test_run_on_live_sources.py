"""Whole runs where sources are down, hang, or tell nonsense: the rest is used, the report says what was missing."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rude_server import RudeServer
from servers import free_port
from stored_elsewhere import rows, units
from stored_runs import Program

from opsleuth.state.run_status import ExitCode

WINDOW = ("--since", "2026-03-03T13:00:00Z", "--until", "2026-03-03T14:30:00Z")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "db" / "opsleuth.db", tmp_path)


def investigated(
    program: Program, tmp_path: Path, question: str, **sources: str
) -> tuple[int, Mapping[str, Any]]:
    """The exit code and the report of a run on these sources."""
    file = tmp_path / ".config" / "opsleuth" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    parts = [f"[environments.shop.sources.{name}]\n{text}\n" for name, text in sources.items()]
    file.write_text("\n".join([*parts, '[services."orders-api"]\naliases = ["订单接口"]\n']))
    ended = program("run", question, *WINDOW, "--planner", "offline", "--json")
    document: Mapping[str, Any] = json.loads(program("report", "-", "--format", "json").stdout)
    return ended.returncode, document


def metrics(url: str, case: Path) -> str:
    measured = json.dumps(units(rows(case / "metrics.csv"))).replace('":', '" =')
    return f'kind = "prometheus"\nurl = "{url}"\nstep = 60\nunits = {measured}'


@pytest.mark.parametrize("manner", ["html", "reset", "forbidden", "strange", "huge"])
def test_a_source_that_fails_is_named_and_the_rest_is_used(
    program: Program, tmp_path: Path, case: Path, repository: Path, rude: RudeServer, manner: str
) -> None:
    code, report = investigated(
        program,
        tmp_path,
        "orders-api is slow: why?",
        metrics=metrics(f"{rude.url}/{manner}", case) + "\nmax_bytes = 1000000",
        changes=f'kind = "git"\npath = "{repository}"',
    )
    assert code == ExitCode.INCONCLUSIVE
    missing = " ".join(report["not_available"])
    assert "metrics" in missing
    assert any(row["source"] == "changes" and row["status"] == "ok" for row in report["evidence"])


@pytest.mark.slow
def test_a_source_that_hangs_and_is_not_needed_holds_nothing_up(
    program: Program, tmp_path: Path, case: Path, prometheus: str, repository: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        code, report = investigated(
            program,
            tmp_path,
            "orders-api is slow: why?",
            metrics=metrics(prometheus, case),
            changes=f'kind = "git"\npath = "{repository}"',
            database=f'kind = "postgres"\ndsn = "host=127.0.0.1 port={silent.getsockname()[1]} sslmode=disable"\n'
            'connect_seconds = 1\nhistory = "SELECT 1"',
        )
    assert code == ExitCode.OK
    assert report["causes"][0]["service"] == "orders-api"
    assert "database" in " ".join(report["not_available"])


def test_everything_is_down(program: Program, tmp_path: Path, case: Path) -> None:
    code, report = investigated(
        program,
        tmp_path,
        "orders-api is slow: why?",
        metrics=metrics(f"http://127.0.0.1:{free_port()}", case),
    )
    assert code == ExitCode.INCONCLUSIVE
    assert report["causes"] == []
    assert "nothing answers" in " ".join(report["not_available"])


def test_the_service_is_found_by_its_alias_in_another_language(
    program: Program, tmp_path: Path, case: Path, prometheus: str, repository: Path
) -> None:
    code, report = investigated(
        program,
        tmp_path,
        "排查订单接口突然变慢的原因，并给出处理建议",
        metrics=metrics(prometheus, case),
        changes=f'kind = "git"\npath = "{repository}"',
    )
    assert code == ExitCode.OK
    assert report["alert"]["service"] == "orders-api"

"""Runs on a source behind a password: what is stored names its place, so that whoever goes on can ask again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
from stored_elsewhere import openmetrics, rows
from stored_runs import Program

from opsleuth.state.run_status import ExitCode

PASSWORD = "correct-horse-battery"
_ITS_HASH = "$2b$05$AfnOFiX6Um2KajvrG6GuKuK4ahSGaBhtz3DidRTESmMK6OIA8CcPK"
WINDOW = ("--since", "2026-03-03T13:00:00Z", "--until", "2026-03-03T14:30:00Z")


@pytest.fixture(scope="module")
def guarded(case: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that answers only who knows the password; its address."""
    with servers.prometheus(
        tmp_path_factory.mktemp("guarded"),
        openmetrics(rows(case / "metrics.csv")),
        web_config=f"basic_auth_users: {{oncall: {_ITS_HASH}}}\n",
    ) as url:
        yield url


def configured(home: Path, source: str) -> Program:
    file = home / ".config" / "opsleuth" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[environments.shop.sources.metrics]\nkind = "prometheus"\n{source}\n')
    (home / "secret.txt").write_text(PASSWORD)
    return Program(home / "opsleuth.db", home, {"METRICS_PASSWORD": PASSWORD})


@pytest.mark.parametrize(
    "place",
    [
        '{ env = "METRICS_PASSWORD" }',
        '{ file = "~/secret.txt" }',
        '{ command = ["printenv", "METRICS_PASSWORD"] }',
    ],
)
def test_a_run_and_who_resumes_it_read_behind_a_password(guarded: str, tmp_path: Path, place: str) -> None:
    program = configured(tmp_path, f'url = "{guarded}"\nuser = "oncall"\npassword = {place}')
    begun = program("run", "orders-api is slow: why?", *WINDOW, "--planner", "offline", "--max-steps", "2")
    assert begun.returncode == ExitCode.LIMIT, begun.stderr
    ended = program("resume", "-", "--max-steps", "60")
    assert ended.returncode == ExitCode.OK, ended.stderr
    report = program("report", "-", "--format", "json").stdout
    assert json.loads(report)["verdict"] == "cause_found"
    assert PASSWORD not in report
    assert PASSWORD.encode() not in (tmp_path / "opsleuth.db").read_bytes()


def test_a_setting_that_is_itself_a_secret_stops_the_start(guarded: str, tmp_path: Path) -> None:
    program = configured(tmp_path, f'url = "{guarded}"\nheaders = {{ X-Api-Key = "Zm9vYmFyYmF6cXV4Cg" }}')
    refused = program("run", "orders-api is slow: why?", *WINDOW, "--planner", "offline")
    assert refused.returncode == ExitCode.CONFIG
    assert "sources.metrics.headers.X-Api-Key holds a secret itself" in refused.stderr
    assert "Zm9vYmFy" not in refused.stderr
    assert "no runs yet" in program("list").stderr

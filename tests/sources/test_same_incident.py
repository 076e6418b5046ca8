"""The same incident, in a folder or in live backends, is the same to the investigator: same causes, same claims."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stored_elsewhere import HISTORY, rows, units
from stored_runs import Program

from opsleuth.scenarios.orders_incident import KEY
from opsleuth.state.run_status import ExitCode

ALERT = {
    "text": "OrdersApiLatencyHigh: latency_p95 of orders-api above 1500 ms for 10 minutes.",
    "service": "orders-api",
    "metric": "latency_p95",
    "severity": "critical",
    "fired_at": "2026-03-03T14:12:00Z",
    "onset": "2026-03-03T14:02:00Z",
}
_COMMIT = re.compile(r", [0-9a-f]{12} by [\w.]+(?=\))")
_COLUMNS = re.compile(r" \(author .*\)$")
QUESTION = "The orders API became slow: find the cause and say what to do."
WINDOW = ("--since", "2026-03-03T13:00:00Z", "--until", "2026-03-03T14:30:00Z")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "db" / "opsleuth.db", tmp_path)


def configuration(case: Path, prometheus: str, postgres: str, logs: str, repository: Path) -> str:
    calls: dict[str, list[str]] = defaultdict(list)
    for row in rows(case / "topology.csv"):
        calls[row["caller"]].append(row["callee"])
    measured = json.dumps(units(rows(case / "metrics.csv"))).replace('":', '" =')
    services = "".join(f'[services."{name}"]\ncalls = {json.dumps(own)}\n' for name, own in calls.items())
    return f"""
[environments.shop.sources.metrics]
kind = "prometheus"
url = "{prometheus}"
step = 60
units = {measured}

[environments.shop.sources.orders-db]
kind = "postgres"
dsn = "{postgres}"
history = "{HISTORY}"

[environments.shop.sources.logs]
{logs}

[environments.shop.sources.repository]
kind = "git"
path = "{repository}"

{services}"""


def report(program: Program, *arguments: str) -> Mapping[str, Any]:
    ended = program("run", QUESTION, *WINDOW, "--planner", "offline", "--json", *arguments)
    assert ended.returncode == ExitCode.OK, ended.stderr
    document: Mapping[str, Any] = json.loads(program("report", "-", "--format", "json").stdout)
    return document


def essence(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the report says, without which stored evidence it cites and how long it took.

    A repository knows a change by its commit and a recording by its version, each with columns of its own.
    """
    document = json.loads(_COMMIT.sub("", json.dumps(document)))
    for cause in document["causes"]:
        if cause["change"]:
            del cause["change"]["id"]
    told = ("verdict", "answer", "causes", "propagation", "ruled_out", "window", "stop_reason")
    claims = [(_COLUMNS.sub("", claim["text"]), claim["status"]) for claim in document["claims"]]
    advice = [entry["text"] for entry in document["recommendations"]]
    return {name: document[name] for name in told} | {"claims": claims, "recommendations": advice}


def run_live(program: Program, tmp_path: Path, text: str) -> Mapping[str, Any]:
    config = tmp_path / ".config" / "opsleuth" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(text)
    (tmp_path / "alert.json").write_text(json.dumps(ALERT))
    return report(program, "--alert", str(tmp_path / "alert.json"))


@pytest.mark.slow
def test_victoria_metrics_and_opensearch(
    case: Path,
    victoria: str,
    opensearch: str,
    postgres: str,
    repository: Path,
    program: Program,
    tmp_path: Path,
) -> None:
    logs = f'kind = "opensearch"\nurl = "{opensearch}"\nindex = "logs-*"'
    live = run_live(program, tmp_path, configuration(case, victoria, postgres, logs, repository))
    assert essence(live) == essence(report(program, "--case", str(case)))


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_prometheus_postgres_journal_and_git(
    zone: str,
    case: Path,
    prometheus: str,
    postgres: str,
    journal: Path,
    repository: Path,
    program: Program,
    tmp_path: Path,
) -> None:
    logs = f'kind = "journal"\nfiles = ["{journal}"]'
    program = replace(program, variables={"TZ": zone})
    live = run_live(program, tmp_path, configuration(case, prometheus, postgres, logs, repository))
    assert essence(live) == essence(report(replace(program, variables={}), "--case", str(case)))
    assert live["causes"][0]["service"] in KEY["acceptable_services"]
    sources = {name for row in live["evidence"] for name in row["source"].split("+")}
    assert {"metrics", "orders-db", "logs", "repository", "configuration"} <= sources

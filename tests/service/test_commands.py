"""The commands as programs: a service tried out with a recorded incident, and the same run from the command line."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import servers
from package_path import PACKAGE_PATH

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.scenarios.orders_incident import QUESTION, write_case

SECONDS = 240


def environment(home: Path, server: PostgresServer) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PACKAGE_PATH),
        "HOME": str(home),
        "OPSLEUTH_DB": server.url,
    }


def opsleuth(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "opsleuth", *arguments]


@contextmanager
def running(home: Path, server: PostgresServer, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The command while the block runs; ended by SIGTERM, which is no failure."""
    with (home / f"{arguments[0]}.log").open("wb") as log:
        process = subprocess.Popen(
            opsleuth(*arguments),
            env=environment(home, server),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield process
    finally:
        process.terminate()
        code = process.wait(SECONDS)
    assert code in (0, -15), (home / f"{arguments[0]}.log").read_text()


def asked(address: str, token: str, body: object = None) -> Any:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(address, data, headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return answer.read().decode()


@pytest.mark.slow
def test_a_service_is_tried_out_with_a_recorded_incident(server: PostgresServer, tmp_path: Path) -> None:
    write_case(tmp_path / "case")

    def once(*arguments: str) -> str:
        return subprocess.run(
            opsleuth(*arguments),
            env=environment(tmp_path, server),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    token = once("token", "create", "oncall", "--team", "shop", "--role", "run").strip()
    port = servers.free_port()
    address = f"http://127.0.0.1:{port}"
    with ExitStack() as stack:
        serve = ("serve", "--case", str(tmp_path / "case"), "--port", str(port))
        stack.enter_context(running(tmp_path, server, *serve))
        servers.until(servers.answers(f"{address}/healthz"))
        task = json.loads(asked(f"{address}/api/tasks", token, {"question": QUESTION}))
        assert task["status"] == "queued"
        stack.enter_context(running(tmp_path, server, "worker", "--concurrency", "2", "--planner", "offline"))
        events = asked(f"{address}/api/tasks/{task['task_id']}/events", token)
        assert "event: run.completed" in events
        report = asked(f"{address}/api/tasks/{task['task_id']}/report?format=md", token)
    assert "orders" in report
    assert once("report", task["task_id"], "--format", "md") == report
    assert once("token", "list").count("oncall") == 1


def test_an_address_that_is_taken_is_said_before_anything_is_begun(
    server: PostgresServer, tmp_path: Path
) -> None:
    write_case(tmp_path / "case")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            opsleuth("serve", "--case", str(tmp_path / "case"), "--port", port),
            env=environment(tmp_path, server),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    assert done.returncode == 8
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert "answers at" not in done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_free_port_is_told_by_its_number_and_that_nobody_may_ask_yet(
    server: PostgresServer, tmp_path: Path, host: str
) -> None:
    write_case(tmp_path / "case")
    log = tmp_path / "serve.log"
    with running(tmp_path, server, "serve", "--case", str(tmp_path / "case"), "--port", "0", "--host", host):
        servers.until(lambda: "answers at" in log.read_text())
        said = log.read_text()
        address = re.findall(r"answers at (\S+);", said)[0]
        servers.until(servers.answers(f"{address}/healthz"))
    assert "no token exists yet: opsleuth token create" in said


@pytest.mark.slow
def test_a_file_is_no_database_of_many_machines(tmp_path: Path) -> None:
    for command in (["worker"], ["serve", "--case", str(tmp_path)]):
        done = subprocess.run(
            opsleuth("--db", str(tmp_path / "x.db"), *command),
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE_PATH), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 8
        assert "need PostgreSQL" in done.stderr

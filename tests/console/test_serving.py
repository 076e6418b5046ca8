"""`opsleuth mcp` as the SDK's own client sees it: a program of its own over pipes."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from package_path import PACKAGE_PATH
from stored_runs import Program

from opsleuth.scenarios.orders_incident import write_case
from opsleuth.state.run_status import ExitCode


@asynccontextmanager
async def served(folder: Path, *arguments: str) -> AsyncIterator[Client]:
    environment = {"PYTHONPATH": str(PACKAGE_PATH), "HOME": str(folder)}
    command = ["-m", "opsleuth", "mcp", *arguments]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=folder)
    with (folder / "stderr").open("w") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            yield client


async def called(client: Client, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, dict(arguments))
    return {
        "error": result.is_error,
        "text": result.content[0].model_dump()["text"],
        **(result.structured_content or {}),
    }


@pytest.mark.slow
async def test_a_recorded_incident_is_served(tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    async with served(tmp_path, "--case", str(case)) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {"metrics_query", "changes_list", "rank_suspects", "runbooks_find"} <= tools.keys()
        assert not {"evidence_read", "calculate", "service_restart", "draft_write"} & tools.keys()
        assert tools["changes_list"].model_dump()["annotations"]["read_only_hint"] is True
        changes = await called(client, "changes_list", {})
        assert (changes["error"], changes["status"]) == (False, "ok")
        assert "2.14.0" in json.dumps(changes["record"])
        several = await asyncio.gather(*(called(client, "metrics_anomalies", {}) for _ in range(3)))
        assert {row["headline"] for row in several} == {several[0]["headline"]}
        assert several[0]["status"] == "ok"
    assert "serving" in (tmp_path / "stderr").read_text()


@pytest.mark.slow
async def test_wrong_calls_are_told_in_words_and_the_server_goes_on(tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    async with served(tmp_path, "--case", str(case)) as client:
        wrong = await called(client, "changes_list", {"servic": "orders-api"})
        assert wrong["error"]
        assert "nearest: service" in wrong["text"]
        unknown = await called(client, "service_restart", {"service": "orders-api"})
        assert "no tool" in unknown["text"]
        nothing = await called(client, "metrics_query", {"service": "orders-apy", "metric": "cpu"})
        assert "orders-api" in nothing["text"]
        assert not (await called(client, "time_now", {}))["error"]


def test_without_anything_to_look_at_it_says_so(tmp_path: Path) -> None:
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path)
    ended = program("mcp")
    assert ended.returncode == ExitCode.CONFIG
    assert "opsleuth init" in ended.stderr
    assert ended.stdout == ""


def test_the_end_of_stdin_ends_it(tmp_path: Path) -> None:
    program = Program(tmp_path / "db" / "opsleuth.db", tmp_path, {"PATH": os.environ["PATH"]})
    ended = program("mcp", "--case", str(write_case(tmp_path / "case")))
    assert (ended.returncode, ended.stdout) == (0, "")

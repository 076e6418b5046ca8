"""MCP servers as others write them: one broken tool costs itself only, and an error is whose it is."""

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_shop
import odd_mcp_server
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_rig import START, context

from opsleuth.configuration.mcp_settings import McpServerSettings
from opsleuth.configuration.secret_references import Vault
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.calls import CallRequest, ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.tools.circuit_breaker import CircuitBreaker
from opsleuth.tools.executor import Executor
from opsleuth.tools.mcp.server_tools import McpTools
from opsleuth.tools.mcp.untrusted_schema import UnusableToolError, build_mcp_arguments
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import CallResult, InvalidArgumentsError


class OddTalk:
    def __init__(self, tools: McpTools) -> None:
        self.tools, redactor, clock = tools, Redactor(), FakeClock(START)
        self.box = Toolbox(tools.specs, RunSources())
        tools.described = self.box.describe
        self.executor = Executor(self.box, clock, redactor, CircuitBreaker(clock))

    async def call(self, tool: str, **arguments: Any) -> CallResult:
        request = CallRequest(tool=f"mcp_odd_{tool}", arguments=arguments)
        call = self.box.check(request).call(request, call_id="inv-1/t1c1", number=1)
        return await self.executor.run(call, context())


@asynccontextmanager
async def talking(wait: float = 30.0, **fields: Any) -> AsyncIterator[OddTalk]:
    row = {"name": "odd", "command": [sys.executable, odd_mcp_server.__file__]} | fields
    row.setdefault("tools", dict.fromkeys(odd_mcp_server.NAMES, "read"))
    tools = McpTools([McpServerSettings.model_validate(row)], Vault())
    talk = OddTalk(tools)
    try:
        await tools.start_servers(wait)
        yield talk
    finally:
        await tools.aclose()


async def test_a_broken_tool_costs_itself_only() -> None:
    async with talking() as talk:
        broken = {"mcp_odd_schema_is_text", "mcp_odd_schema_of_array"}
        assert {spec.name for spec in talk.box.specs} == {
            f"mcp_odd_{n}" for n in odd_mcp_server.NAMES
        } - broken
        warnings = " ".join(talk.tools.warnings)
    assert "schema_is_text cannot be used: the schema of its arguments is a str" in warnings
    assert "schema_of_array cannot be used: the schema of its arguments is for array" in warnings


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("fine", {"a": "x"}),
        ("no_type", {"a": "x"}),
        ("no_schema", {}),
        ("free", {"anything": [1], "b": {"c": None}}),
        ("odd_required", {"a": 1}),
        ("either", {"id": 3}),
        ("either", {"name": "x"}),
        ("unstructured", {}),
    ],
)
async def test_every_form_of_arguments_reaches_the_server(tool: str, arguments: dict[str, Any]) -> None:
    async with talking() as talk:
        result = await talk.call(tool, **arguments)
    assert result.status is ResultStatus.OK
    assert json.loads(result.record["text"]) == arguments


async def test_a_name_that_was_cleaned_is_sent_as_the_server_has_it() -> None:
    async with talking() as talk:
        result = await talk.call("spaced", **{"two spaces": "x"})
    assert json.loads(result.record["text"]) == {"two  spaces": "x"}


@pytest.mark.parametrize("arguments", [{}, {"id": "x"}, {"other": 1, "id": 3}])
async def test_any_of_is_checked(arguments: dict[str, Any]) -> None:
    async with talking() as talk:
        with pytest.raises(InvalidArgumentsError):
            await talk.call("either", **arguments)


async def test_structured_content_alone_is_an_answer() -> None:
    async with talking() as talk:
        result = await talk.call("only_structured")
    assert result.record["structured"] == {"n": 1}


@pytest.mark.parametrize(
    ("tool", "status", "said"),
    [
        ("server_error", ResultStatus.UNAVAILABLE, "answered with an error (-32000): the shelf is full"),
        ("denied", ResultStatus.NOT_PERMITTED, "permission denied"),
        ("denied_result", ResultStatus.NOT_PERMITTED, "access denied"),
    ],
)
async def test_an_error_is_the_server_s_and_is_not_tried_again(
    tool: str, status: ResultStatus, said: str
) -> None:
    async with talking() as talk:
        result = await talk.call(tool)
        assert (result.status, result.tries) == (status, 1)
        assert said in result.headline
        assert (await talk.call("fine", a="x")).status is ResultStatus.OK


async def test_an_error_after_a_change_was_sent_leaves_its_outcome_open() -> None:
    async with talking(tools={"server_error": "high"}) as talk:
        assert (await talk.call("server_error")).status is ResultStatus.UNKNOWN


@pytest.mark.parametrize("way", ["hang", "absent"])
async def test_a_change_on_a_server_that_was_never_reached_is_not_executed(tmp_path: Path, way: str) -> None:
    hanging = [sys.executable, mcp_shop.__file__, str(tmp_path), "hang"]
    command = hanging if way == "hang" else ["no-such-program-anywhere"]
    async with talking(0.0, command=command, tools={"write": "high"}, seconds=1.0) as talk:
        result = await talk.call("write", text="x")
    assert result.status is ResultStatus.UNAVAILABLE
    assert not (tmp_path / "writes").exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)
KEYWORDS = st.sampled_from(["type", "properties", "required", "anyOf", "allOf", "items", "$ref", "$defs", "enum", "minimum", "additionalProperties"])  # fmt: skip


@given(st.dictionaries(KEYWORDS, JSON | st.dictionaries(KEYWORDS, JSON, max_size=3), max_size=5))
def test_any_schema_is_usable_or_says_why(schema: dict[str, Any]) -> None:
    form: Mapping[str, Any] = {"type": "object"}
    with contextlib.suppress(UnusableToolError):
        form = build_mcp_arguments("t", schema).form
    assert form["type"] == "object"

"""The read-only tools as an MCP server. Every call passes the same executor as in a run: arguments, deadline, breaker, redaction, bounds."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opsleuth import __version__
from opsleuth.state.calls import CallRequest
from opsleuth.state.errors import ConfigError
from opsleuth.tools.executor import Executor
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.spec import CallResult, InvalidArgumentsError, ToolContext
from opsleuth.tools.tool_schema import describe_tool, parameters_schema

if TYPE_CHECKING:
    from mcp.server import Server


def make_mcp_server(
    toolbox: Toolbox, executor: Executor, make_context: Callable[[], ToolContext]
) -> "Server[Any]":
    """The server of these tools. Raises ConfigError without the extra `mcp`."""
    try:
        from mcp import types  # an extra that takes half a second
        from mcp.server import Server
    except ImportError as error:
        raise ConfigError(f"this needs pip install 'opsleuth[mcp]' ({error.name} is missing)") from None

    async def list_tools(*_: Any) -> types.ListToolsResult:  # noqa: ANN401 - the SDK's own types
        only_reads = types.ToolAnnotations(read_only_hint=True)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=s.name,
                    description=describe_tool(s),
                    input_schema=parameters_schema(s),
                    annotations=only_reads,
                )
                for s in toolbox.specs
            ]
        )

    async def call_tool(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:  # noqa: ANN401 - as above
        request = CallRequest(tool=asked.name, arguments=asked.arguments or {})
        try:
            checked = toolbox.check(request).call(request, call_id="mcp/t1c1", number=1)
        except InvalidArgumentsError as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        document = call_result_to_json(await executor.run(checked, make_context()))
        text = json.dumps(document, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=document,
            is_error="error" in document["record"],
        )

    return Server("opsleuth", version=__version__, on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_over_stdio(server: "Server[Any]") -> None:
    """Answer until stdin ends."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def call_result_to_json(result: CallResult) -> dict[str, Any]:
    """What a caller needs to judge a result: `none_matched` was looked for, `not_recorded` could not be."""
    return {
        "status": str(result.status),
        "headline": result.headline,
        "source": result.source,
        "query": result.query,
        "scanned": result.scanned,
        "matched": result.matched,
        "record": dict(result.record),
    }

"""`mcp`: what can be looked at here, offered to other programs as an MCP server over stdin and stdout. Nothing can be changed by it.

Every call passes the same executor as in a run: arguments, deadline, breaker, redaction, bounds.
"""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opsleuth import __version__
from opsleuth.checkpoints.redact import Redactor
from opsleuth.console.options import Options
from opsleuth.console.output import note
from opsleuth.console.tool_commands import context_for, settings_for
from opsleuth.graph.prepare import open_sources
from opsleuth.state.calls import CallRequest
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError
from opsleuth.state.words import counted
from opsleuth.tools.breaker import Breaker
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.executor import Executor
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.schema import description, parameters
from opsleuth.tools.spec import CallResult, InvalidArguments, ToolContext

if TYPE_CHECKING:
    from mcp.server import Server

OF_A_RUN = frozenset({"evidence_read", "calculate"})
"""Tools that work on a run's evidence: there is none here."""


def serve(options: Options, case: Path | None, since: str | None, until: str | None) -> int:
    """`mcp`: until stdin ends. Raises ConfigError without the extra and without a source."""
    settings = settings_for(options, case)
    opened = open_sources(settings)
    clock, redactor = SystemClock(), Redactor()
    opened.vault.listen(redactor.learn)
    offered = (spec for spec in BUILTIN if spec.name not in OF_A_RUN)
    toolbox = Toolbox(offered, opened.sources, read_only=True)
    executor = Executor(toolbox, clock, redactor, Breaker(clock))
    server = _server(toolbox, executor, lambda: context_for(settings, opened, clock, since, until))
    note(f"serving {counted(len(toolbox.specs), 'tool')} over stdin and stdout; end of stdin ends it")
    asyncio.run(_run(server))
    return 0


def _server(toolbox: Toolbox, executor: Executor, context: Callable[[], ToolContext]) -> "Server[Any]":
    """The server; without a window of its own each call looks at the hour before it."""
    try:
        from mcp import types  # noqa: PLC0415 - an extra that takes half a second
        from mcp.server import Server  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(f"this needs pip install 'opsleuth[mcp]' ({error.name} is missing)") from None

    async def tools(*_: Any) -> types.ListToolsResult:  # noqa: ANN401 - the SDK's own types
        only_reads = types.ToolAnnotations(read_only_hint=True)
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=s.name,
                    description=description(s),
                    input_schema=parameters(s),
                    annotations=only_reads,
                )
                for s in toolbox.specs
            ]
        )

    async def call(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:  # noqa: ANN401 - as above
        request = CallRequest(tool=asked.name, arguments=asked.arguments or {})
        try:
            checked = toolbox.check(request).call(request, call_id="mcp/t1c1", number=1)
        except InvalidArguments as error:
            return types.CallToolResult(content=[types.TextContent(text=str(error))], is_error=True)
        answer = _answer(await executor.run(checked, context()))
        text = json.dumps(answer, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=answer,
            is_error="error" in answer["record"],
        )

    return Server("opsleuth", version=__version__, on_list_tools=tools, on_call_tool=call)


async def _run(server: "Server[Any]") -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - an extra

    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _answer(result: CallResult) -> dict[str, Any]:
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

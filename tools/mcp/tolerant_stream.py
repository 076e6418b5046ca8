"""Repair server messages that the SDK would refuse as a whole, so that one broken tool costs only itself.

The list of tools keeps of each tool what is used: name, description, input schema. Without output schemas the SDK does not
refuse answers that hold no structured content.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

Received = SessionMessage | Exception


class TolerantStream:
    """A transport's messages from the server. `broken` is told the name of a tool that cannot be used, and why."""

    def __init__(self, inner: Any, broken: Callable[[str, str], None]) -> None:  # noqa: ANN401 - the SDK's stream
        self._inner, self._broken = inner, broken

    @property
    def last_context(self) -> Any:  # noqa: ANN401 - the SDK's
        """What the SDK asks of streams that have it."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Received:
        return self._repair(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Received:
        return self._repair(await anext(self._inner))

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        left: bool | None = await self._inner.__aexit__(kind, error, trace)
        return left

    def _repair(self, received: Received) -> Received:
        message = received.message if isinstance(received, SessionMessage) else None
        if isinstance(message, JSONRPCResponse):
            _repair_result(message.result, self._broken)
        return received


@asynccontextmanager
async def tolerate_broken_tools(
    transport: Any,  # noqa: ANN401 - the SDK's
    broken: Callable[[str, str], None],
) -> AsyncIterator[tuple[TolerantStream, Any]]:
    """The transport with its messages put right."""
    async with transport as (read, write):
        yield TolerantStream(read, broken), write


def _repair_result(result: dict[str, Any], broken: Callable[[str, str], None]) -> None:
    if isinstance(tools := result.get("tools"), list):
        result["tools"] = [kept for tool in tools if (kept := _usable_tool(tool, broken)) is not None]
    if ("structuredContent" in result or "isError" in result) and result.get("content") is None:
        result["content"] = []


def _usable_tool(tool: object, broken: Callable[[str, str], None]) -> dict[str, Any] | None:
    if not isinstance(tool, Mapping) or not isinstance(name := tool.get("name"), str):
        return None
    schema = tool.get("inputSchema")
    schema = {} if schema is None else schema
    if not isinstance(schema, Mapping):
        broken(name, f"the schema of its arguments is a {type(schema).__name__}, not an object")
        return None
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        broken(name, f"the schema of its arguments is for {str(kind)[:60]}, not for an object")
        return None
    kept: dict[str, Any] = {"name": name, "inputSchema": _usable_schema(schema)}
    if isinstance(tool.get("description"), str):
        kept["description"] = tool["description"]
    return kept


def _usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its own type, arguments and required names in the form that the SDK asks for."""
    made = {**schema, "type": "object"}
    if isinstance(required := made.pop("required", None), list):
        made["required"] = [name for name in required if isinstance(name, str)]
    if isinstance(properties := made.pop("properties", None), Mapping):
        made["properties"] = {name: of if isinstance(of, Mapping) else {} for name, of in properties.items()}
    return made

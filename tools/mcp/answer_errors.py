"""Errors that an MCP server answered with: the connection works, but the server refused."""

import re

from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, REQUEST_TIMEOUT

from opsleuth.state.tool_errors import (
    InvalidArgumentsError,
    NotPermittedError,
    ToolError,
    TransientError,
    UnavailableError,
)

_DENIED = re.compile(
    r"permission denied|access denied|not permitted|not allowed|forbidden|unauthori[sz]ed|not authori[sz]ed|\b(?:EACCES|EPERM|40[13])\b",
    re.IGNORECASE,
)
_CLOSED = "Connection closed"
"""What the SDK itself says with the code that it shares with errors of servers."""


class McpAnswerError(UnavailableError):
    """The server answered with an error of its own."""


def is_connection_closed(code: int, text: str) -> bool:
    """Whether an error comes from the SDK because the connection ended, not from the server."""
    return code == CONNECTION_CLOSED and text.strip() == _CLOSED


def error_from_code(server: str, code: int, text: str) -> ToolError:
    """The error of a protocol error that the server answered with."""
    said = f"{server} answered with an error ({code}): {text}"
    if _DENIED.search(text):
        return NotPermittedError(said)
    if code in (INVALID_PARAMS, METHOD_NOT_FOUND):
        return InvalidArgumentsError(said)
    return TransientError(said) if code in (INTERNAL_ERROR, REQUEST_TIMEOUT) else McpAnswerError(said)


def error_from_answer(said: str) -> ToolError:
    """The error of a tool's answer that is marked as one."""
    return NotPermittedError(said) if _DENIED.search(said) else InvalidArgumentsError(said)

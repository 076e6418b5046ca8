"""An MCP server by hand that says and answers what servers of others do: `odd_mcp_server.py`, on stdin and stdout."""

import json
import sys
from typing import Any

OBJECT = {"type": "object"}
TOOLS: list[Any] = [
    {"name": "fine", "inputSchema": {**OBJECT, "properties": {"a": {"type": "string"}}}},
    {"name": "no_type", "inputSchema": {"properties": {"a": {"type": "string"}}, "required": ["a"]}},
    {"name": "no_schema"},
    {"name": "free", "inputSchema": OBJECT},
    {"name": "schema_is_text", "inputSchema": "object"},
    {"name": "schema_of_array", "inputSchema": {"type": "array"}},
    {"name": "description_is_a_list", "description": ["x"], "inputSchema": OBJECT},
    {"name": "odd_required", "inputSchema": {**OBJECT, "properties": {"a": {}}, "required": [["a"], {}, 3, "a"]}},
    {"name": "spaced", "inputSchema": {**OBJECT, "properties": {"two  spaces": {"type": "string"}}, "required": ["two  spaces"]}},
    {
        "name": "either",
        "inputSchema": {
            **OBJECT,
            "anyOf": [
                {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
                {"properties": {"name": {"type": "string"}}, "required": ["name"]},
            ],
        },
    },
    {"name": "unstructured", "inputSchema": OBJECT, "outputSchema": {**OBJECT, "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    {"name": "only_structured", "inputSchema": OBJECT},
    {"name": "server_error", "inputSchema": OBJECT},
    {"name": "denied", "inputSchema": OBJECT},
    {"name": "denied_result", "inputSchema": OBJECT},
    {"name": 7},
    "no tool",
]  # fmt: skip
NAMES = [tool["name"] for tool in TOOLS if isinstance(tool, dict) and isinstance(tool["name"], str)]


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": said}], **more}}


def called(name: str, arguments: Any) -> dict[str, Any]:
    """The answer to a call: what it was given, or the error that the tool is about."""
    match name:
        case "server_error":
            return {"error": {"code": -32000, "message": "the shelf is full"}}
        case "denied":
            return {"error": {"code": -32603, "message": "EACCES: permission denied, open '/etc/shadow'"}}
        case "denied_result":
            return text("Error: access denied - path outside allowed directories", isError=True)
        case "only_structured":
            return {"result": {"structuredContent": {"n": 1}}}
    return text(json.dumps(arguments))


def answered(request: dict[str, Any]) -> dict[str, Any]:
    parameters = request.get("params", {})
    match request["method"]:
        case "initialize":
            about = {"name": "odd", "version": "1"}
            version = parameters["protocolVersion"]
            return {
                "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
            }
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            return called(parameters["name"], parameters.get("arguments"))
    return {"error": {"code": -32601, "message": "no such method"}}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            reply = {"jsonrpc": "2.0", "id": request["id"], **answered(request)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

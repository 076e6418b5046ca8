"""A tool as a model reads it: name, description, and a small JSON schema of its arguments."""

import json
from collections.abc import Mapping
from typing import Any

from opsleuth.state.json_types import JSON
from opsleuth.tools.spec import ToolSpec

_TEXTUAL = frozenset({"minLength", "maxLength", "format", "uniqueItems", "pattern"})
_RANGE = frozenset({"minimum", "maximum", "minItems", "maxItems"})


def describe_tool(spec: ToolSpec) -> str:
    """Purpose, limits and an example in a few words."""
    example = f" Example: {json.dumps(spec.example, separators=(',', ':'))}" if spec.example else ""
    return f"{spec.purpose} Not for: {spec.not_for}{example}"


def parameters_schema(spec: ToolSpec) -> dict[str, Any]:
    """The JSON schema of the arguments, without what nobody needs: titles, null branches, null defaults."""
    schema: dict[str, Any] = _drop_titles_and_nulls(spec.arguments.model_json_schema())
    schema.setdefault("properties", {})
    return schema


def tool_function_schema(spec: ToolSpec) -> dict[str, Any]:
    """The tool in the form of OpenAI-compatible tool calling.

    What the check of a request enforces and explains anyway is left out: it would be sent with every turn.
    """
    about = {
        "name": spec.name,
        "description": describe_tool(spec),
        "parameters": _drop_checked_bounds(parameters_schema(spec)),
    }
    return {"type": "function", "function": about}


def _drop_titles_and_nulls(schema: JSON) -> JSON:
    if isinstance(schema, list):
        return [_drop_titles_and_nulls(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    slim = {}
    for key, value in schema.items():
        if key == "properties":
            slim[key] = {name: _drop_titles_and_nulls(of) for name, of in value.items()}
        elif (
            not (key in ("title", "description") and "properties" in schema)
            and key != "title"
            and (key, value) != ("default", None)
        ):
            slim[key] = _drop_titles_and_nulls(value)
    branches = [b for b in slim.get("anyOf", ()) if b != {"type": "null"}]
    if len(branches) == 1:
        slim = {**branches[0], **{k: v for k, v in slim.items() if k != "anyOf"}}
    return slim


def _drop_checked_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Without bounds of texts, ranges that the description names, and defaults that are empty."""
    names_range = " to " in str(schema.get("description"))
    lean: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            lean[key] = {name: _drop_checked_bounds(of) for name, of in value.items()}
        elif key in _TEXTUAL or (key in _RANGE and names_range) or _is_redundant_keyword(key, value):
            continue
        else:
            lean[key] = _drop_checked_bounds(value) if isinstance(value, Mapping) else value
    return lean


def _is_redundant_keyword(key: str, value: JSON) -> bool:
    return (key == "additionalProperties" and value is False) or (key == "default" and value in ("", []))

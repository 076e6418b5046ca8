"""A tool as a model reads it: name, description, and a small JSON schema of its arguments."""

import json
from collections.abc import Mapping
from typing import Any

from opsleuth.tools.spec import ToolSpec

_TEXTUAL = frozenset({"minLength", "maxLength", "format", "uniqueItems", "pattern"})
_RANGE = frozenset({"minimum", "maximum", "minItems", "maxItems"})


def description(spec: ToolSpec) -> str:
    """Purpose, limits and an example in a few words."""
    example = f" Example: {json.dumps(spec.example, separators=(',', ':'))}" if spec.example else ""
    return f"{spec.purpose} Not for: {spec.not_for}{example}"


def parameters(spec: ToolSpec) -> dict[str, Any]:
    """The JSON schema of the arguments, without what nobody needs: titles, null branches, null defaults."""
    schema: dict[str, Any] = _slim(spec.arguments.model_json_schema())
    schema.setdefault("properties", {})
    return schema


def function(spec: ToolSpec) -> dict[str, Any]:
    """The tool in the form of OpenAI-compatible tool calling.

    What the check of a request enforces and explains anyway is left out: it would be sent with every turn.
    """
    about = {"name": spec.name, "description": description(spec), "parameters": _lean(parameters(spec))}
    return {"type": "function", "function": about}


def _slim(schema: Any) -> Any:  # noqa: ANN401 - a JSON schema
    if isinstance(schema, list):
        return [_slim(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    slim = {}
    for key, value in schema.items():
        if key == "properties":
            slim[key] = {name: _slim(of) for name, of in value.items()}
        elif (
            not (key in ("title", "description") and "properties" in schema)
            and key != "title"
            and (key, value) != ("default", None)
        ):
            slim[key] = _slim(value)
    branches = [b for b in slim.get("anyOf", ()) if b != {"type": "null"}]
    if len(branches) == 1:
        slim = {**branches[0], **{k: v for k, v in slim.items() if k != "anyOf"}}
    return slim


def _lean(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Without bounds of texts, ranges that the description names, and defaults that are empty."""
    names_range = " to " in str(schema.get("description"))
    lean: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            lean[key] = {name: _lean(of) for name, of in value.items()}
        elif key in _TEXTUAL or (key in _RANGE and names_range) or _says_nothing(key, value):
            continue
        else:
            lean[key] = _lean(value) if isinstance(value, Mapping) else value
    return lean


def _says_nothing(key: str, value: Any) -> bool:  # noqa: ANN401 - a part of a JSON schema
    return (key == "additionalProperties" and value is False) or (key == "default" and value in ("", []))

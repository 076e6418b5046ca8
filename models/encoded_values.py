"""Lists and objects that a model sent as JSON text where the schema asks for the list or object itself."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from opsleuth.state.json_types import JSON

_CONTAINERS: Mapping[str, type] = {"array": list, "object": dict}
_DEEPEST = 8


def decode_encoded_values(value: JSON, schema: object, deep: int = _DEEPEST) -> JSON:
    """The value with such text decoded, at every depth. Text stays where the schema takes text, or where it is no such JSON."""
    if not isinstance(schema, Mapping) or deep == 0:
        return value
    if isinstance(value, str):
        value = _decode_text(value, set(_types_of(schema)))
    if isinstance(value, list):
        return [decode_encoded_values(item, schema.get("items"), deep - 1) for item in value]
    if isinstance(value, Mapping) and isinstance(properties := schema.get("properties"), Mapping):
        return {
            key: decode_encoded_values(item, properties.get(key), deep - 1) for key, item in value.items()
        }
    return value


def describe_broken_json(text: str) -> str:
    """Why a text is not a JSON object: what is wrong, at which character, and the text around it."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        near = text[max(error.pos - 40, 0) : error.pos + 40]
        return f"{error.msg} at character {error.pos + 1} of {len(text)}, near {near!r}"
    except RecursionError:
        return "nested too deeply"
    return f"it is not an object but {text[:80]!r}"


def _decode_text(text: str, types: set[Any]) -> JSON:
    wanted = tuple(_CONTAINERS[name] for name in types & _CONTAINERS.keys())
    if "string" in types or not wanted or text.lstrip()[:1] not in ("[", "{"):
        return text
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return decoded if isinstance(decoded, wanted) else text


def _types_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """The types that a schema takes; "string" where it does not say."""
    named = schema.get("type")
    if isinstance(named, str):
        yield named
    elif isinstance(named, list):
        yield from (name for name in named if isinstance(name, str))
    elif isinstance(branches := schema.get("anyOf", schema.get("oneOf")), list):
        for branch in branches:
            yield from _types_of(branch) if isinstance(branch, Mapping) else ("string",)
    else:
        yield "string"

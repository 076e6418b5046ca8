"""What a server says of its tools, made harmless: a small schema, a short description, both from outside.

Kept of a schema is what describes data; patterns are not (a hostile one costs minutes), and references are put in
place, so that the schema can stand anywhere. Arguments are checked against exactly what the model was shown.
"""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from jsonschema import Draft202012Validator, SchemaError
from pydantic import ConfigDict, model_validator
from pydantic_core import PydanticCustomError

from opsleuth.redaction.control_characters import escape_control_characters
from opsleuth.state.errors import OpsleuthError
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.spec import CARRIED, Arguments
from opsleuth.tools.truncation import cut_text

MOST_SCHEMA_BYTES = 6_000
MOST_DESCRIPTION, MOST_ARGUMENT_WORDS = 300, 120
_DEEPEST = 8
_DATA_KEYWORDS = frozenset(
    {"type", "enum", "const", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
     "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
)  # fmt: skip
_LISTS = frozenset({"anyOf", "oneOf", "allOf"})


class UnusableToolError(OpsleuthError):
    """A tool that cannot be offered; the text says why."""

    exit_code = ExitCode.CONFIG


class McpToolArguments(Arguments):
    """Arguments by a schema from outside; any JSON object before the schema is known."""

    model_config = ConfigDict(extra="allow")
    form: ClassVar[Mapping[str, Any]] = {"type": "object", "properties": {}}
    own_names: ClassVar[Mapping[str, str]] = {}

    def as_sent(self) -> dict[str, Any]:
        """The arguments under the names that the server has for them."""
        return {self.own_names.get(name, name): value for name, value in self.model_dump().items()}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        problems = Draft202012Validator(dict(self.form)).iter_errors(self.model_dump())
        worst = min(problems, key=lambda p: (len(p.path), str(p.path)), default=None)
        if worst is not None:
            where = ".".join(map(str, worst.path)) or "the arguments"
            raise PydanticCustomError(
                "foreign", "{where}: {what}", {"where": where, "what": cut_text(worst.message, 300)}
            )
        return self

    @classmethod
    def model_json_schema(cls, *_: object, **__: object) -> dict[str, Any]:
        """The schema that the server's tool goes by."""
        return dict(cls.form)


def build_mcp_arguments(name: str, schema: Mapping[str, Any]) -> type[McpToolArguments]:
    """The argument model of a tool. Raises UnusableToolError for a schema that is not valid, is too large, or takes a name of ours."""
    form = {"type": "object", "properties": {}} | _keep_data_keywords(
        schema, schema.get("$defs", schema.get("definitions", {})), _DEEPEST
    )
    form["type"] = "object"
    form["properties"] = _branch_properties(form, _DEEPEST) | form["properties"]
    free = not form["properties"] and "properties" not in schema
    form.setdefault("additionalProperties", free)
    if taken := CARRIED & form["properties"].keys():
        raise UnusableToolError(f"it has an argument {', '.join(sorted(taken))}, which every call carries")
    if len(json.dumps(form)) > MOST_SCHEMA_BYTES:
        raise UnusableToolError(f"the schema of its arguments is larger than {MOST_SCHEMA_BYTES:,} bytes")
    try:
        Draft202012Validator.check_schema(form)
    except SchemaError as error:
        raise UnusableToolError(
            f"the schema of its arguments is not valid: {cut_text(error.message, 200)}"
        ) from None
    own_names = {clean: raw for raw in _raw_names(schema) if (clean := _clean_name(raw)) != raw}
    noted = {"form": "ClassVar[Any]", "own_names": "ClassVar[Any]"}
    return type(
        f"Foreign_{name}",
        (McpToolArguments,),
        {"form": form, "own_names": own_names, "__annotations__": noted},
    )


def sanitize_line(text: str | None, most: int) -> str:
    """Text from outside as one short line without anything that acts."""
    return cut_text(" ".join(escape_control_characters(text or "").split()), most)


def _clean_name(name: object) -> str:
    return sanitize_line(str(name), 100)


def _raw_names(schema: Mapping[str, Any]) -> list[str]:
    properties = schema.get("properties")
    return [str(name) for name in properties] if isinstance(properties, Mapping) else []


def _branch_properties(form: Mapping[str, Any], deep: int) -> dict[str, Any]:
    """The arguments that the branches of anyOf, oneOf and allOf name, so that all of them are known at the top."""
    found: dict[str, Any] = {}
    for branch in (branch for key in sorted(_LISTS) if deep for branch in form.get(key, ())):
        found |= _branch_properties(branch, deep - 1) | branch.get("properties", {})
    return {name: {} for name in found}  # what they are is said in the branches


def _keep_data_keywords(schema: JSON, defs: Mapping[str, Any], deep: int) -> dict[str, Any]:
    """What describes data, nothing else."""
    if not isinstance(schema, Mapping) or deep == 0:
        return {}
    if isinstance(ref := schema.get("$ref"), str):
        return _keep_data_keywords(
            defs.get(ref.rpartition("/")[2]) if isinstance(defs, Mapping) else None, defs, deep - 1
        )
    kept: dict[str, Any] = {key: value for key, value in schema.items() if key in _DATA_KEYWORDS}
    if isinstance(schema.get("description"), str):
        kept["description"] = sanitize_line(schema["description"], MOST_ARGUMENT_WORDS)
    if isinstance(properties := schema.get("properties"), Mapping):
        kept["properties"] = {
            _clean_name(key): _keep_data_keywords(of, defs, deep - 1) for key, of in properties.items()
        }
        required = schema.get("required")
        kept["required"] = (
            [_clean_name(key) for key in required if isinstance(key, str) and key in properties]
            if isinstance(required, list)
            else []
        )
    if isinstance(schema.get("items"), Mapping):
        kept["items"] = _keep_data_keywords(schema["items"], defs, deep - 1)
    if "additionalProperties" in schema:
        more = schema["additionalProperties"]
        kept["additionalProperties"] = (
            more if isinstance(more, bool) else _keep_data_keywords(more, defs, deep - 1)
        )
    if "properties" not in kept and isinstance(schema.get("required"), list) and deep < _DEEPEST:
        # A branch of anyOf that only names arguments.
        kept["required"] = [_clean_name(key) for key in schema["required"] if isinstance(key, str)]
    for key in _LISTS & schema.keys():
        if isinstance(schema[key], list) and schema[key]:
            kept[key] = [_keep_data_keywords(of, defs, deep - 1) for of in schema[key]]
    return kept

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

from opsleuth.checkpoints.harmless import harmless
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.spec import CARRIED, Arguments

MOST_SCHEMA_BYTES = 6_000
MOST_DESCRIPTION, MOST_ARGUMENT_WORDS = 300, 120
_DEEPEST = 8
_PLAIN = frozenset(
    {"type", "enum", "const", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
     "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"}
)  # fmt: skip
_LISTS = frozenset({"anyOf", "oneOf", "allOf"})


class Unusable(Exception):
    """A tool that cannot be offered; the text says why."""


class Foreign(Arguments):
    """Arguments by a schema from outside; any JSON object before the schema is known."""

    model_config = ConfigDict(extra="allow")
    form: ClassVar[Mapping[str, Any]] = {"type": "object", "properties": {}}

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
    def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:  # noqa: ANN401 - as pydantic declares it
        """The schema that the server's tool goes by."""
        return dict(cls.form)


def arguments_of(name: str, schema: Mapping[str, Any]) -> type[Foreign]:
    """The argument model of a tool. Raises Unusable for a schema that is none, is too large, or takes a name of ours."""
    form = {"type": "object", "properties": {}} | _kept(schema, schema.get("$defs", {}), _DEEPEST)
    form["additionalProperties"] = False
    if taken := CARRIED & form["properties"].keys():
        raise Unusable(f"it has an argument {', '.join(sorted(taken))}, which every call carries")
    if len(json.dumps(form)) > MOST_SCHEMA_BYTES:
        raise Unusable(f"the schema of its arguments is larger than {MOST_SCHEMA_BYTES:,} bytes")
    try:
        Draft202012Validator.check_schema(form)
    except SchemaError as error:
        raise Unusable(f"the schema of its arguments is none: {cut_text(error.message, 200)}") from None
    return type(f"Foreign_{name}", (Foreign,), {"form": form, "__annotations__": {"form": "ClassVar[Any]"}})


def words(text: str | None, most: int) -> str:
    """Text from outside as one short line without anything that acts."""
    return cut_text(" ".join(harmless(text or "").split()), most)


def _kept(schema: Any, defs: Mapping[str, Any], deep: int) -> dict[str, Any]:  # noqa: ANN401 - whatever a server sent
    """What describes data, nothing else."""
    if not isinstance(schema, Mapping) or deep == 0:
        return {}
    if isinstance(ref := schema.get("$ref"), str):
        return _kept(defs.get(ref.rpartition("/")[2]) if isinstance(defs, Mapping) else None, defs, deep - 1)
    kept: dict[str, Any] = {key: value for key, value in schema.items() if key in _PLAIN}
    if isinstance(schema.get("description"), str):
        kept["description"] = words(schema["description"], MOST_ARGUMENT_WORDS)
    if isinstance(properties := schema.get("properties"), Mapping):
        kept["properties"] = {
            words(str(key), 100): _kept(of, defs, deep - 1) for key, of in properties.items()
        }
        required = schema.get("required")
        kept["required"] = (
            [key for key in required if key in properties] if isinstance(required, list) else []
        )
    if isinstance(schema.get("items"), Mapping):
        kept["items"] = _kept(schema["items"], defs, deep - 1)
    if "additionalProperties" in schema:
        more = schema["additionalProperties"]
        kept["additionalProperties"] = more if isinstance(more, bool) else _kept(more, defs, deep - 1)
    for key in _LISTS & schema.keys():
        if isinstance(schema[key], list):
            kept[key] = [_kept(of, defs, deep - 1) for of in schema[key]]
    return kept

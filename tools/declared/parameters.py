"""What a declared tool takes: named parameters with a type and a range, as a strict argument model.

    parameters = { unit = "worker-[0-9]{1,3}" }                              # a regular expression for the whole text
    parameters.lines = { type = "integer", minimum = 1, maximum = 500, default = 50, description = "lines, 1 to 500" }
    parameters.level = { choices = ["info", "error"] }
    parameters.dry = { type = "boolean", default = true }

A value fills its hole `{name}` whole: it is never split, and a text may not begin like an option.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, create_model, model_validator
from pydantic_core import SchemaError

from opsleuth.state.base import FrozenModel, Name, Sentence
from opsleuth.state.json_types import JSON
from opsleuth.tools.spec import Arguments

PLACEHOLDER = re.compile(r"\{(\w+)\}")
LONGEST = 5_000
"""Characters of one text."""

Value = bool | int | float | str


class DeclaredParameter(FrozenModel):
    """One parameter. A text needs a `pattern` or `choices`, a number its range; with a `default` it may be left out."""

    type: Literal["text", "integer", "number", "boolean"] = "text"
    pattern: Name | None = None
    choices: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    minimum: float | None = None
    maximum: float | None = None
    default: Value | None = None
    example: Value | None = None
    description: Sentence = ""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.type == "text" and (self.pattern is None) is not bool(self.choices):
            raise ValueError("a text needs either a pattern for the whole of it or choices")
        if self.type in ("integer", "number") and None in (self.minimum, self.maximum):
            raise ValueError("a number needs minimum and maximum")
        try:
            adapter = TypeAdapter[Any](self.field()[0])
        except SchemaError:
            raise ValueError(f"{self.pattern!r} is not a regular expression (without look-around)") from None
        for value in (self.default, self.example):
            if value is not None:
                adapter.validate_python(value, strict=True)
        return self

    @property
    def shown(self) -> Value:
        """A value for the tool's example."""
        given = (self.example, self.default, *self.choices[:1], self.minimum)
        fallback: Value = self.type == "boolean" or f"matches {self.pattern}"
        value = next((v for v in given if v is not None), fallback)
        return int(value) if self.type == "integer" else value

    def field(self) -> tuple[Any, Any]:
        """Type and default, as pydantic makes a field of them."""
        limits: dict[str, Any] = {"description": self.description} if self.description else {}
        kind: Any = {"text": str, "integer": int, "number": float, "boolean": bool}[self.type]
        if self.choices:
            kind = Literal[self.choices]
        elif self.pattern is not None:
            limits |= {"pattern": rf"^(?:{self.pattern})$", "max_length": LONGEST}
        elif self.type in ("integer", "number"):
            limits |= {"ge": self.minimum, "le": self.maximum}
        return Annotated[kind, Field(**limits)], ... if self.default is None else self.default


class CommandArguments(Arguments):
    """Values that a program could take for an option are refused."""

    def model_post_init(self, _: object, /) -> None:
        for name, value in self:
            if isinstance(value, str) and (value.startswith("-") or "\0" in value):
                raise ValueError(f"{name} may not begin with a dash or hold a NUL byte")


def build_argument_model(
    name: str, parameters: Mapping[str, DeclaredParameter], base: type[Arguments]
) -> type[Arguments]:
    """The strict model of a tool's arguments."""
    fields: dict[str, Any] = {key: parameter.field() for key, parameter in parameters.items()}
    model: type[Arguments] = create_model(f"Declared_{name}", __base__=base, **fields)
    return model


def example_arguments(parameters: Mapping[str, DeclaredParameter]) -> dict[str, Value]:
    """A value for each parameter."""
    return {name: parameter.shown for name, parameter in parameters.items()}


def find_placeholders(parts: Sequence[str]) -> set[str]:
    """The names of all holes in these templates."""
    return {hole for part in parts for hole in PLACEHOLDER.findall(part)}


def fill_placeholders(template: str, values: Mapping[str, Any]) -> str:
    """The template with the values in their holes, JSON's words for true and false."""
    return PLACEHOLDER.sub(lambda hole: placeholder_text(values[hole[1]]), template)


def placeholder_text(value: JSON) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

"""What every declared tool says of itself, of whatever kind it is."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints, field_validator

from opsleuth.state.base import FrozenModel, Name, Sentence
from opsleuth.state.calls import Risk
from opsleuth.state.json_types import JSON
from opsleuth.tools.declared.parameters import (
    DeclaredParameter,
    build_argument_model,
    example_arguments,
    fill_placeholders,
    find_placeholders,
)
from opsleuth.tools.spec import CARRIED, Arguments, Run, ToolSpec


class ToolDeclaration(FrozenModel):
    """What every declared tool says of itself. `risk` is high unless the operator says otherwise."""

    name: Annotated[str, StringConstraints(pattern=r"^[\w-]{1,60}$")]
    purpose: Sentence
    not_for: Sentence = "Anything other than what the operator declared."
    parameters: dict[Annotated[str, StringConstraints(pattern=r"^[a-z]\w{0,59}$")], DeclaredParameter] = (
        Field(default_factory=dict)
    )
    target: Name | None = None
    risk: Risk = Risk.HIGH
    undo: Sentence = "see the operator"
    takes_key: bool = False
    settles: Annotated[float, Field(ge=0, le=3_600)] = 30.0
    seconds: Annotated[float, Field(gt=0, le=600)] = 30.0
    output_bytes: Annotated[int, Field(ge=500, le=60_000)] = 30_000

    @field_validator("parameters", mode="before")
    @classmethod
    def _short(cls, given: JSON) -> JSON:
        """A text in place of a table is its pattern."""
        if not isinstance(given, Mapping):
            return given
        return {key: {"pattern": of} if isinstance(of, str) else of for key, of in given.items()}

    def check_names(self, parts: Sequence[str]) -> None:
        """Raises ValueError for a hole that no parameter fills, and for a parameter with a name of ours."""
        if taken := sorted(CARRIED & self.parameters.keys()):
            raise ValueError(f"every call carries {', '.join(taken)}: rename this parameter")
        if unknown := sorted(find_placeholders(parts) - self.parameters.keys() - {"key"}):
            raise ValueError(f"no parameter {', '.join(unknown)}")

    def values(self, arguments: Arguments, key: str | None) -> dict[str, Any]:
        """What fills the holes: the arguments, and the key of this very change."""
        return arguments.model_dump() | {"key": key or ""}

    def spec(self, kind: str, base: type[Arguments], run: Run, **more: Any) -> ToolSpec:  # noqa: ANN401 - fields of the spec
        """The tool `<kind>_<name>` with what is common to all kinds."""
        target = self.target or self.name
        return ToolSpec(
            name=f"{kind}_{tool_name_slug(self.name)}",
            purpose=self.purpose,
            not_for=self.not_for,
            arguments=build_argument_model(self.name, self.parameters, base),
            example=example_arguments(self.parameters),
            run=run,
            risk=self.risk,
            target=lambda arguments: fill_placeholders(target, self.values(arguments, None)),
            timeout=self.seconds + 2.0,
            undo=self.undo,
            takes_key=self.takes_key,
            settles=self.settles,
            origin="declared by the operator",
            **more,
        )


def tool_name_slug(name: str) -> str:
    """The name in small letters, digits and underscores, as part of a tool's name."""
    return re.sub(r"[^a-z0-9]+", "_", name.casefold())

"""What every part of the state shares: frozen models, bounded text, JSON that the checkpoint serialiser keeps."""

import math
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, JsonValue, StringConstraints

from opsleuth.state.clock import convert_to_utc

INT64 = 2**63


class FrozenModel(BaseModel):
    """A part of the state: immutable, no unknown keys, and no input value in its error texts."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        revalidate_instances="always",
        allow_inf_nan=False,
    )


def ensure_storable(value: JsonValue) -> JsonValue:
    """Refuse what the checkpoint serialiser would change or reject later.

    Raises ValueError for NaN and infinities, integers beyond 64 bit, and lone surrogates, at any depth.
    """
    if isinstance(value, list):
        for item in value:
            ensure_storable(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            ensure_storable(key)
            ensure_storable(item)
    else:
        _ensure_storable_scalar(value)
    return value


def _ensure_storable_scalar(value: str | float | None) -> None:
    if isinstance(value, str) and any(0xD800 <= ord(c) <= 0xDFFF for c in value):
        raise ValueError("text holds a lone surrogate (half of a UTF-16 pair): send valid Unicode")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number: send a finite number or null")
    if isinstance(value, int) and not -INT64 <= value < INT64:
        raise ValueError(f"integer of {value.bit_length()} bits: the range is 64 bits, send it as text")


Json = Annotated[JsonValue, AfterValidator(ensure_storable)]
JsonObject = dict[str, Json]
Utc = Annotated[AwareDatetime, AfterValidator(convert_to_utc)]
Sentence = Annotated[str, StringConstraints(max_length=1_000)]
Text = Annotated[str, StringConstraints(max_length=20_000)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300)]

EvidenceId = Annotated[str, StringConstraints(pattern=r"^E[1-9]\d{0,6}$")]
HypothesisId = Annotated[str, StringConstraints(pattern=r"^H[1-9]\d{0,4}$")]
ClaimId = Annotated[str, StringConstraints(pattern=r"^C[1-9]\d{0,4}$")]
FactId = Annotated[str, StringConstraints(pattern=r"^E[1-9]\d{0,6}\.[1-9]\d{0,3}$")]
Count = Annotated[int, AfterValidator(ensure_storable)]


def to_json(model: BaseModel) -> dict[str, Any]:
    """The model as plain JSON values, the form in which the channels hold it."""
    return model.model_dump(mode="json")

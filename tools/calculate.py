"""Closed arithmetic over evidence: only numbers and times that are in stored evidence go in, and all are named."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from opsleuth.analysis.robust_statistics import quantile
from opsleuth.state.json_types import JSON
from opsleuth.tools.arguments import read_time
from opsleuth.tools.evidence_paths import (
    EvidenceReference,
    find_evidence,
    parse_reference,
    require_usable_evidence,
    values_at,
)
from opsleuth.tools.spec import Arguments, InvalidArgumentsError, ToolContext, ToolResult, ToolSpec
from opsleuth.tools.truncation import CUT_ITEMS_MARK

Operation = Literal[
    "sum", "difference", "ratio", "percent", "count", "min", "max", "mean", "percentile", "duration"
]  # fmt: skip
_PAIRS = ("difference", "ratio", "percent", "duration")
MOST_SHOWN = 20


class CalculateArguments(Arguments):
    operation: Annotated[
        Operation,
        Field(
            description="difference a-b, ratio a/b, percent 100*a/b, duration a to b in seconds; these take two"
        ),
    ]
    inputs: Annotated[
        tuple[Annotated[str, Field(max_length=300)], ...],
        Field(min_length=1, max_length=20, description="references: E3:points[0].value, E3:points[*].value"),
    ]
    percentile: Annotated[float | None, Field(ge=0, le=100, description="which one, 0 to 100")] = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.operation == "percentile") != (self.percentile is not None):
            raise PydanticCustomError(
                "order", "percentile is given with the operation percentile, and only with it"
            )
        return self


@dataclass(frozen=True, slots=True)
class _ResolvedInput:
    reference: EvidenceReference
    values: list[Any]


async def calculate(arguments: CalculateArguments, context: ToolContext) -> ToolResult:
    inputs = [_resolve_input(text, context) for text in arguments.inputs]
    values = [value for one in inputs for value in one.values]
    if arguments.operation in _PAIRS and len(values) != 2:
        raise InvalidArgumentsError(f"{arguments.operation} takes two values, the inputs give {len(values)}")
    result = _compute_result(arguments, values)
    record: dict[str, Any] = {
        "operation": arguments.operation,
        "result": result,
        "inputs": [_input_record(one) for one in inputs],
        "values": len(values),
    }
    if arguments.percentile is not None:
        record["percentile"] = arguments.percentile
    if arguments.operation == "duration":
        record |= {"unit": "s", "minutes": _round_to_12_digits(result / 60)}
    names = ", ".join(str(one.reference) for one in inputs)
    return ToolResult(
        record=record, headline=f"{arguments.operation} of {names} = {result}", source="evidence"
    )


def _resolve_input(text: str, context: ToolContext) -> _ResolvedInput:
    reference = parse_reference(text)
    body = require_usable_evidence(find_evidence(context.evidence, reference.evidence))
    values = values_at(body.record, reference.steps, reference.evidence)
    if not reference.many and len(values) == 1 and isinstance(values[0], list):
        values = list(values[0])
    if any(isinstance(value, str) and CUT_ITEMS_MARK.fullmatch(value) for value in values):
        raise InvalidArgumentsError(f"{reference} was cut when it was stored: its values are not complete")
    return _ResolvedInput(reference, values)


def _input_record(one: _ResolvedInput) -> dict[str, Any]:
    """The input by name; long or nested values are counted, not repeated."""
    shown: dict[str, Any] = {"reference": str(one.reference), "count": len(one.values)}
    if all(isinstance(value, str | int | float) for value in one.values):
        shown["values"] = one.values[:MOST_SHOWN]
    return shown


def _compute_result(arguments: CalculateArguments, values: Sequence[Any]) -> float:
    if arguments.operation == "count":
        return len(values)
    if not values:
        raise InvalidArgumentsError(f"{arguments.operation} of nothing: the references lead to an empty list")
    if arguments.operation == "duration":
        first, second = (_require_time(value) for value in values)
        return _round_to_12_digits((second - first).total_seconds())
    numbers = [_require_number(value) for value in values]
    if arguments.operation == "percentile":
        return _require_finite(quantile(numbers, (arguments.percentile or 0.0) / 100))
    try:
        return _require_finite(_ARITHMETIC[arguments.operation](numbers))
    except OverflowError:
        return _require_finite(math.inf)


def _divide_pair(numbers: Sequence[float]) -> float:
    if numbers[1] == 0:
        raise InvalidArgumentsError("the second value is 0: the ratio is undefined")
    return numbers[0] / numbers[1]


_ARITHMETIC: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": lambda numbers: sum(numbers) if all(isinstance(n, int) for n in numbers) else math.fsum(numbers),
    "difference": lambda numbers: numbers[0] - numbers[1],
    "ratio": _divide_pair,
    "percent": lambda numbers: 100 * _divide_pair(numbers),
    "min": min,
    "max": max,
    "mean": fmean,
}


def _require_number(value: JSON) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgumentsError(
            f"{value!r:.80} is not a number: refer to a number, or to items with numbers"
        )
    return value


def _require_time(value: JSON) -> datetime:
    if not isinstance(value, str):
        raise InvalidArgumentsError(f"{value!r:.80} is not a time: duration takes two times")
    try:
        return read_time(value)
    except PydanticCustomError:
        raise InvalidArgumentsError(f"{value!r:.80} is not a time: duration takes two times") from None


def _require_finite(value: float) -> float:
    if not math.isfinite(value):
        raise InvalidArgumentsError("the result is too large for a number")
    return _round_to_12_digits(value)


def _round_to_12_digits(value: float) -> float:
    """Twelve significant digits: more than any source measures, without the dust of binary fractions."""
    return value if isinstance(value, int) else float(f"{value:.12g}")


CALCULATE: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="calculate",
        purpose="Arithmetic over values in evidence; the result is evidence that can be cited.",
        not_for="Numbers that no evidence holds.",
        arguments=CalculateArguments,
        example={"operation": "difference", "inputs": ["E3:max.value", "E3:min.value"]},
        run=calculate,
    ),
)

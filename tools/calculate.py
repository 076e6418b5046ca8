"""Closed arithmetic over evidence: only numbers and times that are in stored evidence go in, and all are named."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from opsleuth.analysis.robust import quantile
from opsleuth.tools.arguments import read_time
from opsleuth.tools.bounds import HOLE
from opsleuth.tools.paths import Reference, find_evidence, parse_reference, usable, values_at
from opsleuth.tools.spec import Arguments, InvalidArguments, ToolContext, ToolResult, ToolSpec

Operation = Literal[
    "sum", "difference", "ratio", "percent", "count", "min", "max", "mean", "percentile", "duration"
]  # fmt: skip
_PAIRS = ("difference", "ratio", "percent", "duration")
MOST_SHOWN = 20


class Calculate(Arguments):
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
class _Input:
    reference: Reference
    values: list[Any]


async def calculate(arguments: Calculate, context: ToolContext) -> ToolResult:
    inputs = [_resolve(text, context) for text in arguments.inputs]
    values = [value for one in inputs for value in one.values]
    if arguments.operation in _PAIRS and len(values) != 2:
        raise InvalidArguments(f"{arguments.operation} takes two values, the inputs give {len(values)}")
    result = _compute(arguments, values)
    record: dict[str, Any] = {
        "operation": arguments.operation,
        "result": result,
        "inputs": [_shown(one) for one in inputs],
        "values": len(values),
    }
    if arguments.percentile is not None:
        record["percentile"] = arguments.percentile
    if arguments.operation == "duration":
        record |= {"unit": "s", "minutes": _short(result / 60)}
    names = ", ".join(str(one.reference) for one in inputs)
    return ToolResult(
        record=record, headline=f"{arguments.operation} of {names} = {result}", source="evidence"
    )


def _resolve(text: str, context: ToolContext) -> _Input:
    reference = parse_reference(text)
    body = usable(find_evidence(context.evidence, reference.evidence))
    values = values_at(body.record, reference.steps, reference.evidence)
    if not reference.many and len(values) == 1 and isinstance(values[0], list):
        values = list(values[0])
    if any(isinstance(value, str) and HOLE.fullmatch(value) for value in values):
        raise InvalidArguments(f"{reference} was cut when it was stored: its values are not complete")
    return _Input(reference, values)


def _shown(one: _Input) -> dict[str, Any]:
    """The input by name; long or nested values are counted, not repeated."""
    shown: dict[str, Any] = {"reference": str(one.reference), "count": len(one.values)}
    if all(isinstance(value, str | int | float) for value in one.values):
        shown["values"] = one.values[:MOST_SHOWN]
    return shown


def _compute(arguments: Calculate, values: Sequence[Any]) -> float:
    if arguments.operation == "count":
        return len(values)
    if not values:
        raise InvalidArguments(f"{arguments.operation} of nothing: the references lead to an empty list")
    if arguments.operation == "duration":
        first, second = (_time(value) for value in values)
        return _short((second - first).total_seconds())
    numbers = [_number(value) for value in values]
    if arguments.operation == "percentile":
        return _finite(quantile(numbers, (arguments.percentile or 0.0) / 100))
    try:
        return _finite(_ARITHMETIC[arguments.operation](numbers))
    except OverflowError:
        return _finite(math.inf)


def _ratio(numbers: Sequence[float]) -> float:
    if numbers[1] == 0:
        raise InvalidArguments("the second value is 0: a ratio to nothing says nothing")
    return numbers[0] / numbers[1]


_ARITHMETIC: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": lambda numbers: sum(numbers) if all(isinstance(n, int) for n in numbers) else math.fsum(numbers),
    "difference": lambda numbers: numbers[0] - numbers[1],
    "ratio": _ratio,
    "percent": lambda numbers: 100 * _ratio(numbers),
    "min": min,
    "max": max,
    "mean": fmean,
}


def _number(value: Any) -> float:  # noqa: ANN401 - any JSON value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArguments(f"{value!r:.80} is no number: refer to a number, or to items with numbers")
    return value


def _time(value: Any) -> datetime:  # noqa: ANN401 - any JSON value
    if not isinstance(value, str):
        raise InvalidArguments(f"{value!r:.80} is no time: duration takes two times")
    try:
        return read_time(value)
    except PydanticCustomError:
        raise InvalidArguments(f"{value!r:.80} is no time: duration takes two times") from None


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise InvalidArguments("the result is too large for a number")
    return _short(value)


def _short(value: float) -> float:
    """Twelve significant digits: more than any source measures, without the dust of binary fractions."""
    return value if isinstance(value, int) else float(f"{value:.12g}")


CALCULATE: tuple[ToolSpec, ...] = (
    ToolSpec(
        name="calculate",
        purpose="Arithmetic over values in evidence; the result is evidence that can be cited.",
        not_for="Numbers that no evidence holds.",
        arguments=Calculate,
        example={"operation": "difference", "inputs": ["E3:max.value", "E3:min.value"]},
        run=calculate,
    ),
)

"""Arithmetic over evidence: right, closed, and every input named."""

import math
from statistics import fmean
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tool_rig import context

from opsleuth.state.calls import ResultStatus
from opsleuth.tools.calculate import CALCULATE
from opsleuth.tools.evidence_paths import PathStep, format_path, parse_path, parse_reference, values_at
from opsleuth.tools.registry import parse_arguments
from opsleuth.tools.spec import EvidenceBody, InvalidArgumentsError, ToolResult

SPEC = CALCULATE[0]
RECORD = {
    "points": [
        {"time": "2024-05-01T14:00:00Z", "value": 2},
        {"time": "2024-05-01T14:16:00Z", "value": 10},
        {"time": "2024-05-01T16:00:00+02:00", "value": 6.5},
    ],
    "by_service": {"a.b": 3, "web": True},
    "none": 0,
    "empty": [],
    "cut": ["x", "…[12 items cut]…", "y"],
}


def body(record: dict[str, Any], status: ResultStatus = ResultStatus.OK) -> EvidenceBody:
    return EvidenceBody("E3", "metrics_query", status, record)


async def calculate(
    operation: str,
    *inputs: str,
    record: dict[str, Any] = RECORD,
    status: ResultStatus = ResultStatus.OK,
    **more: Any,
) -> ToolResult:
    arguments = parse_arguments(SPEC, {"operation": operation, "inputs": list(inputs), **more})
    return await SPEC.run(arguments, context(evidence={"E3": body(record, status)}))


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        ("sum", ["E3:points[*].value"], 18.5),
        ("sum", ["E3:points[0].value", "E3:points[1].value"], 12),
        ("difference", ["E3:points[1].value", "E3:points[0].value"], 8),
        ("ratio", ["E3:points[1].value", "E3:points[0].value"], 5),
        ("percent", ["E3:points[0].value", "E3:points[1].value"], 20),
        ("count", ["E3:points"], 3),
        ("count", ["E3:empty"], 0),
        ("min", ["E3:points[*].value"], 2),
        ("max", ["E3:points[*].value", 'E3:by_service["a.b"]'], 10),
        ("mean", ["E3:points[0].value", "E3:points[-1].value"], 4.25),
        ("duration", ["E3:points[0].time", "E3:points[1].time"], 960),
        ("duration", ["E3:points[0].time", "E3:points[2].time"], 0),
    ],
)
async def test_each_operation(operation: str, inputs: list[str], expected: float) -> None:
    result = await calculate(operation, *inputs)
    assert result.record["result"] == expected
    assert [one["reference"] for one in result.record["inputs"]] == inputs
    assert str(result.record["result"]) in result.headline


async def test_a_percentile_and_minutes() -> None:
    assert (await calculate("percentile", "E3:points[*].value", percentile=50.0)).record["result"] == 6.5
    assert (await calculate("duration", "E3:points[0].time", "E3:points[1].time")).record["minutes"] == 16


@pytest.mark.parametrize(
    ("operation", "inputs", "said"),
    [
        ("sum", ["E9:points"], "no evidence E9"),
        ("sum", ["12"], "is not a reference"),
        ("sum", ["E3:points[0].valu"], "nearest: value"),
        ("sum", ["E3:point"], "nearest: points"),
        ("sum", ["E3:points[7].value"], "has 3 items"),
        ("sum", ["E3:by_service[0]"], "is an object, not a list"),
        ("sum", ["E3:none.value"], "it has no field"),
        ("sum", ["E3:points[0]"], "is not a number"),
        ("sum", ["E3:by_service.web"], "is not a number"),
        ("sum", ["E3:points[0].value + 1"], "cannot read the path"),
        ("sum", ["E3:__class__"], "has no field"),
        ("sum", ["E3:empty"], "of nothing"),
        ("ratio", ["E3:points[0].value", "E3:none"], "is 0"),
        ("difference", ["E3:points[*].value"], "takes two values, the inputs give 3"),
        ("duration", ["E3:points[0].value", "E3:points[0].time"], "is not a time"),
        ("count", ["E3:cut"], "was cut"),
    ],
)
async def test_what_cannot_be_computed_says_why(operation: str, inputs: list[str], said: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        await calculate(operation, *inputs)
    assert said in str(caught.value)


@pytest.mark.parametrize("status", [ResultStatus.NOT_RECORDED, ResultStatus.UNAVAILABLE])
async def test_what_was_not_recorded_is_no_number(status: ResultStatus) -> None:
    with pytest.raises(InvalidArgumentsError, match="holds no data"):
        await calculate("sum", "E3:none", status=status)


async def test_none_matched_counts_as_a_figure() -> None:
    result = await calculate("sum", "E3:matched", record={"matched": 0}, status=ResultStatus.NONE_MATCHED)
    assert result.record["result"] == 0


@pytest.mark.parametrize("arguments", [{"operation": "percentile"}, {"operation": "sum", "percentile": 5.0}])
def test_a_percentile_needs_its_number_and_nothing_else_does(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentsError, match="percentile"):
        parse_arguments(SPEC, {"inputs": ["E3:x"], **arguments})


NUMBERS = st.lists(st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(NUMBERS)
async def test_sums_means_and_extremes_are_those_of_the_numbers(numbers: list[float]) -> None:
    async def result(operation: str, **more: Any) -> float:
        found: float = (await calculate(operation, "E3:n", record={"n": numbers}, **more)).record["result"]
        return found

    close = {"rel_tol": 1e-9, "abs_tol": 1e-9}
    assert math.isclose(await result("sum"), math.fsum(numbers), **close)
    assert math.isclose(await result("mean"), fmean(numbers), **close)
    assert math.isclose(await result("min"), min(numbers), **close)
    assert math.isclose(await result("percentile", percentile=100.0), max(numbers), **close)
    assert await result("count") == len(numbers)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
@example(3.0, 2.0)
async def test_a_result_is_always_a_finite_number_or_refused(a: float, b: float) -> None:
    for operation in ("ratio", "percent", "difference", "sum"):
        try:
            result = await calculate(operation, "E3:a", "E3:b", record={"a": a, "b": b})
        except InvalidArgumentsError:
            continue
        assert math.isfinite(result.record["result"])


STEPS = st.lists(st.none() | st.integers(-1000, 1000) | st.text(max_size=8), max_size=6).map(tuple)


@given(STEPS)
def test_a_path_is_read_back_from_its_spelling(steps: tuple[PathStep, ...]) -> None:
    assert parse_path(format_path(steps)) == steps


@given(st.text(max_size=30))
@example("E3:points[0].time")
def test_any_text_is_a_reference_or_refused(text: str) -> None:
    try:
        reference = parse_reference(text)
    except InvalidArgumentsError:
        return
    assert parse_reference(str(reference)) == reference


@given(
    st.recursive(
        st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_every_value_of_a_record_can_be_referred_to(record: Any) -> None:
    for steps, value in _all(record):
        assert values_at(record, parse_path(format_path(steps)), "E1") == [value]


def _all(value: Any, steps: tuple[PathStep, ...] = ()) -> list[tuple[tuple[PathStep, ...], Any]]:
    found: list[tuple[tuple[PathStep, ...], Any]] = [(steps, value)]
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        found += _all(child, (*steps, key))
    return found

"""What a model reads about the tools: complete, bounded, with units and ranges, and no two easily swapped."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import pytest

from opsleuth.state.calls import Risk
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.registry import Toolbox, parse_arguments
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import ToolSpec
from opsleuth.tools.tool_schema import describe_tool, parameters_schema, tool_function_schema

NAMES = [spec.name for spec in BUILTIN]
WITHOUT_ARGUMENTS = {"time_now"}
each_tool = pytest.mark.parametrize("spec", BUILTIN, ids=NAMES)


def properties(spec: ToolSpec) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from parameters_schema(spec)["properties"].items()


@each_tool
def test_purpose_and_limits_are_said_in_few_words(spec: ToolSpec) -> None:
    for text in (spec.purpose, spec.not_for):
        assert text.endswith(".")
        assert 10 <= len(text) <= 130
    assert describe_tool(spec).count("Not for:") == 1


@each_tool
def test_the_example_validates(spec: ToolSpec) -> None:
    assert parse_arguments(spec, spec.example) == spec.arguments.model_validate_json(json.dumps(spec.example))


@each_tool
def test_every_argument_is_described_and_every_number_has_its_range(spec: ToolSpec) -> None:
    found = list(properties(spec))
    assert bool(found) is (spec.name not in WITHOUT_ARGUMENTS)
    for name, schema in found:
        assert schema.get("description"), f"{spec.name}.{name}"
        if schema["type"] in ("integer", "number"):
            assert {"minimum", "maximum"} <= schema.keys(), f"{spec.name}.{name}"
            assert re.search(r"\d|from 0", schema["description"]), f"{spec.name}.{name} names no range"
            assert re.search(r"[a-z]{4,}", schema["description"]), f"{spec.name}.{name} names no unit"
        if schema["type"] == "string":
            assert {"maxLength", "pattern", "enum", "format"} & schema.keys(), (
                f"{spec.name}.{name} is unbounded"
            )


@each_tool
def test_nothing_beyond_the_schema_is_accepted(spec: ToolSpec) -> None:
    assert parameters_schema(spec)["additionalProperties"] is False
    assert spec.risk is Risk.READ


def test_names_are_plain_and_no_two_are_easily_swapped() -> None:
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in NAMES)
    for a, b in combinations(NAMES, 2):
        assert set(a.split("_")) != set(b.split("_")), f"{a}, {b}"
        assert difflib.SequenceMatcher(None, a, b).ratio() < 0.8, f"{a}, {b}"


def test_each_purpose_names_tools_that_exist() -> None:
    for spec in BUILTIN:
        mentioned = set(re.findall(r"[a-z]+_[a-z]+", spec.not_for + spec.purpose))
        assert mentioned <= set(NAMES)


def test_all_schemas_together_stay_small() -> None:
    assert len(json.dumps([tool_function_schema(spec) for spec in BUILTIN])) < 14_000


def test_without_sources_only_what_needs_none_is_offered() -> None:
    toolbox = Toolbox(BUILTIN, RunSources())
    assert {s.name for s in toolbox.specs} == {"rank_suspects", "evidence_read", "calculate", "time_now"}
    assert len(toolbox.not_available) == 8

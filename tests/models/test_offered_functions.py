"""How many tools a model is shown, and how much of its window their text takes."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tool_rig import orders

from opsleuth.models.control_tools import CONTROLS
from opsleuth.models.decision_parsing import decision_from_calls
from opsleuth.models.model_reply import ModelReply, ModelToolCall
from opsleuth.models.offered_functions import (
    LEAST_READS,
    MOST_FUNCTIONS,
    NEEDED_FIRST,
    SMALL_ROOM,
    build_functions,
    compute_functions_room,
    measure_functions,
    select_offered_tools,
)
from opsleuth.state.calls import Risk
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.effects.effect_toolset import build_effect_tools
from opsleuth.tools.spec import ToolSpec

WINDOWS = (4_000, 8_000, 8_192, 16_000, 32_000, 128_000)
NAMES = [spec.name for spec in BUILTIN]


def test_every_built_in_tool_has_its_place() -> None:
    assert sorted(NEEDED_FIRST) == sorted(NAMES)


@pytest.mark.parametrize("window", WINDOWS)
def test_with_every_source_there_are_few_functions_of_few_tokens(window: int) -> None:
    chosen = select_offered_tools(BUILTIN, window)
    assert len(build_functions(chosen, window)) <= MOST_FUNCTIONS == 18
    assert measure_functions(chosen, window) <= compute_functions_room(window)


def test_small_window_has_three_thousand_tokens_of_functions_at_most() -> None:
    assert compute_functions_room(8_192) == SMALL_ROOM == 3_000


@settings(deadline=None, max_examples=15)
@given(st.sets(st.sampled_from(NAMES), min_size=1), st.sampled_from(WINDOWS))
def test_whatever_sources_there_are_the_bounds_hold_and_the_order_stays(names: set[str], window: int) -> None:
    specs = [spec for spec in BUILTIN if spec.name in names]
    chosen = select_offered_tools(specs, window)
    assert len(chosen) + len(CONTROLS) <= MOST_FUNCTIONS
    assert measure_functions(chosen, window) <= compute_functions_room(window)
    assert [spec for spec in specs if spec in chosen] == list(chosen)
    left = [spec.name for spec in specs if spec not in chosen]
    assert all(
        NEEDED_FIRST.index(spec.name) < min(map(NEEDED_FIRST.index, left), default=99) for spec in chosen
    )


def added(count: int) -> Sequence[ToolSpec]:
    """Tools of an operator: not built in, and of a risk of their own."""
    return [
        replace(orders(risk=Risk.HIGH), name=f"shop_tool_{chr(97 + n)}", origin="declared")
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [1, 6, 30])
def test_tools_that_act_or_were_added_are_always_offered(count: int) -> None:
    specs = [*BUILTIN, *build_effect_tools(None), *added(count)]
    chosen = {spec.name for spec in select_offered_tools(specs, 32_000)}
    assert {spec.name for spec in specs if spec.name not in NAMES} <= chosen
    assert len(chosen & set(NAMES)) == max(MOST_FUNCTIONS - len(CONTROLS) - count - 1, LEAST_READS)


def test_tool_that_is_not_shown_can_be_called_all_the_same() -> None:
    assert "time_now" not in {spec.name for spec in select_offered_tools(BUILTIN, 8_000)}
    call = ModelToolCall(name="time_now", arguments={"why": "which time it is"})
    decision = decision_from_calls(ModelReply(text="", calls=(call,), finish="tool_calls"), BUILTIN)
    assert [one.tool for one in decision.calls] == ["time_now"]

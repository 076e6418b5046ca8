"""Every state that can be reached survives the checkpoint serialiser, strict; what it would change is refused before."""

import os
from datetime import UTC, datetime, timedelta

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import ValidationError

from opsleuth.state.base import to_json
from opsleuth.state.calls import Call, CallGate, CallRequest, Risk
from opsleuth.state.canonical_json import canonical_sha256, to_canonical_json
from opsleuth.state.investigation import Hypothesis, Investigation, PlannerNotice, PlanStep, Window
from opsleuth.state.run_status import Status, StopReason

START = datetime(2024, 5, 1, tzinfo=UTC)
SERDE = JsonPlusSerializer(allowed_msgpack_modules=None)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
name = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
leaf = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
json_value = st.recursive(
    leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=8
)
arguments = st.dictionaries(text, json_value, max_size=4)
calls = st.builds(
    Call, id=name, number=st.integers(1, 10**6), tool=name, arguments=arguments, purpose=text,
    tests=st.none() | st.integers(1, 9).map("H{}".format), risk=st.sampled_from(Risk), target=st.none() | name,
    digest=name, gate=st.sampled_from(CallGate),
)  # fmt: skip
evidence = st.lists(st.integers(1, 10**6).map("E{}".format), max_size=3).map(tuple)
hypotheses = st.builds(
    Hypothesis, id=st.integers(1, 99).map("H{}".format), text=text, service=st.none() | name,
    supporting=evidence, contradicting=evidence,
)  # fmt: skip
states = st.builds(
    Investigation,
    question=text,
    window=st.builds(
        lambda hours: Window(start=START, end=START + timedelta(hours=hours)), st.integers(1, 99)
    ),
    plan=st.lists(st.builds(PlanStep, id=name, text=text), max_size=3).map(tuple),
    hypotheses=st.lists(hypotheses, max_size=3).map(tuple),
    pending=st.lists(calls, max_size=3).map(tuple),
    notices=st.lists(st.builds(PlannerNotice, code=st.just("note"), text=text), max_size=3).map(tuple),
    status=st.sampled_from(Status),
    stop_reason=st.none() | st.sampled_from(StopReason),
)


@pytest.mark.slow
@given(states)
def test_a_state_round_trips_through_the_serialiser(state: Investigation) -> None:
    channels = to_json(state)
    back = SERDE.loads_typed(SERDE.dumps_typed(channels))
    assert back == channels
    assert Investigation.model_validate(back) == state


@given(states, st.integers(0, 100))
def test_a_change_changes_nothing_else(state: Investigation, count: int) -> None:
    changed = state.changed(stalled=count)
    assert to_json(changed) == to_json(state) | {"stalled": count}


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**63, "\ud800", {"a": ["\udfff"]}, {"\ud800": 1}], ids=repr
)
def test_what_the_serialiser_would_change_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        CallRequest.model_validate({"tool": "look", "arguments": {"x": value}})


def test_an_error_text_holds_no_input() -> None:
    with pytest.raises(ValidationError) as caught:
        CallRequest.model_validate({"tool": "look", "arguments": {}, "hunter2": "hunter2-value"})
    assert "hunter2-value" not in str(caught.value)


@given(arguments)
def test_equal_arguments_have_equal_digests(values: dict[str, object]) -> None:
    backwards = dict(reversed(list(values.items())))
    assert canonical_sha256(values) == canonical_sha256(backwards)
    assert to_canonical_json(values) == to_canonical_json(backwards)


@given(st.integers(-(2**53) + 1, 2**53 - 1), st.text())
def test_whole_floats_are_spelt_as_integers_and_texts_stay(number: int, text: str) -> None:
    strings = {"text": text, "like a number": f"{number}.0,", "version": "[1.0]"}
    assert to_canonical_json({"n": [float(number)], **strings}) == to_canonical_json(
        {"n": [number], **strings}
    )


def test_other_floats_keep_their_digits() -> None:
    values = [0.05, 1.5, 1e16, 2.5e-7, -0.0, 3.0]
    assert to_canonical_json(values) == "[0.05,1.5,1e+16,2.5e-07,0,3]"

"""Replies become decisions as they were made, or the exact reason why not."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.models import control_tools
from opsleuth.models.decision_parsing import (
    check_reply_complete,
    decision_from_calls,
    decision_from_text,
    list_unreadable_calls,
    planner_functions,
    response_schema,
)
from opsleuth.models.encoded_values import describe_broken_json
from opsleuth.models.model_reply import ModelReply, ModelToolCall
from opsleuth.models.planner import MalformedReplyError
from opsleuth.state.conclusion import Cause, Claim, Conclusion, Recommendation, RuledOut
from opsleuth.state.decision import HypothesisChange, PlanChange
from opsleuth.tools.builtin import BUILTIN

CALL = {"tool": "metrics_anomalies", "arguments": {"service": "a"}, "why": "H2: whether a is slow"}


def of_calls(*calls: ModelToolCall, text: str = "") -> Any:
    return decision_from_calls(ModelReply(text, calls, finish="tool_calls"), BUILTIN)


def test_calls_and_control_calls_of_one_reply_are_one_decision() -> None:
    made = of_calls(
        ModelToolCall("plan_update", {"add": ["look at a"], "done": ["P1"]}),
        ModelToolCall("hypothesis_update", {"changes": [{"text": "a is slow", "service": "a", "id": None}]}),
        ModelToolCall("metrics_anomalies", {"service": "a", "why": "H2: whether a is slow"}),
        ModelToolCall("changes_list", {"why": "what changed", "tests": "H1"}),
        text="Symptoms first.",
    )
    assert made.reason == "Symptoms first."
    assert [(s.id, s.text, s.status) for s in made.plan] == [
        (None, "look at a", "pending"),
        ("P1", "", "done"),
    ]
    assert made.hypotheses[0].service == "a"
    assert [(c.tool, c.arguments, c.purpose, c.tests) for c in made.calls] == [
        ("metrics_anomalies", {"service": "a"}, "whether a is slow", "H2"),
        ("changes_list", {}, "what changed", "H1"),
    ]


BROKEN = ModelToolCall("events_list", {}, "Expecting ',' delimiter at character 13 of 20")


def test_a_call_that_cannot_be_read_costs_itself_alone() -> None:
    good = ModelToolCall("metrics_anomalies", {"service": "a", "why": "whether a is slow"})
    reply = ModelReply("Look at a.", (BROKEN, good), finish="tool_calls")
    made = decision_from_calls(reply, BUILTIN)
    assert [call.tool for call in made.calls] == ["metrics_anomalies"]
    assert made.reason == "Look at a."
    (fault,) = list_unreadable_calls(reply)
    assert "events_list" in fault
    assert "character 13" in fault


@pytest.mark.parametrize(
    "beside",
    [
        ModelToolCall("plan_update", {"add": ["look"]}),
        ModelToolCall("conclude", {"verdict": "inconclusive", "answer": "no", "claims": []}),
    ],
)
def test_a_reply_without_another_call_is_sent_back(beside: ModelToolCall) -> None:
    with pytest.raises(MalformedReplyError, match="character 13"):
        of_calls(BROKEN, beside)


def test_broken_json_is_described_by_its_place() -> None:
    said = describe_broken_json('{"service": "cart" "limit": 3}')
    assert said.startswith("Expecting ',' delimiter at character 20 of 30")
    assert '"cart"' in said


def test_without_words_the_first_purpose_is_the_reason() -> None:
    assert of_calls(ModelToolCall("changes_list", {"why": "what changed"})).reason == "what changed"


def test_a_conclusion() -> None:
    claim = {"id": "C1", "text": "a is slow", "evidence": ["E1"]}
    made = of_calls(ModelToolCall("conclude", {"verdict": "answered", "answer": "yes", "claims": [claim]}))
    assert made.conclusion is not None
    assert made.conclusion.claims[0].evidence == ("E1",)


@pytest.mark.parametrize(
    ("calls", "says"),
    [
        ([ModelToolCall("metrics_anomalies", {}, '{"serv')], "are not a JSON object"),
        ([ModelToolCall("metrics_anomalies", {"service": "a"})], "say in `why`"),
        ([ModelToolCall("metrics_anomalies", {"service": "a", "why": " "})], "say in `why`"),
        ([ModelToolCall("conclude", {"verdict": "guilty", "answer": "x"})], "conclusion.verdict"),
        ([ModelToolCall("conclude", {"verdict": "answered", "answer": "x"})] * 2, "concludes twice"),
        ([ModelToolCall("plan_update", {"steps": []})], "its lists are add, active, done, drop"),
        ([ModelToolCall("plan_update", {"add": "look"})], "a list of texts"),
        ([ModelToolCall("hypothesis_update", {"id": "H1"})], "the list 'changes'"),
        ([ModelToolCall("changes_list", {"why": "x"})] * 9, "calls: Tuple should have at most 8 items"),
        ([], "this one holds nothing"),
        (
            [
                ModelToolCall("changes_list", {"why": "x"}),
                ModelToolCall("conclude", {"verdict": "answered", "answer": "x"}),
            ],
            "not both",
        ),
        ([ModelToolCall("changes_list", {"why": "x", "limit": float("nan")})], "finite number"),
        ([ModelToolCall("changes_list", {"why": "x", "service": "\ud800"})], "lone surrogate"),
        ([ModelToolCall("changes_list", {"why": "x", "limit": 2**70})], "64 bits"),
    ],
)
def test_every_fault_is_told_in_words(calls: list[ModelToolCall], says: str) -> None:
    with pytest.raises(MalformedReplyError, match=r".*") as raised:
        of_calls(*calls)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"reason": "r", "calls": [CALL]}),
        'Sure!\n```json\n{"reason": "r", "calls": [' + json.dumps(CALL) + "]}\n```\nDone.",
        '<think>{"reason": "no", "calls": []}</think>{"reason": "r", "calls": [' + json.dumps(CALL) + "]}",
        '{"note": {"x": 1}} {"reason": "r", "calls": [' + json.dumps(CALL) + "]}",
    ],
)
def test_the_one_decision_in_a_text(text: str) -> None:
    made = decision_from_text(text)
    assert (made.calls[0].purpose, made.calls[0].tests) == ("whether a is slow", "H2")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("I would look at the logs.", "not a JSON object"),
        ('{"a": 1}', "JSON but not a decision"),
        ('{"reason": "r", "calls": [', "not a JSON object"),
        ('{"reason": "a", "calls": []} {"reason": "b", "calls": []}', "2 different decisions"),
        ('{"reason": "r", "calls": [{"tool": "t", "arguments": {}}]}', "say in `why`"),
        ("{" * 100_000, "not a JSON object"),
        ('{"reason":' * 100_000, "not a JSON object"),
    ],
)
def test_texts_that_hold_none(text: str, says: str) -> None:
    with pytest.raises(MalformedReplyError) as raised:
        decision_from_text(text)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (ModelReply("", finish="stop"), "is empty"),
        (ModelReply("x", finish="length"), "was cut"),
        (ModelReply("x", finish=""), "without an end mark"),
        (ModelReply("x", finish="content_filter"), "content filter"),
        (ModelReply("", finish="stop", refusal="I cannot"), "refused: I cannot"),
    ],
)
def test_half_replies_are_no_replies(reply: ModelReply, says: str) -> None:
    with pytest.raises(MalformedReplyError, match=says):
        check_reply_complete(reply)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["reason", "plan", "hypotheses", "calls", "conclusion", "why", "tool", "arguments"])


def assert_refused_or_made(make: Callable[[], Any]) -> None:
    try:
        outcome = make()
    except MalformedReplyError as error:
        outcome = str(error)
    assert outcome


@pytest.mark.slow
@given(st.dictionaries(KEYS, JSON | st.lists(st.dictionaries(KEYS, JSON))))
def test_no_document_does_more_than_be_refused(document: dict[str, Any]) -> None:
    assert_refused_or_made(lambda: decision_from_text(json.dumps(document)))


@given(
    st.lists(
        st.builds(
            ModelToolCall,
            st.sampled_from(["changes_list", "conclude", "plan_update", "hypothesis_update", "x"]),
            st.dictionaries(
                st.sampled_from(["why", "add", "changes", "claims", "verdict", "limit"]) | st.text(), JSON
            ),
        ),
        max_size=4,
    )
)
def test_no_call_does_more_than_be_refused(calls: list[ModelToolCall]) -> None:
    assert_refused_or_made(lambda: of_calls(*calls))


def test_control_schemas_name_what_the_types_have() -> None:
    for schema, kind in (
        (control_tools.STEP, PlanChange),
        (control_tools.CHANGE, HypothesisChange),
        (control_tools.CLAIM, Claim),
        (control_tools.CAUSE, Cause),
        (control_tools.CONCLUSION, Conclusion),
        (control_tools.CONCLUSION["properties"]["ruled_out"]["items"], RuledOut),
        (control_tools.CONCLUSION["properties"]["recommendations"]["items"], Recommendation),
    ):
        assert schema["properties"].keys() <= kind.model_fields.keys(), kind


def test_tools_are_small_and_say_what_every_call_carries() -> None:
    tools = planner_functions(BUILTIN)
    assert len(json.dumps(tools, separators=(",", ":"))) < 12_900
    for tool in tools[: len(BUILTIN)]:
        assert "why" in tool["function"]["parameters"]["required"]


def test_the_schema_of_a_reply_holds_a_form_for_every_tool() -> None:
    calls = response_schema(BUILTIN)["anyOf"][0]["properties"]["calls"]["items"]["anyOf"]
    assert [form["properties"]["tool"]["const"] for form in calls] == [spec.name for spec in BUILTIN]

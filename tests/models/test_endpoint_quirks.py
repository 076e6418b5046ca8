"""What endpoints do in another way than OpenAI's: the reply counts all the same, and waits are as long as they ask."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from endpoint_rig import HELLO, Patient, ask
from hypothesis import given
from hypothesis import strategies as st
from model_rig import ModelLoop, answering, concludes, looks, serving

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.models.chat_endpoint import LOADING_SECONDS
from opsleuth.models.decision_parsing import check_reply_complete
from opsleuth.models.encoded_values import decode_encoded_values
from opsleuth.models.planner import ModelRefusedError, ModelUnavailableError
from opsleuth.models.rate_limit_waits import find_asked_wait, read_duration
from opsleuth.models.reply_normalizing import normalize_reply, normalize_usage
from opsleuth.models.server.chat_replies import ScriptedModel
from opsleuth.models.server.fault_injection import FaultyModel
from opsleuth.models.server.reply_faults import FORM_FAULTS, USAGE_FAULTS
from opsleuth.models.token_usage import spent_from_reply
from opsleuth.state.run_status import ExitCode

FINE: Mapping[str, Any] = {"text": "well"}
CALLING: Mapping[str, Any] = {
    "text": "To see it.",
    "calls": [{"name": "look", "arguments": {"thing": "a", "of": ["x", "y"]}}],
}
SETTINGS = ModelSettings(model="m")
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("fault", sorted({*FORM_FAULTS} - {"lists_as_text"}))
def test_a_call_in_every_form_is_the_same_call(fault: str) -> None:
    with serving({**CALLING, "fault": fault}) as server:
        reply = ask(server.base_url)
    assert [(call.name, call.arguments, call.broken) for call in reply.calls] == [
        ("look", {"thing": "a", "of": ["x", "y"]}, None)
    ]
    assert reply.text == ("" if fault == "function_call" else "To see it.")
    check_reply_complete(reply)


@pytest.mark.parametrize("fault", [*USAGE_FAULTS, "missing_usage"])
def test_counts_that_cannot_be_true_are_estimated(fault: str) -> None:
    with serving({**FINE, "fault": fault}) as server:
        reply = ask(server.base_url)
    spent = spent_from_reply(HELLO, reply, SETTINGS)
    assert spent.estimated
    assert 5 < spent.tokens_in < 100
    assert 5 < spent.tokens_out < 200


def test_counts_that_can_be_true_are_taken() -> None:
    usage = {"prompt_tokens": 12.0, "completion_tokens": 900, "prompt_tokens_details": {"cached_tokens": 8}}
    with serving({**FINE, "usage": usage}) as server:
        spent = spent_from_reply(HELLO, ask(server.base_url), SETTINGS)
    assert (spent.tokens_in, spent.tokens_out, spent.tokens_cached, spent.estimated) == (12, 900, 8, False)


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("error_in_200", ModelUnavailableError, "Provider returned error: upstream is down"),
        ("refusal_in_200", ModelRefusedError, "This model is not enabled for your plan"),
    ],
)
def test_an_error_in_a_200_has_the_provider_s_words(fault: str, error: type[Exception], says: str) -> None:
    with serving({**FINE, "fault": fault}) as server, pytest.raises(error, match=says):
        ask(server.base_url)


@pytest.mark.parametrize(
    ("fault", "pause"), [("rate_limit_words", 1.2), ("rate_limit_headers", 1.0), ("rate_limit", 1.0)]
)
def test_the_wait_that_a_server_asks_for(fault: str, pause: float) -> None:
    patient = Patient()
    with serving({"fault": fault}, FINE) as server:
        ask(server.base_url, patient)
    assert patient.pauses == [pause]


def test_a_server_that_loads_is_waited_for_beyond_the_tries() -> None:
    patient = Patient()
    with serving(*[{"fault": "loading"}] * 6, FINE) as server:
        assert ask(server.base_url, patient, tries=1, seconds=3_600).text == "well"
    assert len(patient.pauses) == 6
    assert patient.pauses == sorted(patient.pauses)


def test_a_server_that_never_loads_is_given_up() -> None:
    patient = Patient()
    with (
        serving({"fault": "loading"}) as server,
        pytest.raises(ModelUnavailableError, match="still loading the model"),
    ):
        ask(server.base_url, patient, seconds=3_600)
    assert sum(patient.pauses) <= LOADING_SECONDS


def test_a_run_that_has_little_time_waits_no_longer() -> None:
    patient = Patient()
    with serving({"fault": "rate_limit"}, FINE) as server, pytest.raises(ModelUnavailableError):
        ask(server.base_url, patient, seconds=0.9)
    assert not patient.pauses


@pytest.mark.parametrize("streamed", [False, True])
def test_a_parameter_that_is_not_taken_goes_under_its_other_name(streamed: bool) -> None:
    patient = Patient()
    with serving({"fault": "wants_max_tokens"}, {"fault": "no_temperature"}, FINE) as server:
        reply = ask(server.base_url, patient, temperature=0.2, tries=1, stream=streamed)
    assert reply.text == "well"
    assert "max_completion_tokens" in server.requests[0]
    assert "max_completion_tokens" not in server.requests[1]
    assert server.requests[1]["max_tokens"] == 4096
    assert "temperature" not in server.requests[2]
    assert not patient.pauses


def test_a_server_that_refuses_both_names_is_asked_without() -> None:
    def strict(request: Mapping[str, Any]) -> Mapping[str, Any]:
        extra = [name for name in ("max_tokens", "max_completion_tokens") if name in request]
        return {"fault": "wants_max_tokens" if extra == ["max_completion_tokens"] else None, **FINE}

    with answering(strict) as server:
        assert ask(server.base_url).text == "well"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("headers", "words", "seconds"),
    [
        ({"retry-after": "7"}, "try again in 12s", 7.0),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:09 GMT"}, "", 9.0),
        ({}, "Rate limit reached for m. Please try again in 12s. Visit https://x", 12.0),
        ({}, "Please try again in 1m2.5s.", 62.5),
        ({}, "Please try again in 340ms", 0.34),
        ({}, "Please retry after 20 seconds.", 20.0),
        ({}, "You can retry in 2 minutes", 120.0),
        ({}, '{"retryDelay": "34s"}', 34.0),
        ({}, "Rate limit of 10 requests a second", 0.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s"}, "", 360.0),
        ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "6m0s"}, "", 0.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1796040030000"}, "", 30.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1796040030"}, "", 30.0),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "2026-11-30T12:00:15Z",
            },
            "",
            15.0,
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"}, "", 0.0),
    ],
)
def test_waits_as_providers_write_them(headers: dict[str, str], words: str, seconds: float) -> None:
    assert find_asked_wait(headers, words, NOW) == pytest.approx(seconds)


@given(st.text(max_size=60))
def test_any_words_are_read(text: str) -> None:
    assert find_asked_wait({}, text, NOW) >= 0
    duration = read_duration(text)
    assert duration is None or duration >= 0


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={"content": JSON, "tool_calls": JSON | st.lists(st.fixed_dictionaries({"function": JSON})), "function_call": JSON},
)  # fmt: skip
CHOICES = st.lists(
    JSON | st.fixed_dictionaries({}, optional={"message": MESSAGES | JSON, "finish_reason": JSON, "error": JSON})
)  # fmt: skip


@given(CHOICES, JSON)
def test_any_reply_is_put_in_form(choices: Any, usage: Any) -> None:
    made = json.loads(normalize_reply(json.dumps({"choices": choices, "usage": usage}).encode()))
    assert "error" in made or len(made["choices"]) <= 1


@given(
    st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens", "prompt_tokens_details"]), JSON)
)
def test_any_usage_becomes_whole_numbers_or_nothing(usage: dict[str, Any]) -> None:
    made = normalize_usage(usage)
    assert made is None or (made["prompt_tokens"] >= 0 and isinstance(made["completion_tokens"], int))


def test_a_body_that_is_no_completion_is_left_as_it_is() -> None:
    for body in (b"", b"<html>", b"[1]", b'{"choices": null}', b"\xff"):
        assert normalize_reply(body) == body


SCHEMA = {
    "type": "object",
    "properties": {
        "names": {"type": "array", "items": {"type": "object", "properties": {"of": {"type": "array"}}}},
        "text": {"type": "string"},
        "either": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        "free": {},
    },
}


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({"names": '[{"of": "[1]"}]'}, {"names": [{"of": [1]}]}),
        ('{"names": "[]"}', {"names": []}),
        ({"text": "[1]", "free": "[1]"}, {"text": "[1]", "free": "[1]"}),
        ({"either": "[1]"}, {"either": [1]}),
        ({"names": "[1"}, {"names": "[1"}),
        ({"names": "a,b"}, {"names": "a,b"}),
        ({"names": '{"a": 1}'}, {"names": '{"a": 1}'}),
    ],
)
def test_lists_as_text_are_read_by_the_schema(sent: Any, read: Any) -> None:
    assert decode_encoded_values(sent, SCHEMA) == read


@given(JSON, JSON)
def test_any_value_and_any_schema(value: Any, schema: Any) -> None:
    read = decode_encoded_values(value, schema)
    assert type(read) in ((str, list, dict) if isinstance(value, str) else (type(value),))
    assert json.dumps(decode_encoded_values(value, {})) == json.dumps(value)


@pytest.mark.parametrize("fault", FORM_FAULTS)
def test_a_run_with_such_replies_is_the_same_run(tmp_path: Path, fault: str) -> None:
    faulty = FaultyModel(ScriptedModel([looks("a"), concludes("a was looked at.", "E1")]), [fault])
    with answering(faulty) as server:
        outcome = ModelLoop(tmp_path, server.base_url, mode="tools").start()
    assert outcome.exit_code is ExitCode.OK
    assert len(server.requests) == 2

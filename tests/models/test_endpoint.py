"""One endpoint under every fault: what becomes of it, how often it is asked, and what the operator reads."""

from collections.abc import Mapping
from typing import Any

import pytest
from endpoint_rig import HELLO, Patient, ask
from model_rig import serving

from opsleuth.models.chat_endpoint import ContextTooLongError, UnsupportedModeError
from opsleuth.models.decision_parsing import check_reply_complete
from opsleuth.models.planner import MalformedReplyError, ModelRefusedError, ModelUnavailableError

FINE: Mapping[str, Any] = {"text": "well"}


def test_a_reply_with_usage_and_its_body() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}
    with serving({"text": "well", "usage": usage}) as server:
        reply = ask(server.base_url)
    assert (reply.text, reply.finish, reply.tokens) == ("well", "stop", (12, 3, 8))
    assert '"content": "well"' in reply.raw
    assert server.headers[0]["authorization"] == "Bearer key-1234567890"
    assert server.requests[0]["max_completion_tokens"] == 4096


def test_a_key_goes_into_the_header_that_the_profile_names_and_nowhere_else() -> None:
    with serving(FINE) as server:
        ask(server.base_url, key_header="api-key", query={"api-version": "2025-01-01"})
    assert server.headers[0]["api-key"] == "key-1234567890"
    assert "key-1234567890" not in server.headers[0]["authorization"]


def test_local_servers_get_the_field_that_they_know() -> None:
    with serving(FINE) as server:
        ask(server.base_url, max_tokens_field="max_tokens", temperature=0.0)
    assert server.requests[0]["max_tokens"] == 4096
    assert "max_completion_tokens" not in server.requests[0]
    assert server.requests[0]["temperature"] == 0.0


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        ("unauthorized", ModelRefusedError, "refused the key (401)"),
        ("not_found", ModelRefusedError, "knows no model 'm'"),
        ("bad_request", ModelRefusedError, "refused the request (400)"),
        ("html", ModelRefusedError, "a web page, not JSON"),
        ("quota", ModelUnavailableError, "quota of this key"),
        ("rate_limit_long", ModelUnavailableError, "asks to wait 3600 s"),
        ("too_long", ContextTooLongError, "set context_tokens"),
        ("no_tools", UnsupportedModeError, "does not take this form"),
        ("no_schema", UnsupportedModeError, "does not take this form"),
        ("empty_choices", MalformedReplyError, "no choice"),
        ("null_choices", MalformedReplyError, "no choice"),
        ("overlong", MalformedReplyError, "longer than"),
    ],
)
def test_what_cannot_heal_is_asked_once(fault: str, error: type[Exception], says: str) -> None:
    with serving({**FINE, "fault": fault}) as server, pytest.raises(error) as raised:
        ask(server.base_url)
    assert says in str(raised.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("server_error", "failed (500)"),
        ("overloaded", "failed (503)"),
        ("html_502", "failed (502)"),
        ("rate_limit", "limiting requests (429)"),
        ("reset", "cannot be reached"),
        ("truncated_json", "cannot be reached"),
        ("not_json", "no readable answer"),
    ],
)
def test_what_may_heal_is_tried_three_times(fault: str, says: str) -> None:
    with serving({**FINE, "fault": fault}) as server, pytest.raises(ModelUnavailableError) as raised:
        ask(server.base_url)
    assert says in str(raised.value)
    assert "tried 3 times" in str(raised.value)
    assert not isinstance(raised.value, ModelRefusedError)
    assert len(server.requests) == 3


def test_a_fault_that_heals_is_not_seen() -> None:
    with serving({"fault": "server_error"}, {"fault": "reset"}, FINE) as server:
        assert ask(server.base_url).text == "well"


def test_a_server_is_given_the_pause_that_it_asks_for() -> None:
    patient = Patient()
    with serving({"fault": "rate_limit"}, FINE) as server:
        ask(server.base_url, patient)
    assert patient.pauses == [1.0]


def test_pauses_grow() -> None:
    patient = Patient()
    with serving({"fault": "server_error"}) as server, pytest.raises(ModelUnavailableError):
        ask(server.base_url, patient)
    assert patient.pauses == [0.5, 1.0]


def test_nobody_there() -> None:
    with pytest.raises(
        ModelUnavailableError, match=r"http://127\.0\.0\.1:9/v1 cannot be reached.*is it running"
    ):
        ask("http://127.0.0.1:9/v1")


def test_a_server_that_stalls_is_cut_at_the_timeout() -> None:
    with serving({"fault": "stall"}) as server, pytest.raises(ModelUnavailableError, match=r"within 0\.2 s"):
        ask(server.base_url, timeout=0.2, tries=1)


def test_tool_calls_are_never_streamed() -> None:
    tools = [
        {"type": "function", "function": {"name": "t", "parameters": {"type": "object", "properties": {}}}}
    ]
    calls = {"calls": [{"name": "t", "arguments": {"why": "x"}}]}
    with serving(calls) as server:
        reply = ask(server.base_url, asked=HELLO._replace(tools=tools), stream=True)
    assert [call.name for call in reply.calls] == ["t"]
    assert not server.requests[0].get("stream")


def test_a_stream_is_taken_with_its_usage() -> None:
    with serving({"text": "word " * 40}) as server:
        reply = ask(server.base_url, stream=True)
    assert (reply.text, reply.finish) == ("word " * 40, "stop")
    assert reply.tokens is not None
    assert server.requests[0]["stream_options"] == {"include_usage": True}


def test_a_stream_without_an_end_mark_is_no_reply() -> None:
    with serving({"text": "word " * 40, "fault": "cut_stream", "usage": None}) as server:
        reply = ask(server.base_url, stream=True)
    assert reply.text.startswith("word")
    with pytest.raises(MalformedReplyError, match="without an end mark"):
        check_reply_complete(reply)


def test_broken_arguments_stay_broken() -> None:
    with serving({"calls": [{"name": "t", "arguments": '{"service": "che'}]}) as server:
        reply = ask(server.base_url)
    assert reply.calls[0].name == "t"
    assert reply.calls[0].broken is not None
    assert not reply.calls[0].arguments

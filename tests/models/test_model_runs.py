"""Whole runs with a model that is good, bad, slow, broken or hostile: none does harm, and each end is told."""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from model_rig import (
    ACCEPTED,
    RUN,
    ModelLoop,
    answering,
    concludes,
    looks,
    sent,
    serving,
    words,
)
from nonempty import nonempty

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.nodes.verify.report import REPLAY_MARK
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.run_status import ExitCode, Status, StopReason
from opsleuth.tools.tape import Tape

A = looks("a")
DONE = concludes("a was looked at.", "E1")


def test_a_good_model_concludes(tmp_path: Path) -> None:
    with serving(A, DONE) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        outcome = loop.start()
    assert (outcome.status, outcome.exit_code) == (Status.COMPLETED, ExitCode.OK)
    assert len(server.requests) == 2
    assert "E1 ok" in words(server.requests[1])
    assert outcome.report is not None
    assert outcome.report["planner"] == "scripted"
    assert outcome.report["usage"]["model_calls"] == 2
    assert not outcome.report["usage"]["estimated"]


@pytest.mark.parametrize("mode", ["tools", "json"])
def test_every_mode_reaches_the_same_conclusion(tmp_path: Path, mode: str) -> None:
    with serving(A, DONE) as server:
        outcome = ModelLoop(tmp_path, server.base_url, mode=mode).start()
    assert outcome.exit_code is ExitCode.OK
    assert ("tools" in server.requests[0]) == (mode == "tools")
    assert ("response_format" in server.requests[0]) == (mode == "json")


def test_what_a_server_does_not_know_is_found_out_once_and_remembered(tmp_path: Path) -> None:
    def picky(request: Mapping[str, Any]) -> Mapping[str, Any]:
        if request.get("tools"):
            return {"fault": "no_tools"}
        if request.get("response_format", {}).get("type") == "json_schema":
            return {"fault": "no_schema"}
        return DONE if '"tool":"look"' in words(request) else A

    with answering(picky) as server:
        outcome = ModelLoop(tmp_path, server.base_url).start()
        assert outcome.exit_code is ExitCode.OK
        assert [sorted(r.keys() & {"tools", "response_format"}) for r in server.requests] == [
            ["tools"], ["response_format"], ["response_format"], ["response_format"],
        ]  # fmt: skip
        again = ModelLoop(tmp_path, server.base_url)
        assert again.start(run="inv-20240501-more").exit_code is ExitCode.OK
    assert [r["response_format"]["type"] for r in server.requests[4:]] == ["json_object", "json_object"]


def test_a_server_that_passes_over_tools_is_asked_for_json(tmp_path: Path) -> None:
    def deaf(request: Mapping[str, Any]) -> Mapping[str, Any]:
        if request.get("tools"):
            return {"text": "I would look at a."}
        return DONE if '"tool":"look"' in words(request) else A

    with answering(deaf) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        assert loop.start().exit_code is ExitCode.OK
    assert len(server.requests) == 3
    assert loop.warnings("malformed") == []


@pytest.mark.parametrize(
    ("fault", "reason", "code", "requests"),
    [
        ("unauthorized", StopReason.MODEL_REFUSED, ExitCode.CONFIG, 1),
        ("not_found", StopReason.MODEL_REFUSED, ExitCode.CONFIG, 1),
        ("html", StopReason.MODEL_REFUSED, ExitCode.CONFIG, 1),
        ("bad_request", StopReason.MODEL_REFUSED, ExitCode.CONFIG, 1),
        ("quota", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("rate_limit_long", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("server_error", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("overloaded", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("reset", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("truncated_json", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("cut_stream", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("not_json", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("stall", StopReason.MODEL_UNAVAILABLE, ExitCode.UNREACHABLE, 1),
        ("too_long", StopReason.MODEL_REFUSED, ExitCode.CONFIG, 4),
        ("empty_choices", StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE, 3),
        ("null_choices", StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE, 3),
        ("length", StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE, 3),
        ("empty", StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE, 3),
        ("wrong_tool", StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE, 3),
        ("broken_arguments", StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE, 3),
        ("overlong", StopReason.MALFORMED_DECISIONS, ExitCode.UNREACHABLE, 3),
    ],
)
def test_every_fault_ends_in_a_report_that_says_so(
    tmp_path: Path, fault: str, reason: StopReason, code: ExitCode, requests: int
) -> None:
    """After one good turn; what was found until then stays."""
    with serving(A, {**DONE, "fault": fault}) as server:
        loop = ModelLoop(tmp_path, server.base_url, timeout=0.3 if fault == "stall" else 20, mode="tools")
        outcome = loop.start()
    assert (outcome.stop_reason, outcome.exit_code) == (reason, code)
    assert len(server.requests) == 1 + requests
    assert loop.world.lines("looked") == ["a"]
    assert outcome.report is not None
    assert outcome.report["unsupported"] == 0
    assert [piece["id"] for piece in outcome.report["evidence"]] == ["E1"]
    assert "Stopped before a conclusion" in outcome.report["answer"]
    assert "resume" in outcome.report["recommendations"][0]["text"]


def test_a_run_goes_on_when_the_endpoint_is_back(tmp_path: Path) -> None:
    with serving(
        looks("a"), looks("b"), looks("c"), {"fault": "server_error"}, concludes("a, b and c.", "E3")
    ) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        assert loop.start().exit_code is ExitCode.UNREACHABLE
        outcome = loop.resume()
    assert outcome.exit_code is ExitCode.OK
    assert loop.world.lines("looked") == ["a", "b", "c"]
    assert len(server.requests) == 5


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ({"name": "look", "arguments": '{"thing": "a"'}, "are not a JSON object"),
        ({"name": "look", "arguments": {"why": "x"}}, "the argument 'thing' is required"),
        ({"name": "lok", "arguments": {"thing": "a", "why": "x"}}, "nearest: look"),
        ({"name": "lo ok", "arguments": {"thing": "a", "why": "x"}}, "nearest: look"),
        ({"name": "look", "arguments": {"Thing": "a", "why": "x"}}, "nearest: thing"),
        ({"name": "look", "arguments": {"thing": "a", "limit": "7", "why": "x"}}, "must be an integer"),
        (
            {"name": "look", "arguments": {"thing": "a", "behave": "odd", "why": "x"}},
            "not one of its choices",
        ),
        ({"name": "look", "arguments": ""}, "say in `why`"),
        ({"name": "look", "arguments": "null"}, "say in `why`"),
    ],
)
def test_a_wrong_call_never_runs_and_its_error_is_told(
    tmp_path: Path, call: Mapping[str, Any], says: str
) -> None:
    with serving({"calls": [call]}, A, DONE) as server:
        loop = ModelLoop(tmp_path, server.base_url, mode="tools")
        outcome = loop.start()
    assert outcome.exit_code is ExitCode.OK
    assert says in words(server.requests[1])
    assert "Your last decision was not valid" in words(server.requests[1])
    assert "Your last decision" not in words(server.requests[2])
    assert loop.world.lines("looked") == ["a"]


def test_thoughts_without_calls_are_allowed_but_no_progress(tmp_path: Path) -> None:
    thought = {"decision": {"reason": "think", "hypotheses": [{"text": "a is the cause"}]}}
    with serving(thought, A, DONE) as server:
        assert ModelLoop(tmp_path, server.base_url).start().exit_code is ExitCode.OK
    with serving(thought) as server:
        outcome = ModelLoop(tmp_path, server.base_url).start(run="inv-20240501-more")
    assert (outcome.stop_reason, outcome.exit_code) == (StopReason.STAGNATION, ExitCode.LIMIT)
    assert len(server.requests) == 5
    assert "brought nothing new" in words(server.requests[2])


def test_endless_repetition_is_answered_from_the_record_and_ends(tmp_path: Path) -> None:
    with serving(A) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        outcome = loop.start()
    assert (outcome.stop_reason, outcome.exit_code) == (StopReason.STAGNATION, ExitCode.LIMIT)
    assert loop.world.lines("looked") == ["a"]


@pytest.mark.parametrize(
    ("limits", "reason", "turns"),
    [({"tokens": 4_000}, StopReason.TOKEN_LIMIT, 2), ({"turns": 3}, StopReason.TURN_LIMIT, 3)],
)
def test_limits_are_checked_before_every_request(
    tmp_path: Path, limits: dict[str, Any], reason: StopReason, turns: int
) -> None:
    usage = {"prompt_tokens": 2_000, "completion_tokens": 1, "total_tokens": 2_001}
    with serving(*({**looks(f"t{i}"), "usage": usage} for i in range(9))) as server:
        outcome = ModelLoop(tmp_path, server.base_url).start(**limits)
    assert (outcome.stop_reason, outcome.exit_code) == (reason, ExitCode.LIMIT)
    assert len(server.requests) == turns


def test_money_is_counted_from_usage_by_the_price_table_and_limits(tmp_path: Path) -> None:
    price = {"input": "2", "output": "10", "cached": "0.5", "date": "2026-11-01"}
    details = {"prompt_tokens_details": {"cached_tokens": 400}}
    usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100, **details}
    with serving(*({**looks(f"t{i}"), "usage": usage} for i in range(9))) as server:
        outcome = ModelLoop(tmp_path, server.base_url, price=price).start(cost="0.006")
    assert outcome.stop_reason is StopReason.COST_LIMIT
    assert len(server.requests) == 3
    assert outcome.report is not None
    assert Decimal(outcome.report["usage"]["cost"]) == Decimal("0.0072")  # 3 × (600×2 + 400×0.5 + 100×10) µ$


def test_missing_usage_is_estimated_and_marked(tmp_path: Path) -> None:
    with serving({**A, "fault": "missing_usage"}, DONE) as server:
        outcome = ModelLoop(tmp_path, server.base_url).start()
    assert outcome.report is not None
    assert outcome.report["usage"]["estimated"]
    assert outcome.report["usage"]["tokens_in"] > 500


def test_a_reviewer_gets_three_options_out_of_two(tmp_path: Path) -> None:
    def options(count: int) -> Mapping[str, Any]:
        advice = [{"text": f"Look at a again, {how}."} for how in ("soon", "later", "closer")[:count]]
        return concludes("a was looked at.", "E1", recommendations=advice)

    objects = {"text": '{"accepted": false, "gaps": ["two options are given, three were asked for"]}'}
    with serving(A, options(2), objects, options(3), ACCEPTED) as server:
        loop = ModelLoop(tmp_path, server.base_url, reviewer="same")
        outcome = loop.start(question="what is the matter with a? I want to hear of a few ways")
    assert outcome.exit_code is ExitCode.OK
    assert outcome.report is not None
    assert len(outcome.report["recommendations"]) == 3
    assert "two options are given" in words(server.requests[3])
    review = server.requests[2]
    assert "why" not in words(review).replace("why it", "")  # no word of the planner's own
    assert "tools" not in review
    assert "E1 ok" in words(review)
    assert [data["role"] for data in loop.told("model.completed")] == [
        "planner", "planner", "reviewer", "planner", "reviewer",
    ]  # fmt: skip


def test_a_reviewer_that_always_objects_costs_two_rounds_and_sees_the_last_draft(tmp_path: Path) -> None:
    def stubborn(request: Mapping[str, Any]) -> Mapping[str, Any]:
        if "You review" in words(request):
            return {"text": '{"accepted": false, "gaps": ["I do not like it"]}'}
        return DONE if "E1 ok" in words(request) else A

    with answering(stubborn) as server:
        outcome = ModelLoop(tmp_path, server.base_url, reviewer="same").start()
    assert outcome.exit_code is ExitCode.INCONCLUSIVE
    report = outcome.report or {}
    assert (report["review"], report["objections"]) == ("objected", ["The reviewer: I do not like it"])
    reviews = [text for text in sent(server.requests) if "You review" in text]
    assert (len(reviews), len(server.requests)) == (3, 7)


def test_a_reviewer_that_fails_is_told_and_left_out(tmp_path: Path) -> None:
    with serving(A, DONE, {"fault": "server_error"}) as server:
        loop = ModelLoop(tmp_path, server.base_url, reviewer="same")
        outcome = loop.start()
    assert outcome.exit_code is ExitCode.OK
    assert (outcome.report or {})["review"] == "failed"
    assert "failed (500)" in loop.warnings("reviewer")[0]


def test_the_offline_planner_takes_over_where_that_is_allowed(tmp_path: Path) -> None:
    with serving(A, {"fault": "server_error"}) as server:
        loop = ModelLoop(tmp_path, server.base_url, fallback="offline")
        outcome = loop.start()
    assert outcome.status is Status.COMPLETED
    assert outcome.report is not None
    assert outcome.report["degraded"][0]["turn"] == 2
    assert "failed (500)" in outcome.report["degraded"][0]["why"]
    assert [piece["id"] for piece in outcome.report["evidence"]] == ["E1"]
    assert len(server.requests) == 2


def test_a_model_that_is_too_weak_is_given_up_too(tmp_path: Path) -> None:
    with serving({"text": "hm"}) as server:
        loop = ModelLoop(tmp_path, server.base_url, fallback="offline", mode="tools")
        outcome = loop.start()
    assert outcome.status is Status.COMPLETED
    assert len(server.requests) == 2
    assert outcome.report is not None
    assert "not valid" in outcome.report["degraded"][0]["why"]


def test_snapshots_hold_what_was_sent_and_said(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    with serving({**A, "text": secret}, looks("b", "c"), DONE) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        loop.start()
    snapshots = [loop.store.snapshots.get(RUN, data["snapshot"]) for data in loop.told("model.completed")]
    assert len(snapshots) == 3
    for snapshot, request in zip(snapshots, server.requests, strict=True):
        messages = [loop.store.snapshots.get(RUN, part) for part in snapshot["messages"]]
        assert [m["content"] for m in messages] == [m["content"] or "" for m in request["messages"]]
        assert loop.store.snapshots.get(RUN, snapshot["tools"])["tools"] == request["tools"]
    assert snapshots[0]["messages"][0] == snapshots[2]["messages"][0]  # stored once
    assert snapshots[0]["prompt"] == snapshots[1]["prompt"]
    loop.store.close()
    files = nonempty(path for path in tmp_path.glob("store.db*") if path.is_file())
    assert [path.name for path in files if secret.encode() in path.read_bytes()] == []


def test_a_replay_is_the_same_run_without_network_or_tools(tmp_path: Path) -> None:
    first, second, path = tmp_path / "1", tmp_path / "2", tmp_path / "run.tape"
    first.mkdir()
    second.mkdir()
    secret = "ghp_" + "a1B2" * 9
    secretive = {
        "calls": [{"name": "look", "arguments": {"thing": "c", "why": f"see {secret}"}}],
        "text": secret,
    }
    with serving(looks("a", {"thing": "b", "behave": "none"}), secretive, DONE) as server:
        url = server.base_url
        taped = ModelLoop(first, url, Tape.recording(path, Redactor()))
        outcome = taped.start()
    assert secret not in path.read_text()
    replayed = ModelLoop(second, url, Tape.playing(path))
    again = replayed.start()
    assert replayed.world.lines("looked") == []
    assert outcome.report is not None
    assert again.report is not None
    assert again.report["replay"] is True
    assert again.report["answer"].startswith(REPLAY_MARK)
    assert plain(again.report) == plain(outcome.report)
    assert [e["type"] for e in replayed.events] == [e["type"] for e in taped.events]


def test_a_replay_that_leaves_the_recording_says_so(tmp_path: Path) -> None:
    first, second, path = tmp_path / "1", tmp_path / "2", tmp_path / "run.tape"
    first.mkdir()
    second.mkdir()
    with serving(A, DONE) as server:
        ModelLoop(first, server.base_url, Tape.recording(path, lambda value: (value, 0))).start()
    outcome = ModelLoop(second, server.base_url, Tape.playing(path)).start(question="something else")
    assert (outcome.stop_reason, outcome.exit_code) == (StopReason.MODEL_REFUSED, ExitCode.CONFIG)
    assert outcome.detail.startswith(f"the replay diverged from {path} at request ")


def plain(report: Mapping[str, Any]) -> Any:
    """A report without what the clock and the database's own key make of it."""
    usage = {key: value for key, value in report["usage"].items() if key != "seconds"}
    evidence = [
        {key: value for key, value in piece.items() if key not in ("fetched", "sha256")}
        for piece in report["evidence"]
    ]
    own = {
        "usage": usage,
        "evidence": evidence,
        "replay": None,
        "answer": report["answer"].removeprefix(f"{REPLAY_MARK} "),
    }
    return json.loads(re.sub(r"#[0-9a-f]{4}\]", "]", json.dumps({**report, **own})))


def test_a_run_stops_in_the_middle_of_a_request(tmp_path: Path) -> None:
    with serving(A, {"fault": "stall"}) as server:
        loop = ModelLoop(tmp_path, server.base_url)

        def hear(event: Mapping[str, Any]) -> None:
            if event["type"] == "tool.completed":
                loop.store.control.set(RUN, "pause", "")

        loop.runner = type(loop.runner)(loop.store, hear, loop.runner.clock, loop.runner.parts)
        outcome = loop.start()
    assert outcome.status is Status.PAUSED


def test_settings_are_stored_without_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "my-key-which-is-secret-77")
    with serving(A, DONE) as server:
        loop = ModelLoop(tmp_path, server.base_url, key_env="MY_KEY")
        loop.start()
    assert server.headers[0]["authorization"] == "Bearer my-key-which-is-secret-77"
    row = loop.store.runs.get(RUN)
    assert row is not None
    assert ModelSettings.model_validate(row.settings["model"]).key_env == "MY_KEY"
    loop.store.close()
    files = nonempty(path for path in tmp_path.glob("store.db*") if path.is_file())
    assert [path.name for path in files if b"my-key-which" in path.read_bytes()] == []

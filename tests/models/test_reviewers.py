"""The second pair of eyes: somewhere else, apart from the planner's talk, within the same limits."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from model_rig import ACCEPTED, ModelLoop, answering, concludes, looks, serving, words
from nonempty import nonempty

from opsleuth.state.run_status import ExitCode

THOUGHT = "a thought that only the planner had"
DRAFT = concludes("a was looked at.", "E1")


def test_a_reviewer_at_another_endpoint_sees_the_draft_and_nothing_of_how_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANNERS_KEY", "planners-key-12345")
    thinking = {
        "decision": {**looks("a", "b")["decision"], "reason": THOUGHT, "hypotheses": [{"text": THOUGHT}]}
    }
    with serving(thinking, DRAFT) as planner, serving(ACCEPTED) as second:
        elsewhere = {"model": "small", "base_url": second.base_url}
        loop = ModelLoop(tmp_path, planner.base_url, reviewer=elsewhere, key_env="PLANNERS_KEY")
        outcome = loop.start()
    assert outcome.exit_code is ExitCode.OK
    assert (len(planner.requests), len(second.requests)) == (2, 1)
    asked = words(second.requests[0])
    assert second.requests[0]["model"] == "small"
    assert "Question of the operator: what is the matter" in asked
    assert "a was looked at." in asked
    assert "E1 ok" in asked
    assert "E2 ok" not in asked, "evidence that the draft does not cite"
    assert THOUGHT not in asked
    assert "planners-key" not in str(second.headers)


def test_the_key_of_the_planners_address_goes_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPSLEUTH_API_KEY", "planners-key-12345")
    with serving(looks("a"), DRAFT, ACCEPTED) as planner, serving(ACCEPTED) as second:
        for number, address in enumerate((planner.base_url, second.base_url)):
            folder = tmp_path / str(number)
            folder.mkdir()
            elsewhere = {"model": "small", "base_url": address}
            loop = ModelLoop(folder, planner.base_url, reviewer=elsewhere)
            loop.start()
    assert "planners-key-12345" in str(planner.headers[2])
    assert "planners-key-12345" not in str(second.headers)
    assert len(planner.headers) >= 3


WRONG = concludes("a failed 4711 times.", "E1")


def test_the_reviewer_is_asked_only_what_the_program_has_passed(tmp_path: Path) -> None:
    with serving(looks("a"), WRONG, DRAFT, ACCEPTED) as server:
        outcome = ModelLoop(tmp_path, server.base_url, reviewer="same").start()
    assert outcome.exit_code is ExitCode.OK
    reviews = [words(request) for request in server.requests if "You review" in words(request)]
    assert len(reviews) == 1
    assert "a was looked at." in reviews[0]
    assert "4711" not in reviews[0]


def test_the_last_draft_is_reviewed_as_it_goes_out_with_what_the_program_took_away(tmp_path: Path) -> None:
    with serving(looks("a"), WRONG, WRONG, WRONG, ACCEPTED) as server:
        outcome = ModelLoop(tmp_path, server.base_url, reviewer="same").start()
    (review,) = [words(request) for request in server.requests if "You review" in words(request)]
    assert "4711" in review.partition("The program already found")[2]
    assert outcome.report is not None
    assert "4711" not in outcome.report["answer"]


def test_the_same_draft_again_and_again_does_not_go_out_unreviewed(tmp_path: Path) -> None:
    gaps = [f"gap {n} is open" for n in range(1, 9)]
    objects = {"text": json.dumps({"accepted": False, "gaps": gaps})}
    with serving(looks("a"), *[DRAFT, objects] * 3) as server:
        outcome = ModelLoop(tmp_path, server.base_url, reviewer="same").start()
    assert len([request for request in server.requests if "You review" in words(request)]) == 3
    assert outcome.report is not None
    assert outcome.report["review"] == "objected"
    assert [text.removeprefix("The reviewer: ") for text in outcome.report["objections"]] == gaps


def test_a_review_counts_against_the_limits_and_is_not_begun_beyond_them(tmp_path: Path) -> None:
    def usage(tokens: int) -> Mapping[str, Any]:
        return {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1}

    objects = {"text": '{"accepted": false, "gaps": ["more"]}', "usage": usage(5_000)}
    first, draft = ({**entry, "usage": usage(1_000)} for entry in (looks("a"), DRAFT))
    with serving(first, draft, objects, draft) as server:
        outcome = ModelLoop(tmp_path, server.base_url, reviewer="same").start(tokens=6_000)
    assert len(server.requests) == 3, "no decision after the review that used the limit up"
    assert outcome.exit_code is ExitCode.LIMIT
    assert outcome.report is not None
    assert outcome.report["usage"]["tokens_in"] == 7_000


def test_without_a_reviewer_nobody_is_asked(tmp_path: Path) -> None:
    with answering(lambda r: DRAFT if "E1 ok" in words(r) else looks("a")) as server:
        assert ModelLoop(tmp_path, server.base_url, reviewer="none").start().exit_code is ExitCode.OK
    assert all("You review" not in words(request) for request in nonempty(server.requests))

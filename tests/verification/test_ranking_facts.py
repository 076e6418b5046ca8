"""What a ranking says beside its suspects is a fact too; a direction is held only against a fact about the same measure."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Claim
from opsleuth.state.investigation import Window
from opsleuth.verification.claim_resolution import resolve_claim
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView
from opsleuth.verification.fact_derivation import derive_facts

WINDOW = Window(start=datetime(2026, 3, 4, 8, tzinfo=UTC), end=datetime(2026, 3, 4, 10, tzinfo=UTC))
FAILURES = {
    "detector": "harm.failures",
    "service": "intake",
    "kind": "errors",
    "direction": "cause",
    "metric": "parse_error_ratio",
    "onset": "2026-03-04T09:05:00Z",
    "text": "88.56 % of the requests to intake failed, usually 0.4015 %.",
    "figures": {"incident": 0.8856, "usual": 0.004, "samples": 9, "least": 0},
}
CHANGE = {
    "id": "0f3a91bc77de41209a5b6c7d8e9f001122334455",
    "kind": "deploy",
    "service": "intake",
    "at": "2026-03-04T08:10:00Z",
    "grade": "cause",
    "why": "the change took away what bounded the work",
    "author": "mira.k",
    "version": "v7.3.1",
    "summary": "intake v7.3.1 (0f3a91bc77): sort by age",
}
MOVES = {
    "flushed_per_min": ("fell", "0 count/min", "252.8 and 267.8 count/min"),
    "worker_pool_size": ("fell", "5", "48 and 50"),
    "rows_examined": ("rose", "1,608,502", "49 and 54"),
    "queue.depth": ("rose", "913", "0 and 3"),
}


def say_move(metric: str) -> str:
    went, level, between = MOVES[metric]
    return f"{metric} of intake {went} to {level}; before it lay between {between}."


def ranking(metric: str, **more: Any) -> dict[str, Any]:
    suspect = {"place": 1, "service": "intake", "kind": "errors", "score": 0.847, "findings": [FAILURES]}
    moved = {"metric": metric, "text": say_move(metric), **more}
    return {
        "suspects": [suspect],
        "causes": 1,
        "notes": ["intake is first"],
        "also_moved": [moved],
        "graded_changes": [CHANGE],
    }


def resolve(text: str, record: dict[str, Any]) -> tuple[Claim, list[str]]:
    view = EvidenceView("E1", "rank_suspects", "derived", ResultStatus.OK, record)
    basis = ConclusionBasis({"E1": view}, WINDOW, ("intake", "shop"))
    made, problems = resolve_claim(Claim(id="C1", text=text, evidence=("E1",)), basis)
    return made, [problem.text for problem in problems]


@pytest.mark.parametrize("metric", MOVES)
@pytest.mark.parametrize("more", [{}, {"service": "intake", "onset": "2026-03-04T09:06:00Z"}])
def test_what_else_moved_is_measured(metric: str, more: dict[str, Any]) -> None:
    made, problems = resolve(say_move(metric), ranking(metric, **more))
    assert problems == []
    assert made.basis == "measured"
    assert made.text.startswith(say_move(metric).rstrip("."))


@pytest.mark.parametrize("where", ["", ", 0f3a91bc77de41209a5b6c7d8e9f001122334455 by mira.k"])
def test_a_graded_change_is_measured_with_its_reason(where: str) -> None:
    text = f"deploy v7.3.1 of intake (2026-03-04T08:10:00Z{where}): {CHANGE['summary']}; {CHANGE['why']}."
    made, problems = resolve(text, ranking("rows_examined"))
    assert problems == []
    assert made.basis == "measured"
    assert made.text.endswith(CHANGE["why"])
    wrong = resolve(text.replace("08:10:00Z", "08:17:00Z"), ranking("rows_examined"))[1]
    assert "08:17:00Z" in wrong[0]


@pytest.mark.parametrize(
    "why",
    [
        "the change cut a time limit from 5 s to 0.3 s",
        "the change took max_pool_size from 60 to 6",
        "the failing lines name 'meta', which the change took away",
    ],
)
def test_a_reason_with_figures_is_measured_with_its_change(why: str) -> None:
    record = ranking("rows_examined")
    record["graded_changes"] = [{**CHANGE, "why": why}]
    text = f"deploy v7.3.1 of intake (2026-03-04T08:10:00Z): {CHANGE['summary']}; {why}."
    made, problems = resolve(text, record)
    assert (problems, made.basis) == ([], "measured")
    assert made.text.endswith(why)
    for wrong in (text.replace("08:10:00Z", "08:17:00Z"), text.replace("7.3.1 of", "7.3.1 of 4711 pods of")):
        assert resolve(wrong, record)[1] or resolve(wrong, record)[0].basis == "inferred"


def test_the_facts_of_a_stored_ranking_keep_their_numbers() -> None:
    whole = ranking("rows_examined")
    before = {key: value for key, value in whole.items() if key not in ("also_moved", "graded_changes")}
    old = derive_facts("E1", "rank_suspects", ResultStatus.OK, before)
    assert derive_facts("E1", "rank_suspects", ResultStatus.OK, whole)[: len(old)] == old


@pytest.mark.parametrize("named", ["flushed_per_min of intake", "throughput of intake", "the pool of intake"])
@pytest.mark.parametrize("words", ["fell to", "dropped to", "decreased to"])
def test_another_measure_may_go_the_other_way(named: str, words: str) -> None:
    record = ranking("rows_examined")
    del record["also_moved"]
    record["looked_at"] = {"flushed_per_min": 67}
    assert resolve(f"{named} {words} 0", record)[1] == []


@pytest.mark.parametrize(
    "text",
    [
        "parse_error_ratio of intake fell to 88.56 %",
        "failures of intake dropped to 88.56 %",
        "intake fell to 88.56 %",
        "parse_error_ratio of intake fell to 88.56 %, usually 0.4 %",
    ],
)
def test_the_opposite_direction_of_the_same_measure_is_refused(text: str) -> None:
    assert "is not what E1.1 says" in resolve(text, ranking("rows_examined"))[1][0]


@pytest.mark.parametrize(
    "line",
    [
        "all hosts tried (db-1:3306): no available connection, queue at its maximum of 256",
        "503 from stock: service not available",
        "metrics backend is not available, 12 points dropped",
    ],
)
def test_a_line_that_says_not_available_is_measured_as_it_was_found(line: str) -> None:
    said = f'4 log lines of intake say "{line}" or similar.'
    found = {**FAILURES, "text": said, "figures": {"lines": 4, "message": line}}
    record = ranking("rows_examined")
    record["suspects"][0]["findings"] = [found]
    made, problems = resolve(said, record)
    assert (problems, made.basis, made.facts) == ([], "measured", ("E1.1",))

"""Whatever is shown of a result has an id by which it can be cited, and keeps it while something rests on it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from nonempty import nonempty

from opsleuth.models.cited_evidence import render_cited_evidence
from opsleuth.models.fact_marks import mark_facts
from opsleuth.models.record_fitting import fit_record
from opsleuth.models.turn_history import render_observation
from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Claim, Conclusion
from opsleuth.state.investigation import Investigation, Window
from opsleuth.state.results import Observation
from opsleuth.state.run_status import Verdict
from opsleuth.tools.truncation import canonical_json_size
from opsleuth.verification.fact_derivation import derive_facts

START = Investigation(
    question="why is checkout slow",
    window=Window(start=datetime(2024, 5, 1, 14, tzinfo=UTC), end=datetime(2024, 5, 1, 15, tzinfo=UTC)),
)
LINES = [
    {"service": "cart", "message": f"served {i}", "time": f"2024-05-01T14:00:{i:02}Z"} for i in range(30)
]
LOGS = {"service": "cart", "scanned": 30, "matched": 30, "lines": LINES, "by_level": {"info": 30}}


def observe(tool: str, record: Mapping[str, Any], number: int = 1, **more: Any) -> Observation:
    made: dict[str, Any] = {
        "number": number, "call_id": f"inv/t1c{number}", "turn": 1, "tool": tool, "arguments": {}, "purpose": "to see it",
        "status": ResultStatus.OK, "evidence": f"E{number}", "headline": "30 lines", "record": record,
    }  # fmt: skip
    return Observation(**made | more)


def marks(tool: str, record: Mapping[str, Any]) -> Any:
    return mark_facts(record, derive_facts("E1", tool, ResultStatus.OK, record))


def test_every_row_has_an_id_of_its_own() -> None:
    rows = marks("logs_search", LOGS).record["lines"]
    ids = [row["fact"] for row in rows]
    assert len(set(ids)) == 30
    facts = {fact.id: fact for fact in derive_facts("E1", "logs_search", ResultStatus.OK, LOGS)}
    assert [facts[id_].value for id_ in ids] == [line["message"] for line in LINES]


def test_points_pairs_and_plain_texts_have_ids() -> None:
    points = [{"time": f"2024-05-01T14:{i:02}:00Z", "value": i} for i in range(20)]
    series = {
        "service": "cart",
        "metric": "latency",
        "points": points,
        "max": {"time": "2024-05-01T14:19:00Z", "value": 19},
    }
    assert all("fact" in point for point in nonempty(marks("metrics_query", series).record["points"]))
    assert marks("topology", {"caller_callee": [["web", "cart"], ["cart", "db"]]}).record["caller_callee"] == [
        ["E1.1:", "web", "cart"], ["E1.2:", "cart", "db"],
    ]  # fmt: skip
    assert marks("declared", {"lines": ["first", "second"]}).record["lines"] == [
        "E1.1: first",
        "E1.2: second",
    ]


def test_rows_of_a_page_of_evidence_have_ids() -> None:
    page = {
        "evidence": "E1",
        "tool": "logs_search",
        "status": "ok",
        "path": "",
        "offset": 0,
        "total": 9,
        "value": LOGS,
    }
    rows = marks("evidence_read", page).record["value"]["lines"]
    assert all(row["fact"].startswith("E1.") for row in nonempty(rows))


def test_only_a_detectors_row_loses_what_its_sentence_says() -> None:
    volume = marks("declared", {"volumes": [{"name": "data", "size": 12}]}).record["volumes"][0]
    assert volume == {"fact": "E1.1", "name": "data", "size": 12}


def test_a_calculated_number_can_be_cited() -> None:
    record = {
        "operation": "ratio",
        "result": 2.5,
        "inputs": [{"reference": "E1:a", "count": 1, "values": [5]}],
    }
    (fact, *_) = derive_facts("E4", "calculate", ResultStatus.OK, record)
    assert fact.value == 2.5
    assert f"result {fact.id}" in render_observation(observe("calculate", record, 4), 4_000)


def test_a_key_that_looks_like_a_place_is_no_row() -> None:
    made = marks("declared", {"by_code": {"500": 7, "200": 3}})
    assert made.record == {"by_code": {"500": 7, "200": 3}}
    assert list(made.values) == ["by_code.500"]


def test_single_values_have_their_ids_in_one_line() -> None:
    assert "by_level.info E1." in render_observation(observe("logs_search", LOGS), 8_000)


@pytest.mark.parametrize("room", [150, 400, 2_000])
def test_a_fact_that_a_draft_cites_keeps_its_id(room: int) -> None:
    claim = Claim(id="C1", text="cart serves", facts=("E1.25",), evidence=("E1",))
    draft = Conclusion(verdict=Verdict.ANSWERED, answer="cart serves", claims=(claim,))
    text = render_cited_evidence(START.changed(draft=draft), [observe("logs_search", LOGS)], room)
    assert "E1.25" in text


def test_the_answer_stays_when_its_appendix_goes() -> None:
    suspect = {
        "service": "cart",
        "kind": "cpu",
        "findings": [{"text": "cpu of cart rose", "detector": "cpu"}],
    }
    moved = [
        {"service": f"s{i}", "text": "something moved a little " * 3, "figures": {"usual": i}}
        for i in range(30)
    ]
    record = {
        "also_moved": moved,
        "notes": ["cart explains web. " * 20] * 5,
        "suspects": [suspect],
        "verdict": "cause_found",
    }
    small = fit_record(record, 440)
    assert canonical_json_size(small) <= 440
    assert small["suspects"][0]["findings"][0]["text"] == "cpu of cart rose"
    assert small["sections_not_shown"] == ["also_moved", "notes"]

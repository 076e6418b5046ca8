"""Typed facts: every path leads to an equal value in the stored record, whatever the record is."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsleuth.state.calls import ResultStatus
from opsleuth.verification.fact_derivation import derive_facts
from opsleuth.verification.fact_wording import detect_language, format_fact_line, render_fact
from opsleuth.verification.facts import MOST_SHOWN, Fact, follow_pointer

FINDING = {
    "detector": "harm.failures",
    "signal": "metrics",
    "service": "till",
    "kind": "errors",
    "direction": "cause",
    "metric": "error_rate",
    "onset": "2026-05-12T09:00:00Z",
    "size": 12.5,
    "text": "91.6 % of the 788 requests to till failed, usually 0.119 %.",
    "figures": {"incident": 0.916, "usual": 0.00119, "requests": 788, "unit": "share"},
}
RECORDS: dict[str, dict[str, Any]] = {
    "metrics_anomalies": {"findings": [FINDING], "matched": 1, "scanned_series": 5, "service": "till"},
    "rank_suspects": {
        "suspects": [{"place": 1, "service": "till", "kind": "errors", "score": 0.9, "findings": [FINDING]}],
        "propagation": [["till", "web"]],
        "notes": ["till is first"],
        "looked_at": {"logs": 12},
    },
    "metrics_query": {
        "service": "till",
        "metric": "latency_ms",
        "max": {"time": "2026-05-12T09:03:00Z", "value": 931.0},
        "median": 44.0,
        "baseline": {"median": 43.0, "min": 40.0, "max": 50.0, "samples": 30},
        "change_point": "2026-05-12T09:01:00Z",
        "points": [{"time": "2026-05-12T09:00:00Z", "value": 43.5}],
    },
    "logs_search": {
        "service": "till",
        "level": "error",
        "scanned": 1758,
        "matched": 2,
        "first": "2026-05-12T09:00:05Z",
        "lines": [{"service": "till", "message": "refused by /a~b", "time": "2026-05-12T09:00:05Z"}],
    },
    "changes_list": {
        "scanned": 2,
        "matched": 1,
        "changes": [
            {"time": "2026-05-12T08:59:00Z", "service": "till", "summary": "till 3.1", "version": "3.1"}
        ],
    },
    "objects_get": {
        "scanned": 1,
        "matched": 1,
        "others": [{"kind": "Pod", "name": "till-1", "ready": 1, "desired": 1, "restarts": 0}],
    },
    "traces_compare": {
        "operations_compared": 1,
        "between_services": [
            {"caller": "web", "callee": "till", "network_ms_now": 98.5, "network_ms_usual": 3.7}
        ],
    },
    "topology": {"service": "till", "calls": [{"service": "ledger", "distance": 1}], "called_by": []},
    "http_probe": {"url": "http://till/health", "answer": {"status": 503, "ms": 12.5}, "tries": [1, 2]},
}


def facts_of(tool: str, record: dict[str, Any]) -> tuple[Fact, ...]:
    return derive_facts("E1", tool, ResultStatus.OK, record)


def paths_of(fact: Fact) -> list[tuple[str, Any]]:
    pairs = [(fact.path, fact.value), (fact.before_path, fact.before)]
    return [(path, value) for path, value in [*pairs, *((d.path, d.value) for d in fact.details)] if path]


@pytest.mark.parametrize("tool", RECORDS)
def test_every_path_leads_to_an_equal_value(tool: str) -> None:
    facts = facts_of(tool, RECORDS[tool])
    assert facts
    assert [fact.id for fact in facts] == [f"E1.{i}" for i in range(1, len(facts) + 1)]
    for fact in facts:
        for path, value in paths_of(fact):
            assert follow_pointer(RECORDS[tool], path) == value, fact


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 10**6) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(tool=st.sampled_from([*RECORDS, "unknown_tool"]), record=st.dictionaries(st.sampled_from(["findings", "lines", "matched", "scanned", "service", "window", "max", "points", "suspects", "others", "x"]), _JSON, max_size=6))  # fmt: skip
def test_no_record_breaks_the_readers_and_every_path_still_leads_home(
    tool: str, record: dict[str, Any]
) -> None:
    for fact in facts_of(tool, record):
        for path, value in paths_of(fact):
            assert follow_pointer(record, path) == value
        assert format_fact_line(fact)


def test_facts_are_the_same_from_the_stored_text() -> None:
    for tool, record in RECORDS.items():
        assert facts_of(tool, json.loads(json.dumps(record))) == facts_of(tool, record)


def test_an_error_has_no_facts() -> None:
    assert derive_facts("E1", "logs_search", ResultStatus.TIMEOUT, {"error": "timed out after 10 s"}) == ()


def test_a_finding_is_shown_in_about_fifty_tokens() -> None:
    [first, *_] = facts_of("metrics_anomalies", RECORDS["metrics_anomalies"])
    line = format_fact_line(first)
    assert line == "E1.1 till failed_share 0.119 % → 91.6 % since 2026-05-12T09:00:00Z (requests 788)"
    assert len(line) / 4 < 50 < MOST_SHOWN * 50


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("de", "failed_share von till stieg von 0.119 % auf 91.6 % ab 2026-05-12T09:00:00Z (requests 788)"),
        ("zh", "till 的 failed_share 从 0.119 % 升至 91.6 %（自 2026-05-12T09:00:00Z 起） (requests 788)"),
        ("neutral", "till · failed_share · 0.119 % → 91.6 % · ≥ 2026-05-12T09:00:00Z (requests 788)"),
        ("en", "91.6 % of the 788 requests to till failed, usually 0.119 % (since 2026-05-12T09:00:00Z)"),
    ],
)
def test_a_fact_is_said_in_the_language_of_the_question(language: str, said: str) -> None:
    assert render_fact(facts_of("metrics_anomalies", RECORDS["metrics_anomalies"])[0], language) == said


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("why is checkout slow since 14:00Z?", "en"),
        ("warum ist die Kasse seit 14 Uhr langsam?", "de"),
        ("为什么订单服务变慢", "zh"),
        ("pourquoi le service est lent depuis 14h", "neutral"),
        ("なぜ注文が遅い", "neutral"),
        ("KubePodCrashLooping", "en"),
    ],
)
def test_the_language_of_a_question(question: str, language: str) -> None:
    assert detect_language(question) == language


def test_a_change_reads_as_a_sentence_without_the_columns_of_its_source() -> None:
    row = {
        "service": "orders-api",
        "time": "2026-03-03T13:58:20Z",
        "author": "r.tanaka",
        "diff": "diff --git a/src/x b/src/x\n+1",
        "extra": {"commit": "d25d557"},
        "minutes_before_onset": 3.7,
        "version": "2.14.0",
        "summary": "find orders whatever the case",
    }
    [fact] = [f for f in derive_facts("E3", "changes_list", ResultStatus.OK, {"changes": [row]}) if f.measure == "change"]  # fmt: skip
    assert render_fact(fact) == (
        "orders-api was changed at 2026-03-03T13:58:20Z by r.tanaka, 3.7 min before the onset: "
        "find orders whatever the case (version 2.14.0)"
    )
    row = {"service": "web", "score": 0.0516, "place": 3, "kind": "errors"}
    [score] = [f for f in derive_facts("E4", "rank_suspects", ResultStatus.OK, {"suspects": [row]}) if f.measure == "suspect_score"]  # fmt: skip
    assert render_fact(score) == "web is suspect number 3: its score is 0.0516, 1 at most"

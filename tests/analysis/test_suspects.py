"""From findings to suspects: strength, kinds that explain each other, callers behind callees, circles."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.records import (
    AlertFacts,
    Finding,
    Recording,
    ServiceDependency,
    Suspect,
    TimeRange,
)
from opsleuth.analysis.scoring import combine_strengths, is_visible_in_caller, score_cause_findings
from opsleuth.analysis.suspects import (
    demote_explained_suspects,
    demote_redundant_changes,
    demote_unrelated_suspects,
    suspects_from_findings,
)
from opsleuth.state.conclusion import KINDS

NAMES = "abcde"


def finding(service: str, kind: str, size: float, detector: str = "d", direction: str = "cause") -> Finding:
    return Finding(detector, "metrics", service, kind, size, f"{service} {kind}", {}, direction=direction)


def calls(*pairs: str, alert: str | None = "a", metric: str | None = None) -> Recording:
    topology = [ServiceDependency(pair[0], pair[1]) for pair in pairs]
    return Recording(AlertFacts("", service=alert, metric=metric), TimeRange(0.0, 1.0), topology=topology)


def order(suspects: Sequence[Suspect]) -> list[str]:
    return [suspect.service for suspect in suspects]


findings = st.lists(
    st.builds(
        finding,
        st.sampled_from(NAMES),
        st.sampled_from(KINDS),
        st.floats(0.0, 1e6),
        st.sampled_from(["one", "two"]),
        st.sampled_from(["cause", "victim", "healthy"]),
    ),
    max_size=12,
)
topologies = st.lists(
    st.builds("".join, st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES))), max_size=12
)


def test_only_causes_accuse() -> None:
    suspects = suspects_from_findings(
        [finding("a", "cpu", 9, direction="victim"), finding("b", "cpu", 9, direction="healthy")], {}
    )
    assert suspects == []


def test_what_names_no_service_accuses_nobody() -> None:
    assert order(suspects_from_findings([finding("", "errors", 0.9), finding("b", "errors", 0.8)], {})) == [
        "b"
    ]


def test_the_strongest_of_a_detector_counts_fully_the_others_by_their_share() -> None:
    found = [finding("a", "cpu", 27), finding("b", "cpu", 3)]
    strength = score_cause_findings(found)
    assert strength[0] == pytest.approx(0.9)
    assert strength[1] == pytest.approx(0.5 / 9)


def test_a_symptom_weighs_less_than_a_named_fault() -> None:
    found = [finding("a", "latency", 9, "x"), finding("b", "disk", 9, "y")]
    assert order(suspects_from_findings(found, {})) == ["b", "a"]


def test_two_detectors_are_worth_more_than_one_and_one_twice_is_one() -> None:
    once = combine_strengths([(finding("a", "cpu", 9, "x"), 0.5)])
    twice = combine_strengths([(finding("a", "cpu", 9, "x"), 0.5), (finding("a", "cpu", 9, "x"), 0.5)])
    both = combine_strengths([(finding("a", "cpu", 9, "x"), 0.5), (finding("a", "cpu", 9, "y"), 0.5)])
    assert (once, twice, both) == (0.5, 0.5, 0.75)


def test_of_two_kinds_the_one_that_explains_the_other_is_meant() -> None:
    (suspect,) = suspects_from_findings(
        [finding("a", "cpu", 30, "x"), finding("a", "slow_query", 25, "y")], {}
    )
    assert suspect.kind == "slow_query"
    assert [f.kind for f in suspect.findings] == ["slow_query", "cpu"]


def test_independent_kinds_on_one_service_are_two_suspects() -> None:
    suspects = suspects_from_findings(
        [finding("a", "slow_query", 30, "x"), finding("a", "storage_full", 28, "y")], {}
    )
    assert {suspect.kind for suspect in suspects} == {"slow_query", "storage_full"}


def test_a_slow_caller_steps_back_behind_the_callee_that_explains_it() -> None:
    suspects = suspects_from_findings([finding("a", "latency", 30, "x"), finding("c", "disk", 20, "y")], {})
    ranked = demote_explained_suspects(calls("ab", "bc"), suspects)
    assert order(ranked) == ["c", "a"]
    assert ranked[1].explained_by == "c"


def test_a_named_fault_of_the_caller_stays_its_own() -> None:
    suspects = suspects_from_findings([finding("a", "cpu", 30, "x"), finding("b", "latency", 30, "y")], {})
    assert demote_explained_suspects(calls("ab"), suspects)[0].service == "a"


def test_a_replica_lags_because_of_its_primary_unless_the_alert_asks_about_the_lag() -> None:
    suspects = suspects_from_findings(
        [finding("a", "replication_lag", 30, "x"), finding("b", "disk", 30, "y")], {}
    )
    assert demote_explained_suspects(calls("ab"), suspects)[1].explained_by == "b"
    asked = demote_explained_suspects(calls("ab", metric="ReplicaLag"), suspects)
    assert [suspect.explained_by for suspect in asked] == [None, None]


def test_in_a_circle_of_calls_the_strongest_stays() -> None:
    suspects = suspects_from_findings([finding("a", "latency", 30), finding("b", "latency", 29)], {})
    ranked = demote_explained_suspects(calls("ab", "ba"), suspects)
    assert (ranked[0].service, ranked[0].explained_by) == ("a", None)


def test_what_has_no_calls_in_common_with_the_alert_counts_half() -> None:
    suspects = suspects_from_findings([finding("d", "cpu", 30, "x"), finding("c", "cpu", 24, "y")], {})
    recording = calls("ab", "bc", "de", alert="b")
    halved = {suspect.service: suspect.score for suspect in demote_unrelated_suspects(recording, suspects)}
    full = {suspect.service: suspect.score for suspect in suspects}
    assert halved == {"d": full["d"] / 2, "c": full["c"]}
    assert demote_unrelated_suspects(calls("ab", alert=None), suspects) == suspects


@pytest.mark.parametrize(
    ("cause", "symptom", "direct", "expected"),
    [
        ("latency", "latency", False, True),
        ("exception", "errors", False, True),
        ("errors", "exception", False, True),
        ("latency", "exception", True, False),
        ("cpu", "latency", False, True),
        ("disk", "replication_lag", True, True),
        ("disk", "replication_lag", False, False),
        ("latency", "cpu", True, False),
    ],
)
def test_what_travels_up_the_calls(cause: str, symptom: str, direct: bool, expected: bool) -> None:
    assert is_visible_in_caller(cause, symptom, direct=direct) is expected


@given(findings, topologies)
def test_whatever_is_found_the_first_suspect_is_explained_by_nobody(
    found: list[Finding], pairs: list[str]
) -> None:
    ranked = demote_explained_suspects(calls(*pairs), suspects_from_findings(found, {}))
    assert all(0.0 < suspect.score <= 1.0 for suspect in ranked)
    assert [s.score for s in ranked] == sorted((s.score for s in ranked), reverse=True)
    assert not ranked or ranked[0].explained_by is None


@given(findings, topologies, st.randoms(use_true_random=False))
def test_the_order_of_findings_and_calls_does_not_matter(
    found: list[Finding], pairs: list[str], source: Random
) -> None:
    ranked = demote_explained_suspects(calls(*pairs), suspects_from_findings(found, {}))
    source.shuffle(found)
    source.shuffle(pairs)
    again = demote_explained_suspects(calls(*pairs), suspects_from_findings(found, {}))
    assert [(s.service, s.kind, s.explained_by) for s in ranked] == [
        (s.service, s.kind, s.explained_by) for s in again
    ]


def test_a_change_is_the_trigger_of_what_stands_out_in_its_service_and_no_cause_beside_it() -> None:
    slow = Finding("statements", "statements", "db", "slow_query", 9.0, "slow", {})
    change = Finding("changes", "changes", "db", "deploy", 4.0, "dropped an index", {})
    other = Finding("changes", "changes", "api", "deploy", 4.0, "released", {})
    suspects = [
        Suspect("db", "deploy", 0.9, [change, slow]),
        Suspect("db", "slow_query", 0.8, [slow, change]),
        Suspect("api", "deploy", 0.7, [other]),
    ]
    told = demote_redundant_changes(suspects, 0.8)
    assert [(s.service, s.kind, s.explained_by) for s in told] == [
        ("db", "slow_query", None),
        ("api", "deploy", None),
        ("db", "deploy", "db"),
    ]


def statement(kind: str, size: float, **figures: float) -> Finding:
    return Finding("statements", "statements", "b", kind, size, f"b {kind}", figures)


@pytest.mark.parametrize("size", [4.0, 40.0, 400.0])
@pytest.mark.parametrize(
    ("kind", "figures"), [("slow_query", {"working": 3.9}), ("disk", {"waiting": 3.9, "ms a call": 80.0})]
)
def test_a_statement_without_a_usual_level_explains_no_busy_processor(
    kind: str, figures: dict[str, float], size: float
) -> None:
    busy = finding("a", "cpu", 100, "resources.cpu")
    ranked = demote_explained_suspects(
        calls("ab"), suspects_from_findings([busy, statement(kind, size, **figures)], {})
    )
    assert [suspect.explained_by for suspect in ranked] == [None, None]
    slow = finding("a", "latency", 100, "span_time")
    ranked = demote_explained_suspects(
        calls("ab"), suspects_from_findings([slow, statement(kind, size, **figures)], {})
    )
    assert {suspect.service: suspect.explained_by for suspect in ranked}["a"] == "b"

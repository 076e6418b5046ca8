"""A statement that is new since a release of its caller is the release's; one that grew slow by itself is the database's."""

from dataclasses import replace

import pytest

from opsleuth.analysis import sql_statements
from opsleuth.analysis.new_statements import WITHIN_SECONDS, attribute_new_statements
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import (
    AlertFacts,
    LogLine,
    Recording,
    ServiceChange,
    ServiceDependency,
    StatementLoad,
    TimeRange,
)

ONSET = 1_000.0
CALLS = [ServiceDependency("web", "cart"), ServiceDependency("cart", "cart-db")]
OLD, NEW = "SELECT * FROM carts WHERE id = $1", "SELECT * FROM carts WHERE lower(id) = $1"


def totals(statement: str, *readings: tuple[float, float, float]) -> list[StatementLoad]:
    """Running totals: time, calls, and milliseconds since the counters began."""
    return [StatementLoad(t, "cart-db", statement, calls=calls, total_ms=ms) for t, calls, ms in readings]


def usual() -> list[StatementLoad]:
    return totals(OLD, *((ONSET - 60 + 10 * i, 1_000 + 200 * i, 100 + 20 * i) for i in range(9)))


def recording(loads: list[StatementLoad], *changes: ServiceChange) -> Recording:
    alert = AlertFacts("slow", service="cart", onset=ONSET)
    window = TimeRange(ONSET - 60, ONSET + 30)
    return Recording(alert, window, statements=loads, changes=list(changes), topology=CALLS)


BROUGHT = [*usual(), *totals(NEW, (ONSET, 10, 4_000), (ONSET + 10, 100, 40_000), (ONSET + 20, 200, 80_000))]
RELEASE = ServiceChange(ONSET - 5, "cart", "deploy", "find carts", version="2.0.0")


def test_the_release_is_the_cause_and_the_database_its_victim() -> None:
    seen = recording(BROUGHT, RELEASE)
    ranking = rank_findings(seen, run_detectors(seen))
    assert [(s.service, s.kind) for s in ranking.suspects[: ranking.causes]] == [("cart", "deploy")]
    lines = [
        LogLine(ONSET + i, "cart", "connection pool exhausted: none of 12 became free") for i in range(20)
    ]
    loud = replace(seen, logs=lines)
    ranking = rank_findings(loud, run_detectors(loud))
    assert [(s.service, s.kind) for s in ranking.suspects[: ranking.causes]] == [("cart", "deploy")]
    [said] = [f for f in ranking.suspects[0].findings if f.detector == "brought"]
    assert said.text == f'The statement "{NEW}" is new on cart-db since deploy 2.0.0 of cart: find carts.'


@pytest.mark.parametrize(
    "change",
    [
        ServiceChange(ONSET - 5, "stock", "deploy", "does not call it", version="2.0.0"),
        ServiceChange(ONSET - 5, "web", "deploy", "calls it through another", version="2.0.0"),
        ServiceChange(ONSET - WITHIN_SECONDS - 20, "cart", "deploy", "long before", version="2.0.0"),
        ServiceChange(ONSET + 25, "cart", "deploy", "after it was first seen", version="2.0.0"),
    ],
)
def test_any_other_change_brought_nothing(change: ServiceChange) -> None:
    found = sql_statements.find_heavy_statements(recording(BROUGHT, change))
    assert attribute_new_statements(recording(BROUGHT, change), found) == found
    assert found[0].direction == "cause"


def test_a_statement_that_was_there_is_the_databases_own_whatever_was_released() -> None:
    slow = [*usual()[:6], *totals(OLD, (ONSET + 20, 2_700, 100_000))]
    seen = recording(slow, RELEASE)
    [finding] = attribute_new_statements(seen, sql_statements.find_heavy_statements(seen))
    assert (finding.service, finding.kind, finding.direction) == ("cart-db", "slow_query", "cause")


def test_one_that_rested_before_is_as_good_as_new() -> None:
    rested = totals(NEW, *((ONSET - 60 + 10 * i, 50.0, 9_000.0) for i in range(6)))
    again = totals(NEW, (ONSET, 60, 13_000), (ONSET + 10, 150, 49_000))
    seen = recording([*usual(), *rested, *again], RELEASE)
    assert {
        f.service
        for f in attribute_new_statements(seen, sql_statements.find_heavy_statements(seen))
        if f.direction == "cause"
    } == {"cart"}


def test_what_adds_hardly_any_load_is_nothing() -> None:
    light = [*usual(), *totals(NEW, (ONSET, 1, 1), (ONSET + 10, 2, 2))]
    assert sql_statements.find_heavy_statements(recording(light)) == []


def test_what_was_measured_beside_the_totals_counts_as_now() -> None:
    now = StatementLoad(ONSET + 25, "cart-db", OLD, calls_per_sec=20, mean_ms=200, load=4.0)
    [finding] = sql_statements.find_heavy_statements(recording([*usual(), now]))
    assert finding.kind == "slow_query"
    assert finding.figures["ms a call"] == 200

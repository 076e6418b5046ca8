"""What ended incidents are known by: kept in both databases, found by shared terms, judged by people."""

import pytest

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.incidents import IncidentRow, PersonsWord
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.state.run_status import Status


def keep(
    store: Store, run: str, *terms: str, project: str = "shop", began: str = "2026-03-03T14:00:00Z"
) -> None:
    store.incidents.put(IncidentRow(run=run, project=project, began=began, document={"cause": run}), terms)


def test_runs_that_share_terms_are_found_in_their_own_project_alone(store: Store) -> None:
    keep(store, "inv-1", "cause:a|cpu", "alert:b|x")
    keep(store, "inv-2", "cause:a|cpu", "line:a|y")
    keep(store, "inv-3", "cause:a|cpu", project="other")
    found = store.incidents.find_sharing("shop", ["cause:a|cpu", "alert:b|x"], without=["inv-2"])
    assert found == {"inv-1": frozenset({"cause:a|cpu", "alert:b|x"})}
    assert store.incidents.find_sharing("shop", []) == {}
    assert store.incidents.find_sharing("shop", ["cause:z|cpu"]) == {}


def test_of_a_term_that_many_share_the_newest_are_looked_at(store: Store) -> None:
    for number in range(130):
        keep(
            store,
            f"inv-{number:03d}",
            "harmed:a",
            *(["line:a|rare"] if number == 0 else []),
            began=f"2026-01-01T00:{number:03d}Z",
        )
    assert len(store.incidents.find_sharing("shop", ["harmed:a"])) == 30
    assert "inv-000" not in store.incidents.find_sharing("shop", ["harmed:a"])
    assert store.incidents.find_sharing("shop", ["line:a|rare"])["inv-000"] == frozenset(
        {"harmed:a", "line:a|rare"}
    )


def test_a_judgement_outlives_a_new_report_and_the_last_word_counts(store: Store) -> None:
    keep(store, "inv-1", "cause:a|cpu")
    store.incidents.judge("inv-1", PersonsWord("wrong", "ann", "a:locks", "restart"))
    keep(store, "inv-1", "cause:b|cpu")
    kept = store.incidents.get("inv-1")
    assert kept is not None
    assert (kept.judged, kept.cause, kept.helped, kept.judged_by) == ("wrong", "a:locks", "restart", "ann")
    store.incidents.judge("inv-1", PersonsWord("right", "bob"))
    kept = store.incidents.get("inv-1")
    assert kept is not None
    assert (kept.judged, kept.cause, kept.judged_by) == ("right", None, "bob")
    assert store.incidents.find_sharing("shop", ["cause:a|cpu"]) == {}
    with pytest.raises(NotFoundError, match="no incident is stored for inv-9"):
        store.incidents.judge("inv-9", PersonsWord("right", "bob"))


def test_no_secret_is_kept(store: Store) -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    store.incidents.put(
        IncidentRow(run="inv-1", project="shop", began="2026", document={"cause": f"key {key}"}),
        [f"alert:a|{key}"],
    )
    store.incidents.judge("inv-1", PersonsWord("wrong", "ann", f"the key {key}", f"password={key}"))
    kept = store.incidents.get("inv-1")
    terms = store.database.rows("SELECT term FROM incident_terms")
    assert key not in f"{kept} {[row['term'] for row in terms]}"


def test_what_is_kept_goes_with_its_run(store: Store) -> None:
    store.runs.create(RunRow(id="inv-1", question="q", project="shop", status=Status.COMPLETED))
    keep(store, "inv-1", "cause:a|cpu")
    row = store.runs.get("inv-1")
    assert row is not None
    assert store.prune.remove("inv-1", row.updated.replace(year=row.updated.year + 1))
    assert store.incidents.get("inv-1") is None
    assert store.incidents.find_sharing("shop", ["cause:a|cpu"]) == {}

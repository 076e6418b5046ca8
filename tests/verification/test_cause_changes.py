"""The change of a cause is graded by code, whoever wrote the cause."""

from typing import Any

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Cause, CauseChange, Conclusion
from opsleuth.state.run_status import Verdict
from opsleuth.verification.cause_changes import with_graded_changes
from opsleuth.verification.conclusion_basis import EvidenceView

AT = "2026-05-12T08:59:00Z"
GRADED = {"id": "9f1c2ab77", "kind": "deploy", "service": "till", "version": "3.1.0", "at": AT, "grade": "cause",
          "author": "alice", "place": "till/tax.py:41", "why": "the stack trace ends at till/tax.py:41"}  # fmt: skip


def view(tool: str, record: dict[str, Any]) -> EvidenceView:
    return EvidenceView("E1", tool, tool, ResultStatus.OK, record)


def ranking(*graded: dict[str, Any]) -> EvidenceView:
    return view("rank_suspects", {"graded_changes": list(graded)})


def draft(service: str = "till", change: CauseChange | None = None) -> Conclusion:
    return Conclusion(verdict=Verdict.CAUSE_FOUND, answer=service, causes=(Cause(service=service, kind="errors", change=change),))  # fmt: skip


def named(id_: str) -> CauseChange:
    return CauseChange(id=id_, kind="deploy", service="till", at=AT, grade="cause", why="it was the latest")


def test_a_cause_without_a_change_gets_the_one_of_its_service() -> None:
    (cause,) = with_graded_changes(draft(), [ranking(GRADED)]).causes
    assert cause.change is not None
    assert (cause.change.id, cause.change.grade, cause.change.author, cause.change.place) == (
        "9f1c2ab77", "cause", "alice", "till/tax.py:41",
    )  # fmt: skip


def test_a_cause_of_another_service_gets_none() -> None:
    assert with_graded_changes(draft("web"), [ranking(GRADED)]).causes[0].change is None


def test_of_several_that_only_coincide_none_is_attached() -> None:
    two = [GRADED | {"grade": "coincides"}, GRADED | {"grade": "coincides", "id": "77de00123"}]
    assert with_graded_changes(draft(), [ranking(*two)]).causes[0].change is None


def test_the_grade_is_the_rankings_whatever_the_planner_wrote() -> None:
    coincides = GRADED | {"grade": "coincides", "why": "60 s before the onset; no diff is recorded"}
    for id_ in ("9f1c2ab", "3.1.0", "9f1c2ab77"):
        change = with_graded_changes(draft(change=named(id_)), [ranking(coincides)]).causes[0].change
        assert change is not None
        assert (change.grade, change.why) == ("coincides", coincides["why"])


def test_a_change_that_the_ranking_holds_innocent_is_not_named() -> None:
    assert with_graded_changes(draft(change=named("8.0.2")), [ranking()]).causes[0].change is None


def test_without_a_ranking_a_listed_change_coincides_and_an_invented_one_is_dropped() -> None:
    rows = [{"service": "till", "kind": "deploy", "version": "3.1.0", "time": AT, "summary": "tax table"}]
    listed = view("changes_list", {"changes": rows})
    change = with_graded_changes(draft(change=named("3.1.0")), [listed]).causes[0].change
    assert change is not None
    assert (change.grade, change.at) == ("coincides", AT)
    assert with_graded_changes(draft(change=named("9.9.9")), [listed]).causes[0].change is None

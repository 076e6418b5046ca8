"""Lists that are longer than a page, counts that are kept, and what is given up because nobody answers."""

import pytest
from service_rig import Api

from opsleuth.checkpoints.approvals import ApprovalRequest
from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.service.intake import IntakeRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.service.background_tasks import deny_unanswered_calls, forget_old_receipts, remove_old_runs
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import Status


async def test_runs_are_paged_through_while_new_ones_come(api: Api) -> None:
    token, runs = api.token("view"), [await api.start(f"question {number}") for number in range(5)]
    first = (await api("GET", "/api/tasks?limit=2", token)).json()
    newer = await api.start("newer")
    second = (await api("GET", f"/api/tasks?limit=2&before={first['next']}", token)).json()
    third = (await api("GET", f"/api/tasks?limit=2&before={second['next']}", token)).json()
    pages = [[task["task_id"] for task in page["tasks"]] for page in (first, second, third)]
    assert pages == [runs[:2:-1], runs[2:0:-1], runs[:1]]
    assert third["next"] is None
    assert newer not in {run for page in pages for run in page}


async def test_page_behind_another_teams_run_is_refused(api: Api) -> None:
    run = await api.start()
    answer = await api("GET", f"/api/tasks?before={run}", api.token("view", team="bank"))
    assert answer.status_code == 404


@pytest.mark.parametrize(
    ("text", "found"), [("CHECKOUT", 1), ("100%", 1), ("%", 422), ("__", 0), ("slow", 2)]
)
async def test_search_takes_the_text_as_it_is(api: Api, text: str, found: int) -> None:
    for question in ("checkout is slow", "cart is slow", "disk is 100% full"):
        await api.start(question)
    answer = await api("GET", "/api/tasks", api.token("view"), params={"search": text})
    assert found in (answer.status_code, len(answer.json().get("tasks", "-")))


async def test_newest_approvals_are_found_behind_many_others(api: Api) -> None:
    run = await api.start()
    for number in range(1, 8):
        ask_approval(api.store, run, f"{run}/t1c{number}")
    token, seen, cursor = api.token("view"), list[str](), ""
    for _ in range(3):
        page = (await api("GET", f"/api/approvals?limit=3{cursor}", token)).json()
        seen += [asked["id"] for asked in page["approvals"]]
        cursor = f"&after={page['next']}"
    assert page["next"] is None
    assert seen == [f"A{number}" for number in range(1, 8)]


def ask_approval(store: Store, run: str, subject: str) -> None:
    store.approvals.request(
        run, ApprovalRequest(about="call", subject=subject, digest="d" * 64, document={"tool": "restart"})
    )


def open_store(place: Place, clock: FakeClock) -> Store:
    return Store.open(place, clock, Redactor())


def put_run(store: Store, run: str, status: Status, project: str = "shop") -> None:
    store.runs.create(RunRow(id=run, question="q", project=project, status=status))
    store.intake.put(IntakeRow(run=run, team=project, severity=2, sender="s", request=None, digest="d"))


def fail_half_way(store: Store, run: str) -> None:
    """A transaction that changes this run and is undone."""
    with store.transaction():
        store.runs.update(run, status=Status.FAILED)
        store.runs.update("inv-20261129-none", status=Status.FAILED)


def test_counts_are_those_of_the_rows_whatever_happens_to_them(place: Place, clock: FakeClock) -> None:
    with open_store(place, clock) as store:
        for number in range(6):
            put_run(store, f"inv-20261129-aaa{number}", Status.QUEUED)
        put_run(store, "inv-20261129-bbbb", Status.QUEUED, "bank")
        store.runs.update("inv-20261129-aaa0", status=Status.RUNNING)
        store.runs.update("inv-20261129-aaa0", status=Status.COMPLETED)
        store.runs.update("inv-20261129-aaa1", turn=3)
        with pytest.raises(NotFoundError):
            fail_half_way(store, "inv-20261129-aaa2")
        expected = {"queued": 5, "completed": 1}
        assert store.runs.counts("shop") == expected
        assert store.runs.merge_counts() > 0
        assert store.runs.merge_counts() == 0
        assert store.runs.counts("shop") == expected
        clock.advance(3_600)
        assert store.prune.remove("inv-20261129-aaa0", clock.now())
        assert store.runs.counts("shop") == {"queued": 5}
        assert store.runs.counts("bank") == {"queued": 1}


def test_old_runs_go_in_portions_and_parents_after_their_forks(place: Place, clock: FakeClock) -> None:
    with open_store(place, clock) as store:
        put_run(store, "inv-20261129-old1", Status.COMPLETED)
        fork = RunRow(id="inv-20261129-fork", question="q", parent="inv-20261129-old1", status=Status.FAILED)
        store.runs.create(fork)
        put_run(store, "inv-20261129-wait", Status.WAITING)
        clock.advance(31 * 86_400)
        put_run(store, "inv-20261230-new1", Status.COMPLETED)
        assert remove_old_runs(store, clock, 30) == 2
        assert {run.id for run in store.runs.list()} == {"inv-20261129-wait", "inv-20261230-new1"}


def test_call_that_nobody_answers_is_given_up(place: Place, clock: FakeClock) -> None:
    requeued: list[str] = []
    with open_store(place, clock) as store:
        put_run(store, "inv-20261129-wait", Status.WAITING)
        ask_approval(store, "inv-20261129-wait", "inv-20261129-wait/t1c1")
        store.runs.create(RunRow(id="inv-20261129-mine", question="q", status=Status.WAITING))
        ask_approval(store, "inv-20261129-mine", "inv-20261129-mine/t1c1")
        assert deny_unanswered_calls(store, clock, 7, lambda taken: requeued.append(taken.run)) == 0
        clock.advance(7 * 86_400 + 1)
        assert deny_unanswered_calls(store, clock, 7, lambda taken: requeued.append(taken.run)) == 1
        (asked,) = store.approvals.list("inv-20261129-wait")
        assert (asked.status, asked.answered_by, asked.reason) == (
            "denied",
            "opsleuth",
            "nobody answered within 7 days",
        )
        assert requeued == ["inv-20261129-wait"]
        (mine,) = store.approvals.list("inv-20261129-mine")
        assert mine.status == "pending"


async def test_receipts_are_kept_as_long_as_runs(api: Api, clock: FakeClock) -> None:
    labels = {"alertname": "Slow", "service": "api"}
    message = {"version": "4", "alerts": [{"status": "firing", "labels": labels}]}
    await api("POST", "/api/webhooks/am", api.token("run"), json=message)
    clock.advance(29 * 86_400)
    assert forget_old_receipts(api.store, clock, 30) == 0
    clock.advance(2 * 86_400)
    assert forget_old_receipts(api.store, clock, 30) == 1

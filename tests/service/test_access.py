"""Who may do what: roles, teams, signatures, and how often and how much."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from service_rig import SECRETS, Api, folder_store, serving

from opsleuth.checkpoints.approvals import LIFETIME, ApprovalRequest
from opsleuth.checkpoints.effects import Effect, EffectGrant
from opsleuth.checkpoints.errors import NotApprovedError
from opsleuth.checkpoints.service.tokens import ApiToken, TokensTable
from opsleuth.console.approval_questions import render_question
from opsleuth.service.authorization import NO_TASK
from opsleuth.service.signatures import HEADER, TOLERANCE, sign_message
from opsleuth.state.clock import FakeClock

DIGEST = "9f3c21aa" * 8
MESSAGE: dict[str, Any] = {
    "version": "4",
    "alerts": [
        {"status": "firing", "labels": {"alertname": "Slow", "service": "orders-api"}, "startsAt": "2026-11-29T14:00:00Z"},
        {"status": "resolved", "labels": {"alertname": "Old", "service": "cart"}, "startsAt": "2026-11-29T13:00:00Z"},
    ],
}  # fmt: skip


def ask(api: Api, task: str) -> str:
    document = {
        "tool": "service_rollback",
        "arguments": {"service": "orders-api"},
        "target": "orders-api",
        "risk": "high",
    }
    question = ApprovalRequest(about="call", subject=f"{task}/t1c1", digest=DIGEST, document=document)
    return api.store.approvals.request(task, question).id


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/tasks"), ("POST", "/api/tasks"), ("GET", "/api/tasks/x"), ("GET", "/api/tasks/x/events"),
        ("GET", "/api/tasks/x/report"), ("GET", "/api/tasks/x/panel"), ("POST", "/api/tasks/x/cancel"),
        ("GET", "/api/approvals"), ("GET", "/api/tasks/x/approvals"), ("POST", "/api/tasks/x/approvals/A1/approve"),
        ("POST", "/api/tasks/x/approvals/A1/deny"), ("POST", "/api/tasks/x/approvals/A1/resolve"),
        ("POST", "/api/webhooks/x"), ("GET", "/metrics"), ("POST", "/api/tasks/x/resume"), ("GET", "/api/alerts"),
    ],
)  # fmt: skip
async def test_without_a_valid_token_nothing_is_told(api: Api, method: str, path: str) -> None:
    task = await api.start()
    for token in (None, "", "opsleuth_x_y", api.token("run")[:-1]):
        answer = await api(method, path.replace("/x", f"/{task}"), token, json={})
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
        assert task not in answer.text


async def test_every_address_is_covered_above(api: Api) -> None:
    paths = (await api("GET", "/api/openapi.json")).json()["paths"]
    assert (
        len(
            [
                1
                for path, methods in paths.items()
                for _ in methods
                if "health" not in path and "ready" not in path
            ]
        )
        == 16
    )


async def test_a_view_token_can_neither_start_nor_approve_nor_cancel(api: Api) -> None:
    task = await api.start()
    asked, token = ask(api, task), api.token("view")
    base = f"/api/tasks/{task}"
    for path, body in (
        ("/api/tasks", {"question": "why"}),
        (f"{base}/cancel", {}),
        (f"{base}/resume", {}),
        (f"{base}/approvals/{asked}/approve", {"digest": DIGEST}),
        (f"{base}/approvals/{asked}/deny", {"digest": DIGEST, "reason": "no"}),
    ):
        assert (await api("POST", path, token, json=body)).status_code == 403
    approving = await api(
        "POST", f"{base}/approvals/{asked}/approve", api.token("run"), json={"digest": DIGEST}
    )
    assert approving.status_code == 403
    assert api.store.approvals.get(task, asked).status == "pending"


async def test_another_teams_run_is_as_if_it_did_not_exist(api: Api) -> None:
    task = await api.start()
    asked = ask(api, task)
    api.store.reports.put(task, {"run": task, "answer": "secret"})
    theirs = api.token("view", "run", "approve", team="bank")
    requests: tuple[tuple[str, str, Any], ...] = (
        ("GET", "", None), ("GET", "/events", None), ("GET", "/report", None), ("GET", "/panel", None),
        ("GET", "/approvals", None), ("POST", "/cancel", {}), ("POST", "/resume", {}),
        ("POST", f"/approvals/{asked}/approve", {"digest": DIGEST}),
        ("POST", f"/approvals/{asked}/deny", {"digest": DIGEST, "reason": "no"}),
        ("POST", f"/approvals/{asked}/resolve", {"digest": DIGEST, "outcome": "absent", "reason": "no"}),
    )  # fmt: skip
    for method, path, body in requests:
        seen = await api(method, f"/api/tasks/{task}{path}", theirs, json=body)
        nowhere = await api(method, f"/api/tasks/inv-20261129-nosuchrun2{path}", theirs, json=body)
        assert (seen.status_code, seen.json()) == (nowhere.status_code, nowhere.json()), path
        assert seen.json() == {"error": "not_found", "message": NO_TASK}
    assert (await api("GET", "/api/tasks", theirs)).json() == {"tasks": [], "next": None}
    assert (await api("GET", "/api/approvals", theirs)).json() == {"approvals": [], "next": None}
    assert task not in (await api("GET", "/metrics", theirs)).text
    assert api.store.approvals.get(task, asked).status == "pending"


async def test_a_beginning_of_an_id_opens_nothing(api: Api) -> None:
    task = await api.start()
    for part in (task[:-1], task.rpartition("-")[2], "-", task.upper()):
        assert (await api("GET", f"/api/tasks/{part}", api.token("view"))).status_code == 404


async def test_whoever_approves_over_the_api_sees_what_the_terminal_shows(api: Api) -> None:
    task = await api.start()
    document = {
        "tool": "service_scale", "target": "plane/orders\u202eapi", "risk": "high", "environment": "production",
        "arguments": {"replicas": 5}, "before": {"replicas": 3}, "purpose": "more room", "precheck": "3 are ready",
        "undo": "scale back", "checked_after": True, "can_be_probed": False, "gate_reason": "high risk is asked",
        "earlier": {"status": "done", "started": "14:01", "id": "call-1"},
    }  # fmt: skip
    question = ApprovalRequest(about="call", subject=f"{task}/t1c1", digest=DIGEST, document=document)
    api.store.approvals.request(task, question)
    (waiting,) = (await api("GET", "/api/approvals", api.token("view"))).json()["approvals"]
    shown = {(field["level"], field["name"]): field for field in waiting["shown"]}
    assert shown[1, "replicas"]["value"] == "5"
    assert shown[2, "was"]["value"] == "3"
    assert shown[0, "environment"]["value"] == "production"
    assert shown[0, "check now"]["value"] == "3 are ready"
    assert "read again" in shown[0, "check after"]["value"]
    assert shown[0, "undo"]["value"] == "scale back"
    assert "call-1" in shown[0, "done before"]["value"]
    assert "\u202e" not in shown[0, "target"]["value"]
    assert {name for _, name in shown if shown[_, name]["untrusted"]} == {"why", "check now"}
    assert (waiting["why"], waiting["rule"]) == ("more room", "high risk is asked")
    terminal = "\n".join(render_question(api.store.approvals.get(task, waiting["id"]), width=200))
    assert [field["name"] for field in waiting["shown"] if field["name"] not in terminal] == []


async def test_the_eldest_question_is_shown_however_many_runs_came_after_it(api: Api) -> None:
    task = await api.start()
    asked, theirs = (
        ask(api, task),
        (await api("POST", "/api/tasks", api.token("run", team="bank"), json={"question": "why"})).json(),
    )
    ask(api, theirs["task_id"])
    database = api.store.database
    others = ", ".join(sorted(database.columns("runs") - {"id"}))
    copies = f"""
    INSERT INTO runs (id, {others})
    WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 10001)
    SELECT id || '-' || n, {others} FROM runs, counted WHERE id = ?
    """
    database.change(copies, (task,))
    (waiting,) = (await api("GET", "/api/approvals", api.token("view"))).json()["approvals"]
    assert (waiting["task_id"], waiting["id"]) == (task, asked)
    figures = (await api("GET", "/metrics", api.token("view"))).text
    assert 'opsleuth_runs{status="queued"} 10002' in figures


async def test_an_approver_is_named_in_the_row_and_the_run_goes_on(api: Api) -> None:
    task = await api.start()
    asked = ask(api, task)
    (waiting,) = (await api("GET", "/api/approvals", api.token("view"))).json()["approvals"]
    assert (waiting["task_id"], waiting["id"], waiting["digest"]) == (task, asked, DIGEST)
    path = f"/api/tasks/{task}/approvals/{asked}/approve"
    answer = await api("POST", path, api.token("approve"), json={"digest": waiting["digest"][:16]})
    assert answer.status_code == 200
    row = api.store.approvals.get(task, asked)
    assert (row.status, row.answered_by, row.via) == ("approved", "shop-approve", "api")
    assert api.queued == [task, task]
    assert api.store.events.read(task)[-1]["data"]["by"] == "shop-approve"


async def test_another_digest_and_a_second_answer_are_refused(api: Api) -> None:
    task = await api.start()
    asked, token = ask(api, task), api.token("approve")
    path = f"/api/tasks/{task}/approvals/{asked}"
    assert (await api("POST", f"{path}/approve", token, json={"digest": "0" * 64})).status_code == 409
    assert (await api("POST", f"{path}/approve", token, json={"digest": "9f3c"})).status_code == 422
    assert (await api("POST", f"{path}/approve", token, json={"digest": DIGEST})).status_code == 200
    replayed = await api("POST", f"{path}/approve", token, json={"digest": DIGEST})
    assert replayed.status_code == 409
    assert api.store.approvals.get(task, asked).status == "approved"


async def test_an_approval_can_be_taken_back_until_it_is_used(api: Api) -> None:
    task = await api.start()
    asked, token = ask(api, task), api.token("approve")
    path = f"/api/tasks/{task}/approvals/{asked}"
    given, no = {"digest": DIGEST}, {"digest": DIGEST, "reason": "no"}
    assert (await api("POST", f"{path}/approve", token, json=given)).status_code == 200
    assert (await api("POST", f"{path}/deny", token, json=no)).status_code == 200
    assert api.store.approvals.get(task, asked).status == "denied"
    assert (await api("POST", f"{path}/approve", token, json=given)).status_code == 409


async def test_an_approval_is_used_once_and_not_after_it_expired(api: Api, clock: FakeClock) -> None:
    for wait in (LIFETIME.total_seconds(), 0.0):
        task = await api.start(f"after {wait}")
        asked = ask(api, task)
        path = f"/api/tasks/{task}/approvals/{asked}/approve"
        assert (await api("POST", path, api.token("approve"), json={"digest": DIGEST})).status_code == 200
        clock.advance(wait)
        effect = Effect(call_id=f"{task}/t1c1", tool="x", arguments={}, target="orders-api", risk="high")
        grant = EffectGrant(asked, DIGEST)
        if wait:
            with pytest.raises(NotApprovedError, match="expired"):
                api.store.effects.start(task, effect, attempt=1, grant=grant)
            continue
        api.store.effects.start(task, effect, attempt=1, grant=grant)
        again = Effect(call_id=f"{task}/t1c2", tool="y", arguments={}, target="orders-api", risk="high")
        with pytest.raises(NotApprovedError, match="used"):
            api.store.effects.start(task, again, attempt=1, grant=grant)


def hmac_of(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def signed(name: str, body: bytes, at: float) -> dict[str, str]:
    secret = SECRETS[name]
    if name == "pages":
        return {"X-PagerDuty-Signature": f"v1={'0' * 64},v1={hmac_of(secret, body)}"}
    if name == "panels":
        return {"X-Grafana-Alerting-Signature": hmac_of(secret, body)}
    return {HEADER: sign_message(secret, body, at)}


@pytest.mark.parametrize("name", sorted(SECRETS))
async def test_a_signed_message_starts_runs_and_an_unsigned_one_nothing(
    api: Api, clock: FakeClock, name: str
) -> None:
    body, now = json.dumps(MESSAGE).encode(), clock.now().timestamp()
    good = signed(name, body, now)
    for headers, content in (
        ({}, body),
        (dict.fromkeys(good, "v1="), body),
        (good, body + b" "),
        (signed("peer", body, now - TOLERANCE - 1) if name == "peer" else {}, body),
        (
            {key: value.replace(value[-1], "0" if value[-1] != "0" else "1") for key, value in good.items()},
            body,
        ),
    ):
        assert (
            await api("POST", f"/api/webhooks/{name}", content=content, headers=headers)
        ).status_code == 401
    assert api.queued == []
    answer = await api("POST", f"/api/webhooks/{name}", content=body, headers=good)
    assert answer.status_code == 202
    assert (answer.json()["started"], answer.json()["over"]) == (1, 1)
    assert api.store.runs.find(api.queued[0]).project == "shop"
    again = await api("POST", f"/api/webhooks/{name}", content=body, headers=good)
    assert (again.json()["started"], again.json()["joined"]) == (0, 1)


async def test_alertmanager_comes_with_a_token(api: Api) -> None:
    assert (await api("POST", "/api/webhooks/am", api.token("view"), json=MESSAGE)).status_code == 403
    answer = await api("POST", "/api/webhooks/am", api.token("run"), json=MESSAGE)
    assert answer.json()["started"] == 1
    assert (await api("POST", "/api/webhooks/am", api.token("run"), json={"x": 1})).status_code == 422
    assert (await api("POST", "/api/webhooks/am", api.token("run"), content=b"[")).status_code == 422


async def test_who_asks_too_often_waits(api: Api) -> None:
    token = api.token("view")
    answers = [await api("GET", "/api/tasks", token) for _ in range(101)]
    assert [answer.status_code for answer in answers] == [200] * 100 + [429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert (await api("GET", "/api/tasks", api.token("run"))).status_code == 200


async def test_strangers_are_refused_before_the_database_is_asked_and_known_ones_are_not(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, asked = api.token("view"), list[str]()
    assert (await api("GET", "/api/tasks", token)).status_code == 200
    check = TokensTable.check

    def noted(self: TokensTable, text: str) -> ApiToken | None:
        asked.append(text)
        return check(self, text)

    monkeypatch.setattr(TokensTable, "check", noted)
    answers = [(await api("GET", "/api/tasks", "opsleuth_x_y")).status_code for _ in range(30)]
    assert set(answers) == {401, 429}
    assert len(asked) == answers.count(401)
    assert (await api("GET", "/api/tasks", token)).status_code == 200
    wrong = await api("POST", "/api/webhooks/peer", content=b"{}")
    assert wrong.status_code == 429


async def test_a_sender_that_signs_too_often_waits(clock: FakeClock, tmp_path: Path) -> None:
    async with serving(folder_store(tmp_path), clock, requests_per_minute=6) as api:
        body = json.dumps(MESSAGE).encode()
        headers = signed("peer", body, clock.now().timestamp())
        answers = [await api("POST", "/api/webhooks/peer", content=body, headers=headers) for _ in range(3)]
    assert [answer.status_code for answer in answers][-1] == 429


async def test_a_method_that_nobody_knows_makes_no_series(api: Api) -> None:
    for method in ("GIVE", "TAKE"):
        await api(method, "/api/tasks")
    figures = (await api("GET", "/metrics", api.token("view"))).text
    assert 'method="other"' in figures
    assert "GIVE" not in figures


async def test_a_body_that_is_too_large_is_not_read_to_its_end(api: Api) -> None:
    token = api.token("run")
    for path in ("/api/tasks", "/api/webhooks/am"):
        answer = await api("POST", path, token, content=b" " * 1_000_001)
        assert answer.status_code == 413
    assert api.queued == []


async def test_no_answer_may_be_kept_or_framed(api: Api) -> None:
    for path in ("/healthz", "/api/tasks", "/nowhere"):
        headers = (await api("GET", path, api.token("view"))).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
        assert headers["content-security-policy"].startswith("default-src 'none'")

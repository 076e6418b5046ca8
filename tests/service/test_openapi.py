"""The description of the API holds: made-up requests get what it promises, and never an error of ours."""

import asyncio
import warnings
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from service_rig import Api, folder_store, listening, serving
from tiers import COSTLY

from opsleuth.checkpoints.approvals import ApprovalRequest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of packages that it loads
    import schemathesis
    from schemathesis.checks import CHECKS

DIGEST = "9f3c21aa" * 8
NOT_ASKED = ("ignored_auth", "use_after_free", "ensure_resource_availability", "object_level_authorization")
"""Checks of whole sequences and of access, which have tests of their own."""


READ_FURTHER = ("/api/tasks", "/api/webhooks/{sender}")
"""Here a form is not all: an alert must say something, a window must not end before it begins."""


def checks_of(path: str) -> list[Any]:
    left_out = {*NOT_ASKED, *(["positive_data_acceptance"] if path in READ_FURTHER else [])}
    return [check for check in CHECKS.get_all() if check.__name__ not in left_out]


def prepared(api: Api, task: str) -> None:
    """A run with something of everything in it."""
    api.store.reports.put(task, {"run": task, "verdict": "inconclusive", "answer": "nobody knows"})
    api.store.events.append(task, "run.started", {"question": "why"})
    api.store.approvals.request(task, ApprovalRequest(about="call", subject=f"{task}/t1c1", digest=DIGEST))


def probe(address: str, token: str, task: str | None) -> int:
    """Ask every address with made-up requests, with a real run's id or made-up ones; how many were asked."""
    schema = schemathesis.openapi.from_url(f"{address}/api/openapi.json")
    asked = 0
    for found in schema.get_all_operations():
        operation: Any = cast("Any", found).ok()

        @settings(
            COSTLY,
            max_examples=12,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def one(case: Any) -> None:
            nonlocal asked
            asked += 1
            if task and "task_id" in (case.path_parameters or {}):
                case.path_parameters["task_id"] = task
            if case.path.endswith("/events"):
                case.query = {**(case.query or {}), "follow": "false"}
            case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=checks_of(case.path))

        one()
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("real", [False, True], ids=["made-up ids", "a run's id"])
async def test_made_up_requests_get_what_the_description_promises(tmp_path: Path, *, real: bool) -> None:
    async with serving(folder_store(tmp_path), requests_per_minute=1e9) as api, listening(api.app) as address:
        task = await api.start()
        prepared(api, task)
        token = api.token("view", "run", "approve")
        assert await asyncio.to_thread(probe, address, token, task if real else None) > 100


async def test_a_stream_follows_a_run_over_a_real_connection(tmp_path: Path) -> None:
    async with serving(folder_store(tmp_path)) as api, listening(api.app) as address:
        task = await api.start()
        api.store.events.append(task, "run.started", {})
        headers = {"Authorization": f"Bearer {api.token('view')}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30) as client:
            async with client.stream("GET", f"/api/tasks/{task}/events") as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == "id: 1"
                api.store.events.append(task, "warning", {"message": "late"})
                async for line in lines:
                    if line == "id: 2":
                        break
            healthy = await client.get("/healthz")
        assert healthy.json()["status"] == "ok"

"""A client that a public generator makes of our description works against the running API, refusals included."""

import asyncio
import importlib
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from service_rig import Api, folder_store, listening, serving

CONFIG = """
project_name_override: generated-client
package_name_override: generated_client
post_hooks: []
"""


def generate_client(folder: Path, description: str) -> None:
    """A client package in this folder. Fails for whatever the generator does not understand."""
    (folder / "openapi.json").write_text(description)
    (folder / "config.yaml").write_text(CONFIG)
    made = ["generate", "--path", "openapi.json", "--output-path", "client", "--config", "config.yaml"]
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *made, "--fail-on-warning"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with serving(folder_store(tmp_path)) as running:
        yield running


def load_operation(path: str) -> ModuleType:
    return importlib.import_module(f"generated_client.api.{path}")


def use_client(address: str, token: str, theirs: str) -> dict[str, Any]:
    """What the generated functions make of the answers of the API."""
    package, models = (
        importlib.import_module("generated_client"),
        importlib.import_module("generated_client.models"),
    )
    with ExitStack() as clients:
        ours, other, stranger = (
            clients.enter_context(package.AuthenticatedClient(base_url=address, token=text))
            for text in (token, theirs, "opsleuth_x_y")
        )
        return exchange_everything(models, ours, other, stranger)


def exchange_everything(models: ModuleType, ours: Any, other: Any, stranger: Any) -> dict[str, Any]:
    """Answers by what they are about."""
    start = load_operation("tasks.start_api_tasks_post").sync
    show = load_operation("tasks.show_api_tasks_task_id_get").sync
    cancel = load_operation("tasks.cancel_api_tasks_task_id_cancel_post").sync
    receive = load_operation("webhooks.receive_api_webhooks_sender_post").sync
    started = start(
        client=ours, body=models.TaskAsked(question="why is checkout slow?"), idempotency_key="one"
    )
    body = models.ReceiveApiWebhooksSenderPostBody.from_dict(
        {
            "version": "4",
            "alerts": [{"status": "firing", "labels": {"alertname": "Slow", "service": "checkout"}}],
        }
    )
    return {
        "started": started,
        "again": start(
            client=ours, body=models.TaskAsked(question="why is checkout slow?"), idempotency_key="one"
        ),
        "reused": start(client=ours, body=models.TaskAsked(question="another"), idempotency_key="one"),
        "shown": show(started.task_id, client=ours),
        "not theirs": show(started.task_id, client=other),
        "stranger": show(started.task_id, client=stranger),
        "forbidden": cancel(started.task_id, client=other, body=models.Reason(reason="x")),
        "received": receive("am", client=ours, body=body),
        "listed": load_operation("tasks.list_tasks_api_tasks_get").sync(client=ours, limit=1),
        "alerts": load_operation("alerts.list_received_alerts_api_alerts_get").sync(client=ours),
        "approvals": load_operation("approvals.waiting_api_approvals_get").sync(client=ours),
        "canceled": cancel(started.task_id, client=ours, body=models.Reason(reason="enough")),
        "refused": load_operation("tasks.resume_api_tasks_task_id_resume_post").sync(
            started.task_id, client=ours, body=models.Resumption()
        ),
    }


@pytest.mark.slow
async def test_generated_client_speaks_with_the_running_api(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = (await api("GET", "/api/openapi.json")).text
    await asyncio.to_thread(generate_client, tmp_path, description)
    monkeypatch.syspath_prepend(str(tmp_path / "client"))
    async with listening(api.app) as address:
        theirs = api.token("view", team="bank")
        seen = await asyncio.to_thread(use_client, address, api.token("view", "run"), theirs)
    assert seen["again"].task_id == seen["started"].task_id
    assert (seen["shown"].question, seen["shown"].status.value) == ("why is checkout slow?", "queued")
    assert (seen["received"].started, seen["received"].joined) == (1, 0)
    assert [task.task_id for task in seen["listed"].tasks] == seen["received"].tasks
    assert seen["listed"].next_ == seen["received"].tasks[0]
    assert [alert.outcome.value for alert in seen["alerts"].alerts] == ["started"]
    assert seen["approvals"].approvals == []
    assert seen["canceled"].task_id == seen["started"].task_id
    refusals = {
        "reused": "conflict",
        "not theirs": "not_found",
        "stranger": "unauthorized",
        "forbidden": "forbidden",
    }
    for name, error in (refusals | {"refused": "conflict"}).items():
        assert (type(seen[name]).__name__, seen[name].error) == ("Problem", error), name

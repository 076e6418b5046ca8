"""What the API refuses before it reads a body, what it takes from whom, and what it says of itself."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_rig import Api, folder_store, listening, serving

from opsleuth.checkpoints.errors import ConflictError
from opsleuth.service.client_connections import TimedConnection
from opsleuth.service.commands.serve import list_proxy_settings
from opsleuth.service.documents import TaskAsked
from opsleuth.service.request_border import UNSIGNED_OF_ADDRESS
from opsleuth.service.unfit_json import DEEPEST_JSON, describe_unfit_json
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import Status


async def exchange(address: str, sent: bytes) -> bytes:
    """What a server answers to these bytes, until it ends the connection or says nothing for a while."""
    host, port = address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    await writer.drain()
    got = b""
    try:
        while piece := await asyncio.wait_for(reader.read(65_536), 2):
            got += piece
    except TimeoutError:
        pass
    writer.close()
    return got


async def read_until_closed(reader: asyncio.StreamReader) -> bytes:
    """All that comes. Bytes that arrive after the server has left make its end a reset."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := await reader.read(65_536):
            got += piece
    return got


@pytest.fixture
async def address(api: Api) -> AsyncIterator[str]:
    async with listening(api.app) as at:
        yield at


@pytest.mark.parametrize("path", ["/api/tasks", "/api/webhooks/am", "/api/tasks/x/cancel"])
async def test_request_without_a_token_is_answered_before_its_body_comes(address: str, path: str) -> None:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
    )
    got = await exchange(address, head.encode())
    assert got.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in got.lower()


async def test_two_lengths_are_refused_and_nothing_behind_them_is_read(api: Api, address: str) -> None:
    token = api.token("run")
    smuggled = f"GET /api/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
    sent = (
        f"POST /api/tasks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 4\r\n"
        f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
    )
    got = await exchange(address, sent.encode())
    assert got.startswith(b"HTTP/1.1 400")
    assert got.count(b"HTTP/1.1 ") == 1


async def test_client_that_leaves_is_one_line(
    api: Api, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = address.removeprefix("http://").split(":")
    with caplog.at_level(logging.INFO):
        _, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /api/webhooks/am HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.token('run')}\r\n"
        writer.write(f"{head}Content-Length: 900000\r\n\r\n{{".encode())
        await writer.drain()
        await asyncio.sleep(0.3)
        writer.close()
        await asyncio.sleep(0.5)
    lines = [
        record.getMessage() for record in caplog.records if record.name.startswith(("opsleuth", "uvicorn"))
    ]
    assert lines == ["POST /api/webhooks/am: the client left before it had sent everything"]


async def test_valid_token_is_let_in_from_an_address_that_asks_too_often(api: Api) -> None:
    token = api.token("view")
    for _ in range(200):
        await api("GET", "/api/tasks", "opsleuth_000000000000_nobody")
    assert (await api("GET", "/api/tasks", "opsleuth_000000000000_nobody")).status_code == 429
    assert (await api("GET", "/api/tasks", token)).status_code == 200


@pytest.mark.parametrize(
    "alert",
    [
        {"text": "slow \ud800"},
        {"text": "slow", "labels": {"\udfff": "x"}},
        {"text": "slow", "labels": {"value": float("inf")}},
        {"text": "slow", "labels": json.loads('{"a":' * 500 + "1" + "}" * 500)},
    ],
    ids=["text", "key", "infinity", "depth"],
)
@pytest.mark.parametrize("path", ["/api/tasks", "/api/webhooks/am"])
async def test_document_that_cannot_be_stored_is_refused(api: Api, path: str, alert: dict[str, Any]) -> None:
    body = {"alert": alert} if path == "/api/tasks" else {"alerts": [{"status": "firing", **alert}]}
    answer = await api(
        "POST", path, api.token("run"), content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    assert api.queued == []


async def test_document_deeper_than_any_parser_goes_is_refused(api: Api) -> None:
    body = '{"alert":' + "[" * 100_000 + "]" * 100_000 + "}"
    for path in ("/api/tasks", "/api/webhooks/am"):
        answer = await api(
            "POST", path, api.token("run"), content=body, headers={"Content-Type": "application/json"}
        )
        assert 400 <= answer.status_code < 500
        assert answer.json()["message"]


def test_document_as_deep_as_allowed_is_fit() -> None:
    document: Any = "x"
    for _ in range(DEEPEST_JSON - 1):
        document = [document]
    assert describe_unfit_json(document) is None
    assert "levels" in (describe_unfit_json([document]) or "")
    assert TaskAsked(alert={"text": "ok"}).alert == {"text": "ok"}


@pytest.mark.parametrize("path", ["/api/tasks/", "/healthz/"])
async def test_no_address_redirects(api: Api, path: str) -> None:
    answer = await api("GET", path, api.token("view"), headers={"Host": "evil.example.com"})
    assert answer.status_code == 404
    assert "location" not in answer.headers


@pytest.mark.parametrize("path", ["/healthz", "/", "/api/tasks", "/page.js"])
async def test_head_is_get_without_the_body(api: Api, path: str) -> None:
    got = await api("GET", path, api.token("view"))
    head = await api("HEAD", path, api.token("view"))
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]


async def test_every_refusal_refers_to_one_schema(api: Api) -> None:
    document = (await api("GET", "/api/openapi.json")).json()
    assert document["components"]["schemas"]["Problem"]["required"] == ["error", "message"]
    schemas = [
        answer["content"]["application/json"]["schema"]
        for path in document["paths"].values()
        for operation in path.values()
        for code, answer in operation["responses"].items()
        if int(code) >= 400
    ]
    assert schemas
    assert all(schema == {"$ref": "#/components/schemas/Problem"} for schema in schemas)


async def test_cancelling_twice_is_cancelling_once(api: Api) -> None:
    run, token = await api.start(), api.token("run")
    answers = [await api("POST", f"/api/tasks/{run}/cancel", token, json={}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert len(api.store.control.pending(run)) == 1
    assert api.queued == [run, run]
    api.store.runs.update(run, status=Status.CANCELED)
    after = await api("POST", f"/api/tasks/{run}/cancel", token, json={})
    assert (after.status_code, after.json()["status"]) == (202, "canceled")


def test_token_names_in_use_are_distinct(api: Api) -> None:
    first, _ = api.store.tokens.create("ana", "shop", ["approve"])
    with pytest.raises(ConflictError, match="the token name ana is in use"):
        api.store.tokens.create("ana", "bank", ["view"])
    api.store.tokens.revoke(first.id)
    api.store.tokens.create("ana", "bank", ["view"])


@pytest.mark.parametrize(
    ("proxies", "expected"),
    [((), {"proxy_headers": False}), (("10.0.0.0/8",), {"proxy_headers": True})],
)
def test_forwarded_addresses_are_believed_of_configured_proxies_only(
    proxies: tuple[str, ...], expected: dict[str, bool]
) -> None:
    found = list_proxy_settings(proxies)
    assert found == {**expected, "forwarded_allow_ips": list(proxies)}


async def test_only_so_many_unsigned_bodies_of_one_address_are_read_at_once(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with serving(folder_store(tmp_path), clock) as api, listening(api.app) as address:
        host, port = address.removeprefix("http://").split(":")
        head = "POST /api/webhooks/pages HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n"
        writers = []
        for _ in range(UNSIGNED_OF_ADDRESS):
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(head.encode())
            await writer.drain()
            writers.append(writer)
        await asyncio.sleep(0.3)
        got = await exchange(address, head.encode())
        for writer in writers:
            writer.close()
    assert got.startswith(b"HTTP/1.1 503")


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /"],
)
async def test_client_that_sends_no_whole_request_is_let_go(
    address: str, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedConnection, "patience", 0.2)
    host, port = address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)

    async def drip() -> None:
        """A byte now and then, as a client does that wants to stay."""
        while True:
            await asyncio.sleep(0.1)
            writer.write(b"x")

    dripping = asyncio.create_task(drip())
    async with asyncio.timeout(20):
        got = await read_until_closed(reader)
    dripping.cancel()
    writer.close()
    assert got.startswith(b"HTTP/1.1 200") == sent.endswith(b"GET /")


async def test_stream_of_events_outlives_the_patience_with_slow_clients(
    api: Api, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedConnection, "patience", 0.1)
    run = await api.start()
    headers = {"Authorization": f"Bearer {api.token('view')}"}
    async with (
        httpx.AsyncClient() as client,
        client.stream("GET", f"{address}/api/tasks/{run}/events", headers=headers) as stream,
    ):
        await asyncio.sleep(1)
        api.store.runs.update(run, status=Status.COMPLETED)
        lines = [line async for line in stream.aiter_lines()]
    assert "event: end" in lines


@pytest.mark.parametrize("broken", [b"ZZZ\r\n", b"-1\r\n", b"5\r\nabcdeXX"])
@pytest.mark.parametrize("token", [None, "run"])
async def test_broken_chunk_is_no_error_of_ours(
    api: Api, address: str, broken: bytes, token: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    bearer = f"Authorization: Bearer {api.token('run')}\r\n" if token else ""
    head = f"POST /api/tasks HTTP/1.1\r\nHost: x\r\n{bearer}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    got = await exchange(address, head.encode() + broken)
    assert got.startswith(b"HTTP/1.1 400")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_request_for_a_websocket_is_answered_as_any_other(api: Api, address: str) -> None:
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    bearer = f"Authorization: Bearer {api.token('view')}\r\n"
    got = await exchange(address, f"GET /api/tasks HTTP/1.1\r\nHost: x\r\n{bearer}{upgrade}\r\n".encode())
    assert got.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", ["/api/tasks", "/api/webhooks/pages"])
async def test_body_that_takes_too_long_is_given_up(tmp_path: Path, clock: FakeClock, path: str) -> None:
    async with serving(folder_store(tmp_path), clock, body_seconds=0.3) as api, listening(api.app) as address:
        bearer = f"Authorization: Bearer {api.token('run')}\r\n" if path == "/api/tasks" else ""
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\n{bearer}Content-Type: application/json\r\nContent-Length: 900\r\n\r\n"
        got = await exchange(address, head.encode() + b"{")
    assert got.startswith(b"HTTP/1.1 408")
    assert b"took longer than 0.3 s" in got

"""The server: HTTP/1.1 on loopback, one asyncio task a connection, nothing but the standard library."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from opsleuth.models.server.chat_replies import Entry, Request
from opsleuth.models.server.reply_faults import ModelServerResponse, render_response

LONGEST_BODY = 64_000_000

Model = Callable[[Request], Entry]


class ModelServer:
    """Answers requests with `model`, in a thread of its own while it is entered.

    `requests` holds the bodies of all chat requests as they came, `sizes` their bytes, `headers` their headers.
    """

    def __init__(self, model: Model, port: int = 0, host: str = "127.0.0.1") -> None:
        self._model, self._host, self._port = model, host, port
        self.requests: list[Request] = []
        self.sizes: list[int] = []
        self.headers: list[Mapping[str, str]] = []
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._never = asyncio.Event()  # held here: a task that waits for what nobody holds is collected
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://{self._host}:{self._port}/v1"

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Server]:
        """The server, listening: from here on `base_url` holds. Raises OSError for a port that is taken."""
        server = await asyncio.start_server(self._connection, self._host, self._port, limit=2**20)
        self._port = server.sockets[0].getsockname()[1]
        async with server:
            yield server

    async def _serve(self) -> None:
        async with self.listening() as server:
            self._started.set()
            await server.serve_forever()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self._serve())
        self._loop.run_until_complete(asyncio.wait({self._task}))
        rest = asyncio.all_tasks(self._loop)
        for task in rest:
            task.cancel()
        if rest:
            self._loop.run_until_complete(asyncio.wait(rest))

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (
            ConnectionError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            asyncio.CancelledError,
        ):
            pass  # the client went away, or the server is stopped
        finally:
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False where the connection ends with it."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ", 2)
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:]) if v}
        body = await reader.readexactly(min(int(headers.get("content-length", 0)), LONGEST_BODY))
        reply = self._answer(method, path, headers, body)
        if reply.stalls:
            await self._never.wait()
        if reply.cut is not None:
            if reply.cut:
                writer.write(_response_head(reply) + reply.body[: reply.cut])
                await writer.drain()
            return False
        writer.write(_response_head(reply) + reply.body)
        await writer.drain()
        return True

    def _answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> ModelServerResponse:
        if method == "GET" and path.endswith("/models"):
            listed: dict[str, Any] = {"object": "list", "data": [{"id": "scripted", "object": "model"}]}
            return ModelServerResponse(200, json.dumps(listed).encode())
        if method != "POST" or not path.partition("?")[0].endswith("/chat/completions"):
            return ModelServerResponse(404, b'{"error":{"message":"there is only /chat/completions"}}')
        request = json.loads(body)
        self.requests.append(request)
        self.sizes.append(len(body))
        self.headers.append(headers)
        return render_response(self._model(request), request)


def _response_head(reply: ModelServerResponse) -> bytes:
    headers = {"Content-Type": reply.kind, "Content-Length": str(len(reply.body)), **reply.headers}
    lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

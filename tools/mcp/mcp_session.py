"""One session with one MCP server, open for as long as an attempt lasts.

A task of its own enters and leaves the connection, as the SDK's scopes ask; calls come from any other task. A server
that died is restarted by the next call. What it writes on stderr goes into a file and is quoted where it fails.
"""

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, Any

import httpx2  # the SDK's own client
from anyio import BrokenResourceError, ClosedResourceError, EndOfStream
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, Implementation, Tool
from pydantic import ValidationError

from opsleuth import __version__
from opsleuth.configuration.mcp_settings import McpServerSettings
from opsleuth.configuration.proxies import choose_proxy
from opsleuth.configuration.secret_references import Vault
from opsleuth.state.errors import ConfigError
from opsleuth.tools.mcp.answer_errors import McpAnswerError, error_from_code, is_connection_closed
from opsleuth.tools.mcp.tolerant_stream import tolerate_broken_tools
from opsleuth.tools.spec import ToolError, TransientError, UnavailableError
from opsleuth.tools.truncation import cut_text

CLOSE_SECONDS = 8.0
"""A server gets 2 s to end by itself, 2 s after TERM; this is the guard around it."""
_MOST_PAGES = 20

Listen = Callable[[Sequence[Tool]], None]


class McpSession:
    """The session. `listen` receives what the server's tools are, each time that it was connected."""

    def __init__(self, server: McpServerSettings, vault: Vault, listen: Listen) -> None:
        self.server = server
        self.problem = ""
        self.reached = False
        self.broken_tools: dict[str, str] = {}
        self._vault, self._listen = vault, listen
        self._ready: asyncio.Future[Client] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._errors: IO[bytes] | None = None

    def start(self) -> "asyncio.Future[Client]":
        """Start connecting unless started; the future returns the client, or the reason why there is none."""
        if self._ready is None or self._keeper is None or self._keeper.done():
            self._over = asyncio.Event()
            self._ready = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._ready, self._over))
        return self._ready

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Call a tool.

        Raises UnavailableError where nothing was sent, InvalidArgumentsError, NotPermittedError and McpAnswerError for what the
        server answered with, and TransientError for everything after which nobody knows what the server did.
        """
        client = await asyncio.shield(self.start())
        try:
            return await client.call_tool(tool, dict(arguments))
        except MCPError as error:
            if not is_connection_closed(error.code, str(error)):
                raise error_from_code(self.server.name, error.code, str(error)) from None
        except (
            ValidationError,
            RuntimeError,
        ) as error:  # the SDK's own words for an answer that it cannot take
            words = cut_text(" ".join(str(error).split()), 300)
            raise McpAnswerError(
                f"{self.server.name} answered with something that is not MCP: {words}"
            ) from None
        except (OSError, ValueError, ClosedResourceError, BrokenResourceError, EndOfStream):
            pass  # as dead as a closed connection
        said = self._said()
        await self.aclose()
        raise TransientError(f"{self.server.name} is gone: its connection ended before it answered{said}")

    async def aclose(self) -> None:
        """Leave the server; one that does not end is ended."""
        self._over.set()
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        _, late = await asyncio.wait({keeper}, timeout=CLOSE_SECONDS if self.reached else 0)
        if late:
            keeper.cancel()
            await asyncio.wait({keeper}, timeout=CLOSE_SECONDS)

    async def _keep(self, ready: "asyncio.Future[Client]", over: asyncio.Event) -> None:
        """Hold the connection until it is over; whatever fails before it is there is what a caller hears."""
        with tempfile.TemporaryFile() as self._errors:
            try:
                async with asyncio.timeout(self.server.start_seconds) as limit, self._connected() as client:
                    self._listen(await _list_all_tools(client))
                    self.problem, self.reached = "", True
                    limit.reschedule(None)
                    ready.set_result(client)
                    await over.wait()
            except* Exception as errors:  # noqa: BLE001 - an SDK's task groups raise anything, in groups of groups
                self._failed(ready, errors)
            finally:
                self.reached = False
                if not ready.done():
                    ready.set_exception(UnavailableError(f"{self.server.name} was left"))
                ready.exception()

    def _failed(self, ready: "asyncio.Future[Client]", errors: BaseExceptionGroup[Exception]) -> None:
        first = _first_leaf_error(errors)
        why = f"{type(first).__name__}: {first}".rstrip(": ")
        if isinstance(first, TimeoutError):
            why = f"it did not list its tools within {self.server.start_seconds:g} s"
        elif isinstance(first, ToolError | ConfigError):
            why = str(first)
        self.problem = f"{why}{self._said()}"
        if not ready.done():
            ready.set_exception(UnavailableError(f"{self.server.name} cannot be reached: {self.problem}"))

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Client]:
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        logging.getLogger("mcp").propagate = False
        us = Implementation(name="opsleuth", version=__version__)
        async with contextlib.AsyncExitStack() as stack:
            transport = self._pipes() if self.server.command else await self._http(stack)
            tolerant = tolerate_broken_tools(transport, self.broken_tools.__setitem__)
            yield await stack.enter_async_context(Client(tolerant, client_info=us, cache=None))

    def _pipes(self) -> Any:  # noqa: ANN401 - the SDK's transport
        program, *arguments = self.server.command
        seen = {name: os.environ[name] for name in self.server.environment if name in os.environ}
        seen |= {name: self._vault.reveal(secret) for name, secret in self.server.variables.items()}
        parameters = StdioServerParameters(
            command=program, args=arguments, env=seen, encoding_error_handler="replace"
        )
        return stdio_client(parameters, errlog=self._errors)  # type: ignore[arg-type] # only its descriptor is used

    async def _http(self, stack: contextlib.AsyncExitStack) -> Any:  # noqa: ANN401 - the SDK's transport
        headers = dict(self.server.headers)
        headers |= {name: self._vault.reveal(secret) for name, secret in self.server.secret_headers.items()}
        if self.server.token is not None:
            headers["Authorization"] = f"Bearer {self._vault.reveal(self.server.token)}"
        limits = httpx2.Timeout(self.server.seconds + 5.0, connect=5.0)
        url = self.server.url or ""
        proxy = choose_proxy(url, None)
        client = httpx2.AsyncClient(
            headers=headers,
            timeout=limits,
            proxy=proxy.url if proxy else None,
            trust_env=False,  # the proxy is chosen above
            verify=httpx2.create_ssl_context(),
        )
        return streamable_http_client(url, http_client=await stack.enter_async_context(client))

    def _said(self) -> str:
        """The end of what it wrote on stderr, for the person who has to fix it."""
        if self._errors is None or self._errors.closed:
            return ""
        file = self._errors.fileno()
        tail = os.pread(file, 500, max(os.fstat(file).st_size - 500, 0)).decode("utf-8", "replace")
        return f" ({' '.join(tail.split())})" if tail.strip() else ""


async def _list_all_tools(client: Client) -> list[Tool]:
    found: list[Tool] = []
    cursor = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return found


def _first_leaf_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

"""An HTTP server on loopback that answers as a public API document says: for backends that cannot be had for tests.

It holds no logic of its own: a test gives the function that answers, and looks at what was asked.
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True)
class Asked:
    """One request; `query` has the last value of each parameter."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """A text is sent as text/plain, anything else as JSON."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Answering = Callable[[Asked], Reply]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "ContractServer"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = Asked(
            method=self.command,
            path=unquote(parts.path),
            query={
                name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()
            },
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(int(self.headers.get("content-length", 0))),
        )
        self.server.asked.append(asked)
        self._send(self.server.answering(asked))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - as http.server names them

    def _send(self, reply: Reply) -> None:
        text = isinstance(reply.body, str)
        body = (reply.body if text else json.dumps(reply.body)).encode()
        self.send_response(reply.status)
        headers = {"content-type": "text/plain" if text else "application/json", **reply.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as http.server names it
        """Silent."""


class ContractServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answering: Answering, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answering = answering
        self.asked: list[Asked] = []
        self._scheme = "https" if tls else "http"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self.server_address[1]}"

    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is refused or goes away is what some tests are about."""


@contextmanager
def contract_server(answering: Answering, tls: ssl.SSLContext | None = None) -> Iterator[ContractServer]:
    with ContractServer(answering, tls) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()

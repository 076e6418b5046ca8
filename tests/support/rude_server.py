"""An HTTP server on loopback that misbehaves as it is told: by the first word of the path."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Manners(BaseHTTPRequestHandler):
    """`/hang/…` never answers, `/reset/…` breaks off in mid-body, `/huge/…` sends 50 MB, `/html/…` a login page."""

    protocol_version = "HTTP/1.1"
    server: "RudeServer"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        getattr(self, f"_{self.path.split('/')[1]}")()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as http.server names it
        """Silent."""

    def _hang(self) -> None:
        self.server.over.wait()

    def _reset(self) -> None:
        self._head(200, "application/json", 1_000_000)
        self.wfile.write(b'{"status":"success","data":')
        self.close_connection = True

    def _huge(self) -> None:
        size = 50_000_000
        self._head(200, "application/json", size)
        try:
            for _ in range(size // 50_000):
                self.wfile.write(b"7" * 50_000)
        except OSError:
            self.server.cut.set()

    def _html(self) -> None:
        self._say(200, "text/html", b"<html><title>Sign in</title></html>")

    def _denied(self) -> None:
        self._say(401, "text/plain", b"Unauthorized")

    def _forbidden(self) -> None:
        self._say(403, "application/json", b'{"message":"no access to this tenant"}')

    def _busy(self) -> None:
        self._say(429, "text/plain", b"slow down", retry="7")

    def _broken(self) -> None:
        self._say(503, "text/plain", b"upstream is gone")

    def _moved(self) -> None:
        self._say(302, "text/plain", b"", location="https://login.example.com/")

    def _missing(self) -> None:
        self._say(404, "application/json", b'{"error":"no such path"}')

    def _strange(self) -> None:
        self._say(200, "application/json", b'{"status":"success","data":{"result":[{"values":7}]}}')

    def _empty(self) -> None:
        body = (
            b'{"status":"success","data":{"result":[]}}'
            if "query" in self.path
            else b'{"status":"success","data":[]}'
        )
        self._say(
            200, "application/json", b'{"status":"success","data":{}}' if "metadata" in self.path else body
        )

    def _head(self, status: int, kind: str, size: int, **more: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(size))
        for name, value in more.items():
            self.send_header({"retry": "retry-after"}.get(name, name), value)
        self.end_headers()

    def _say(self, status: int, kind: str, body: bytes, **more: str) -> None:
        self._head(status, kind, len(body), **more)
        self.wfile.write(body)


class RudeServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Manners)
        self.asked: list[str] = []
        self.over = threading.Event()
        self.cut = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what some tests are about."""


@contextmanager
def rude_server() -> Iterator[RudeServer]:
    with RudeServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()

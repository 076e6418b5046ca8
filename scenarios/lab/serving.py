"""What every service of the lab has: an HTTP server with metrics as Prometheus reads them, and a log of JSON lines."""

import json
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from opsleuth.state.errors import OpsleuthError

BUCKETS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0)
"""Upper bounds of request times in seconds."""
Answer = tuple[HTTPStatus, Mapping[str, Any]]
Query = Mapping[str, str]


@dataclass(slots=True)
class RequestMeter:
    """Requests and their times since the start, and gauges that are read when they are asked for."""

    gauges: dict[str, Callable[[], float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    _buckets: dict[str, list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0] * (len(BUCKETS) + 1))
    )
    _seconds: Counter[str] = field(default_factory=Counter)

    def seen(self, route: str, status: int, seconds: float) -> None:
        place = next((i for i, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        with self._lock:
            self._requests[route, str(status)] += 1
            self._buckets[route][place] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]

    def text(self) -> str:
        """The exposition format of Prometheus, version 0.0.4."""
        with self._lock:
            lines = ["# TYPE http_requests_total counter"]
            lines += [
                f'http_requests_total{{route="{r}",status="{s}"}} {n}' for (r, s), n in self._requests.items()
            ]
            lines.append("# TYPE http_request_duration_seconds histogram")
            for route, counts in self._buckets.items():
                lines += self._histogram(route, counts)
        for name, read in self.gauges.items():
            lines += [f"# TYPE {name} gauge", f"{name} {read():g}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, route: str, counts: list[int]) -> list[str]:
        name, total, lines = "http_request_duration_seconds", 0, []
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{route="{route}",le="{bound}"}} {total}')
        lines.append(f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}')
        return [*lines, f'{name}_count{{route="{route}"}} {total}']


class JsonLog:
    """Lines of JSON in a file of the service's own; safe from any thread."""

    def __init__(self, path: Path, service: str) -> None:
        self._service = service
        self._file = path.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()

    def __call__(self, level: str, message: str, **more: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        row = {"time": now, "level": level, "service": self._service, "message": message, **more}
        with self._lock:
            self._file.write(json.dumps(row) + "\n")

    def close(self) -> None:
        self._file.close()


class LabRequestError(OpsleuthError):
    """A request that cannot be served; `status` is its HTTP status."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


Route = Callable[[Query], Mapping[str, Any]]


class LabHttpServer(ThreadingHTTPServer):
    """Serves routes such as `GET /orders` on loopback; every request is counted and timed."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, routes: Mapping[str, Route], meter: RequestMeter, log: JsonLog) -> None:
        super().__init__(("127.0.0.1", port), _LabHandler)
        self.routes, self.meter, self.log = routes, meter, log


class _LabHandler(BaseHTTPRequestHandler):
    server: LabHttpServer

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, *_: object) -> None:
        """The service's own log says what matters."""

    def _serve(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/metrics":
            self._send(HTTPStatus.OK, self.server.meter.text().encode(), "text/plain; version=0.0.4")
            return
        began = time.perf_counter()
        status, document = self._answer(f"{self.command} {url.path}", dict(parse_qsl(url.query)))
        self.server.meter.seen(url.path, status, time.perf_counter() - began)
        self._send(status, json.dumps(document).encode(), "application/json")

    def _answer(self, name: str, query: Query) -> Answer:
        route = self.server.routes.get(name)
        if route is None:
            return HTTPStatus.NOT_FOUND, {"error": f"nothing at {name}"}
        try:
            return HTTPStatus.OK, route(query)
        except LabRequestError as error:
            self.server.log("ERROR", f"{name} failed: {error}")
            return error.status, {"error": str(error)}

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:
            self.close_connection = True  # whoever asked has gone


def serve_until_killed(service: LabHttpServer) -> None:
    """Serve until the process is ended; the first line of output says that it answers."""
    sys.stdout.write(f"{service.server_port}\n")
    sys.stdout.flush()
    service.serve_forever(poll_interval=0.1)

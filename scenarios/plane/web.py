"""The HTTP face of the control plane."""

import json
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlsplit

from opsleuth.scenarios.case_folder import parse_epoch
from opsleuth.scenarios.plane import signals
from opsleuth.scenarios.plane.engine import OperationRequest, PlaneEngine, PlaneResponse
from opsleuth.scenarios.plane.state import PlaneError

MAX_BODY_BYTES = 64 * 1024
DAY = 86_400.0
Query = Mapping[str, str]
Read = Callable[[PlaneEngine, str, Query], dict[str, Any]]
"""What a GET answers, given the rest of its path and its query."""


class PlaneServer(ThreadingHTTPServer):
    """Serves one engine on loopback. `reads` are its GET routes; `stopping` wakes requests that are never answered."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, port: int, engine: PlaneEngine) -> None:
        super().__init__(("127.0.0.1", port), PlaneHandler)
        self.engine = engine
        self.reads: Mapping[str, Read] = _READS
        self.stopping = Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that was killed; for anything else, print the traceback and answer 500."""
        error = sys.exception()
        if isinstance(error, ConnectionError):
            return
        super().handle_error(request, client_address)  # type: ignore[arg-type]
        if isinstance(request, socket.socket):
            with suppress(OSError):
                request.sendall(_build_failure_response(error))

    def stop(self) -> None:
        """Let go of everything that waits."""
        self.stopping.set()
        self.engine.stop()
        self.server_close()


class PlaneHandler(BaseHTTPRequestHandler):
    """Routes one request; every answer is a JSON document."""

    server: PlaneServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve(self._get)

    def do_POST(self) -> None:
        self._serve(self._post)

    def log_message(self, *_: object) -> None:
        """Nothing is written to the terminal: the ledger says what happened."""

    def _serve(self, route: Callable[[], PlaneResponse]) -> None:
        try:
            answer = route()
        except PlaneError as error:
            answer = PlaneResponse(error.status, {"error": str(error)})
        except ValueError as error:
            answer = PlaneResponse(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        if answer.how == "silence":
            self.server.stopping.wait()
        if answer.how in {"reset", "silence"}:
            self._reset()
        else:
            self._send(answer)

    def _get(self) -> PlaneResponse:
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        first, *rest = url.path.strip("/").split("/")
        read = self.server.reads.get(first)
        if read is None or len(rest) > 1:
            known = ", ".join(f"/{name}" for name in self.server.reads)
            raise PlaneError(HTTPStatus.NOT_FOUND, f"nothing to read at {url.path}; there are {known}")
        engine = self.server.engine
        with engine.world.lock:
            return PlaneResponse(HTTPStatus.OK, read(engine, rest[0] if rest else "", query))

    def _post(self) -> PlaneResponse:
        body = self._body()
        parts = urlsplit(self.path).path.strip("/").split("/")
        if parts == ["switches"]:
            return self._switch(body)
        if len(parts) != 2 or parts[0] != "operations":
            text = f"nothing to do at {self.path}; POST /operations/NAME or /switches"
            raise PlaneError(HTTPStatus.NOT_FOUND, text)
        target, arguments = body.pop("target", ""), body.pop("arguments", {})
        if body or not isinstance(target, str) or not isinstance(arguments, dict):
            raise ValueError(
                "an operation takes a document with target (text) and arguments (an object) only"
            )
        headers = (self.headers.get("Idempotency-Key"), self.headers.get("If-Match"))
        return self.server.engine.submit(OperationRequest(parts[1], target, arguments, *headers))

    def _switch(self, body: dict[str, Any]) -> PlaneResponse:
        operation = body.pop("operation", "*")
        switch = self.server.engine.switches.set(operation, body)
        return PlaneResponse(HTTPStatus.OK, {operation: asdict(switch)})

    def _body(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= MAX_BODY_BYTES:
            raise PlaneError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{length} bytes; the limit is {MAX_BODY_BYTES}"
            )
        body = json.loads(self.rfile.read(length) or b"{}")
        if not isinstance(body, dict):
            raise PlaneError(HTTPStatus.BAD_REQUEST, f"the body is {type(body).__name__}; send a JSON object")
        return body

    def _send(self, answer: PlaneResponse) -> None:
        data = json.dumps(answer.document).encode() + b"\n"
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if "revision" in answer.document:
            self.send_header("ETag", f'"{answer.document["revision"]}"')
        self.end_headers()
        self.wfile.write(data)

    def _reset(self) -> None:
        """Break the connection so that the client sees a reset, not an orderly end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def _build_failure_response(error: BaseException | None) -> bytes:
    """A whole response, as bytes: the handler that failed can no longer send one."""
    body = json.dumps({"error": f"internal error: {type(error).__name__}: {error}"}).encode() + b"\n"
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


def _parse_time_span(engine: PlaneEngine, query: Query, usual: float = 3600) -> tuple[float, float]:
    """`from` and `to` of a query as times (RFC 3339); by default the `usual` seconds up to now, never the future."""
    now = engine.now()
    end = min(now, parse_epoch(query["to"])) if "to" in query else now
    start = parse_epoch(query["from"]) if "from" in query else end - usual
    if not 0 <= end - start <= DAY:
        raise ValueError(
            f"from={query.get('from')} to={query.get('to')}: give a span of at most a day that has begun"
        )
    return start, end


def _filter_rows(rows: list[dict[str, Any]], query: Query, *columns: str) -> dict[str, Any]:
    wanted = {column: query[column] for column in columns if column in query}
    return {"rows": [row for row in rows if all(row.get(c) == value for c, value in wanted.items())]}


def _read_metrics(engine: PlaneEngine, _: str, query: Query) -> dict[str, Any]:
    step = float(query.get("step", 60))
    if step < 1:
        raise ValueError(f"step={step}: give at least 1 second")
    return _filter_rows(
        list(signals.generate_metrics(engine.world, *_parse_time_span(engine, query), step)),
        query,
        "service",
        "metric",
    )


def _read_logs(engine: PlaneEngine, _: str, query: Query) -> dict[str, Any]:
    return _filter_rows(
        list(signals.generate_logs(engine.world, *_parse_time_span(engine, query))), query, "service", "level"
    )


def _read_statements(engine: PlaneEngine, _: str, query: Query) -> dict[str, Any]:
    return _filter_rows(
        list(signals.generate_statements(engine.world, *_parse_time_span(engine, query))), query, "database"
    )


def _read_changes(engine: PlaneEngine, _: str, query: Query) -> dict[str, Any]:
    return _filter_rows(
        list(signals.generate_changes(engine.world, *_parse_time_span(engine, query, usual=DAY))),
        query,
        "service",
    )


def _read_state(engine: PlaneEngine, _: str, __: Query) -> dict[str, Any]:
    services = {n: s.document() for n, s in engine.world.services.items() if s.deleted_at is None}
    sums = {
        "message": ("messages", engine.world.messages),
        "refund": ("refunded_cents", engine.world.refunded_cents),
    }
    readable = {name: value for op, (name, value) in sums.items() if engine.switches.look(op).readable}
    return {"services": services, **readable}


def _read_service(engine: PlaneEngine, name: str, _: Query) -> dict[str, Any]:
    return engine.world.service(name).document()


def _read_measured_service(engine: PlaneEngine, name: str, query: Query) -> dict[str, Any]:
    now = engine.now()
    rows = signals.generate_metrics(engine.world, now, now, 1.0)
    measures = {
        row["metric"]: {"value": row["value"], "unit": row["unit"]} for row in rows if row["service"] == name
    }
    return {**_read_service(engine, name, query), "measures": measures}


def _read_applied(engine: PlaneEngine, operation: str, query: Query) -> dict[str, Any]:
    return {"applied": engine.applied(operation, target=query.get("target"), key=query.get("key"))}


def _read_ledger(engine: PlaneEngine, _: str, __: Query) -> dict[str, Any]:
    return {"applications": [asdict(a) for a in engine.world.applications]}


def _read_switches(engine: PlaneEngine, _: str, __: Query) -> dict[str, Any]:
    return {name: asdict(switch) for name, switch in engine.switches.all().items()}


UNMEASURED_READS: Mapping[str, Read] = {
    "state": _read_state,
    "services": _read_service,
    "applied": _read_applied,
    "ledger": _read_ledger,
    "switches": _read_switches,
}
"""The routes for a world whose signals come from elsewhere: none of them makes signals up."""
_READS: Mapping[str, Read] = {
    "state": _read_state,
    "services": _read_measured_service,
    "metrics": _read_metrics,
    "logs": _read_logs,
    "statements": _read_statements,
    "changes": _read_changes,
    "topology": lambda *_: {"rows": signals.list_topology()},
    "applied": _read_applied,
    "ledger": _read_ledger,
    "switches": _read_switches,
}

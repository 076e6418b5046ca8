"""Declared HTTP calls against a real server on loopback: one request, one key, and no guess about a lost answer."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from acting import RUN, Acting, calls
from certificates import certificates
from loop_rig import concludes

from opsleuth.configuration.secret_references import Vault
from opsleuth.state.calls import CallGate, CallRequest, Risk
from opsleuth.state.errors import ConfigError
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.declared.http_calls import LARGEST_ANSWER
from opsleuth.tools.declared.load_declarations import build_declared_tools
from opsleuth.tools.extra_tools import ExtraTools
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.source_protocols import RunSources

DONE = concludes("nothing more to do")
FLUSH = calls(("http_call_flush", {"zone": "north", "hard": True}))


class Cache(ThreadingHTTPServer):
    """Zones that can be flushed; `behave` says how it answers the next writes: done, lost, refused, never."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave: list[str] = []
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.done: dict[str, Any] = {}


class Handler(BaseHTTPRequestHandler):
    server: Cache

    def do_GET(self) -> None:
        self.server.asked.append(("GET", self.path, dict(self.headers), None))
        if self.path.startswith("/requests/"):
            self.tell(200 if self.path.rpartition("/")[2] in self.server.done else 404, {})
        else:
            self.tell(200, {"state": {"fill": "empty" if self.server.done else "full"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(("POST", self.path, dict(self.headers), body))
        way = self.server.behave.pop(0) if self.server.behave else "done"
        if way in ("done", "lost", "huge"):
            self.server.done[self.headers["Idempotency-Key"]] = body
        if way in ("lost", "never"):
            self.connection.shutdown(socket.SHUT_RDWR)
        elif way == "huge":
            self.tell(200, "x" * LARGEST_ANSWER)
        elif way == "refused":
            self.tell(409, {"error": "frozen"})
        else:
            self.tell(200, {"flushed": True})

    def tell(self, code: int, document: Any) -> None:
        text = json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Nothing on the screen."""


@pytest.fixture
def cache() -> Iterator[Cache]:
    with serving(Cache()) as server:
        yield server


@contextmanager
def serving(server: Cache) -> Iterator[Cache]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def declared(cache: Cache, **fields: Any) -> dict[str, Any]:
    base = f"http://127.0.0.1:{cache.server_port}"
    return {
        "url": f"{base}/zones/{{zone}}/flush",
        "purpose": "Flush one zone.",
        "parameters": {"zone": ".{1,20}", "hard": {"type": "boolean"}},
        "body": {"zone": "zone {zone}", "hard": "{hard}"},
        "target": "cache/{zone}",
        "token": {"env": "CACHE_TOKEN"},
        "takes_key": True,
        "settles": 0.0,
        "check": {"url": f"{base}/zones/{{zone}}", "field": "state.fill", "equals": "empty"},
        "probe": {"url": f"{base}/requests/{{key}}"},
        **fields,
    }


def acting(folder: Path, row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Acting:
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("CACHE_TOKEN", "tok-71625348")
    rig = Acting(folder, "http://127.0.0.1:9")
    tools = tuple(build_declared_tools({"http": {"flush": row}}, Vault()))
    rig.parts = rig.replaced(added=lambda *_: ExtraTools(tools))
    return rig


def acted(rig: Acting, *script: Any) -> Any:
    rig.start(*(script or (FLUSH, DONE)))
    rig.approve_all()
    return rig.resume()


def test_it_is_asked_sent_once_and_checked(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = acting(tmp_path, declared(cache), monkeypatch)
    outcome = acted(rig)
    ((_, path, headers, body),) = [row for row in cache.asked if row[0] == "POST"]
    assert (path, body) == ("/zones/north/flush", {"zone": "zone north", "hard": True})
    assert headers["authorization"] == "Bearer tok-71625348"
    assert headers["Idempotency-Key"] == rig.store.effects.list(RUN)[0].key
    assert outcome.report["effects"][0]["verified"] is True


@pytest.mark.parametrize("zone", ["v1..2", "a/b?x=1", "a b#c", "..a", "北"])
def test_a_value_is_one_part_of_the_path(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    rig = acting(tmp_path, declared(cache), monkeypatch)
    acted(rig, calls(("http_call_flush", {"zone": zone, "hard": False})), DONE)
    (path,) = [row[1] for row in cache.asked if row[0] == "POST"]
    assert path.count("/") == 3
    assert path.endswith("/flush")
    assert not set("?# ") & set(path)


@pytest.mark.parametrize("zone", ["..", ".", "%2e%2e", "%2E", "../admin", "a/..", "..\\x", "a//b"])
def test_a_value_does_not_lead_to_another_path(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    rig = acting(tmp_path, declared(cache), monkeypatch)
    acted(rig, calls(("http_call_flush", {"zone": zone, "hard": False})), DONE)
    assert cache.asked == []
    assert rig.store.effects.list(RUN)[0].status == "failed_clean"


def test_a_certificate_is_checked_at_every_address(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the change itself goes over HTTP: the token would reach whoever answers."""
    certificates(tmp_path)
    with serving(Cache()) as looked:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
        looked.socket = context.wrap_socket(looked.socket, server_side=True, do_handshake_on_connect=False)
        check = {"url": f"https://localhost:{looked.server_port}/zones/{{zone}}"}
        acted(acting(tmp_path / "a", declared(cache, check=check), monkeypatch))
        assert (len(cache.done), looked.asked) == (1, [])
        ca_file = str(tmp_path / "ca.pem")
        outcome = acted(acting(tmp_path / "b", declared(cache, check=check, ca_file=ca_file), monkeypatch))
        assert outcome.report["effects"][0]["verified"] is True


def test_an_answer_without_end_is_not_kept(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it said is not known then, so the probe decides."""
    cache.behave = ["huge"]
    rig = acting(tmp_path, declared(cache), monkeypatch)
    acted(rig)
    assert [row[1] for row in cache.asked if row[1].startswith("/requests/")]
    assert rig.store.effects.list(RUN)[0].status == "done"


@pytest.mark.parametrize(
    ("behave", "posts", "status"),
    [(["lost"], 1, "done"), (["never", "done"], 2, "done"), (["refused"], 1, "failed_clean")],
)
def test_a_lost_answer_is_looked_up_not_guessed(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behave: list[str], posts: int, status: str
) -> None:
    cache.behave = behave
    rig = acting(tmp_path, declared(cache), monkeypatch)
    acted(rig)
    sent = [row[2]["Idempotency-Key"] for row in cache.asked if row[0] == "POST"]
    assert (len(sent), len(set(sent))) == (posts, 1)
    assert rig.store.effects.list(RUN)[0].status == status


def test_without_a_probe_a_lost_answer_goes_to_a_person(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.behave = ["lost"]
    row = declared(cache)
    del row["probe"]
    rig = acting(tmp_path, row, monkeypatch)
    assert acted(rig).exit_code is ExitCode.EFFECT_UNKNOWN
    assert len([row for row in cache.asked if row[0] == "POST"]) == 1
    assert [asked.about for asked in rig.pending()] == ["effect"]


def test_a_target_that_is_not_there_was_sent_nothing(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = acting(tmp_path, declared(cache, url="http://127.0.0.1:9/x"), monkeypatch)
    acted(rig)
    assert rig.store.effects.list(RUN)[0].status == "failed_clean"


def test_without_a_word_on_the_risk_it_is_high_and_a_get_may_read(cache: Cache) -> None:
    row = {"url": f"http://127.0.0.1:{cache.server_port}/zones/a", "purpose": "p"}
    (tool,) = build_declared_tools({"http": {"look": row}})
    assert (tool.risk, Toolbox([tool], RunSources()).check(CallRequest(tool=tool.name)).ruling.gate) == (
        Risk.HIGH,
        CallGate.ASK,
    )
    (tool,) = build_declared_tools({"http": {"look": row | {"risk": "read"}}})
    assert tool.risk is Risk.READ


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"url": "https://{host}/x", "parameters": {"host": ".*"}}, "url"),
        ({"url": "ftp://host/x"}, "url"),
        ({"url": "https://user:secret@host/x"}, "url"),
        ({"url": "https://host/{nothing}"}, "no parameter nothing"),
        ({"risk": "read", "method": "POST"}, "only reads"),
        ({"method": "GET"}, "changes nothing"),
        ({"probe": {"url": "https://host/done"}}, "holds {key}"),
    ],
)
def test_a_mistake_stops_the_start(change: dict[str, Any], said: str) -> None:
    row = {"url": "https://host/x", "purpose": "p"} | change
    with pytest.raises(ConfigError, match=said):
        build_declared_tools({"http": {"c": row}})

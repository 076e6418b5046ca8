"""Traces in a real OTLP receiver on loopback, held against the semantic conventions for generative AI."""

import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Self

import pytest
from loop_rig import Loop, concludes, looks
from model_rig import ACCEPTED, ModelLoop, serving
from model_rig import concludes as model_concludes
from model_rig import looks as model_looks
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from stored_runs import Program

from opsleuth.checkpoints.trace.events import trace_id_of_run
from opsleuth.console.span_export import OtelSettings, SpanExportError, export_run_spans

RUN = "inv-20240501-test"
TELLING = "the colour of the third door"

REQUIRED: Mapping[str, set[str]] = {
    "invoke_agent": {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.agent.name",
        "gen_ai.conversation.id",
    },
    "chat": {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
    },
    "execute_tool": {"gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.type"},
}
"""What the conventions require or recommend of a span of each operation."""

KNOWN = {v for k, v in vars(gen_ai_attributes).items() if k.startswith("GEN_AI_") and isinstance(v, str)}
OPERATIONS = {o.value for o in gen_ai_attributes.GenAiOperationNameValues}
CONTENT = {
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
}


class Receiver:
    """An OTLP/HTTP endpoint: decodes what it is sent as protobuf, and answers as the protocol says."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.headers: list[Mapping[str, str]] = []
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                assert self.headers["Content-Type"] == "application/x-protobuf"
                request = ExportTraceServiceRequest()
                request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.headers.append(dict(self.headers))
                receiver.spans += [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
                body = ExportTraceServiceResponse().SerializeToString()
                self.send_response(receiver.status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as one:
        yield one


def attributes(span: Span) -> dict[str, Any]:
    def value(v: Any) -> Any:
        kind = v.WhichOneof("value")
        return [value(x) for x in v.array_value.values] if kind == "array_value" else getattr(v, kind)

    return {a.key: value(a.value) for a in span.attributes}


def settings(receiver: Receiver, **more: Any) -> OtelSettings:
    return OtelSettings(endpoint=receiver.url, **more)


def check(spans: list[Span]) -> None:
    """The conventions' own rules, for every span of a trace."""
    ids = {span.span_id for span in spans}
    assert len(ids) == len(spans)
    assert {span.trace_id for span in spans} == {bytes.fromhex(trace_id_of_run(RUN)[2:])}
    assert sum(not span.parent_span_id for span in spans) == 1
    assert all(span.parent_span_id in ids for span in spans if span.parent_span_id)
    for span in spans:
        found = attributes(span)
        assert {name for name in found if name.startswith("gen_ai.")} <= KNOWN
        assert 0 < span.start_time_unix_nano <= span.end_time_unix_nano
        operation = found.get("gen_ai.operation.name")
        if operation is None:
            continue
        assert operation in OPERATIONS
        assert REQUIRED[operation] <= found.keys()
        subject = {"invoke_agent": "gen_ai.agent.name", "chat": "gen_ai.request.model", "execute_tool": "gen_ai.tool.name"}  # fmt: skip
        assert span.name == f"{operation} {found[subject[operation]]}"
        assert span.kind == (Span.SPAN_KIND_CLIENT if operation == "chat" else Span.SPAN_KIND_INTERNAL)
        assert (span.status.code == Status.STATUS_CODE_ERROR) == ("error.type" in found)


def test_a_run_with_a_model_is_a_trace_by_the_conventions(tmp_path: Path, receiver: Receiver) -> None:
    script = (
        model_looks("a", {"thing": "b", "behave": "boom"}),
        model_concludes(TELLING, "E1"),
        ACCEPTED,
    )
    with serving(*script) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        loop.start()
    sent = export_run_spans(loop.store, RUN, settings(receiver))
    assert sent == len(receiver.spans) > 8
    check(receiver.spans)
    by_name = [attributes(s) for s in receiver.spans]
    chats = [a for a in by_name if a.get("gen_ai.operation.name") == "chat"]
    assert len(chats) >= 2
    assert all(a["gen_ai.usage.output_tokens"] > 0 for a in chats)
    assert [a["error.type"] for a in by_name if a.get("gen_ai.operation.name") == "execute_tool" and "error.type" in a] == ["internal"]  # fmt: skip
    assert not CONTENT & {name for a in by_name for name in a}
    assert TELLING.encode() not in b"".join(s.SerializeToString() for s in receiver.spans)


def test_content_is_sent_only_if_it_is_asked_for(tmp_path: Path, receiver: Receiver) -> None:
    with serving(model_looks("a"), model_concludes(TELLING, "E1")) as server:
        loop = ModelLoop(tmp_path, server.base_url)
        loop.start()
    export_run_spans(loop.store, RUN, settings(receiver, content=True))
    check(receiver.spans)
    found = [attributes(s) for s in receiver.spans]
    (tool,) = [a for a in found if a.get("gen_ai.operation.name") == "execute_tool"]
    assert json.loads(tool["gen_ai.tool.call.arguments"])["thing"] == "a"
    chats = [a for a in found if a.get("gen_ai.operation.name") == "chat"]
    assert any(TELLING in a["gen_ai.output.messages"] for a in chats)
    for chat in chats:
        for message in json.loads(chat["gen_ai.input.messages"]):
            assert message.keys() == {"role", "parts"}
            assert {p["type"] for p in message["parts"]} <= {"text", "tool_call", "tool_call_response"}


def test_attempts_add_to_one_trace_and_nothing_is_sent_twice(tmp_path: Path, receiver: Receiver) -> None:
    loop = Loop(tmp_path)
    loop.start(looks("a"), looks("b"), looks("c"), concludes("done", "E1"), turns=2)
    first = export_run_spans(loop.store, RUN, settings(receiver), attempt=1)
    before = {span.span_id for span in receiver.spans}
    loop.resume(turns=9)
    second = export_run_spans(loop.store, RUN, settings(receiver), attempt=2)
    again = [span for span in receiver.spans[first:] if span.span_id in before]
    assert first > 5
    assert second > 5
    assert [span.name for span in again] == ["invoke_agent opsleuth"]  # the run went on: its end is told anew
    assert len({span.trace_id for span in receiver.spans}) == 1
    names = [span.name for span in receiver.spans]
    assert {"attempt 1", "attempt 2"} <= set(names)
    receiver.spans.clear()
    export_run_spans(loop.store, RUN, settings(receiver))
    check(receiver.spans)


def test_a_collector_that_refuses_or_is_gone_is_told(tmp_path: Path, receiver: Receiver) -> None:
    loop = Loop(tmp_path)
    loop.start(concludes("nothing"))
    receiver.status = 400
    with pytest.raises(SpanExportError, match="did not take the trace"):
        export_run_spans(loop.store, RUN, settings(receiver))
    with pytest.raises(SpanExportError, match="is it up"):
        export_run_spans(loop.store, RUN, OtelSettings(endpoint="http://127.0.0.1:9", timeout=0.2))


def test_a_header_comes_from_a_variable(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop(tmp_path)
    loop.start(concludes("nothing"))
    monkeypatch.setenv("COLLECTOR_TOKEN", "Bearer abc")
    export_run_spans(loop.store, RUN, settings(receiver, headers={"authorization": "COLLECTOR_TOKEN"}))
    assert receiver.headers[0]["authorization"] == "Bearer abc"


def test_the_command_line_sends_after_an_attempt_and_on_request(tmp_path: Path, receiver: Receiver) -> None:
    program = Program(tmp_path / "opsleuth.db", tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "conf"), "XDG_CACHE_HOME": str(tmp_path / "cache")})  # fmt: skip
    (tmp_path / "conf" / "opsleuth").mkdir(parents=True)
    config = tmp_path / "conf" / "opsleuth" / "config.toml"
    config.write_text(f'[otel]\nendpoint = "{receiver.url}"\n')
    ran = program("demo", "-q")
    assert ran.returncode == 0, ran.stderr
    automatic = len(receiver.spans)
    assert automatic > 10
    config.unlink()
    sent = program("trace", "-", "--otlp", receiver.url)
    assert sent.returncode == 0, sent.stderr
    assert f"{automatic} spans of inv-" in sent.stderr
    assert {s.span_id for s in receiver.spans[:automatic]} == {s.span_id for s in receiver.spans[automatic:]}
    assert program("trace", "-", "--otlp", "127.0.0.1:1").returncode == 8


def test_a_collector_that_is_gone_ends_no_run(tmp_path: Path) -> None:
    program = Program(tmp_path / "opsleuth.db", tmp_path, {"XDG_CONFIG_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})  # fmt: skip
    (tmp_path / "opsleuth").mkdir()
    (tmp_path / "opsleuth" / "config.toml").write_text(
        '[otel]\nendpoint = "http://127.0.0.1:9"\ntimeout = 0.2\n'
    )
    ran = program("demo", "-q")
    assert ran.returncode == 0
    assert "warning: the collector at http://127.0.0.1:9 did not take the trace" in ran.stderr

"""Files of other programs: metrics, traces and alerts, and what is said of any file in one line."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from live_rig import SPAN, one

from opsleuth.alerts.documents import alert_fields_from_document
from opsleuth.analysis.records import MetricSeries, TraceSpan
from opsleuth.state.investigation import Alert
from opsleuth.tools.sources.file_kinds import FileKind, recognize_file

AT = datetime(2026, 3, 3, 14, 0, tzinfo=UTC).timestamp()
GRAFANA = '"Time","cart p99","{service=""web"", instance=""web-1""}"\n2026-03-03 14:00:00,12.5,3\n2026-03-03 14:01:00,14,\n'
GRAFANA_SEP = (
    'sep=;\n"Time";"requests [req/s]"\n2026-03-03T14:00:00+00:00;12.5\n2026-03-03T14:01:00+00:00;14\n'
)
CLOUDWATCH = (
    "Id,m1\nLabel,CPUUtilization\nRegion,eu-central-1\n2026/03/03 14:00:00,12.5\n2026/03/03 14:01:00,14\n"
)
LONG = "date,name,value,host,unit\n1772546400,cpu_usage,12.5,web-1,%\n1772546460,cpu_usage,14,web-1,%\n"
EXPOSITION = """\
# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total{service="cart",code="502",path="/a \\"b\\""} 12.5 1772546400000
http_requests_total{service="cart",code="502",path="/a \\"b\\""} 14 1772546460000
process_open_fds NaN
"""
OPENMETRICS = '# TYPE lag gauge\n# UNIT lag seconds\nlag{app="cart"} 12.5 1772546400.0\nlag{app="cart"} 14 1772546460 # {trace_id="x"} 1\n# EOF\n'
QUERY = {
    "status": "success",
    "data": {
        "resultType": "matrix",
        "result": [
            {
                "metric": {"__name__": "up", "job": "cart"},
                "values": [[1772546400, "12.5"], [1772546460, "14"]],
            }
        ],
    },
}
CLOUDWATCH_JSON = {
    "MetricDataResults": [
        {
            "Id": "m1",
            "Label": "CPUUtilization",
            "Timestamps": ["2026-03-03T14:00:00+00:00", "2026-03-03T14:01:00+00:00"],
            "Values": [12.5, 14],
        }
    ]
}
JAEGER = {
    "data": [
        {
            "traceID": "a1",
            "processes": {"p1": {"serviceName": "cart"}, "p2": {"serviceName": "ledger"}},
            "spans": [
                {
                    "traceID": "a1",
                    "spanID": "b1",
                    "operationName": "GET /",
                    "startTime": AT * 1e6,
                    "duration": 4_012_000,
                    "processID": "p1",
                    "tags": [],
                },
                {
                    "traceID": "a1",
                    "spanID": "b2",
                    "operationName": "SELECT",
                    "startTime": AT * 1e6,
                    "duration": 4_000_000,
                    "processID": "p2",
                    "references": [{"refType": "CHILD_OF", "spanID": "b1"}],
                    "tags": [{"key": "error", "value": True}],
                },
            ],
        }
    ]
}
OTLP = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": name}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "5b8efff798038103d269b633813fc60c",
                            "spanId": span,
                            "parentSpanId": parent,
                            "name": operation,
                            "startTimeUnixNano": str(int(AT) * 10**9),
                            "endTimeUnixNano": str(int(AT) * 10**9 + took),
                            "status": {"code": code},
                        },
                    ]
                }
            ],
        }
        for name, span, parent, operation, took, code in (
            ("cart", "eee19b7ec3c1b174", "", "GET /", 4_012_000_000, 0),
            ("ledger", "eee19b7ec3c1b175", "eee19b7ec3c1b174", "SELECT", 4_000_000_000, "STATUS_CODE_ERROR"),
        )
    ]
}
ZIPKIN = [
    {
        "traceId": "a1",
        "id": "b1",
        "name": "GET /",
        "timestamp": AT * 1e6,
        "duration": 4_012_000,
        "localEndpoint": {"serviceName": "cart"},
    },
    {
        "traceId": "a1",
        "id": "b2",
        "parentId": "b1",
        "name": "SELECT",
        "timestamp": AT * 1e6,
        "duration": 4_000_000,
        "localEndpoint": {"serviceName": "ledger"},
        "tags": {"error": "deadlock"},
    },
]


def put(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(path, (AT + 600, AT + 600))
    return path


@pytest.mark.parametrize(
    ("name", "content", "service", "metric", "unit"),
    [
        ("board.csv", GRAFANA, "board", "cart p99", ""),
        ("board.csv", GRAFANA_SEP, "board", "requests", "req/s"),
        ("cart.csv", CLOUDWATCH, "cart", "CPUUtilization", ""),
        ("hosts.csv", LONG, "hosts", "cpu_usage", "%"),
        ("metrics.txt", EXPOSITION, "cart", 'http_requests_total{code=502,path=/a "b"}', ""),
        ("metrics.txt", OPENMETRICS, "cart", "lag", "seconds"),
        ("answer.json", QUERY, "cart", "up", ""),
        ("cart.json", CLOUDWATCH_JSON, "cart", "CPUUtilization", ""),
    ],
)
async def test_metrics_of_other_programs(
    tmp_path: Path, name: str, content: Any, service: str, metric: str, unit: str
) -> None:
    path = put(tmp_path, name, content)
    found = (await one(kind="metricfiles", files=[str(path)]).read(["metrics"], SPAN)).metrics or ()
    [series] = [s for s in found if s.metric == metric]
    assert (series.service, series.unit) == (service, unit)
    assert list(zip(series.times, series.values, strict=True)) == [(AT, 12.5), (AT + 60, 14.0)]
    assert recognize_file(path).holds == "metrics"


async def test_a_column_with_labels_names_its_service(tmp_path: Path) -> None:
    path = put(tmp_path, "board.csv", GRAFANA)
    found = (await one(kind="metricfiles", files=[str(path)]).read(["metrics"], SPAN)).metrics or ()
    assert MetricSeries("web", "value", "", (AT,), (3.0,), "web-1") in found


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("jaeger.json", JAEGER),
        ("otlp.json", OTLP),
        ("otlp.jsonl", "\n".join(json.dumps({"resourceSpans": [part]}) for part in OTLP["resourceSpans"])),
        ("tempo.json", {"batches": OTLP["resourceSpans"]}),
        ("zipkin.json", ZIPKIN),
        ("zipkin-traces.json", [ZIPKIN]),
    ],
)
async def test_traces_of_other_programs(tmp_path: Path, name: str, content: Any) -> None:
    path = put(tmp_path, name, content)
    source = one(kind="tracefiles", files=[str(path)])
    outer, inner = (await source.read(["traces"], SPAN)).spans or ()
    assert isinstance(outer, TraceSpan)
    assert (outer.service, outer.operation, outer.start, outer.duration_ms) == ("cart", "GET /", AT, 4012.0)
    assert (inner.service, inner.parent_id, inner.status) == ("ledger", outer.span_id, "ERROR")
    kind = recognize_file(path)
    assert (kind.holds, kind.lines, kind.services) == ("traces", 2, ("cart", "ledger"))


async def test_a_file_without_traces_is_told_of(tmp_path: Path) -> None:
    put(tmp_path, "a.json", JAEGER)
    put(tmp_path, "b.json", {"no": "traces"})
    found = await one(kind="tracefiles", files=[f"{tmp_path}/*.json"]).read(["traces"], SPAN)
    assert len(found.spans or ()) == 2
    assert found.missed == ("b.json was not read: it holds no traces of Jaeger, Zipkin or OTLP as JSON",)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            {"name": "carts unreachable", "severity": "high", "startedAt": "2026-03-03T14:00:30Z", "lastReceived": "2026-03-03T14:10:00Z", "labels": {"service": "cart"}, "description": "carts do not answer"},
            {"text": "carts unreachable: carts do not answer", "service": "cart", "severity": "high", "onset": "2026-03-03T14:00:30+00:00", "fired_at": "2026-03-03T14:10:00+00:00"},
        ),
        (
            {"title": "[P1] cart p99", "body": "over 4 s", "priority": "P1", "tags": ["service:cart", "env:prod"], "date": 1772546430000},
            {"text": "[P1] cart p99: over 4 s", "service": "cart", "severity": "P1", "fired_at": "2026-03-03T14:00:30+00:00"},
        ),
        (
            {"data": {"incident": {"subject": "disk full", "urgency": "low", "created_at": "2026-03-03T15:00:30+01:00", "service": {"name": "disks"}}}},
            {"text": "disk full", "service": "disks", "severity": "low", "fired_at": "2026-03-03T14:00:30+00:00"},
        ),
        ({"check": "http", "output": "CRITICAL - 502", "time": "2026-03-03 14:00:30"}, {"text": "http: CRITICAL - 502"}),
        ({"text": "as it is", "onset": "2026-03-03T14:00:30Z"}, {"text": "as it is", "onset": "2026-03-03T14:00:30Z"}),
        ({"foo": {"bar": 1}}, {"foo": {"bar": 1}}),
    ],
)  # fmt: skip
def test_an_alert_of_an_unknown_system(document: dict[str, Any], expected: dict[str, Any]) -> None:
    found = alert_fields_from_document(document, {}, datetime.now(UTC))
    assert {name: value for name, value in found.items() if name != "labels"} == expected
    if "text" in expected:
        Alert.model_validate(found)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("cart.log", b"E0303 14:00:02.149000       1 a.go:1] no\n" * 3, "cart.log: klog, 3 lines, 2026-03-03 14:00–14:00 UTC"),
        ("cart.log", b"2026-03-03T14:00:02Z a\n  b\n" * 2, "cart.log: text with times, 2 lines, 2026-03-03 14:00–14:00 UTC"),
        ("dump.bin", bytes(range(256)) * 40, "dump.bin: skipped: binary"),
        ("core.1", b"\x7fELF\x02\x01", "core.1: skipped: binary"),
        ("empty.log", b" \n", "empty.log: skipped: empty"),
        ("notes.txt", b"buy milk\nand bread\n", "notes.txt: text without times"),
        ("logs.zip", b"PK\x03\x04", "logs.zip: skipped: unpack it, or take it out of files"),
        ("alert.json", b'\xef\xbb\xbf{"alerts": [{"labels": {"alertname": "A"}}]}', "alert.json: an alert as JSON"),
        ("pods.json", b'{"kind": "List", "apiVersion": "v1", "items": [{}, {}]}', "pods.json: Kubernetes objects"),
        ("cart.csv", b"time,service,message\n2026-03-03T14:00:02Z,cart,no\n", "cart.csv: a table, 1 line, 2026-03-03 14:00–14:00 UTC"),
    ],
)  # fmt: skip
def test_what_a_file_is(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    os.utime(path, (AT + 600, AT + 600))
    assert recognize_file(path).sentence == expected


@pytest.mark.parametrize("name", ["id_ed25519", ".env", "tls.pem", "server.key", "kubeconfig", ".env.local", "credentials.json", ".ssh/config", ".kube/config"])  # fmt: skip
def test_files_of_keys_are_never_opened(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("2026-03-03T14:00:02Z secret\n")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    assert recognize_file(path).why == "not opened: its name is that of a key or a secret"


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    assert recognize_file(tmp_path / "pipe.log").why == "a pipe"
    assert recognize_file(tmp_path).why == "a folder"
    assert recognize_file(Path("/dev/null")).why == "a device"
    assert recognize_file(tmp_path / "gone.log") == FileKind(
        tmp_path / "gone.log", "skipped", why="No such file or directory"
    )

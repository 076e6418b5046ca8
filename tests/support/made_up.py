"""A small made-up shop for the tests of the tools: `cart` calls `stock`, and `stock` gets slow and fails at 14:10Z."""

import json
from pathlib import Path
from typing import Any

from opsleuth.analysis.records import (
    AlertFacts,
    LogLine,
    MetricSeries,
    ObjectState,
    PlatformEvent,
    Recording,
    ServiceChange,
    ServiceDependency,
    StatementLoad,
    TimeRange,
    TraceSpan,
)

T0 = 1714572000.0  # 2024-05-01T14:00:00Z
ONSET = T0 + 600
WINDOW = TimeRange(T0, T0 + 1800)
MINUTES = tuple(T0 + 60 * i for i in range(30))


def _series(service: str, metric: str, unit: str, usual: float, later: float) -> MetricSeries:
    wobble = (0.0, 0.01, 0.02, -0.01)
    values = tuple((usual if t < ONSET else later) * (1 + wobble[i % 4]) for i, t in enumerate(MINUTES))
    return MetricSeries(service, metric, unit, MINUTES, values)


METRICS = [
    _series("cart", "latency_p90", "s", 0.2, 1.4),
    _series("cart", "requests", "ops/s", 50, 50),
    _series("stock", "cpu_usage", "%", 20, 97),
    _series("stock", "latency_p90", "s", 0.1, 1.2),
]


def _spans(start: float, slow: float, name: str) -> list[TraceSpan]:
    spans = []
    for i in range(8):
        at, trace = start + 5 * i, f"{name}{i}"
        spans += [
            TraceSpan(trace, "a", None, "cart", "GET /cart", at, 50 + slow, "ok"),
            TraceSpan(trace, "b", "a", "cart", "call stock", at + 0.01, 30 + slow, "ok"),
            TraceSpan(
                trace, "c", "b", "stock", "GET /stock", at + 0.011, 25 + slow, "error" if slow else "ok"
            ),
        ]
    return spans


def _lines(start: float, failing: bool) -> list[LogLine]:
    lines = [LogLine(start + i, "cart", f"served cart {i}", "INFO", pod="cart-1") for i in range(20)]
    if failing:
        lines += [
            LogLine(start + i, "stock", f"timeout after {i} ms", "ERROR", pod="stock-1") for i in range(5)
        ]
    return lines


SHOP = Recording(
    alert=AlertFacts("cart is slow", "cart", "latency_p90", "critical", ONSET, ONSET + 60),
    window=WINDOW,
    metrics=METRICS,
    metrics_baseline=[_series("cart", "latency_p90", "s", 0.2, 0.2)],
    logs=_lines(T0 + 60, failing=False) + _lines(ONSET + 60, failing=True),
    logs_baseline=_lines(T0 - 86400, failing=False),
    spans=_spans(ONSET + 30, 900, "slow"),
    spans_baseline=_spans(T0 - 86400, 0, "usual"),
    topology=[
        ServiceDependency("cart", "stock"),
        ServiceDependency("stock", "stock-db"),
        ServiceDependency("web", "cart"),
    ],
    changes=[
        ServiceChange(T0 - 3 * 86400, "cart", "deploy", "old release", "v1"),
        ServiceChange(ONSET - 300, "stock", "deploy", "new cache", "v2", "mia", "-cache=on\n+cache=off"),
    ],
    events=[
        PlatformEvent(T0 - 600, "kubernetes", "Pod/cart-1", "Normal", "Started", "Started container"),
        PlatformEvent(ONSET + 60, "kubernetes", "Pod/stock-1", "Warning", "BackOff", "restarting", 4, ONSET),
    ],
    objects=[
        ObjectState(ONSET + 300, "Pod", "stock-1", {"phase": "Running"}, "shop"),
        ObjectState(ONSET + 300, "Node", "node-1", "Ready"),
    ],
    statements=[
        StatementLoad(ONSET, "stock-db", "SELECT 1", load=0.1, load_unit="sessions"),
        StatementLoad(
            ONSET, "stock-db", "SELECT * FROM items", load=4.0, load_unit="sessions", waits={"CPU": 3.9}
        ),
    ],
)

INCIDENT: dict[str, Any] = {
    "id": "shop-1",
    "alert": {
        "text": "cart is slow",
        "service": "cart",
        "metric": "latency_p90",
        "fired_at": "2024-05-01T22:11:00+08:00",
    },
    "alert_start_utc": "2024-05-01T14:10:00Z",
    "window": {"start": "2024-05-01T14:00:00Z", "end": "2024-05-01T14:30:00Z", "step_seconds": 60},
    "services": ["cart", "stock"],
}


def case_folder(folder: Path, incident: Any = INCIDENT, **files: str | bytes) -> Path:
    """A case in `folder`; file names with `__` for the dot: `metrics__csv="timestamp,…"`."""
    folder.mkdir(exist_ok=True)
    (folder / "incident.json").write_text(incident if isinstance(incident, str) else json.dumps(incident))
    for name, content in files.items():
        path = folder / name.replace("__", ".")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder

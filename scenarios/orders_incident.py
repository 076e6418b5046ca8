"""The built-in incident: the orders API became slow in the last half hour.

Release 2.14.0 of orders-api made the look-up of a customer's open orders case-insensitive. The new statement
cannot use the index on `customer_email`, reads the whole table, and takes 900 ms instead of 4. A deploy of
payments an hour earlier and a flag of the web shop have nothing to do with it.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_utc, parse_epoch, round_figure

QUESTION = "The orders API became slow in the last half hour: find the cause and say what to do."
START, RELEASE, ONSET = (parse_epoch(f"2026-03-03T{t}Z") for t in ("13:00:00", "13:58:20", "14:01:00"))
FIRED, END = (parse_epoch(f"2026-03-03T{t}Z") for t in ("14:12:00", "14:30:00"))
STEP = 60
BAD_VERSION, GOOD_VERSION = "2.14.0", "2.13.4"
CALLS = (
    ("web", "gateway"),
    ("gateway", "orders-api"),
    ("gateway", "catalog"),
    ("orders-api", "orders-db"),
    ("orders-api", "payments"),
    ("orders-api", "inventory"),
    ("catalog", "inventory"),
)
KEY: Mapping[str, Any] = {
    "verdict": "cause_found",
    "root_cause_service": "orders-api",
    "acceptable_services": ["orders-api", "orders-db"],
    "kind": "slow_query",
    "acceptable_kinds": ["slow_query", "deploy"],
    "must_not_blame": ["payments", "web"],
    "fault_type": "slow_query",
    "source_label": "built in",
}

# service -> metric -> (value before, value after, unit, relative noise); the same number twice means: flat.
PROFILE: Mapping[str, Mapping[str, tuple[float, float, str, float]]] = {
    "web": {
        "latency_p50": (95, 610, "ms", 0.05),
        "latency_p95": (210, 1950, "ms", 0.08),
        "requests": (44, 42, "req/s", 0.04),
        "errors": (0.05, 0.42, "req/s", 0.3),
        "cpu": (31, 30, "%", 0.05),
        "memory": (48, 48, "%", 0.01),
    },
    "gateway": {
        "latency_p50": (61, 540, "ms", 0.05),
        "latency_p95": (150, 1830, "ms", 0.08),
        "requests": (58, 56, "req/s", 0.04),
        "errors": (0.06, 0.5, "req/s", 0.3),
        "cpu": (26, 27, "%", 0.05),
        "memory": (39, 39, "%", 0.01),
    },
    "orders-api": {
        "latency_p50": (42, 930, "ms", 0.05),
        "latency_p95": (96, 2210, "ms", 0.08),
        "requests": (24, 23, "req/s", 0.04),
        "errors": (0.02, 0.38, "req/s", 0.3),
        "cpu": (34, 36, "%", 0.05),
        "memory": (55, 56, "%", 0.01),
        "db_time_per_request": (9, 890, "ms", 0.06),
        "db_connections_in_use": (2.2, 18.5, "count", 0.1),
    },
    "orders-db": {
        "cpu": (22, 71, "%", 0.05),
        "memory": (63, 64, "%", 0.01),
        "connections": (41, 62, "count", 0.03),
        "active_sessions": (0.7, 15.4, "count", 0.15),
        "rows_read": (41_000, 16_800_000, "rows/s", 0.07),
        "free_storage": (412e9, 412e9, "bytes", 0.0002),
    },
    "payments": {
        "latency_p50": (118, 119, "ms", 0.05),
        "latency_p95": (240, 242, "ms", 0.08),
        "requests": (6.1, 5.9, "req/s", 0.06),
        "errors": (0.03, 0.03, "req/s", 0.5),
        "cpu": (19, 19, "%", 0.05),
        "memory": (44, 44, "%", 0.01),
    },
    "inventory": {
        "latency_p50": (12, 12, "ms", 0.05),
        "latency_p95": (31, 31, "ms", 0.08),
        "requests": (73, 72, "req/s", 0.04),
        "errors": (0.02, 0.02, "req/s", 0.5),
        "cpu": (41, 41, "%", 0.05),
        "memory": (37, 37, "%", 0.01),
    },
    "catalog": {
        "latency_p50": (23, 23, "ms", 0.05),
        "latency_p95": (57, 58, "ms", 0.08),
        "requests": (33, 33, "req/s", 0.04),
        "errors": (0.02, 0.02, "req/s", 0.5),
        "cpu": (29, 29, "%", 0.05),
        "memory": (42, 42, "%", 0.01),
    },
}

OLD_STATEMENT = (
    "SELECT id, status, total_cents, created_at FROM orders "
    "WHERE customer_email = $1 AND status = $2 ORDER BY created_at DESC LIMIT $3"
)
NEW_STATEMENT = (
    "SELECT id, status, total_cents, created_at FROM orders "
    "WHERE lower(customer_email) = lower($1) AND status = $2 ORDER BY created_at DESC LIMIT $3"
)
# statement, calls a second, mean ms: those that go on as before.
STEADY = (
    ("SELECT id, sku, quantity, price_cents FROM order_items WHERE order_id = $1", 61.0, 1.1),
    (
        "INSERT INTO orders (id, customer_email, status, total_cents, created_at) VALUES ($1, $2, $3, $4, now())",
        5.8,
        2.4,
    ),
    ("UPDATE orders SET status = $1, updated_at = now() WHERE id = $2", 6.9, 1.8),
    ("SELECT count(*) FROM orders WHERE created_at > now() - interval '1 day'", 0.03, 210.0),
)
DIFF = """\
--- a/src/main/java/shop/orders/OrderRepository.java
+++ b/src/main/java/shop/orders/OrderRepository.java
@@ -48,7 +48,8 @@ public class OrderRepository {
   List<Order> findOpenOrders(String email, String status, int limit) {
     return jdbc.query(
         "SELECT id, status, total_cents, created_at FROM orders "
-            + "WHERE customer_email = ? AND status = ? ORDER BY created_at DESC LIMIT ?",
+            + "WHERE lower(customer_email) = lower(?) AND status = ? "
+            + "ORDER BY created_at DESC LIMIT ?",
         ORDER_MAPPER, email, status, limit);
   }
"""
_RUNBOOK = """\
# orders-api is slow

1. Compare `db_time_per_request` with `latency_p50` of orders-api: is the time spent in the database?
2. If so, compare the statements of orders-db before and after the onset: a new statement, or a known one that
   got slower?
3. Look for a release of orders-api shortly before the onset. A release can be rolled back to the version before
   it at any time: the schema is kept compatible with one version back.
4. Restarting orders-api empties its connection pool for about a minute and does not make a statement faster.
"""


def write_case(folder: Path) -> Path:
    """Write the built-in incident below `folder` (made if absent) and return it. The bytes are always the same."""
    random = Random(20260303)
    case = CaseFolderWriter(_build_incident())
    _add_metrics(case, random)
    _add_statements(case, random)
    _add_changes(case)
    _add_logs(case, random)
    for caller, callee in CALLS:
        case.add("topology.csv", caller=caller, callee=callee)
    case.texts["runbooks/orders-api-slow.md"] = _RUNBOOK
    return case.write(folder)


def _build_incident() -> dict[str, Any]:
    return {
        "id": "orders-slow",
        "question": QUESTION,
        "application": "Web shop on Kubernetes with PostgreSQL",
        "alert": {
            "text": "OrdersApiLatencyHigh: latency_p95 of orders-api above 1500 ms for 10 minutes.",
            "service": "orders-api",
            "metric": "latency_p95",
            "severity": "critical",
            "fired_at": format_utc(FIRED),
        },
        "alert_start_utc": format_utc(FIRED - 600),
        "window": {"start": format_utc(START), "end": format_utc(END), "step_seconds": STEP},
        "services": list(PROFILE),
    }


def _add_metrics(case: CaseFolderWriter, random: Random) -> None:
    for step in range(int((END - START) / STEP) + 1):
        moment = START + step * STEP
        for row in metric_rows(random, moment, rolled_out_share(moment - ONSET)):
            case.add("metrics.csv", **row)


def metric_rows(random: Random, moment: float, share: float) -> Iterator[dict[str, Any]]:
    """All samples of one moment, where `share` (0 to 1) of the pods run the bad release."""
    wave = 1 + 0.03 * math.sin(moment / (14 * STEP))
    for service, metrics in PROFILE.items():
        for metric, (before, after, unit, noise) in metrics.items():
            value = (before + (after - before) * share) * (wave if metric == "requests" else 1)
            value *= math.exp(random.gauss(0, noise))
            sample = {"timestamp": format_utc(moment), "service": service, "metric": metric}
            yield {**sample, "value": round_figure(value), "unit": unit}


def rolled_out_share(seconds: float) -> float:
    """The share of the new version among the pods so long after the onset: it takes three minutes."""
    return min(1.0, max(0.0, (seconds + STEP) / 180))


def _add_statements(case: CaseFolderWriter, random: Random) -> None:
    for captured in (
        parse_epoch(f"2026-03-03T{t}:00Z") for t in ("13:15", "13:30", "13:45", "14:15", "14:30")
    ):
        for row in statement_rows(random, captured, bad=captured > ONSET):
            case.add("statements.jsonl", **row)


def statement_rows(random: Random, captured: float, *, bad: bool) -> Iterator[dict[str, Any]]:
    """The load of all statements in the 15 minutes before `captured`, with the bad release or the one before."""
    interval = 900
    lookup = (NEW_STATEMENT, 20.6, 903.0) if bad else (OLD_STATEMENT, 22.0, 4.2)
    for statement, rate, mean in (lookup, *STEADY):
        calls = round(rate * interval * math.exp(random.gauss(0, 0.03)))
        mean_ms = mean * math.exp(random.gauss(0, 0.03))
        yield {
            "captured_at": format_utc(captured),
            "database": "orders-db",
            "statement": statement,
            "calls": calls,
            "calls_per_sec": round_figure(calls / interval),
            "mean_ms": round_figure(mean_ms),
            "total_ms": round_figure(calls * mean_ms),
            "waits": _estimate_waits(statement, calls * mean_ms / interval / 1000),
            "rows": calls * 3,
        }


def _estimate_waits(statement: str, sessions: float) -> dict[str, float | int]:
    """Where the sessions of a statement spend their time, in average active sessions."""
    reading = 0.35 if statement == NEW_STATEMENT else 0.1
    return {
        "CPU": round_figure(sessions * (1 - reading)),
        "IO:DataFileRead": round_figure(sessions * reading),
    }


def _add_changes(case: CaseFolderWriter) -> None:
    for row in change_rows(RELEASE):
        case.add("changes.jsonl", **row)


def change_rows(release: float) -> tuple[dict[str, Any], ...]:
    """What people changed, where the bad release came at `release`: two changes before it did no harm."""
    payments = {
        "timestamp": format_utc(release - 3250),
        "service": "payments",
        "kind": "deploy",
        "version": "5.2.1",
        "author": "m.okafor",
        "summary": "payments 5.2.1: newer TLS library, no change of behaviour",
        "diff": "-  bcprov-jdk18on: 1.79\n+  bcprov-jdk18on: 1.80\n",
    }
    banner = {
        "timestamp": format_utc(release - 1040),
        "service": "web",
        "kind": "flag",
        "author": "s.lindqvist",
        "summary": "flag spring-banner: on for 100% of visitors (was 50%)",
    }
    orders = {
        "timestamp": format_utc(release),
        "service": "orders-api",
        "kind": "deploy",
        "version": BAD_VERSION,
        "author": "r.tanaka",
        "summary": f"orders-api {BAD_VERSION} (from {GOOD_VERSION}): find orders whatever the case of the e-mail address",
        "diff": DIFF,
    }
    return payments, banner, orders


def _add_logs(case: CaseFolderWriter, random: Random) -> None:
    for step in range(int((END - START) / STEP)):
        moment = START + step * STEP
        for row in log_rows(random, moment, bad=moment >= ONSET):
            case.add("logs.jsonl", **row)


def log_rows(random: Random, moment: float, *, bad: bool) -> Iterator[dict[str, Any]]:
    """The lines of the minute that begins at `moment`, with the bad release or the one before."""
    order, took = random.randrange(7_000_000, 8_000_000), 900 if bad else 40
    for service, message in (
        ("gateway", f"GET /v1/orders 200 {random.randrange(took, 2 * took)}ms"),
        ("orders-api", f"order {order} placed, {random.randrange(1, 9)} items"),
        ("payments", f"payment for order {order} authorised"),
        ("inventory", f"reserved {random.randrange(1, 9)} items for order {order}"),
    ):
        yield _make_log_row(random, moment, service, "INFO", message)
    if bad:
        yield from _slow_lines(random, moment)


def _slow_lines(random: Random, moment: float) -> Iterator[dict[str, Any]]:
    took = random.randrange(700, 1900)
    slow = f"slow query ({took} ms, threshold 500 ms) in OrderRepository.findOpenOrders: {NEW_STATEMENT}"
    yield _make_log_row(random, moment, "orders-api", "WARN", slow)
    logged = f"duration: {took}.{random.randrange(1000):03} ms  execute <unnamed>: {NEW_STATEMENT}"
    yield _make_log_row(random, moment, "orders-db", "LOG", logged)
    if random.random() < 0.25:
        text = "upstream orders-api timed out after 3000 ms: GET /v1/orders answered 504"
        yield _make_log_row(random, moment, "gateway", "ERROR", text)


def _make_log_row(random: Random, moment: float, service: str, level: str, message: str) -> dict[str, Any]:
    when = format_utc(moment + random.randrange(60_000) / 1000)
    pod = f"{service}-{random.choice('abc')}"
    return {"timestamp": when, "service": service, "pod": pod, "level": level, "message": message}

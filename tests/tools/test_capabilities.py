"""Every tool on a small made-up shop: what it finds, what it did not find, what was not recorded."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from made_up import ONSET, SHOP, T0, WINDOW

from opsleuth.analysis.records import LogLine, MetricSeries, Recording, TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.state.investigation import Alert, Window
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.registry import parse_arguments
from opsleuth.tools.sources.memory_source import MemorySource
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.spec import EvidenceBody, InvalidArgumentsError, ToolContext, ToolResult
from opsleuth.tools.truncation import canonical_json_size

SPECS = {spec.name: spec for spec in BUILTIN}


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def context(recording: Recording = SHOP, **evidence: EvidenceBody) -> ToolContext:
    return ToolContext(
        window=Window(start=moment(WINDOW.start), end=moment(WINDOW.end)),
        clock=FakeClock(moment(WINDOW.end)),
        sources=RunSources([MemorySource(recording, services=["web"], sampling="one line in ten")]),
        evidence=evidence.get,
        subject=Alert(
            text="cart is slow",
            service="cart",
            metric="latency_p90",
            onset=moment(ONSET),
            fired_at=moment(ONSET + 60),
        ),
    )


async def run(tool: str, recording: Recording = SHOP, **arguments: Any) -> ToolResult:
    result = await SPECS[tool].run(parse_arguments(SPECS[tool], arguments), context(recording))
    assert canonical_json_size(result.record) < 20_000
    assert result.headline
    return result


async def test_metrics_list_groups_services_with_the_same_metrics() -> None:
    result = await run("metrics_list")
    assert result.record["groups"] == [
        {"metrics": ["latency_p90 [s]", "requests [ops/s]"], "services": ["cart"]},
        {"metrics": ["cpu_usage [%]", "latency_p90 [s]"], "services": ["stock"]},
    ]
    assert (result.scanned, result.matched, result.source) == (4, 4, "memory")


async def test_metrics_list_that_matches_nothing_says_how_much_it_looked_at() -> None:
    result = await run("metrics_list", contains="disk")
    assert (result.status, result.scanned, result.matched) == (ResultStatus.NONE_MATCHED, 4, 0)


async def test_metrics_query_gives_extremes_change_point_and_points() -> None:
    record = (await run("metrics_query", service="cart", metric="latency_p90")).record
    assert (record["service"], record["unit"], record["samples"]) == ("cart", "s", 30)
    assert record["change_point"] == "2024-05-01T14:10:00Z"
    assert record["window"] == {"start": "2024-05-01T14:00:00Z", "end": "2024-05-01T14:30:00Z"}
    assert record["max"] == {"time": "2024-05-01T14:10:00Z", "value": 1.428}
    assert record["points"][0] == {"time": "2024-05-01T14:00:00Z", "value": 0.2}
    assert record["baseline"]["median"] == pytest.approx(0.201)


async def test_metrics_query_of_noise_has_no_change_point() -> None:
    noise = [0.2 + 0.01 * ((i * 37) % 11) for i in range(30)]
    level = MetricSeries("cart", "noise", "s", [T0 + 60 * i for i in range(30)], noise)
    shop = replace(SHOP, metrics=[*(SHOP.metrics or ()), level])
    record = (await run("metrics_query", shop, service="cart", metric="noise")).record
    assert record["change_point"] == "no change"


async def test_metrics_query_of_a_stretch_says_what_was_before() -> None:
    record = (
        await run("metrics_query", service="cart", metric="latency_p90", since="2024-05-01T14:10:00Z")
    ).record
    assert (record["samples"], record["before_window"]["samples"]) == (20, 10)


async def test_metrics_query_without_such_a_series_is_not_recorded_and_names_the_nearest() -> None:
    result = await run("metrics_query", service="cart", metric="latency_p99")
    assert result.status is ResultStatus.NOT_RECORDED
    assert result.record["nearest"] == ["latency_p90"]
    elsewhere = await run("metrics_query", service="cart", metric="cpu_usage")
    assert elsewhere.record["services_with_it"] == ["stock"]


async def test_metrics_query_outside_what_is_covered_is_not_recorded() -> None:
    result = await run(
        "metrics_query",
        service="cart",
        metric="latency_p90",
        since="2024-05-02T00:00:00Z",
        until="2024-05-02T01:00:00Z",
    )
    assert result.status is ResultStatus.NOT_RECORDED
    assert result.record["covered"]["end"] == "2024-05-01T14:29:00Z"


async def test_metrics_query_of_several_instances_sums_each_up() -> None:
    two = [MetricSeries("cart", "cpu", "%", (T0, T0 + 60), (1, 2), name) for name in ("a", "b")]
    record = (await run("metrics_query", replace(SHOP, metrics=two), service="cart", metric="cpu")).record
    assert [i["instance"] for i in record["instances"]] == ["a", "b"]
    one = (
        await run("metrics_query", replace(SHOP, metrics=two), service="cart", metric="cpu", instance="b")
    ).record
    assert [p["value"] for p in one["points"]] == [1, 2]


async def test_metrics_anomalies_finds_what_moved_and_not_what_did_not() -> None:
    result = await run("metrics_anomalies")
    found = {(f["service"], f["metric"]) for f in result.record["findings"]}
    assert ("stock", "cpu_usage") in found
    assert ("cart", "requests") not in found
    calm = replace(SHOP, metrics=[SHOP.metrics[1]] if SHOP.metrics else [])
    assert (await run("metrics_anomalies", calm)).status is ResultStatus.NONE_MATCHED


async def test_logs_search_counts_everything_and_shows_some() -> None:
    result = await run("logs_search", service="stock", level="warn", limit=2)
    assert (result.scanned, result.matched) == (45, 5)
    assert [line["message"] for line in result.record["lines"]] == [
        "timeout after 0 ms",
        "timeout after 4 ms",
    ]
    assert (result.record["not_shown"], result.record["first"]) == (3, "2024-05-01T14:11:00Z")
    assert result.record["sampling"] == "one line in ten"


async def test_no_match_where_lines_were_scanned_is_not_the_same_as_no_lines() -> None:
    none = await run("logs_search", service="cart", text="panic")
    assert (none.status, none.scanned, none.matched) == (ResultStatus.NONE_MATCHED, 45, 0)
    silent = await run("logs_search", service="web")
    assert silent.status is ResultStatus.NOT_RECORDED
    outside = await run("logs_search", since="2024-05-03T00:00:00Z", until="2024-05-03T01:00:00Z")
    assert outside.status is ResultStatus.NOT_RECORDED


async def test_logs_search_in_the_baseline() -> None:
    result = await run("logs_search", baseline=True, text="cart 7")
    assert (result.record["window"], result.matched) == ("baseline", 1)


async def test_a_line_without_level_counts_by_its_words_and_without_time_in_any_window() -> None:
    lines = [LogLine(None, "cart", "connection refused"), LogLine(None, "cart", "hello")]
    result = await run("logs_search", replace(SHOP, logs=lines), level="error")
    assert (result.matched, result.record["without_time"]) == (1, 1)
    assert "time" not in result.record["lines"][0]


class Endless(MemorySource):
    """A log that never ends, on a clock that is moved by each line."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(SHOP)
        self.clock = clock

    def scan_logs(self, *, baseline: bool = False, span: TimeRange | None = None) -> Iterator[LogLine]:
        while True:
            self.clock.advance(0.001)
            yield LogLine(T0 + 60, "cart", f"hello {baseline} {span}")


async def test_a_search_that_takes_too_long_says_how_far_it_came() -> None:
    clock = FakeClock(moment(T0))
    endless = replace(context(), clock=clock, sources=RunSources([Endless(clock)]))
    spec = SPECS["logs_search"]
    some = await spec.run(parse_arguments(spec, {"text": "hello"}), endless)
    assert some.status is ResultStatus.OK
    assert re.search(r"ended after [\d,]+ lines", some.record["incomplete"])
    none = await spec.run(parse_arguments(spec, {"text": "panic"}), endless)
    assert none.status is ResultStatus.NOT_RECORDED


async def test_logs_patterns_tells_what_is_new() -> None:
    record = (await run("logs_patterns")).record
    assert [(p["service"], p["usual"], p["now"]) for p in record["new"]] == [("stock", 0, 5)]
    assert record["failing"][0]["service"] == "stock"
    assert record["frequent"][0]["pattern"].startswith("served cart")


async def test_traces_compare_shows_own_time_and_status() -> None:
    record = (await run("traces_compare")).record
    slowest = record["operations"][0]
    assert (slowest["service"], slowest["operation"]) == ("stock", "GET /stock")
    assert (slowest["own_ms_usual"], slowest["own_ms_now"]) == (25, 925)
    assert record["status"] == {"ok": 16, "error": 8}
    assert {(w["caller"], w["callee"]) for w in record["between_services"]} == {("cart", "stock")}


async def test_traces_compare_shows_counts_and_failures_of_services_and_calls() -> None:
    record = (await run("traces_compare")).record
    (call,) = record["calls_between"]
    assert (call["caller"], call["callee"]) == ("cart", "stock")
    assert (call["calls_usual"], call["calls_now"]) == (8, 8)
    assert (call["errors_usual"], call["errors_now"]) == (0, 8)
    assert call["p50_ms_now"] > 10 * call["p50_ms_usual"]
    assert call["p95_ms_now"] >= call["p50_ms_now"]
    assert [row["service"] for row in record["services"]] == ["stock", "cart"]
    assert record["status_usual"] == {"ok": 24}
    assert "no_spans_now" not in record


async def test_traces_compare_shows_a_callee_that_is_no_longer_called() -> None:
    without = replace(SHOP, spans=[span for span in SHOP.spans or () if span.service != "stock"])
    record = (await run("traces_compare", without)).record
    (call,) = record["calls_between"]
    assert (call["callee"], call["calls_usual"], call["calls_now"]) == ("stock", 8, 0)
    assert record["no_spans_now"] == ["stock"]
    assert record["services"][0] == {
        "service": "stock", "calls_usual": 8, "calls_now": 0, "errors_usual": 0, "p50_ms_usual": 25, "p95_ms_usual": 25,
    }  # fmt: skip


async def test_changes_list_names_the_distance_to_the_onset() -> None:
    record = (await run("changes_list")).record
    (change,) = record["changes"]
    assert (change["service"], change["version"], change["minutes_before_onset"]) == ("stock", "v2", 5)
    assert "+cache=off" in change["diff"]
    assert (record["scanned"], record["matched"]) == (2, 1)


async def test_no_change_of_a_service_is_a_finding_but_no_history_is_not() -> None:
    none = await run("changes_list", service="web")
    assert (none.status, none.scanned) == (ResultStatus.NONE_MATCHED, 2)
    before = await run("changes_list", since="2024-01-01T00:00:00Z", until="2024-01-02T00:00:00Z")
    assert before.status is ResultStatus.NOT_RECORDED


async def test_events_list_filters_by_object_and_type() -> None:
    record = (await run("events_list", about="stock", type="Warning")).record
    assert [(e["reason"], e["count"]) for e in record["events"]] == [("BackOff", 4)]
    assert (await run("events_list", about="nobody")).status is ResultStatus.NONE_MATCHED


async def test_objects_get_lists_first_and_shows_in_full_when_asked() -> None:
    listed = (await run("objects_get")).record
    assert {o["name"] for o in listed["others"]} == {"stock-1", "node-1"}
    assert "objects" not in listed
    whole = (await run("objects_get", kind="pod")).record
    assert whole["objects"][0]["status"] == {"phase": "Running"}
    assert (await run("objects_get", name="nobody")).status is ResultStatus.NONE_MATCHED


async def test_database_statements_puts_the_heaviest_first() -> None:
    record = (await run("database_statements")).record
    assert record["statements"][0]["statement"] == "SELECT * FROM items"
    assert record["statements"][0]["waits"] == {"CPU": 3.9}
    assert (await run("database_statements", contains="DELETE")).status is ResultStatus.NONE_MATCHED
    assert (await run("database_statements", database="web")).status is ResultStatus.NOT_RECORDED


async def test_topology_around_a_service_and_as_a_whole() -> None:
    around = (await run("topology", service="cart")).record
    assert around["calls"] == [{"service": "stock", "distance": 1}, {"service": "stock-db", "distance": 2}]
    assert around["called_by"] == [{"service": "web", "distance": 1}]
    whole = (await run("topology")).record
    assert ["cart", "stock"] in whole["caller_callee"]


async def test_rank_suspects_names_the_cause_before_the_victim() -> None:
    record = (await run("rank_suspects")).record
    assert record["verdict"] == "cause_found"
    assert record["suspects"][0]["service"] == "stock"
    assert record["suspects"][0]["kind"] == "cpu"
    assert "explained_by" not in record["suspects"][0]
    assert (
        record["causes"] == 1
    )  # its database has a heavy statement, of which nobody knows that it got heavier
    assert record["suspects"][0]["findings"][0]["text"]
    assert record["not_available"] == []
    assert record["looked_at"]["metrics"] == 4


async def test_rank_suspects_says_what_was_not_available() -> None:
    alone = Recording(alert=SHOP.alert, window=WINDOW, metrics=SHOP.metrics)
    record = (await run("rank_suspects", alone)).record
    assert record["not_available"] == [
        "logs",
        "traces",
        "topology",
        "changes",
        "events",
        "objects",
        "statements",
    ]
    empty = await run("rank_suspects", Recording(alert=SHOP.alert, window=WINDOW))
    assert empty.status is ResultStatus.NOT_RECORDED


async def test_time_now_is_the_runs_clock() -> None:
    record = (await run("time_now")).record
    assert record["now"] == "2024-05-01T14:30:00Z"
    assert record["onset"] == "2024-05-01T14:10:00Z"


LINES = {"lines": [{"n": i, "text": "x" * 90} for i in range(300)], "state": "é" * 30_000}
STORED = EvidenceBody("E1", "logs_search", ResultStatus.OK, LINES)


async def page(**arguments: Any) -> dict[str, Any]:
    spec = SPECS["evidence_read"]
    result = await spec.run(parse_arguments(spec, {"evidence": "E1", **arguments}), context(E1=STORED))
    return dict(result.record)


@pytest.mark.parametrize("path", ["lines", "state"])
async def test_all_of_an_evidence_can_be_read_page_by_page(path: str) -> None:
    pieces: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        part = await page(path=path, offset=offset, limit=500)
        assert canonical_json_size(part) < 40_000
        pieces.extend(part.get("items") or part.get("text") or part["value"])
        offset = part.get("next_offset")
    whole: Any = LINES[path]
    assert pieces == list(whole)


async def test_reading_past_the_end_or_nowhere_is_refused() -> None:
    for arguments in ({"path": "lines", "offset": 300}, {"path": "line"}, {"evidence": "E8"}):
        with pytest.raises(InvalidArgumentsError):
            await page(**arguments)


NEEDS_SERVICE = [s.name for s in BUILTIN if {"service", "database"} & s.arguments.model_fields.keys()]


@pytest.mark.parametrize("tool", NEEDS_SERVICE)
async def test_a_service_that_no_source_knows_is_refused_with_the_nearest(tool: str) -> None:
    field = "database" if "database" in SPECS[tool].arguments.model_fields else "service"
    arguments: dict[str, Any] = {field: "stok", **({"metric": "cpu"} if tool == "metrics_query" else {})}
    with pytest.raises(InvalidArgumentsError, match=r"no source knows a service 'stok' \(nearest: stock"):
        await run(tool, **arguments)


BY_CAPABILITY = [
    s.name for s in BUILTIN if s.capability and s.name not in ("metrics_query", "metrics_relate")
]


@pytest.mark.parametrize("tool", BY_CAPABILITY)
async def test_a_source_that_holds_no_rows_is_not_recorded(tool: str) -> None:
    nothing: dict[str, Any] = {
        "metrics": [], "logs": [], "spans": [], "topology": [], "changes": [], "events": [], "objects": [], "statements": []
    }  # fmt: skip
    result = await run(tool, Recording(alert=SHOP.alert, window=WINDOW, **nothing))
    assert result.status is ResultStatus.NOT_RECORDED


async def test_the_same_records_under_any_order_of_rows() -> None:
    backwards = replace(
        SHOP,
        logs=list(reversed(SHOP.logs or ())),
        topology=list(reversed(SHOP.topology or ())),
        events=list(reversed(SHOP.events or ())),
    )
    for tool in ("logs_patterns", "topology", "events_list", "rank_suspects", "metrics_anomalies"):
        first, second = await asyncio.gather(run(tool), run(tool, backwards))
        assert first.record == second.record

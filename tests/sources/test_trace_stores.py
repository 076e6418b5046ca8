"""Jaeger and Tempo, as their public API documents describe them."""

from pathlib import Path

import pytest
from backends import AT, BACKENDS, SPAN_ID, TRACE
from contract_server import Asked, Reply, contract_server
from live_rig import SPAN, one

from opsleuth.analysis.records import ServiceDependency, TraceSpan
from opsleuth.tools.spec import UnavailableError

EXPECTED = TraceSpan(TRACE, SPAN_ID, None, "cart", "GET /cart", float(AT), 120.0, "ERROR")


@pytest.mark.parametrize("kind", ["jaeger", "tempo"])
async def test_a_span(kind: str) -> None:
    with contract_server(BACKENDS[kind].answering) as server:
        source = one(kind=kind, url=server.url)
        assert (await source.read(["traces"], SPAN)).spans == [EXPECTED]
        assert source.sampling
        assert {check.state for check in await source.check()} <= {"ok", "warning"}


async def test_jaeger_is_asked_in_microseconds_for_each_service_and_in_milliseconds_for_calls() -> None:
    with contract_server(BACKENDS["jaeger"].answering) as server:
        source = one(kind="jaeger", url=server.url, max_traces=7)
        await source.read(["traces"], SPAN)
        assert (await source.read(["topology"], SPAN)).topology == [ServiceDependency("web", "cart")]
    traces = [asked.query for asked in server.asked if asked.path == "/api/traces"]
    assert sorted((q["start"], q["end"]) for q in traces) == [
        ("1772539200000000", "1772542800000000"),
        ("1772542800000000", "1772548200000000"),
    ]
    assert {(q["service"], q["limit"]) for q in traces} == {("cart", "7")}
    [calls] = [asked.query for asked in server.asked if asked.path == "/api/dependencies"]
    assert (calls["endTs"], calls["lookback"]) == ("1772548200000", "9000000")


async def test_a_service_whose_traces_jaeger_cannot_give_is_missed_alone() -> None:
    def answering(asked: Asked) -> Reply:
        if asked.path == "/api/services":
            return Reply({"data": ["cart", "web"]})
        if asked.query.get("service") == "web":
            return Reply({"data": None, "errors": [{"code": 500, "msg": "storage is gone"}]}, 500)
        return BACKENDS["jaeger"].answering(asked)

    with contract_server(answering) as server:
        found = await one(kind="jaeger", url=server.url).read(["traces"], SPAN)
    assert found.spans == [EXPECTED]
    assert "storage is gone" in found.missed[0]


async def test_what_jaeger_says_went_wrong_is_said() -> None:
    with (
        contract_server(
            lambda _: Reply({"data": None, "errors": [{"code": 400, "msg": "unable to parse"}]})
        ) as server,
        pytest.raises(UnavailableError, match="unable to parse"),
    ):
        await one(kind="jaeger", url=server.url).read(["topology"], SPAN)


async def test_tempo_searches_in_seconds_and_fetches_each_trace_once(tmp_path: Path) -> None:
    with contract_server(BACKENDS["tempo"].answering) as server:
        await one(kind="tempo", url=server.url, match='{ resource.service.name = "cart" }').read(
            ["traces"], SPAN
        )
    searches = [asked.query for asked in server.asked if asked.path == "/api/search"]
    assert [(q["start"], q["end"]) for q in searches] == [
        ("1772539200", "1772542800"),
        ("1772542800", "1772548200"),
    ]
    assert {(q["q"], q["limit"]) for q in searches} == {('{ resource.service.name = "cart" }', "100")}
    assert [p for p in server.paths() if p.startswith("/api/traces/")] == [f"/api/traces/{TRACE}"]


async def test_a_trace_that_has_gone_meanwhile_is_left_out() -> None:
    def answering(asked: Asked) -> Reply:
        return (
            BACKENDS["tempo"].answering(asked)
            if asked.path == "/api/search"
            else Reply("trace not found", 404)
        )

    with contract_server(answering) as server:
        assert (await one(kind="tempo", url=server.url).read(["traces"], SPAN)).spans == []


async def test_a_wrong_query_is_told_in_the_server_s_words() -> None:
    with (
        contract_server(
            lambda _: Reply("invalid TraceQL query: parse error at line 1, col 2", 400)
        ) as server,
        pytest.raises(UnavailableError, match="parse error at line 1"),
    ):
        await one(kind="tempo", url=server.url, match="{{").read(["traces"], SPAN)

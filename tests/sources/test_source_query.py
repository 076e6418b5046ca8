"""Queries in a backend's own language, asked of real backends: what they find, and what they are refused."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from backends import AT, NANO
from contract_server import Asked, Reply, contract_server
from live_rig import ask, one, opened
from made_up import SHOP
from stored_elsewhere import rows

from opsleuth.state.calls import ResultStatus
from opsleuth.tools.builtin import BUILTIN
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.memory_source import MemorySource
from opsleuth.tools.sources.query_limits import MOST_SERIES
from opsleuth.tools.sources.source_protocols import RunSources
from opsleuth.tools.sources.targets import separate_by_target

# --- PromQL on a real Prometheus ---------------------------------------------------------------------------


async def test_promql_gives_extremes_and_few_points_of_each_series(prometheus: str, case: Path) -> None:
    source = one(kind="prometheus", url=prometheus)
    result = await ask(
        [source],
        "source_query",
        language="promql",
        text='max by (service) (latency_p95{service=~"orders.*"})',
    )
    recorded = [
        r
        for r in rows(case / "metrics.csv")
        if r["metric"] == "latency_p95" and r["service"].startswith("orders")
    ]
    assert result.status is ResultStatus.OK
    assert {row["labels"]["service"] for row in result.record["rows"]} == {r["service"] for r in recorded}
    assert all(len(row["points"]) <= 12 for row in result.record["rows"])
    assert "series were read" in result.record["notes"][0]
    assert "POST http://127.0.0.1" in result.query


async def test_promql_that_finds_nothing_is_none_matched(prometheus: str) -> None:
    result = await ask(
        [one(kind="prometheus", url=prometheus)], "source_query", language="promql", text="no_such_metric"
    )
    assert (result.status, result.record["rows"]) == (ResultStatus.NONE_MATCHED, [])


async def test_matchers_of_the_operator_hold_for_every_selector(prometheus: str) -> None:
    narrowed = one(kind="prometheus", url=prometheus, match='service="orders-api"')
    result = await ask(
        [narrowed],
        "source_query",
        language="promql",
        text='latency_p95 or latency_p95{service="web"} or {service="web"}',
    )
    assert {row["labels"]["service"] for row in result.record["rows"]} == {"orders-api"}


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("latency_p95", {"step": 1}, "5,400 points are too many"),
        ("rate(latency_p95[40d])", {}, "a range of 960 h is too long"),
        ("max_over_time(rate(latency_p95[5m])[1h:1s])", {}, "a subquery of 3,600 steps is too large"),
        ("latency_p95[5m", {}, "a [ of the query does not close"),
        ("latency_p95[five]", {}, "is not a duration"),
        ('latency_p95{service="web', {}, "does not end"),
        ("sum(", {}, "not a valid promql query"),
        (
            "latency_p95",
            {"since": "2026-01-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"},
            "are too long a time",
        ),
    ],
)
async def test_promql_that_costs_too_much_or_is_wrong_is_refused(
    prometheus: str, text: str, arguments: Mapping[str, Any], said: str
) -> None:
    source = one(kind="prometheus", url=prometheus)
    result = await ask([source], "source_query", language="promql", text=text, **arguments)
    assert result.status is ResultStatus.INVALID_ARGUMENTS
    assert said in result.record["error"]


async def test_query_over_too_many_series_is_counted_and_never_sent() -> None:
    asked: list[str] = []

    def answering(request: Asked) -> Reply:
        asked.append(request.path)
        labels = [{"__name__": "up", "pod": str(number)} for number in range(MOST_SERIES + 1)]
        return Reply(json.dumps({"status": "success", "data": labels}))

    with contract_server(answering) as server:
        source = one(kind="prometheus", url=server.url)
        result = await ask([source], "source_query", language="promql", text="sum(up)")
    assert f"reads {MOST_SERIES + 1:,} series" in result.record["error"]
    assert [path.rpartition("/")[2] for path in asked] == ["series"]


# --- LogQL -------------------------------------------------------------------------------------------------


def answer_as_loki(asked: Asked) -> Reply:
    """A Loki with one stream: lines for a query of lines, samples for one that counts."""
    if asked.path.endswith("/series"):
        return Reply(json.dumps({"status": "success", "data": [{"app": "cart"}]}))
    if asked.query["query"].startswith("sum"):
        found = {"resultType": "matrix", "result": [{"metric": {}, "values": [[AT, "3"], [AT + 60, "9"]]}]}
    else:
        values = [[str((AT + 2) * NANO), "late"], [str((AT + 1) * NANO), "early"]]
        found = {"resultType": "streams", "result": [{"stream": {"app": "cart"}, "values": values}]}
    return Reply(json.dumps({"status": "success", "data": found}))


async def test_logql_gives_lines_in_order_or_series() -> None:
    with contract_server(answer_as_loki) as server:
        source = one(kind="loki", url=server.url)
        lines = await ask([source], "source_query", language="logql", text='{app="cart"} |= "a"')
        series = await ask([source], "source_query", language="logql", text='sum(rate({app="cart"}[5m]))')
    assert [row["line"] for row in lines.record["rows"]] == ["early", "late"]
    assert series.record["rows"][0]["max"]["value"] == 9


async def test_logql_keeps_to_the_operators_selector() -> None:
    asked: list[str] = []

    def answering(request: Asked) -> Reply:
        asked.append(request.query.get("query", request.query.get("match[]", "")))
        return answer_as_loki(request)

    with contract_server(answering) as server:
        source = one(kind="loki", url=server.url, match='{team="shop"} | json')
        await ask([source], "source_query", language="logql", text='{app="cart"} |= "{not a selector}"')
    assert asked == ['{app="cart", team="shop"}', '{app="cart", team="shop"} |= "{not a selector}"']


async def test_logql_without_a_stream_is_refused() -> None:
    result = await ask(
        [one(kind="loki", url="http://127.0.0.1:9")], "source_query", language="logql", text='|= "x"'
    )
    assert "selects no stream" in result.record["error"]


# --- TraceQL -----------------------------------------------------------------------------------------------


def answer_as_tempo(asked: Asked) -> Reply:
    found = [
        {"traceID": "a1", "rootServiceName": "cart", "rootTraceName": "GET /", "startTimeUnixNano": str(AT * NANO), "durationMs": 12},
        {"traceID": "b2", "rootServiceName": "web", "startTimeUnixNano": str(AT * NANO), "durationMs": 900, "spanSet": {"matched": 4}},
    ]  # fmt: skip
    return Reply(json.dumps({"traces": found if "error" in asked.query["q"] else [], "metrics": {}}))


async def test_traceql_gives_the_slowest_first_and_keeps_to_the_operators_query() -> None:
    with contract_server(answer_as_tempo) as server:
        source = one(kind="tempo", url=server.url, match='{ resource.team = "shop" }')
        found = await ask([source], "source_query", language="traceql", text="{ status = error }")
        piped = await ask(
            [source], "source_query", language="traceql", text="{ status = error } | count() > 2"
        )
    assert [(row["trace_id"], row.get("matched_spans")) for row in found.record["rows"]] == [
        ("b2", 4),
        ("a1", None),
    ]
    assert '({ resource.team = "shop" }) && ({ status = error })' in found.query
    assert "cannot be held to the source's own `match`" in piped.record["error"]


async def test_traceql_that_finds_nothing_or_selects_nothing() -> None:
    with contract_server(answer_as_tempo) as server:
        source = one(kind="tempo", url=server.url)
        nothing = await ask([source], "source_query", language="traceql", text="{ duration > 1h }")
        refused = await ask([source], "source_query", language="traceql", text="status = error")
    assert nothing.status is ResultStatus.NONE_MATCHED
    assert "selects no span" in refused.record["error"]


# --- SQL on a real PostgreSQL ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop(postgres: str) -> Iterator[str]:
    """The database with a table of users and an extension that reaches out, as its superuser sees it."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS shop")
        connection.execute(
            "CREATE TABLE shop.orders AS SELECT n AS id, 'card ' || n AS card FROM generate_series(1, 150) n"
        )
        connection.execute("CREATE SEQUENCE shop.counter")
        connection.execute(
            "CREATE FUNCTION shop.lower(text) RETURNS text LANGUAGE sql AS $$ SELECT nextval('shop.counter')::text $$"
        )
        connection.execute("CREATE VIEW public.pg_locks AS SELECT id, card FROM shop.orders")
    yield postgres
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP VIEW public.pg_locks; DROP SCHEMA shop CASCADE")


async def look(dsn: str, text: str, **settings: Any) -> Any:
    limit = settings.pop("limit", 20)
    source = one(kind="postgres", dsn=dsn, name="orders-db", **settings)
    return await ask([source], "source_query", language="sql", text=text, limit=limit)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pid, state, now() - query_start AS running, client_addr, backend_xid FROM pg_stat_activity ORDER BY 3 DESC LIMIT 5",
        "WITH w AS (SELECT pid, pg_blocking_pids(pid) AS holders FROM pg_stat_activity) SELECT * FROM w",
        "SELECT c.relname, pg_size_pretty(pg_total_relation_size(c.oid)) AS size FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname LIKE 'pg%' LIMIT 3",
        "SELECT relname, n_dead_tup::numeric / greatest(n_live_tup, 1) AS dead FROM pg_stat_all_tables UNION ALL SELECT 'x', 1",
        "SELECT locktype, count(*) FILTER (WHERE granted) AS granted FROM pg_locks GROUP BY locktype",
        "SELECT query, calls FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 3",
        "SELECT current_setting('max_connections')::int AS most, extract(epoch FROM now()) AS at",
        "SELECT table_name, table_type FROM information_schema.tables LIMIT 3",
        "SELECT datname, age(datfrozenxid) AS age FROM pg_database",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY calls) AS middle FROM pg_stat_statements",
        "SELECT row_number() OVER (ORDER BY oid) AS place, 'NaN'::float8 AS odd FROM pg_class LIMIT 2",
    ],
)  # fmt: skip
async def test_catalog_and_statistics_are_read(shop: str, text: str) -> None:
    result = await look(shop, text)
    assert result.status is ResultStatus.OK, result.record
    assert result.record["rows"]
    assert "the values are current" in result.record["notes"][0]


async def test_rows_are_bounded_and_said_to_be(shop: str) -> None:
    result = await look(shop, "SELECT id FROM shop.orders ORDER BY id", query_tables=["shop.orders"], limit=7)
    assert [row["id"] for row in result.record["rows"]] == list(range(1, 8))
    assert any("only the first 7 rows" in note for note in result.record["notes"])


async def test_user_tables_are_read_only_where_the_operator_names_them(shop: str) -> None:
    refused = await look(shop, "SELECT card FROM shop.orders")
    assert "shop.orders is not on the list" in refused.record["error"]
    allowed = await look(
        shop, "SELECT count(*) AS n FROM orders WHERE card LIKE 'card 1%'", query_tables=["shop.orders"]
    )
    assert allowed.record["rows"] == [{"n": 62}]


async def test_neither_a_view_nor_a_function_of_users_stands_in_for_the_servers_own(shop: str) -> None:
    result = await look(shop, "SELECT locktype, lower(mode) AS mode FROM pg_locks LIMIT 1")
    assert result.record["rows"][0]["mode"].endswith("lock")
    with psycopg.connect(shop) as connection:
        assert connection.execute("SELECT is_called FROM shop.counter").fetchone() == (False,)


async def test_statement_that_takes_too_long_is_ended(shop: str) -> None:
    many = "SELECT count(*) AS n FROM pg_class a, pg_class b, pg_class c, pg_attribute d WHERE a.oid::int8 + b.oid::int8 < c.oid::int8 + d.attnum"
    result = await look(shop, many, statement_seconds=0.3)
    assert result.status is ResultStatus.TIMEOUT


async def test_wide_row_is_left_out_and_named(shop: str) -> None:
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE shop.notes AS SELECT n, repeat('x', n) AS text FROM (VALUES (10), (20000)) AS v (n)"
        )
    result = await look(shop, "SELECT n, text FROM notes", query_tables=["shop.notes"])
    assert [row["n"] for row in result.record["rows"]] == [10]
    assert "1 row of more than 8,000 characters left out: select fewer columns" in result.record["notes"]


@pytest.mark.parametrize(
    "text", ["SELECT nothing FROM pg_class", "SELECT 1 / 0 AS n", "SELECT oid + 'x' FROM pg_class"]
)
async def test_query_that_the_server_does_not_run_is_the_planners_mistake(shop: str, text: str) -> None:
    result = await look(shop, text)
    assert result.status is ResultStatus.INVALID_ARGUMENTS
    assert "PostgreSQL:" in result.record["error"]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT pg_catalog.pg_ls_dir('.')",
        "SELECT shop.lower('x')",
        "SELECT nextval('shop.counter')",
        "SELECT * FROM public.pg_locks",
        "WITH d AS (DELETE FROM shop.orders RETURNING *) SELECT * FROM d",
        "SELECT * INTO stolen FROM pg_class",
        "SELECT 1; COMMIT; DELETE FROM shop.orders",
        "SELECT set_config('statement_timeout', '0', true)",
        "SELECT * FROM pg_class FOR UPDATE",
    ],
)
async def test_attacks_change_nothing(shop: str, text: str) -> None:
    result = await look(shop, text, query_tables=["shop.orders"])
    assert result.status is ResultStatus.INVALID_ARGUMENTS
    with psycopg.connect(shop) as connection:
        left = connection.execute("SELECT count(*), (SELECT is_called FROM shop.counter) FROM shop.orders")
        assert left.fetchone() == (150, False)


async def test_transaction_itself_cannot_write(shop: str) -> None:
    """The second line of defence: a table with a function behind it that the operator opened by mistake."""
    with psycopg.connect(shop, autocommit=True) as connection:
        connection.execute("CREATE VIEW shop.counting AS SELECT nextval('shop.counter') AS n")
    result = await look(shop, "SELECT n FROM counting", query_tables=["shop.counting"])
    assert result.status is not ResultStatus.OK
    with psycopg.connect(shop) as connection:
        assert connection.execute("SELECT is_called FROM shop.counter").fetchone() == (False,)


# --- when it is offered ------------------------------------------------------------------------------------


def offered(*sources: Any) -> bool:
    return Toolbox(BUILTIN, RunSources(separate_by_target(list(sources)))).known("source_query") is not None


def test_tool_is_offered_only_where_a_source_takes_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    database = one(kind="postgres", dsn="dbname=orders")
    assert offered(one(kind="prometheus", url="http://127.0.0.1:9"))
    assert offered(database)
    assert not offered(MemorySource(SHOP))
    monkeypatch.setattr("opsleuth.tools.sources.checked_sql.find_spec", lambda _: None)
    assert not offered(database)


def test_sources_of_two_clusters_keep_their_languages() -> None:
    both = [one(kind="prometheus", url="http://127.0.0.1:9", target=target) for target in ("eu", "us")]
    assert offered(*both)


async def test_several_sources_of_a_language_need_a_name(prometheus: str) -> None:
    both = opened(eu={"kind": "prometheus", "url": prometheus}, us={"kind": "prometheus", "url": prometheus})
    refused = await ask(both, "source_query", language="promql", text="latency_p95")
    assert "several sources take promql: name one as source (eu, us)" in refused.record["error"]
    named = await ask(both, "source_query", language="promql", text="latency_p95", source="us")
    assert (named.status, named.source) == (ResultStatus.OK, "us")
    other = await ask(both, "source_query", language="sql", text="SELECT 1")
    assert "no source of this run takes sql (there is: promql)" in other.record["error"]

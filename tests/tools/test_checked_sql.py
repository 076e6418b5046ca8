"""Free SQL is parsed, checked against lists, and written anew: what is not known is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.tools.sources.checked_sql import SqlRelations, rewrite_checked_sql
from opsleuth.tools.spec import InvalidArgumentsError

RELATIONS = SqlRelations.of_postgres("public", ["shop.orders"])
LOOKS = [
    "SELECT pid, state, now() - query_start AS running FROM pg_stat_activity WHERE state <> 'idle' ORDER BY 3 DESC LIMIT 5",
    "WITH w AS (SELECT pid, pg_blocking_pids(pid) AS holders FROM pg_stat_activity) SELECT * FROM w WHERE cardinality(holders) > 0",
    "SELECT relname, n_dead_tup::numeric / greatest(n_live_tup, 1) FROM pg_stat_user_tables UNION ALL SELECT 'x', 1",
    "SELECT mode, count(*) FILTER (WHERE granted) FROM pg_locks GROUP BY mode HAVING count(*) > 1",
    "SELECT c.relname, pg_size_pretty(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm') AND c.relname LIKE 'ord%'",
    "SELECT * FROM shop.orders WHERE id = 1",
    "SELECT query, calls FROM pg_stat_statements ORDER BY total_exec_time DESC FETCH FIRST 3 ROWS ONLY",
    "SELECT current_setting('max_connections')::int, extract(epoch FROM now()), 'pg_class'::regclass::oid",
    "SELECT row_number() OVER (PARTITION BY datname ORDER BY xact_start) FROM pg_stat_activity",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY calls) FROM pg_stat_statements",
    "SELECT coalesce(wait_event, 'CPU'), query ~ 'x', pid = ANY(pg_blocking_pids(pid)) FROM pg_stat_activity",
    "SELECT 1 /* a comment */ FROM/**/pg_class -- and one more\n;",
    "SELECT EXISTS (SELECT 1 FROM pg_locks l WHERE NOT l.granted)",
    "SELECT column_name FROM information_schema.columns WHERE table_name = 'orders'",
]  # fmt: skip
ATTACKS = [
    # functions with side effects, files, connections, waits, settings, locks
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_catalog.pg_read_file('/etc/passwd')",
    "SELECT \"pg_read_file\"('/etc/passwd')",
    "SELECT pg_catalog.\"pg_read_file\"('/etc/passwd')",
    "SELECT PG_READ_FILE('/etc/passwd')",
    "SELECT pg_read_binary_file('/etc/passwd')",
    "SELECT * FROM pg_ls_dir('/')",
    "SELECT * FROM ROWS FROM (pg_ls_dir('/'), pg_ls_dir('/tmp'))",
    "SELECT pg_stat_file('/etc/passwd')",
    "SELECT * FROM dblink('host=evil', 'SELECT 1') AS t(a int)",
    "SELECT dblink_connect('host=evil')",
    "SELECT set_config('log_statement', 'none', false)",
    "SELECT nextval('shop.orders_id_seq')",
    "SELECT setval('shop.orders_id_seq', 1)",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, '/tmp/x')",
    "SELECT lo_get(1), loread(1, 10), lowrite(1, 'x'), lo_unlink(1)",
    "SELECT pg_sleep(60)",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
    "SELECT pg_cancel_backend(1)",
    "SELECT pg_reload_conf()",
    "SELECT pg_rotate_logfile()",
    "SELECT pg_switch_wal()",
    "SELECT pg_stat_reset(), pg_stat_statements_reset()",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_notify('channel', 'text')",
    "SELECT pg_create_restore_point('x')",
    "SELECT pg_drop_replication_slot('x')",
    "SELECT pg_logical_slot_get_changes('x', NULL, NULL)",
    "SELECT query_to_xml('SELECT * FROM pg_authid', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT table_to_xml('pg_authid', true, true, '')",
    "SELECT ts_stat('SELECT * FROM secrets')",
    "SELECT xpath('/x', query_to_xml('DELETE FROM shop.orders', true, true, '')::xml)",
    "SELECT has_table_privilege('a', 'b', 'c')",
    "SELECT current_setting('primary_conninfo')",
    "SELECT current_setting('app.jwt_secret')",
    "SELECT current_setting('ssl_passphrase_command')",
    "SELECT current_setting('max_' || 'connections')",
    "SELECT current_setting((SELECT 'primary_conninfo'))",
    # what grows without a bound
    "SELECT repeat('a', 1000000000)",
    "SELECT lpad('a', 1000000000)",
    "SELECT string_agg(query, '') FROM pg_stat_activity",
    "SELECT array_agg(query) FROM pg_stat_activity",
    "SELECT * FROM generate_series(1, 1000000000)",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
    "SELECT " + " || ".join(["query"] * 40) + " FROM pg_stat_activity",
    # tables that are not on the list, by every spelling
    "SELECT * FROM pg_authid",
    "SELECT * FROM pg_catalog.pg_authid",
    'SELECT * FROM "pg_catalog"."pg_authid"',
    "SELECT * FROM PG_SHADOW",
    "TABLE pg_authid",
    "SELECT * FROM ONLY pg_authid",
    "SELECT * FROM pg_user_mapping",
    "SELECT * FROM pg_subscription",
    "SELECT * FROM pg_stats",
    "SELECT * FROM pg_statistic",
    "SELECT * FROM pg_largeobject",
    "SELECT * FROM pg_settings",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT * FROM shop.customers",
    "SELECT * FROM customers",
    'SELECT * FROM "Shop".orders',
    'SELECT * FROM "shop.orders"',
    "SELECT * FROM other.shop.orders",
    "SELECT * FROM orders, customers",
    "SELECT * FROM pg_class JOIN customers USING (oid)",
    "SELECT (SELECT max(card) FROM customers)",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM customers)",
    "SELECT 1 FROM pg_class ORDER BY (SELECT max(card) FROM customers)",
    "SELECT 1 UNION SELECT card FROM customers",
    # a name of WITH that stands for a table elsewhere
    "WITH a AS (SELECT * FROM customers), customers AS (SELECT 1) SELECT * FROM a",
    "WITH customers AS (SELECT * FROM customers) SELECT * FROM customers",
    "SELECT * FROM customers WHERE EXISTS (WITH customers AS (SELECT 1) SELECT 1 FROM customers)",
    "SELECT 1 UNION (WITH customers AS (SELECT 1) SELECT * FROM customers)",
    "WITH customers AS (SELECT 1) SELECT * FROM shop.customers",
    # statements that are no plain SELECT
    "WITH d AS (DELETE FROM shop.orders RETURNING *) SELECT * FROM d",
    "WITH d AS (UPDATE shop.orders SET id = 1 RETURNING *) SELECT * FROM d",
    "WITH d AS (INSERT INTO shop.orders VALUES (1) RETURNING *) SELECT * FROM d",
    "SELECT * INTO stolen FROM shop.orders",
    "SELECT * FROM shop.orders FOR UPDATE",
    "SELECT * FROM shop.orders FOR SHARE SKIP LOCKED",
    "SELECT * FROM shop.orders FOR NO KEY UPDATE",
    "SELECT 1; DROP TABLE shop.orders",
    "SELECT 1; SELECT 2",
    "; ; SELECT 1; DELETE FROM shop.orders",
    "SELECT 1 /* ; */; /**/ DROP TABLE shop.orders -- x",
    "DELETE FROM shop.orders",
    "UPDATE shop.orders SET id = 2",
    "INSERT INTO shop.orders VALUES (2)",
    "MERGE INTO shop.orders USING shop.orders s ON true WHEN MATCHED THEN DELETE",
    "TRUNCATE shop.orders",
    "COPY shop.orders TO PROGRAM 'sh'",
    "COPY (SELECT 1) TO '/tmp/x'",
    "EXPLAIN ANALYZE DELETE FROM shop.orders",
    "EXPLAIN SELECT 1",
    "DO $$ BEGIN PERFORM 1; END $$",
    "CALL shop.refund()",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    "DECLARE c CURSOR FOR SELECT 1",
    "LISTEN x",
    "NOTIFY x",
    "LOCK TABLE shop.orders",
    "VACUUM",
    "ANALYZE",
    "SET ROLE postgres",
    "RESET ALL",
    "COMMIT",
    "ROLLBACK; DELETE FROM shop.orders",
    "BEGIN READ WRITE",
    "SET TRANSACTION READ WRITE",
    "CREATE TABLE x (a int)",
    "CREATE TABLE x AS SELECT 1",
    "GRANT ALL ON shop.orders TO public",
    "VALUES (1)",
    "",
    "   ;",
    "-- nothing but a comment",
    # spellings that a parser and a server may read differently
    "SELECT $$a$$",
    "SELECT $tag$ ; DROP TABLE x; $tag$",
    "SELECT E'\\'; DROP TABLE shop.orders; --'",
    "SELECT 'a\\'' OR 1=1 --'",
    "SELECT U&'\\0061'",
    'SELECT U&"d\\0061ta" FROM pg_class',
    "SELECT * FROM pg_class TABLESAMPLE system (1)",
    "SELECT * FROM pg_class, LATERAL (SELECT 1) x",
    "SELECT 1 OPERATOR(pg_catalog.+) 2",
    "SELECT (t).relname FROM pg_class t",
    "SELECT $1",
    "SELECT %s",
    "SELECT %(x)s",
    "SELECT :name",
    "SELECT 'x'::customers",
    "SELECT 'x'::xml",
    "SELECT CAST('1' AS shop.money)",
    "SELECT 1\x00; DROP TABLE shop.orders",
    "SELECT 1 FROM pg_class WHERE CURRENT OF c",
    "SELECT xmlparse(document '<a/>')",
]


@pytest.mark.parametrize("query", LOOKS)
def test_a_look_is_written_anew_and_stays_the_same_when_checked_again(query: str) -> None:
    written = rewrite_checked_sql(query, RELATIONS)
    assert ";" not in written
    assert "--" not in written
    assert "/*" not in written


@pytest.mark.parametrize("query", ATTACKS)
def test_what_is_not_on_the_lists_is_refused(query: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        rewrite_checked_sql(query, RELATIONS)


def test_relations_are_sent_by_their_full_names() -> None:
    assert rewrite_checked_sql("SELECT 1 FROM PG_CLASS, orders o, pg_stat_statements", RELATIONS) == (
        'SELECT 1 FROM "pg_catalog"."pg_class" AS pg_class, "shop"."orders" AS o, '
        '"public"."pg_stat_statements" AS pg_stat_statements'
    )


def test_a_user_table_that_the_operator_named_is_no_other_of_the_same_name() -> None:
    only_views = SqlRelations.of_postgres(None, [])
    with pytest.raises(InvalidArgumentsError, match="the operator adds a table with query_tables"):
        rewrite_checked_sql("SELECT * FROM orders", only_views)
    with pytest.raises(InvalidArgumentsError, match="pg_stat_statements is not on the list"):
        rewrite_checked_sql("SELECT * FROM pg_stat_statements", only_views)


def test_a_table_cannot_hide_a_view_of_the_catalog() -> None:
    named = SqlRelations.of_postgres(None, ["shop.pg_locks"])
    assert '"pg_catalog"."pg_locks"' in rewrite_checked_sql("SELECT * FROM pg_locks", named)
    assert '"shop"."pg_locks"' in rewrite_checked_sql("SELECT * FROM shop.pg_locks", named)


_PIECES = st.sampled_from(
    ["SELECT", "pg_authid", "FROM", "pg_locks", "(", ")", ",", "*", "1", "'a'", ";", "WITH", "AS", "x", "DELETE",
     "UNION", "WHERE", "pg_sleep(1)", "--", "/*", "*/", "INTO", "FOR UPDATE", '"', "'", "::", "text", "."]
)  # fmt: skip


@given(st.lists(_PIECES, min_size=1, max_size=14))
def test_no_mixture_of_pieces_passes_with_a_forbidden_one(pieces: list[str]) -> None:
    try:
        written = rewrite_checked_sql(" ".join(pieces), RELATIONS)
    except InvalidArgumentsError:
        return
    code = "'".join(written.split("'")[::2]).lower()  # without what stands in literals
    assert not {"delete", "into", "update"} & set(code.split())
    assert "pg_sleep" not in code
    assert "from pg_authid" not in code
    assert ";" not in code

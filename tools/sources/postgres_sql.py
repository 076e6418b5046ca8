"""What is asked of PostgreSQL: reads of its statistics views, one statement each. Versions 13 and later."""

SESSION = """
SELECT set_config('default_transaction_read_only', 'on', false),
       set_config('statement_timeout', %(statement_ms)s, false),
       set_config('lock_timeout', '500ms', false),
       set_config('idle_in_transaction_session_timeout', '30s', false)
"""

ABOUT = """
SELECT current_setting('server_version') AS version,
       extract(epoch FROM clock_timestamp())::float8 AS now,
       extract(epoch FROM pg_postmaster_start_time())::float8 AS up_since,
       current_setting('max_connections')::int AS max_connections,
       current_setting('superuser_reserved_connections')::int AS reserved,
       pg_is_in_recovery() AS is_standby,
       pg_has_role(current_user, 'pg_monitor', 'MEMBER') AS may_monitor,
       EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements') AS has_statements,
       pg_database_size(current_database()) AS size_bytes
"""

# What looks at the statistics, as we do, is no part of what the database is there for.
STATEMENTS = r"""
SELECT s.queryid, min(s.query) AS query, sum(s.calls)::float8 AS calls,
       sum(s.total_exec_time)::float8 AS total_ms, sum(s.rows)::float8 AS rows
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = current_database() AND s.queryid IS NOT NULL AND s.query !~ '\mpg_(stat|blocking|settings|database)'
GROUP BY s.queryid ORDER BY total_ms DESC LIMIT %(most)s
"""

# Those of ours are told by their mark.
ACTIVE = r"""
SELECT query_id AS queryid, left(min(query), 2000) AS query,
       coalesce(wait_event_type || ':' || wait_event, 'CPU') AS wait, count(*)::float8 AS sessions
FROM pg_stat_activity
WHERE state = 'active' AND datname = current_database() AND backend_type = 'client backend'
  AND pid <> pg_backend_pid() AND application_name <> 'opsleuth' AND query !~ '\mpg_(stat|blocking|settings|database)'
GROUP BY query_id, wait
"""

CONNECTIONS = """
SELECT coalesce(state, 'other') AS state, count(*)::int AS sessions,
       coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 AS longest_transaction_seconds
FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1 ORDER BY 2 DESC
"""

BLOCKED = """
SELECT a.pid, left(a.query, 500) AS query, l.mode, coalesce(c.relname, l.locktype) AS relation,
       extract(epoch FROM coalesce(a.state_change, a.query_start))::float8 AS since,
       extract(epoch FROM clock_timestamp() - coalesce(a.query_start, a.state_change))::float8 AS seconds,
       b.pid AS holder, b.state AS holder_state, left(b.query, 500) AS holder_query,
       extract(epoch FROM b.xact_start)::float8 AS holder_since
FROM pg_stat_activity a
JOIN LATERAL unnest(pg_blocking_pids(a.pid)) AS blocking(pid) ON true
JOIN pg_stat_activity b ON b.pid = blocking.pid
LEFT JOIN pg_locks l ON l.pid = a.pid AND NOT l.granted
LEFT JOIN pg_class c ON c.oid = l.relation
WHERE a.datname = current_database() ORDER BY since LIMIT 200
"""

STANDBYS = """
SELECT application_name AS name, client_addr::text AS address, state, sync_state,
       coalesce(extract(epoch FROM replay_lag), 0)::float8 AS replay_lag_seconds,
       pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::float8 AS behind_bytes
FROM pg_stat_replication
"""

OWN_LAG = """
SELECT CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
            ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END::float8 AS lag_seconds
"""

SLOTS = """
SELECT slot_name AS name, active, coalesce(wal_status, '') AS wal_status,
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::float8 AS kept_bytes
FROM pg_replication_slots
"""

# By the pages that the last vacuum counted: to measure a table would wait for whoever has locked it.
TABLES = """
SELECT s.relname AS name, c.relpages::bigint * current_setting('block_size')::int AS bytes, n_live_tup AS live_rows, n_dead_tup AS dead_rows,
       seq_scan AS sequential_scans, coalesce(idx_scan, 0) AS index_scans,
       greatest(last_vacuum, last_autovacuum)::text AS last_vacuum
FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid ORDER BY 2 DESC, 1 LIMIT 20
"""

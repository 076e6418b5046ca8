"""The queries sent to PostgreSQL: reads of its statistics views, one statement each. Versions 13 and later."""

# One message. Nothing outlives the transaction: the session may belong to another client a moment later, where a pooler
# (PgBouncer, Odyssey, PgCat) lends it for one transaction at a time.
BEGIN = """
BEGIN READ ONLY;
SET LOCAL statement_timeout = {statement_ms:.0f};
SET LOCAL lock_timeout = 500;
SET LOCAL idle_in_transaction_session_timeout = 10000;
SET LOCAL application_name = 'opsleuth'
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

# What looks at the statistics, as we do, is not part of the database's work.
STATEMENTS = r"""
SELECT s.queryid, min(s.query) AS query, sum(s.calls)::float8 AS calls,
       sum(s.total_exec_time)::float8 AS total_ms, sum(s.rows)::float8 AS rows
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = current_database() AND s.queryid IS NOT NULL AND s.query !~ '\mpg_(stat|blocking|settings|database)'
GROUP BY s.queryid ORDER BY total_ms DESC LIMIT %(most)s
"""

# Those of ours are judged by their mark.
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

# A lock that a prepared transaction holds has no process: pg_blocking_pids says 0, and its own number, which it holds a
# lock on too, tells which one it is.
BLOCKED = """
SELECT a.pid, left(a.query, 500) AS query, l.mode, coalesce(c.relname, l.locktype) AS relation,
       extract(epoch FROM coalesce(a.state_change, a.query_start))::float8 AS since,
       extract(epoch FROM clock_timestamp() - coalesce(a.query_start, a.state_change))::float8 AS seconds,
       blocking.pid AS holder, coalesce(b.state, 'prepared') AS holder_state,
       coalesce(left(b.query, 500), '') AS holder_query,
       extract(epoch FROM coalesce(b.xact_start, p.prepared))::float8 AS holder_since,
       p.gid AS prepared, p.owner::text AS prepared_by
FROM pg_stat_activity a
JOIN LATERAL (SELECT DISTINCT pid FROM unnest(pg_blocking_pids(a.pid)) AS found(pid)) AS blocking ON true
LEFT JOIN pg_stat_activity b ON b.pid = blocking.pid
LEFT JOIN pg_locks l ON l.pid = a.pid AND NOT l.granted
LEFT JOIN pg_class c ON c.oid = l.relation
LEFT JOIN LATERAL (
    SELECT x.gid, x.owner, x.prepared
    FROM pg_locks h
    JOIN pg_locks own ON own.pid IS NULL AND own.locktype = 'transactionid' AND own.virtualtransaction = h.virtualtransaction
    JOIN pg_prepared_xacts x ON x.transaction = own.transactionid
    WHERE h.pid IS NULL AND h.granted AND h.locktype = l.locktype AND h.database IS NOT DISTINCT FROM l.database
      AND h.relation IS NOT DISTINCT FROM l.relation AND h.page IS NOT DISTINCT FROM l.page
      AND h.tuple IS NOT DISTINCT FROM l.tuple AND h.transactionid IS NOT DISTINCT FROM l.transactionid
    ORDER BY x.prepared LIMIT 1
) AS p ON blocking.pid = 0
WHERE a.datname = current_database() AND (b.pid IS NOT NULL OR p.gid IS NOT NULL) ORDER BY since LIMIT 200
"""

PREPARED = """
SELECT gid, owner::text AS owner, extract(epoch FROM prepared)::float8 AS since,
       extract(epoch FROM clock_timestamp() - prepared)::float8 AS seconds
FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 50
"""

STANDBYS = """
SELECT application_name AS name, client_addr::text AS address, state, sync_state,
       coalesce(extract(epoch FROM replay_lag), 0)::float8 AS replay_lag_seconds,
       pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::float8 AS behind_bytes
FROM pg_stat_replication
"""

# All that was received may be replayed and the standby still be behind: if nothing is received any more.
OWN_LAG = """
SELECT CASE WHEN receiver.is_there AND pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
            ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END::float8 AS lag_seconds,
       receiver.is_there AS receives,
       extract(epoch FROM pg_last_xact_replay_timestamp())::float8 AS last_replayed
FROM (SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) AS is_there) AS receiver
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

"""The queries sent to MySQL and MariaDB. Every statement reads; texts are digests, without the values of people."""

STATEMENTS = """
SELECT COALESCE(SCHEMA_NAME, '') AS db, DIGEST AS digest, DIGEST_TEXT AS query, COUNT_STAR AS calls,
       SUM_TIMER_WAIT / 1e9 AS total_ms, SUM_LOCK_TIME / 1e9 AS lock_ms, SUM_ROWS_EXAMINED AS examined,
       SUM_ROWS_SENT AS rows_sent, SUM_NO_INDEX_USED AS no_index
FROM performance_schema.events_statements_summary_by_digest
WHERE DIGEST IS NOT NULL ORDER BY SUM_TIMER_WAIT DESC LIMIT %(most)s
"""

MOST_SLOW = 2_000
SLOW = """
SELECT UNIX_TIMESTAMP(start_time) AS at, TIME_TO_SEC(query_time) + MICROSECOND(query_time) / 1e6 AS seconds,
       rows_examined AS examined, rows_sent, CONVERT(sql_text USING utf8mb4) AS query
FROM mysql.slow_log
WHERE start_time >= FROM_UNIXTIME(%(start)s) AND start_time < FROM_UNIXTIME(%(end)s)
ORDER BY start_time DESC LIMIT %(most)s
"""

SESSIONS = """
SELECT COMMAND AS command, COALESCE(STATE, '') AS state, COUNT(*) AS sessions, MAX(TIME) AS longest_seconds
FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() GROUP BY COMMAND, STATE ORDER BY sessions DESC LIMIT 30
"""

VARIABLES = """
SHOW GLOBAL VARIABLES WHERE Variable_name IN ('max_connections', 'performance_schema', 'slow_query_log', 'log_output', 'long_query_time')
"""

STATUS = """
SHOW GLOBAL STATUS WHERE Variable_name IN ('Threads_connected', 'Threads_running', 'Max_used_connections', 'Uptime',
 'Aborted_connects', 'Connection_errors_max_connections', 'Slow_queries', 'Questions', 'Innodb_row_lock_current_waits',
 'Innodb_buffer_pool_read_requests', 'Innodb_buffer_pool_reads')
"""

SIZES = """
SELECT TABLE_SCHEMA AS db, CAST(SUM(DATA_LENGTH + INDEX_LENGTH) AS SIGNED) AS bytes FROM information_schema.TABLES
WHERE TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') GROUP BY TABLE_SCHEMA
"""

# The holder is a session that is still connected: InnoDB keeps the number of one that has left, and its views are renewed
# only for a reader that has let 100 ms pass.
WAITS_MARIADB = """
SELECT w.trx_mysql_thread_id AS waiting, p.ID AS holder, UNIX_TIMESTAMP(w.trx_wait_started) AS since,
       UNIX_TIMESTAMP(b.trx_started) AS holder_since, COALESCE(p.COMMAND, '') AS holder_command, l.lock_table AS locked
FROM information_schema.INNODB_LOCK_WAITS x
JOIN information_schema.INNODB_TRX w ON w.trx_id = x.requesting_trx_id
JOIN information_schema.INNODB_TRX b ON b.trx_id = x.blocking_trx_id
JOIN information_schema.INNODB_LOCKS l ON l.lock_id = x.blocking_lock_id
LEFT JOIN information_schema.PROCESSLIST p ON p.ID = b.trx_mysql_thread_id
"""

WAITS_MYSQL = """
SELECT waiting_pid AS waiting, p.ID AS holder, UNIX_TIMESTAMP(wait_started) AS since,
       UNIX_TIMESTAMP(blocking_trx_started) AS holder_since, COALESCE(p.COMMAND, '') AS holder_command, locked_table AS locked
FROM sys.innodb_lock_waits LEFT JOIN information_schema.PROCESSLIST p ON p.ID = blocking_pid
"""

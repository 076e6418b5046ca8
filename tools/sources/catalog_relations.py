"""What a free PostgreSQL query may use: catalog and statistics views, functions that only compute, and types.

Not in the lists, on purpose: what holds passwords (`pg_authid`, `pg_shadow`, `pg_user_mapping`, `pg_subscription`,
`pg_settings`, `pg_hba_file_rules`), values out of user tables (`pg_stats`, `pg_statistic`, `pg_largeobject`), and every
function that changes something, reads files, opens connections, runs SQL out of a text, waits, or makes large values.
"""


def _split_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CATALOG = _split_names(
    """
    pg_stat_activity pg_stat_archiver pg_stat_bgwriter pg_stat_checkpointer pg_stat_database
    pg_stat_database_conflicts pg_stat_gssapi pg_stat_io pg_stat_progress_analyze pg_stat_progress_basebackup
    pg_stat_progress_cluster pg_stat_progress_copy pg_stat_progress_create_index pg_stat_progress_vacuum
    pg_stat_recovery_prefetch pg_stat_replication pg_stat_replication_slots pg_stat_slru pg_stat_ssl
    pg_stat_subscription pg_stat_subscription_stats pg_stat_user_functions pg_stat_wal pg_stat_all_indexes
    pg_stat_all_tables pg_stat_sys_indexes pg_stat_sys_tables pg_stat_user_indexes pg_stat_user_tables
    pg_stat_xact_all_tables pg_stat_xact_user_tables pg_statio_all_indexes pg_statio_all_sequences
    pg_statio_all_tables pg_statio_user_indexes pg_statio_user_sequences pg_statio_user_tables
    pg_am pg_attribute pg_class pg_constraint pg_database pg_depend pg_description pg_extension pg_index pg_indexes
    pg_inherits pg_locks pg_matviews pg_namespace pg_partitioned_table pg_policies pg_prepared_xacts pg_publication
    pg_publication_tables pg_replication_slots pg_roles pg_sequence pg_tables pg_tablespace
    pg_trigger pg_type pg_views
    """
)

INFORMATION_SCHEMA = _split_names(
    "columns constraint_column_usage key_column_usage referential_constraints schemata sequences table_constraints tables"
)

EXTENSIONS = frozenset({"pg_stat_statements", "pg_stat_statements_info"})
"""Views of extensions: their schema is asked of the server."""

FUNCTIONS = _split_names(
    """
    abs age array_length avg bool_and bool_or btrim cardinality ceil ceiling char_length clock_timestamp coalesce concat
    count current_database current_date current_schema current_time current_timestamp current_user date_bin date_part
    date_trunc dense_rank every extract first_value floor format_type greatest grouping initcap isfinite lag last_value
    lead least left length lower ltrim max md5 min mod mode now ntile nullif octet_length percent_rank
    percentile_cont percentile_disc position power rank regexp_count reverse right round row_number
    rtrim session_user sign split_part sqrt statement_timestamp stddev stddev_pop stddev_samp strpos substr substring sum
    timestamp_trunc to_char to_timestamp transaction_timestamp trim trunc upper var_pop var_samp variance version
    width_bucket
    col_description inet_client_addr inet_server_addr obj_description pg_backend_pid pg_blocking_pids pg_conf_load_time
    pg_current_wal_insert_lsn pg_current_wal_lsn pg_database_size pg_get_constraintdef pg_get_expr pg_get_indexdef
    pg_get_partkeydef pg_get_userbyid pg_indexes_size pg_is_in_recovery pg_is_wal_replay_paused pg_last_wal_receive_lsn
    pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_postmaster_start_time pg_relation_size pg_safe_snapshot_blocking_pids
    pg_size_pretty pg_table_is_visible pg_table_size pg_tablespace_size pg_total_relation_size pg_wal_lsn_diff to_regclass
    """
)

TYPES = _split_names(
    """
    bool boolean bigint bigserial date decimal double float float4 float8 inet int int2 int4 int8 integer interval name
    numeric oid pg_lsn real regclass regnamespace regproc regrole regtype smallint text time timestamp timestamptz varchar
    xid char "char"
    """
)

NODES = _split_names(
    """
    Select Union Intersect Except From Where Group Having Order Ordered Limit Offset Fetch LimitOptions Distinct Join
    Subquery CTE With Table TableAlias Alias Column Identifier Star Paren Tuple Literal Boolean Null Var Interval DataType
    DataTypeParam ObjectIdentifier Cast Case If And Or Not Neg Add Sub Mul Div Mod EQ NEQ GT GTE LT LTE Is
    NullSafeEQ NullSafeNEQ Like ILike SimilarTo RegexpLike RegexpILike In Between Exists Any All Array Bracket DPipe
    Concat Window WindowSpec Filter WithinGroup AtTimeZone Anonymous
    """
)
"""Parts of a query, as the parser calls them, that only read and compute."""

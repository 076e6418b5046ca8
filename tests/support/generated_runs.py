"""Stored runs by the million, made by the server itself: what a service looks like after a year."""

import psycopg

from opsleuth.checkpoints.postgres.connection import SCHEMA

_RUNS = """
INSERT INTO runs (id, question, project, status, stop_reason, verdict, turn, attempt, created, updated, tokens, cost,
    graph_revision, app_version, settings)
SELECT 'inv-20261101-g' || lpad(n::text, 9, '0'), 'is service ' || n || ' slow?',
    CASE WHEN n %% 10 = 0 THEN 'bank' ELSE 'shop' END, 'completed', 'concluded', 'cause_found', 5, 1, moment, moment, 1000, '0.01',
    'r1', '1.0', '{"state": {}}'
FROM (SELECT n, to_char(now() - interval '20 days' + n * interval '0.4 second', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS moment
      FROM generate_series(%(first)s::bigint, %(last)s) AS n) AS numbered
"""
_INTAKE = """
INSERT INTO intake (run, team, severity, sender, request, digest, progress, strikes)
SELECT id, project, 2, 'alertmanager', NULL, 'd', 5, 0 FROM runs WHERE id LIKE 'inv-20261101-g%%'
"""
_ALERTS = """
INSERT INTO alerts (team, fingerprint, run, document, first, last, count, service, began, severity, refired)
SELECT project, md5(id), id, '{}', created, updated, 1, 'old-' || right(id, 9), created, 'warning', 0
FROM runs WHERE id LIKE 'inv-20261101-g%%'
"""
_AT_ONCE = 250_000


def generate_ended_runs(url: str, count: int, *, with_alerts: bool = True) -> None:
    """So many runs of the teams shop and bank that have ended, a tenth of them the bank's; the statistics are up to date."""
    with psycopg.connect(
        url, autocommit=True, options=f"-csearch_path={SCHEMA} -csynchronous_commit=off"
    ) as connection:
        for first in range(1, count + 1, _AT_ONCE):
            connection.execute(_RUNS, {"first": first, "last": min(count, first + _AT_ONCE - 1)})
        connection.execute(_INTAKE.replace("%%", "%"))
        if with_alerts:
            connection.execute(_ALERTS.replace("%%", "%"))
        connection.execute("VACUUM ANALYZE runs")
        connection.execute("ANALYZE")

"""The queue of runs as seen by its producers: one more table of the same PostgreSQL database.

The queue itself is procrastinate's, and its workers take the jobs out. A job is put in with the run that it is of, in
one transaction: neither can be there without the other.
"""

from collections.abc import Sequence

from opsleuth.checkpoints.service.intake import IntakeRow, IntakeTable
from opsleuth.checkpoints.table_context import TableContext

QUEUE = "runs"
TASK = "opsleuth.investigate"
TABLE = "procrastinate_jobs"
MOST_WAITING = 999
"""More waiting jobs of one team than this put its next one no further back."""

# Every answer has a job of its own, even if one of the run waits already: that one may be ended, by a worker that was
# considered dead, before it has seen the answer. A job too many finds no work. Priority: the severity; within it, the
# more of a team wait, the later its next.
_PUT = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, args)
SELECT :queue, :task, taken.severity * 1000 - least(:most, waiting.total + taken.place - 1), taken.run,
    jsonb_build_object('run', taken.run, 'team', CAST(:team AS text))
FROM unnest(CAST(:runs AS text[]), CAST(:severities AS bigint[])) WITH ORDINALITY AS taken (run, severity, place),
    (SELECT count(*) AS total
     FROM (SELECT 1 FROM procrastinate_jobs WHERE status = 'todo' AND args ->> 'team' = :team LIMIT :most) AS jobs) AS waiting
"""
# The queue's own indexes know neither team nor run: without these each look reads every job that waits.
INDEXES = """
CREATE INDEX IF NOT EXISTS opsleuth_jobs_team ON procrastinate_jobs ((args ->> 'team')) WHERE status = 'todo';
CREATE INDEX IF NOT EXISTS opsleuth_jobs_run ON procrastinate_jobs (lock) WHERE status IN ('todo', 'doing');
"""
# What should go on and has no job: its run must not be lost with it.
_LOST = """
SELECT intake.run FROM runs JOIN intake ON intake.run = runs.id
WHERE runs.status IN ('queued', 'running', 'interrupted', 'waiting')
AND NOT (runs.status = 'waiting' AND EXISTS (
    SELECT 1 FROM approvals WHERE approvals.run = runs.id AND approvals.status = 'pending' AND approvals.about <> 'question'))
AND NOT EXISTS (
    SELECT 1 FROM procrastinate_jobs AS jobs WHERE jobs.lock = runs.id AND jobs.status IN ('todo', 'doing')
)
"""
_COUNT = "SELECT status, count(*) AS total FROM procrastinate_jobs WHERE queue_name = ? GROUP BY status"


class JobsTable:
    """The table of jobs."""

    def __init__(self, backing: TableContext, intake: IntakeTable) -> None:
        self._db, self._intake = backing.db, intake

    def put(self, taken: IntakeRow) -> None:
        """Put a run in line."""
        self.put_all([taken])

    def put_all(self, taken: Sequence[IntakeRow]) -> None:
        """Put runs in line, those of a team one behind the other: what waits already is counted once for all of them."""
        for team in dict.fromkeys(row.team for row in taken):
            rows = [row for row in taken if row.team == team]
            values = {
                "queue": QUEUE,
                "task": TASK,
                "most": MOST_WAITING,
                "team": team,
                "runs": [row.run for row in rows],
                "severities": [row.severity for row in rows],
            }
            self._db.change(_PUT, values)

    def put_lost(self) -> tuple[str, ...]:
        """Put those runs in line again that should go on and that no job is of; their ids."""
        lost = tuple(str(row["run"]) for row in self._db.rows(_LOST))
        found = [self._intake.get(run) for run in lost]
        self.put_all([taken for taken in found if taken is not None])
        return lost

    def counts(self) -> dict[str, int]:
        """Jobs by their state: todo, doing, and those that ended and were not removed yet. Empty without a queue."""
        if TABLE not in self._db.tables():
            return {}
        return {str(row["status"]): int(row["total"]) for row in self._db.rows(_COUNT, (QUEUE,))}

"""The queue of runs, as whoever puts a run in it sees it: one more table of the same PostgreSQL database.

The queue itself is procrastinate's, and its workers take the jobs out. A job is put in with the run that it is of, in
one transaction: neither can be there without the other.
"""

import json

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.intake import Intake, Taken

QUEUE = "runs"
TASK = "opsleuth.investigate"
TABLE = "procrastinate_jobs"
MOST_WAITING = 999
"""More waiting jobs of one team than this put its next one no further back."""

# Every answer has a job of its own, even if one of the run waits already: that one may be ended, by a worker that was
# taken for dead, before it has seen the answer. A job too many finds no work. Priority: the severity; within it, the
# more of a team wait, the later its next.
_PUT = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, args)
SELECT :queue, :task, :severity * 1000 - least(:most, count(*)), :run, CAST(:args AS jsonb)
FROM procrastinate_jobs WHERE status = 'todo' AND queue_name = :queue AND args ->> 'team' = :team
"""
# What should go on and has no job: its run must not be lost with it.
_LOST = """
SELECT intake.run FROM intake JOIN runs ON runs.id = intake.run
WHERE (runs.status IN ('queued', 'running', 'interrupted') OR (runs.status = 'waiting' AND NOT EXISTS (
    SELECT 1 FROM approvals WHERE approvals.run = intake.run AND approvals.status = 'pending')))
AND NOT EXISTS (
    SELECT 1 FROM procrastinate_jobs AS jobs WHERE jobs.lock = intake.run AND jobs.status IN ('todo', 'doing')
)
"""
_COUNT = "SELECT status, count(*) AS total FROM procrastinate_jobs WHERE queue_name = ? GROUP BY status"


class Jobs:
    """The table of jobs."""

    def __init__(self, backing: Backing, intake: Intake) -> None:
        self._db, self._intake = backing.db, intake

    def put(self, taken: Taken) -> None:
        """Put a run in line."""
        values = {
            "queue": QUEUE,
            "task": TASK,
            "severity": taken.severity,
            "most": MOST_WAITING,
            "run": taken.run,
            "team": taken.team,
            "args": json.dumps({"run": taken.run, "team": taken.team}),
        }
        self._db.change(_PUT, values)

    def put_lost(self) -> tuple[str, ...]:
        """Put those runs in line again that should go on and that no job is of; their ids."""
        lost = tuple(str(row["run"]) for row in self._db.rows(_LOST))
        for run in lost:
            taken = self._intake.get(run)
            if taken is not None:
                self.put(taken)
        return lost

    def counts(self) -> dict[str, int]:
        """Jobs by their state: todo, doing, and those that ended and were not removed yet. Empty without a queue."""
        if TABLE not in self._db.tables():
            return {}
        return {str(row["status"]): int(row["total"]) for row in self._db.rows(_COUNT, (QUEUE,))}

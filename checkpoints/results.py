"""What came of each call, under its id: a node that runs again finds it here and does not call again."""

import json
from dataclasses import fields
from typing import Literal

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.bodies import Bodies
from opsleuth.checkpoints.runs import Runs
from opsleuth.state.results import CallResult, ResultStatus

Origin = Literal["run", "operator"]

_FIELDS = tuple(f.name for f in fields(CallResult) if f.name != "record")
_INSERT = """
INSERT INTO results (run, call_id, fields, body, origin, stored)
VALUES (:run, :call_id, :fields, :body, :origin, :stored) ON CONFLICT DO NOTHING
"""


class Results:
    """The table of results."""

    def __init__(self, backing: Backing, bodies: Bodies, runs: Runs) -> None:
        self._backing, self._db, self._bodies, self._runs = backing, backing.db, bodies, runs

    def put(self, run: str, call_id: str, result: CallResult, *, origin: Origin = "run") -> bool:
        """Store a result; False if the call had one, which stays. `operator` marks one given by hand."""
        document = self._backing.document({name: getattr(result, name) for name in _FIELDS})
        packed = self._bodies.pack(result.record)
        with self._db.write():
            values = {
                "run": run,
                "call_id": call_id,
                "fields": document,
                "body": self._bodies.put(packed),
                "origin": origin,
                "stored": self._backing.now(),
            }
            return bool(self._db.change(_INSERT, values))

    def get(self, run: str, call_id: str) -> CallResult | None:
        """The result of a call, this run's or else an ancestor's: a fork replays what its parent did."""
        for member, _ in self._runs.lineage(run):
            row = self._db.row(
                "SELECT fields, body FROM results WHERE run = ? AND call_id = ?", (member, call_id)
            )
            if row:
                document = json.loads(row["fields"])
                document["status"] = ResultStatus(document["status"])
                document["spark"] = tuple(v for v in document["spark"] if v is not None)
                return CallResult(record=self._bodies.record(row["body"]), **document)
        return None

    def own(self, run: str, call_id: str) -> bool:
        """Whether this run itself, and not an ancestor, stored a result of the call."""
        return bool(self._db.row("SELECT 1 FROM results WHERE run = ? AND call_id = ?", (run, call_id)))

    def discard(self, run: str, call_id: str) -> bool:
        """Forget this run's result of a call, so that it is made again; True if there was one."""
        return bool(self._db.change("DELETE FROM results WHERE run = ? AND call_id = ?", (run, call_id)))

"""Observations `O1` to `On` of a run, read along its lineage."""

import json
from dataclasses import fields

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.bodies import Bodies
from opsleuth.checkpoints.db import Row
from opsleuth.checkpoints.runs import Runs
from opsleuth.state.results import Observation, ResultStatus

_FIELDS = tuple(f.name for f in fields(Observation) if f.name not in ("number", "record"))
_INSERT = """
INSERT INTO observations (run, number, fields, body) VALUES (:run, :number, :fields, :body) ON CONFLICT DO NOTHING
"""
_LIST = """
SELECT number, fields, body FROM observations WHERE run = :run AND (:upto IS NULL OR number <= :upto)
"""


class Observations:
    """The table of observations."""

    def __init__(self, backing: Backing, bodies: Bodies, runs: Runs) -> None:
        self._backing, self._db, self._bodies, self._runs = backing, backing.db, bodies, runs

    def add(self, run: str, observation: Observation) -> bool:
        """Store an observation; False if the run had one of this number, which stays."""
        document = self._backing.document({name: getattr(observation, name) for name in _FIELDS})
        packed = self._bodies.pack(observation.record)
        with self._db.write():
            values = {
                "run": run,
                "number": observation.number,
                "fields": document,
                "body": self._bodies.put(packed),
            }
            return bool(self._db.change(_INSERT, values))

    def list(self, run: str, upto: int | None = None) -> tuple[Observation, ...]:
        """Observations up to number `upto` (all by default), in order, a fork's own before its parent's."""
        rows: dict[int, Row] = {}
        for member, limit in self._runs.lineage(run):
            bound = min((n for n in (limit, upto) if n is not None), default=None)
            for row in self._db.rows(_LIST, {"run": member, "upto": bound}):
                rows.setdefault(row["number"], row)
        return tuple(self._observation(rows[number]) for number in sorted(rows))

    def _observation(self, row: Row) -> Observation:
        document = json.loads(row["fields"])
        document["status"] = ResultStatus(document["status"])
        return Observation(number=row["number"], record=self._bodies.record(row["body"]), **document)

"""Observations `O1` to `On` of a run, read along its lineage."""

from dataclasses import fields

from opsleuth.checkpoints.bodies import BodyTable
from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.decoding import decode_fields
from opsleuth.checkpoints.seals import seal_values
from opsleuth.state.results import Observation, ResultStatus

_FIELDS = tuple(f.name for f in fields(Observation) if f.name not in ("number", "record"))
_INSERT = """
INSERT INTO observations (run, number, fields, body) VALUES (:run, :number, :fields, :body) ON CONFLICT DO NOTHING
"""
_LIST = """
SELECT number, fields, body FROM observations WHERE run = :run AND (:upto IS NULL OR number <= :upto)
"""


class ObservationsTable(BodyTable):
    """The table of observations."""

    def add(self, run: str, observation: Observation) -> bool:
        """Store an observation; False if the run had one of this number, which stays."""
        document = self._backing.document({name: getattr(observation, name) for name in _FIELDS})
        packed = self._bodies.pack(observation.record)
        with self._db.write(run):
            values = {
                "run": run,
                "number": observation.number,
                "fields": document,
                "body": self._bodies.put(packed),
            }
            if not self._db.change(_INSERT, values):
                return False
            seal_values(self._db, run, "observations", values, packed.left_out)
            return True

    def list(self, run: str, upto: int | None = None) -> tuple[Observation, ...]:
        """Observations up to number `upto` (all by default), in order, a fork's own before its parent's."""
        rows: dict[int, Row] = {}
        for member, limit in self._runs.lineage(run):
            bound = min((n for n in (limit, upto) if n is not None), default=None)
            for row in self._db.rows(_LIST, {"run": member, "upto": bound}):
                rows.setdefault(row["number"], row)
        return tuple(self._observation(rows[number]) for number in sorted(rows))

    def _observation(self, row: Row) -> Observation:
        columns = {"number": row["number"], "record": self._bodies.record(row["body"])}
        return decode_fields(Observation, row, {"status": ResultStatus}, **columns)

"""Evidence `E7`: the stored body behind an observation, with where and how it was obtained."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from opsleuth.checkpoints.bodies import BodyTable
from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.decoding import decode_fields
from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.seals import seal_values
from opsleuth.state.results import ResultStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceMeta:
    """Where a piece of evidence came from. `scanned` and `matched` count rows of a search."""

    call_id: str
    tool: str
    status: ResultStatus
    headline: str = ""
    source: str = ""
    query: str = ""
    target: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    scanned: int | None = None
    matched: int | None = None
    redactions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow(EvidenceMeta):
    """A stored piece of evidence. `size` in bytes before compression, `stored` after, `left_out` characters."""

    run: str
    number: int
    fetched: str
    sha256: str
    size: int
    stored: int
    left_out: int

    @property
    def id(self) -> str:
        return f"E{self.number}"


_META = tuple(f.name for f in fields(EvidenceMeta))
_COLUMNS = tuple(f.name for f in fields(EvidenceRow) if f.name not in _META)
_INSERT = """
INSERT INTO evidence (run, number, fields, body, fetched) VALUES (:run, :number, :fields, :body, :fetched)
ON CONFLICT DO NOTHING
"""
_SELECT = """
SELECT run, number, fields, fetched, sha256, size, left_out, length(data) AS stored
FROM evidence JOIN bodies ON sha256 = body
WHERE run = :run AND (:upto IS NULL OR number <= :upto) AND (:number IS NULL OR number = :number)
"""


class EvidenceTable(BodyTable):
    """The table of evidence."""

    def put(self, run: str, number: int, meta: EvidenceMeta, record: Mapping[str, Any]) -> EvidenceRow:
        """Store a record as `E<number>` of this run; what is stored under that number stays."""
        fields = self._backing.document({name: getattr(meta, name) for name in _META})
        packed = self._bodies.pack(record)
        with self._db.write(run):
            values = {
                "run": run,
                "number": number,
                "fields": fields,
                "body": self._bodies.put(packed),
                "fetched": self._backing.now(),
            }
            if self._db.change(_INSERT, values):
                seal_values(self._db, run, "evidence", values, packed.left_out)
            stored = self._db.row(_SELECT, {"run": run, "upto": None, "number": number})
        if stored is None:
            raise NotFoundError(f"E{number} of {run}: its body is gone")
        return _evidence_from_row(stored)

    def get(self, run: str, evidence_id: str) -> EvidenceRow:
        """One piece, this run's or what it inherits from the runs it was forked from. Raises NotFoundError."""
        if re.fullmatch(r"E[1-9]\d{0,6}", evidence_id):
            for member, upto in self._runs.lineage(run):
                row = self._db.row(_SELECT, {"run": member, "upto": upto, "number": int(evidence_id[1:])})
                if row:
                    return _evidence_from_row(row)
        raise NotFoundError(f"no evidence {evidence_id!r} in {run}", [row.id for row in self.list(run)][-3:])

    def record(self, run: str, evidence_id: str) -> dict[str, Any]:
        """The stored body of one piece. Raises NotFoundError, UnreadableStoreError."""
        return self._bodies.record(self.get(run, evidence_id).sha256)

    def list(self, run: str) -> tuple[EvidenceRow, ...]:
        """All evidence of the run along its lineage, by number."""
        rows: dict[int, Row] = {}
        for member, upto in self._runs.lineage(run):
            for row in self._db.rows(_SELECT, {"run": member, "upto": upto, "number": None}):
                rows.setdefault(row["number"], row)
        return tuple(_evidence_from_row(rows[number]) for number in sorted(rows))


def _evidence_from_row(row: Row) -> EvidenceRow:
    columns = {name: row[name] for name in _COLUMNS}
    return decode_fields(EvidenceRow, row, {"status": ResultStatus}, **columns)

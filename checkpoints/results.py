"""The result of each call, under its id: a node that runs again finds it here and does not call again."""

import json
from dataclasses import fields
from typing import Literal

from opsleuth.checkpoints.bodies import BodyTable
from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.decoding import Decoders, decode_fields
from opsleuth.checkpoints.seals import seal_removal, seal_values
from opsleuth.state.results import CallResult, ResultStatus

Origin = Literal["run", "operator"]

CALL_DIGEST = "call_digest"
"""In the fields of a result: the digest of the call that it answers."""
_FIELDS = tuple(f.name for f in fields(CallResult) if f.name != "record")
_INSERT = """
INSERT INTO results (run, call_id, fields, body, origin, stored)
VALUES (:run, :call_id, :fields, :body, :origin, :stored) ON CONFLICT DO NOTHING
"""
_DECODERS: Decoders = {
    "status": ResultStatus,
    "spark": lambda values: tuple(value for value in values if value is not None),
}


class ResultsTable(BodyTable):
    """The table of results."""

    def put(
        self, run: str, call_id: str, result: CallResult, *, origin: Origin = "run", digest: str | None = None
    ) -> bool:
        """Store a result; False if the call had one, which stays. `operator` marks one given by hand.

        `digest` is the call's own: a result of another call under the same id is not an answer to it, and goes.
        """
        named = {CALL_DIGEST: digest} if digest is not None else {}
        document = self._backing.document({name: getattr(result, name) for name in _FIELDS} | named)
        packed = self._bodies.pack(result.record)
        with self._db.write(run):
            if (found := self._row(run, call_id)) and not _is_result_of_call(found, digest):
                self.discard(run, call_id)
            values = {
                "run": run,
                "call_id": call_id,
                "fields": document,
                "body": self._bodies.put(packed),
                "origin": origin,
                "stored": self._backing.now(),
            }
            if not self._db.change(_INSERT, values):
                return False
            seal_values(self._db, run, "results", values, packed.left_out)
            return True

    def get(self, run: str, call_id: str, digest: str | None = None) -> CallResult | None:
        """The result of a call, this run's or else an ancestor's: a fork replays what its parent did.

        With `digest` only the result of the call that has it: an id alone may be given twice where a run went back.
        """
        for member, _ in self._runs.lineage(run):
            row = self._row(member, call_id)
            if row and _is_result_of_call(row, digest):
                return decode_fields(CallResult, row, _DECODERS, record=self._bodies.record(row["body"]))
        return None

    def _row(self, run: str, call_id: str) -> Row | None:
        return self._db.row("SELECT fields, body FROM results WHERE run = ? AND call_id = ?", (run, call_id))

    def own(self, run: str, call_id: str) -> bool:
        """Whether this run itself, and not an ancestor, stored a result of the call."""
        return bool(self._db.row("SELECT 1 FROM results WHERE run = ? AND call_id = ?", (run, call_id)))

    def discard(self, run: str, call_id: str) -> bool:
        """Forget this run's result of a call, so that it is made again; True if there was one."""
        with self._db.write(run):
            removed = self._db.change("DELETE FROM results WHERE run = ? AND call_id = ?", (run, call_id))
            if removed:
                seal_removal(self._db, run, "results", call_id)
        return bool(removed)


def _is_result_of_call(row: Row, digest: str | None) -> bool:
    """Whether a stored result is one of the call with this digest; older versions did not store it."""
    if digest is None:
        return True
    try:
        stored = json.loads(row["fields"]).get(CALL_DIGEST)
    except (ValueError, AttributeError):  # decoding says so in its own words
        return True
    return stored in (None, digest)

"""The terms of past incidents, indexed so that a recurring one is found among many."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from opsleuth.checkpoints.decoding import decode_row
from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.table_context import Table

Judgement = Literal["right", "wrong"]

MOST_TERMS = 40
"""Terms of one incident."""
_NEWEST_OF_A_TERM = 100
_MOST_CANDIDATES = 30
_PUT = """
INSERT INTO incidents (run, project, began, document) VALUES (:run, :project, :began, :document)
ON CONFLICT (run) DO UPDATE SET project = :project, began = :began, document = :document
"""
_PUT_TERM = """
INSERT INTO incident_terms (project, term, began, run) VALUES (:project, :term, :began, :run) ON CONFLICT DO NOTHING
"""
_JUDGE = """
UPDATE incidents SET judged = :judged, cause = :cause, helped = :helped, judged_by = :judged_by, judged_at = :judged_at WHERE run = :run
"""
_OF_TERM = """
SELECT * FROM (
    SELECT term, run FROM incident_terms WHERE project = :project AND term = :t{number} ORDER BY began DESC LIMIT :newest
) AS q{number}
"""


_TERMS_OF = "SELECT run, term FROM incident_terms WHERE run IN ({runs})"


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRow:
    """One ended incident. `judged` is a person's word on what was found, `cause` and `helped` what it was and what helped, by that word."""

    run: str
    project: str
    began: str
    document: Mapping[str, Any] = field(default_factory=dict)
    judged: Judgement | None = None
    cause: str | None = None
    helped: str | None = None
    judged_by: str | None = None
    judged_at: str | None = None


class PersonsWord(NamedTuple):
    """What a person says of a run's conclusion."""

    judged: Judgement
    by: str
    cause: str | None = None
    helped: str | None = None


class IncidentsTable(Table):
    """The table of ended incidents, and that of the terms they are found by."""

    def put(self, incident: IncidentRow, terms: Iterable[str]) -> None:
        """Store an incident and its terms in place of earlier ones; a judgement stays."""
        key = {"run": incident.run, "project": incident.project, "began": incident.began}
        with self._db.write(incident.run):
            self._db.change(_PUT, key | {"document": self._backing.document(incident.document)})
            self._db.change("DELETE FROM incident_terms WHERE run = ?", (incident.run,))
            for term in sorted({self._backing.clean(term) for term in terms})[:MOST_TERMS]:
                self._db.change(_PUT_TERM, key | {"term": term})

    def get(self, run: str) -> IncidentRow | None:
        """The incident of a run, or None where it is not kept."""
        row = self._db.row("SELECT * FROM incidents WHERE run = ?", (run,))
        return decode_row(IncidentRow, row, {"document": json.loads}, name=f"incident {run}") if row else None

    def judge(self, run: str, word: "PersonsWord") -> IncidentRow:
        """Store a person's word on what a run found; the last one counts. Raises NotFoundError."""
        values = {
            "run": run,
            "judged": word.judged,
            "cause": self._backing.clean(word.cause) if word.cause else None,
            "helped": self._backing.clean(word.helped) if word.helped else None,
            "judged_by": self._backing.clean(word.by),
            "judged_at": self._backing.now(),
        }
        if not self._db.change(_JUDGE, values):
            raise NotFoundError(
                f"no incident is stored for {run}: it has no conclusion, or an older version stored it"
            )
        found = self.get(run)
        if found is None:
            raise NotFoundError(f"no incident is stored for {run}: it has just been removed")
        return found

    def find_sharing(
        self, project: str, terms: Collection[str], without: Collection[str] = ()
    ) -> dict[str, frozenset[str]]:
        """Runs of the project that share the most of these terms, each with all of its own; `without` are passed over.

        Of each term the newest runs are looked at, so that the time does not grow with what is stored.
        """
        asked = sorted(set(terms))[:MOST_TERMS]
        if not asked:
            return {}
        sql = " UNION ALL ".join(_OF_TERM.format(number=number) for number in range(len(asked)))
        values = {
            "project": project,
            "newest": _NEWEST_OF_A_TERM,
            **{f"t{n}": term for n, term in enumerate(asked)},
        }
        shared = Counter(str(row["run"]) for row in self._db.rows(sql, values) if row["run"] not in without)
        return self._read_terms([run for run, _ in shared.most_common(_MOST_CANDIDATES)])

    def _read_terms(self, runs: Sequence[str]) -> dict[str, frozenset[str]]:
        if not runs:
            return {}
        names = {f"r{number}": run for number, run in enumerate(runs)}
        marks = ", ".join(f":{name}" for name in names)
        found: dict[str, set[str]] = defaultdict(set)
        for row in self._db.rows(_TERMS_OF.format(runs=marks), names):
            found[str(row["run"])].add(str(row["term"]))
        return {run: frozenset(found[run]) for run in runs}

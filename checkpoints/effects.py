"""The ledger of changes in the outside world: `started` is committed before the call, so that none happens twice.

started → done | failed_clean | unknown
unknown → done                 a probe of the target found it
unknown → started              the second and last try, where the target recognises repeats by the key
unknown → resolved             a person says that it happened, or that it did not
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from opsleuth.checkpoints.approvals import ApprovalsTable
from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.decoding import Decoders, decode_row
from opsleuth.checkpoints.errors import (
    AlreadyStartedError,
    ConflictError,
    NotApprovedError,
    NotFoundError,
)
from opsleuth.checkpoints.runs import RunsTable
from opsleuth.checkpoints.seals import seal_stored
from opsleuth.checkpoints.table_context import TableContext
from opsleuth.state.canonical_json import canonical_sha256

ANCESTOR_EFFECTS = "ancestor_effects"
"""In the settings of a fork: how many effects each of its ancestors had when it was made."""
REPLAYED = "replayed"
"""In the result of an effect: a recording was replayed, and nothing was executed."""
EffectStatus = Literal["started", "done", "failed_clean", "unknown", "resolved"]
Outcome = Literal["happened", "absent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One change that is about to be made. `repeat_of` is the call id of an equal one, to do it again on purpose."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    target: str | None
    risk: str
    repeat_of: str | None = None

    @property
    def key(self) -> str:
        """Hash of call id, canonical arguments and target; also the idempotency key that the target is given."""
        return canonical_sha256([self.call_id, self.arguments, self.target])

    @property
    def digest(self) -> str:
        """Hash of tool, canonical arguments and target: equal for effects that do the same."""
        return content_digest(self.tool, self.arguments, self.target)


class EffectGrant(NamedTuple):
    """The approval that an effect rests on: its id, and the digest and policy version that it must have.

    `elsewhere` are run and key of equal effects of other branches that the person was shown.
    """

    approval: str
    digest: str
    policy_version: str = ""
    elsewhere: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow:
    """One row of the ledger.

    `attempt` is the process attempt that started it, `tries` 1 or 2. `result` is what the tool returned, or
    what the person said. `verified` is the postcondition's verdict, None while unchecked, `checked` what was seen.
    """

    run: str
    key: str
    call_id: str
    tool: str
    target: str | None
    digest: str
    risk: str
    approval: str | None
    repeat_of: str | None
    attempt: int
    tries: int
    status: EffectStatus
    outcome: Outcome | None
    started: str
    finished: str | None
    verified: bool | None
    checked: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_replayed(self) -> bool:
        """Whether a recording was replayed instead of a target: nothing was executed."""
        return bool(self.result.get(REPLAYED))

    @property
    def may_have_happened(self) -> bool:
        """Whether the change was made, or nobody knows."""
        return self.status in ("started", "done", "unknown") or self.outcome == "happened"

    @property
    def check_missing(self) -> bool:
        """Whether it was looked for and nobody could tell: `not checked` is not a pass."""
        return self.happened and self.verified is None and bool(self.checked)

    @property
    def happened(self) -> bool:
        """Whether it is certain that the change was made."""
        return self.status == "done" or self.outcome == "happened"


def content_digest(tool: str, arguments: Mapping[str, Any], target: str | None) -> str:
    """SHA-256 over tool, canonical arguments and target, as 64 hex digits."""
    return canonical_sha256({"tool": tool, "arguments": arguments, "target": target})


_INSERT = """
INSERT INTO effects (run, key, call_id, tool, target, arguments, digest, risk, approval, repeat_of, attempt, tries,
                     status, result, started, checked)
VALUES (:run, :key, :call_id, :tool, :target, :arguments, :digest, :risk, :approval, :repeat_of, :attempt, 1,
        'started', '{}', :now, '')
ON CONFLICT DO NOTHING
"""
_SAME = """
SELECT * FROM effects
WHERE run = :run AND digest = :digest
  AND (status IN ('started', 'done', 'unknown') OR outcome = 'happened')
ORDER BY rowid DESC LIMIT 1
"""
_FINISH = """
UPDATE effects SET status = :status, result = :result, finished = :now
WHERE run = :run AND key = :key AND status = 'started' AND attempt = :attempt
"""
_FOUND = """
UPDATE effects SET status = 'done', result = :result, finished = :now
WHERE run = :run AND key = :key AND status = 'unknown'
"""
_AGAIN = """
UPDATE effects SET status = 'started', tries = 2, attempt = :attempt, started = :now, finished = NULL
WHERE run = :run AND key = :key AND status = 'unknown' AND tries = 1
"""
_RESOLVE = """
UPDATE effects SET status = 'resolved', outcome = :outcome, result = :result, finished = :now
WHERE run = :run AND key = :key AND status = 'unknown'
"""
_ORPHANS = """
UPDATE effects SET status = 'unknown' WHERE run = :run AND status = 'started' AND attempt <> :attempt
"""
_CHECK = """
UPDATE effects SET verified = :verified, checked = :checked
WHERE run = :run AND key = :key AND (status = 'done' OR outcome = 'happened')
"""


class EffectsLedger:
    """The table of effects."""

    def __init__(self, backing: TableContext, runs: RunsTable, approvals: ApprovalsTable) -> None:
        self._backing, self._db, self._runs, self._approvals = backing, backing.db, runs, approvals

    def start(
        self,
        run: str,
        effect: Effect,
        *,
        attempt: int,
        grant: EffectGrant | None = None,
        allowed: bool = False,
    ) -> EffectRow:
        """Mark an effect as started, using up its approval: both in one transaction, or neither.

        `allowed`: the operator's policy lets this high effect run without a person; a repeat never.

        Raises NotApprovedError (a high effect, a repeat, or one that another branch made, without a valid approval that
        knows of it) and AlreadyStartedError if the
        ledger has this call, or, along the lineage, an equal effect that happened or may have happened and
        that `repeat_of` does not name.
        """
        if grant is None and (effect.repeat_of is not None or not (allowed or effect.risk == "low")):
            raise NotApprovedError(
                f"{effect.call_id} ({effect.tool}, {effect.risk}) needs a person's approval first"
            )
        family = self._runs.lineage(run)[-1][0]  # a fork and its parent may be about to do the same
        with self._db.write(family), self._db.write(run):
            self._refuse_same(run, effect)
            self._refuse_unseen(run, effect, grant)
            if grant is not None:
                self._approvals.use(
                    run,
                    grant.approval,
                    subject=effect.call_id,
                    digest=grant.digest,
                    policy_version=grant.policy_version,
                )
            if not self._db.change(_INSERT, self._values(run, effect, attempt, grant)):
                raise AlreadyStartedError(f"{effect.call_id} is in the ledger already", run, effect.key)
            seal_stored(self._db, run, "effects", [effect.key])
            return self.get(run, effect.key)

    def finish(
        self,
        run: str,
        key: str,
        status: Literal["done", "failed_clean", "unknown"],
        result: Mapping[str, Any],
        *,
        attempt: int,
    ) -> EffectRow:
        """Record the outcome of an effect that this attempt started. Raises ConflictError if it did not, or has finished."""
        return self._set(
            _FINISH, run, key, status=status, result=self._backing.document(result), attempt=attempt
        )

    def found(self, run: str, key: str, result: Mapping[str, Any]) -> EffectRow:
        """A probe of the target found an unknown effect: it is done. Raises ConflictError if it is not unknown."""
        return self._set(_FOUND, run, key, result=self._backing.document(result))

    def again(self, run: str, key: str, *, attempt: int) -> EffectRow:
        """Start the second and last try of an unknown effect that a probe did not find, under the same approval.

        Only for a target that recognises repeats by the key. Raises ConflictError if it was tried twice.
        """
        return self._set(_AGAIN, run, key, attempt=attempt)

    def resolve(self, run: str, key: str, outcome: Outcome, *, by: str, reason: str) -> EffectRow:
        """A person's word on an unknown effect. Raises ConflictError if it is not unknown (any more)."""
        said = self._backing.document({"by": by, "reason": reason})
        return self._set(_RESOLVE, run, key, outcome=outcome, result=said)

    def check(self, run: str, key: str, *, passed: bool, seen: str) -> EffectRow:
        """Record the postcondition's verdict on an effect that happened. Raises ConflictError for any other."""
        return self._set(_CHECK, run, key, verified=int(passed), checked=self._backing.clean(seen))

    def leave_unchecked(self, run: str, key: str, why: str) -> EffectRow:
        """Record that the check of an effect gave no verdict. Raises ConflictError for one that did not happen."""
        return self._set(_CHECK, run, key, verified=None, checked=self._backing.clean(why))

    def orphans(self, run: str, *, attempt: int) -> tuple[EffectRow, ...]:
        """All unknown effects of the run; those that another attempt started and never finished become unknown."""
        with self._db.write(run):
            if self._db.change(_ORPHANS, {"run": run, "attempt": attempt}):
                seal_stored(self._db, run, "effects")
        return self.list(run, "unknown")

    def get(self, run: str, key: str) -> EffectRow:
        """One row of this run. Raises NotFoundError."""
        row = self._db.row("SELECT * FROM effects WHERE run = ? AND key = ?", (run, key))
        if row is None:
            raise NotFoundError(f"no effect {key[:16]} in {run}")
        return _effect_from_row(row)

    def of_call(self, run: str, call_id: str, digest: str | None = None) -> EffectRow | None:
        """The row of a call in this run, or None; with `digest` only that of a call that does the same."""
        rows = self._db.rows(
            "SELECT * FROM effects WHERE run = ? AND call_id = ? ORDER BY rowid DESC", (run, call_id)
        )
        return next((_effect_from_row(row) for row in rows if digest in (None, row["digest"])), None)

    def lookup(
        self, run: str, tool: str, arguments: Mapping[str, Any], target: str | None
    ) -> EffectRow | None:
        """The latest equal effect that happened or may have happened, in this run or an ancestor."""
        return self._same(run, content_digest(tool, arguments, target))

    def list(self, run: str, status: EffectStatus | None = None) -> tuple[EffectRow, ...]:
        """The run's own effects in the order in which they were started."""
        rows = self._db.rows("SELECT * FROM effects WHERE run = ? ORDER BY rowid", (run,))
        return tuple(_effect_from_row(row) for row in rows if status in (None, row["status"]))

    def along(self, run: str) -> tuple[EffectRow, ...]:
        """The effects of the run and of those that it was forked from, in the order in which they were started.

        Also what a parent did after the fork: runs branch, the world does not.
        """
        rows = [
            row
            for member, _ in self._runs.lineage(run)
            for row in self._db.rows("SELECT rowid AS place, effects.* FROM effects WHERE run = ?", (member,))
        ]
        return tuple(_effect_from_row(row) for row in sorted(rows, key=lambda row: int(row["place"])))

    def find_elsewhere(
        self, run: str, tool: str, arguments: Mapping[str, Any], target: str | None
    ) -> tuple[EffectRow, ...]:
        """Equal effects that happened, or may have, in the run's family and are not recorded for this run.

        Those of siblings and descendants, and of ancestors since they were forked: runs branch, the world does not.
        """
        return self._elsewhere(run, content_digest(tool, arguments, target))

    def count_of_ancestors(self, run: str) -> dict[str, int]:
        """How many effects the run and each of its ancestors have: what a fork made now knows of."""
        return {member: len(self.list(member)) for member, _ in self._runs.lineage(run)}

    def _elsewhere(self, run: str, content: str) -> tuple[EffectRow, ...]:
        recorded = {(row.run, row.key) for row in self._recorded(run)}
        return tuple(
            row
            for member in self._runs.list_family(run)
            if member != run
            for row in self.list(member)
            if row.digest == content and row.may_have_happened and (row.run, row.key) not in recorded
        )

    def _recorded(self, run: str) -> Sequence[EffectRow]:
        """What ancestors had done when this run was forked, nearest first; of older versions' forks all of it."""
        row = self._runs.get(run)
        known: Mapping[str, int] = row.settings.get(ANCESTOR_EFFECTS, {}) if row else {}
        return [
            effect
            for member, _ in self._runs.lineage(run)[1:]
            for effect in reversed(self.list(member)[: known.get(member)])
        ]

    def _same(self, run: str, content: str) -> EffectRow | None:
        row = self._db.row(_SAME, {"run": run, "digest": content})
        if row:
            return _effect_from_row(row)
        found = (e for e in self._recorded(run) if e.digest == content and e.may_have_happened)
        return next(found, None)

    def _refuse_unseen(self, run: str, effect: Effect, grant: EffectGrant | None) -> None:
        """Refuse what another branch has done, or may have, without a person who was shown that."""
        seen = grant.elsewhere if grant else frozenset()
        for row in self._elsewhere(run, effect.digest):
            if (row.run, row.key) not in seen:
                raise NotApprovedError(
                    f"{row.run} made the same change as {row.call_id}, {row.status} since {row.started}: "
                    "a person must decide whether to repeat it"
                )

    def _refuse_same(self, run: str, effect: Effect) -> None:
        same = self._same(run, effect.digest)
        if same is not None and same.call_id != effect.repeat_of:
            raise AlreadyStartedError(
                f"{effect.tool} with these arguments is {same.status} since {same.started} ({same.call_id}): "
                f"to do it again on purpose, ask with repeat_of={same.call_id}",
                same.run,
                same.key,
            )

    def _values(self, run: str, effect: Effect, attempt: int, grant: EffectGrant | None) -> dict[str, Any]:
        return {
            "run": run,
            "key": effect.key,
            "call_id": effect.call_id,
            "tool": effect.tool,
            "target": effect.target,
            "arguments": self._backing.document(effect.arguments),
            "digest": effect.digest,
            "risk": effect.risk,
            "approval": grant.approval if grant else None,
            "repeat_of": effect.repeat_of,
            "attempt": attempt,
            "now": self._backing.now(),
        }

    def _set(self, sql: str, run: str, key: str, **values: object) -> EffectRow:
        with self._db.write(run):
            if not self._db.change(sql, {"run": run, "key": key, "now": self._backing.now(), **values}):
                found = self.get(run, key)
                raise ConflictError(
                    f"effect {key[:16]} of {run} is {found.status} (attempt {found.attempt}, try {found.tries}): "
                    "this step is not possible from there"
                )
            seal_stored(self._db, run, "effects", [key])
            return self.get(run, key)


def _effect_from_row(row: Row) -> EffectRow:
    decoders: Decoders = {"arguments": json.loads, "result": json.loads, "verified": bool}
    return decode_row(EffectRow, row, decoders, name=f"effect {row['call_id']} of {row['run']}")

"""The ledger of changes in the outside world: `started` is committed before the call, so that none happens twice.

started → done | failed_clean | unknown
unknown → done                 a probe of the target found it
unknown → started              the second and last try, where the target tells repeats apart by the key
unknown → resolved             a person says that it happened, or that it did not
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from opsleuth.checkpoints.approvals import Approvals
from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.db import Row
from opsleuth.checkpoints.errors import AlreadyStarted, Conflict, NotApproved, NotFound
from opsleuth.checkpoints.runs import Runs
from opsleuth.state.canonical import digest

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
        return digest([self.call_id, self.arguments, self.target])

    @property
    def digest(self) -> str:
        """Hash of tool, canonical arguments and target: equal for effects that do the same."""
        return content_digest(self.tool, self.arguments, self.target)


class Grant(NamedTuple):
    """The approval that an effect rests on: its id, and the digest and policy version that it must have."""

    approval: str
    digest: str
    policy_version: str = ""


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
    def happened(self) -> bool:
        """Whether it is certain that the change was made."""
        return self.status == "done" or self.outcome == "happened"


def content_digest(tool: str, arguments: Mapping[str, Any], target: str | None) -> str:
    """SHA-256 over tool, canonical arguments and target, as 64 hex digits."""
    return digest({"tool": tool, "arguments": arguments, "target": target})


_COLUMNS = tuple(f.name for f in fields(EffectRow))
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


class Effects:
    """The table of effects."""

    def __init__(self, backing: Backing, runs: Runs, approvals: Approvals) -> None:
        self._backing, self._db, self._runs, self._approvals = backing, backing.db, runs, approvals

    def start(
        self, run: str, effect: Effect, *, attempt: int, grant: Grant | None = None, allowed: bool = False
    ) -> EffectRow:
        """Mark an effect as started, using up its approval: both in one transaction, or neither.

        `allowed`: the operator's policy lets this high effect run without a person; a repeat never.

        Raises NotApproved (a high effect, or a repeat, without a valid approval) and AlreadyStarted if the
        ledger has this call, or, along the lineage, an equal effect that happened or may have happened and
        that `repeat_of` does not name.
        """
        if grant is None and (effect.repeat_of is not None or not (allowed or effect.risk == "low")):
            raise NotApproved(
                f"{effect.call_id} ({effect.tool}, {effect.risk}) needs a person's approval first"
            )
        family = self._runs.lineage(run)[-1][0]  # a fork and its parent may be about to do the same
        with self._db.write(family):
            self._refuse_same(run, effect)
            if grant is not None:
                self._approvals.use(
                    run,
                    grant.approval,
                    subject=effect.call_id,
                    digest=grant.digest,
                    policy_version=grant.policy_version,
                )
            if not self._db.change(_INSERT, self._values(run, effect, attempt, grant)):
                raise AlreadyStarted(f"{effect.call_id} is in the ledger already", run, effect.key)
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
        """Record the outcome of an effect that this attempt started. Raises Conflict if it did not, or has finished."""
        return self._set(
            _FINISH, run, key, status=status, result=self._backing.document(result), attempt=attempt
        )

    def found(self, run: str, key: str, result: Mapping[str, Any]) -> EffectRow:
        """A probe of the target found an unknown effect: it is done. Raises Conflict if it is not unknown."""
        return self._set(_FOUND, run, key, result=self._backing.document(result))

    def again(self, run: str, key: str, *, attempt: int) -> EffectRow:
        """Start the second and last try of an unknown effect that a probe did not find, under the same approval.

        Only for a target that tells repeats apart by the key. Raises Conflict if it was tried twice.
        """
        return self._set(_AGAIN, run, key, attempt=attempt)

    def resolve(self, run: str, key: str, outcome: Outcome, *, by: str, reason: str) -> EffectRow:
        """A person's word on an unknown effect. Raises Conflict if it is not unknown (any more)."""
        said = self._backing.document({"by": by, "reason": reason})
        return self._set(_RESOLVE, run, key, outcome=outcome, result=said)

    def check(self, run: str, key: str, *, passed: bool, seen: str) -> EffectRow:
        """Record the postcondition's verdict on an effect that happened. Raises Conflict for any other."""
        return self._set(_CHECK, run, key, verified=int(passed), checked=self._backing.clean(seen))

    def orphans(self, run: str, *, attempt: int) -> tuple[EffectRow, ...]:
        """All unknown effects of the run; those that another attempt started and never finished become unknown."""
        self._db.change(_ORPHANS, {"run": run, "attempt": attempt})
        return self.list(run, "unknown")

    def get(self, run: str, key: str) -> EffectRow:
        """One row of this run. Raises NotFound."""
        row = self._db.row("SELECT * FROM effects WHERE run = ? AND key = ?", (run, key))
        if row is None:
            raise NotFound(f"no effect {key[:16]} in {run}")
        return _effect(row)

    def of_call(self, run: str, call_id: str) -> EffectRow | None:
        """The row of a call in this run, or None."""
        row = self._db.row("SELECT * FROM effects WHERE run = ? AND call_id = ?", (run, call_id))
        return _effect(row) if row else None

    def lookup(
        self, run: str, tool: str, arguments: Mapping[str, Any], target: str | None
    ) -> EffectRow | None:
        """The latest equal effect that happened or may have happened, in this run or an ancestor."""
        return self._same(run, content_digest(tool, arguments, target))

    def list(self, run: str, status: EffectStatus | None = None) -> tuple[EffectRow, ...]:
        """The run's own effects in the order in which they were started."""
        rows = self._db.rows("SELECT * FROM effects WHERE run = ? ORDER BY rowid", (run,))
        return tuple(_effect(row) for row in rows if status in (None, row["status"]))

    def along(self, run: str) -> tuple[EffectRow, ...]:
        """The effects of the run and of those that it was forked from, in the order in which they were started.

        Also what a parent did after the fork: runs branch, the world does not.
        """
        rows = [row for member, _ in reversed(self._runs.lineage(run)) for row in self.list(member)]
        return tuple(sorted(rows, key=lambda row: row.started))

    def _same(self, run: str, content: str) -> EffectRow | None:
        for member, _ in self._runs.lineage(run):
            row = self._db.row(_SAME, {"run": member, "digest": content})
            if row:
                return _effect(row)
        return None

    def _refuse_same(self, run: str, effect: Effect) -> None:
        same = self._same(run, effect.digest)
        if same is not None and same.call_id != effect.repeat_of:
            raise AlreadyStarted(
                f"{effect.tool} with these arguments is {same.status} since {same.started} ({same.call_id}): "
                f"to do it again on purpose, ask with repeat_of={same.call_id}",
                same.run,
                same.key,
            )

    def _values(self, run: str, effect: Effect, attempt: int, grant: Grant | None) -> dict[str, Any]:
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

    def _set(self, sql: str, run: str, key: str, **values: Any) -> EffectRow:  # noqa: ANN401 - any column
        with self._db.write():
            if not self._db.change(sql, {"run": run, "key": key, "now": self._backing.now(), **values}):
                found = self.get(run, key)
                raise Conflict(
                    f"effect {key[:16]} of {run} is {found.status} (attempt {found.attempt}, try {found.tries}): "
                    "this step is not possible from there"
                )
            return self.get(run, key)


def _effect(row: Row) -> EffectRow:
    values = {name: row[name] for name in _COLUMNS}
    return EffectRow(
        **{
            **values,
            "arguments": json.loads(row["arguments"]),
            "result": json.loads(row["result"]),
            "verified": None if row["verified"] is None else bool(row["verified"]),
        }
    )

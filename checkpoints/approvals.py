"""Questions to people and their answers. Every change of a row is a compare-and-set: the first answer stands.

An approval that was not used yet may still be denied.

pending → approved → used      a call: once, in the transaction that marks its effect as started
pending, approved → denied
pending → answered             a person's word on an unknown effect
pending, approved → stale      the call was changed, the policy changed, or the approval expired
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.decoding import decode_row
from opsleuth.checkpoints.errors import (
    AlreadyDecidedError,
    ConflictError,
    NotApprovedError,
    NotFoundError,
    WrongDigestError,
)
from opsleuth.checkpoints.seals import seal_stored
from opsleuth.checkpoints.table_context import Table
from opsleuth.state.clock import format_timestamp

About = Literal["call", "effect"]
Decision = Literal["approved", "denied", "answered"]
Via = Literal["tty", "command", "api", "none"]

LIFETIME = timedelta(minutes=30)
"""How long an approval holds after it was given. A question that nobody answers stays open in a run of one person; the service
denies it after `approval_days`."""

SKEW = timedelta(seconds=60)
"""How far the clocks of two hosts with one file may differ before an approval is asked again."""

SHORTEST_DIGEST = 16
"""Hex digits of the digest that an answer must name; screens show as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What is asked of a person.

    `subject` is the id of a call or of an unknown effect. `digest` covers exactly what is shown, `document` is what
    is shown (tool, arguments, why, checks).
    """

    about: About
    subject: str
    digest: str
    policy_version: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(ApprovalRequest):
    """A question as stored. `reason` holds the reason of a denial or of a word on an effect, or why it is stale."""

    run: str
    id: str
    status: Literal["pending", "approved", "denied", "answered", "used", "stale"]
    requested: str
    answered: str | None = None
    expires: str | None = None
    answered_by: str | None = None
    via: str | None = None
    reason: str = ""
    used: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """A person's answer. `digest` names what was seen, at least 16 hex digits: without it nothing is approved."""

    decision: Decision
    by: str
    via: Via
    digest: str = ""
    reason: str = ""


_INSERT = """
INSERT INTO approvals (run, id, about, subject, digest, policy_version, document, status, requested, reason)
VALUES (:run, :id, :about, :subject, :digest, :policy_version, :document, 'pending', :now, '')
"""
_LATEST = """
SELECT * FROM approvals WHERE run = :run AND about = :about AND subject = :subject ORDER BY rowid DESC LIMIT 1
"""
_ANSWER = """
UPDATE approvals
SET status = :decision, answered = :now, expires = :expires, answered_by = :by, via = :via, reason = :reason
WHERE run = :run AND id = :id
  AND (status = 'pending' OR (status = 'approved' AND about = 'call' AND :decision = 'denied'))
"""
_USE = """
UPDATE approvals SET status = 'used', used = :now
WHERE run = :run AND id = :id AND about = 'call' AND status = 'approved' AND subject = :subject AND digest = :digest
  AND policy_version = :policy_version AND expires > :now AND answered <= :latest
"""
_STALE = """
UPDATE approvals SET status = 'stale', reason = :why
WHERE run = :run AND id = :id AND status IN ('pending', 'approved')
"""
# Older versions could store a question of the run itself (`Q1`). Nothing waits for it any more: its row stays, unread.
_GET = "SELECT * FROM approvals WHERE run = :run AND id = :id AND about <> 'question'"
_LIST = """
SELECT * FROM approvals
WHERE (:run IS NULL OR run = :run) AND (:status IS NULL OR status = :status) AND about <> 'question'
ORDER BY rowid
"""
_COUNT = "SELECT count(*) FROM approvals WHERE run = ? AND about <> 'question'"
_PENDING = """
SELECT approvals.* FROM approvals JOIN runs ON runs.id = approvals.run
WHERE approvals.status = 'pending' AND approvals.about <> 'question' AND runs.project = :project
  AND (:after_run IS NULL OR approvals.rowid > (SELECT rowid FROM approvals WHERE run = :after_run AND id = :after_id))
ORDER BY approvals.rowid
LIMIT :limit
"""
_UNANSWERED = """
SELECT approvals.* FROM approvals JOIN intake ON intake.run = approvals.run
WHERE approvals.status = 'pending' AND approvals.about = 'call' AND approvals.requested < :before
ORDER BY approvals.rowid
LIMIT :limit
"""


class ApprovalsTable(Table):
    """The table of approvals."""

    def request(self, run: str, question: ApprovalRequest, *, anew: bool = False) -> Approval:
        """Ask a person; asking the same again returns the row that exists, answered or not.

        A row whose digest or policy version differs, or that has expired, becomes stale, and a new one is made.
        Asking again after a stale one makes a new one; so does `anew` after one that was used up and led to nothing.
        """
        subject = self._backing.clean(question.subject)
        with self._db.write(run):
            row = self._db.row(_LATEST, {"run": run, "about": question.about, "subject": subject})
            if row and row["status"] != "stale" and not (anew and row["status"] == "used"):
                why = self._why_stale(row, question)
                if not why:
                    return _approval_from_row(row)
                self.stale(run, row["id"], why)
            values = {
                "run": run,
                "id": self._next_id(run),
                "about": question.about,
                "subject": subject,
                "digest": question.digest,
                "policy_version": question.policy_version,
                "document": self._backing.document(question.document),
                "now": self._backing.now(),
            }
            self._db.change(_INSERT, values)
            seal_stored(self._db, run, "approvals", [values["id"]])
            return self.get(run, values["id"])

    def get(self, run: str, approval_id: str) -> Approval:
        """One approval of this run. Raises NotFoundError."""
        row = self._db.row(_GET, {"run": run, "id": approval_id})
        if row is None:
            raise NotFoundError(f"no approval {approval_id!r} in {run}", [a.id for a in self.list(run)][-3:])
        return _approval_from_row(row)

    def answer(self, run: str, approval_id: str, answer: ApprovalAnswer) -> Approval:
        """Store the answer to a pending row; an approval expires 30 minutes later. One that was not used yet may be denied.

        Raises NotFoundError, WrongDigestError, ConflictError for an answer that does not fit what was asked, and
        AlreadyDecidedError if it was answered before or is stale.
        """
        asked = self.get(run, approval_id)
        _check_fits(asked, answer)
        now = self._moment()
        values = {
            "run": run,
            "id": approval_id,
            "decision": answer.decision,
            "now": format_timestamp(now),
            "expires": format_timestamp(now + LIFETIME) if answer.decision == "approved" else None,
            "by": self._backing.clean(answer.by),
            "via": answer.via,
            "reason": self._backing.clean(answer.reason),
        }
        if not self._change(_ANSWER, run, approval_id, values):
            raise AlreadyDecidedError(_describe_decided(self.get(run, approval_id)))
        return self.get(run, approval_id)

    def asked(self, run: str, approval_id: str, digest: str, *, to_deny: bool = False) -> Approval:
        """The pending question with this digest; `to_deny` takes one that was approved and not used, too.

        Raises NotFoundError, WrongDigestError, AlreadyDecidedError.
        """
        found = self.get(run, approval_id)
        _check_digest(found, digest)
        if found.status != "pending" and not (to_deny and found.status == "approved"):
            raise AlreadyDecidedError(_describe_decided(found))
        return found

    def use(self, run: str, approval_id: str, *, subject: str, digest: str, policy_version: str = "") -> None:
        """Use up an approval of exactly this call. Raises NotApprovedError with the reason, NotFoundError."""
        values = {
            "run": run,
            "id": approval_id,
            "subject": subject,
            "digest": digest,
            "policy_version": policy_version,
            "now": format_timestamp(self._moment()),
            "latest": format_timestamp(self._moment() + SKEW),
        }
        if not self._change(_USE, run, approval_id, values):
            raise NotApprovedError(
                self._why_unusable(self.get(run, approval_id), subject, digest, policy_version)
            )

    def stale(self, run: str, approval_id: str, why: str) -> bool:
        """Withdraw a row that was not used or denied; False if it was."""
        values = {"run": run, "id": approval_id, "why": self._backing.clean(why)}
        return self._change(_STALE, run, approval_id, values)

    def list(self, run: str | None = None, status: str | None = None) -> tuple[Approval, ...]:
        """Approvals of one run or of all, oldest first."""
        return tuple(_approval_from_row(row) for row in self._db.rows(_LIST, {"run": run, "status": status}))

    def pending(self, project: str, limit: int, after: tuple[str, str] | None = None) -> tuple[Approval, ...]:
        """What waits for an answer in the runs of a project, oldest first; `after` is run and id that a page begins behind."""
        run, approval_id = after or (None, None)
        asked = {"project": project, "limit": limit, "after_run": run, "after_id": approval_id}
        return tuple(_approval_from_row(row) for row in self._db.rows(_PENDING, asked))

    def list_unanswered(self, before: datetime, limit: int) -> tuple[Approval, ...]:
        """Calls of runs that came over the API, that were asked before this moment and are still unanswered, oldest first."""
        asked = {"before": format_timestamp(before), "limit": limit}
        return tuple(_approval_from_row(row) for row in self._db.rows(_UNANSWERED, asked))

    def _change(self, sql: str, run: str, approval_id: str, values: Mapping[str, Any]) -> bool:
        """Change one row and seal it; False where it stays as it is."""
        with self._db.write(run):
            if not self._db.change(sql, values):
                return False
            seal_stored(self._db, run, "approvals", [approval_id])
            return True

    def is_valid(self, approval: Approval) -> bool:
        """Whether it is approved and has not expired at this moment."""
        return approval.status == "approved" and not self._why_expired(approval.answered, approval.expires)

    def why_invalid(self, approval: Approval) -> str:
        """Why an approval holds no longer, in words; empty if it does."""
        return "" if self.is_valid(approval) else self._why_expired(approval.answered, approval.expires)

    def _moment(self) -> datetime:
        """Now, by the clock of the store: of a server its own, of a file this machine's."""
        return datetime.fromtimestamp(self._db.moment(self._backing.clock), UTC)

    def _why_expired(self, answered: str | None, expires: str | None) -> str:
        """Why an approval holds no longer, empty if it does. One from the future came from another clock."""
        now = self._moment()
        if expires is not None and expires <= format_timestamp(now):
            return f"expired at {expires}"
        if answered is not None and answered > format_timestamp(now + SKEW):
            return f"was given at {answered}, which the clock here has not reached ({format_timestamp(now)})"
        return ""

    def _why_stale(self, row: Row, question: ApprovalRequest) -> str:
        if row["digest"] != question.digest:
            return "the call was changed"
        if row["status"] not in ("pending", "approved"):
            return ""
        if row["policy_version"] != question.policy_version:
            return "the policy was changed"
        if row["status"] == "approved":
            return self._why_expired(row["answered"], row["expires"])
        return ""

    def _why_unusable(self, found: Approval, subject: str, digest: str, policy_version: str) -> str:
        name = f"{found.id} of {found.run}"
        if found.status != "approved" or found.about != "call":
            return f"{name} is {found.status}: it cannot be used"
        if (found.subject, found.digest) != (subject, digest):
            return f"{name} was given for another call: this one must be asked"
        if found.policy_version != policy_version:
            return f"{name} was given under another policy: it must be asked again"
        why = self._why_expired(found.answered, found.expires) or f"expired at {found.expires}"
        return f"{name} {why}: it must be asked again"

    def _next_id(self, run: str) -> str:
        row = self._db.row(_COUNT, (run,))
        return f"A{row[0] + 1 if row else 1}"


def _check_fits(asked: Approval, answer: ApprovalAnswer) -> None:
    if (answer.decision == "answered") is (asked.about == "call"):
        how = "approve or deny it" if asked.about == "call" else "resolve it"
        raise ConflictError(f"{asked.id} cannot be {answer.decision}: {how}")
    if answer.digest or answer.decision == "approved":
        _check_digest(asked, answer.digest)


def _check_digest(asked: Approval, named: str) -> None:
    plain = named.replace("-", "").lower()
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST_DIGEST},64}}", plain):
        raise WrongDigestError(
            f"incomplete digest {named!r}: copy all {SHORTEST_DIGEST} hex digits shown for {asked.id}, with or without dashes"
        )
    if not asked.digest.startswith(plain):
        raise WrongDigestError(
            f"{asked.id} has another digest than {named}: look at it again before you answer"
        )


def _describe_decided(found: Approval) -> str:
    if found.status == "stale":
        return f"{found.id} is no longer asked: {found.reason}"
    return f"{found.id} is already decided: {found.status} by {found.answered_by} via {found.via} at {found.answered}"


def _approval_from_row(row: Row) -> Approval:
    return decode_row(Approval, row, {"document": json.loads}, name=f"approval {row['id']} of {row['run']}")

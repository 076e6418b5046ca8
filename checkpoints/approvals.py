"""Questions to people and their answers. Every change of a row is a compare-and-set: the first answer stands.

pending → approved → used      a call: once, in the transaction that marks its effect as started
pending → denied
pending → answered             a question of the run, or a person's word on an unknown effect
pending, approved → stale      the call was changed, the policy changed, or the approval expired
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, Literal

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.db import Row
from opsleuth.checkpoints.errors import AlreadyDecided, Conflict, NotApproved, NotFound, WrongDigest
from opsleuth.state.clock import stamp

About = Literal["call", "effect", "question"]
Decision = Literal["approved", "denied", "answered"]
Via = Literal["tty", "command", "api", "none"]

LIFETIME = timedelta(minutes=30)
"""How long an approval holds after it was given. A question that nobody answers does not expire."""

SHORTEST_DIGEST = 16
"""Hex digits of the digest that an answer must name; screens show as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of a person.

    `subject` is the call id (of a call or an unknown effect), or the question's text. `digest` covers exactly
    what is shown, `document` is what is shown (tool, arguments, why, checks).
    """

    about: About
    subject: str
    digest: str
    policy_version: str = ""
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Question):
    """A question as stored. `reason` holds the reason of a denial, the reply to a question, or why it is stale."""

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
class Answer:
    """A person's answer. `digest` names what was seen, at least 16 hex digits: without it nothing is approved."""

    decision: Decision
    by: str
    via: Via
    digest: str = ""
    reason: str = ""


_COLUMNS = tuple(f.name for f in fields(Approval))
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
WHERE run = :run AND id = :id AND status = 'pending'
"""
_USE = """
UPDATE approvals SET status = 'used', used = :now
WHERE run = :run AND id = :id AND about = 'call' AND status = 'approved' AND subject = :subject AND digest = :digest
  AND policy_version = :policy_version AND expires > :now
"""
_STALE = """
UPDATE approvals SET status = 'stale', reason = :why
WHERE run = :run AND id = :id AND status IN ('pending', 'approved')
"""
_LIST = """
SELECT * FROM approvals WHERE (:run IS NULL OR run = :run) AND (:status IS NULL OR status = :status)
ORDER BY requested, rowid
"""

_PENDING = """
SELECT approvals.* FROM approvals JOIN runs ON runs.id = approvals.run
WHERE approvals.status = 'pending' AND runs.project = :project
ORDER BY approvals.requested, approvals.rowid
LIMIT :limit
"""


class Approvals:
    """The table of approvals."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._db = backing, backing.db

    def request(self, run: str, question: Question) -> Approval:
        """Ask a person; asking the same again returns the row that exists, answered or not.

        A row whose digest or policy version differs, or that has expired, becomes stale, and a new one is made.
        Asking again after a stale one makes a new one.
        """
        subject = self._backing.clean(question.subject)
        with self._db.write(run):
            row = self._db.row(_LATEST, {"run": run, "about": question.about, "subject": subject})
            if row and row["status"] != "stale":
                why = self._why_stale(row, question)
                if not why:
                    return _approval(row)
                self.stale(run, row["id"], why)
            values = {
                "run": run,
                "id": self._next_id(run, question.about),
                "about": question.about,
                "subject": subject,
                "digest": question.digest,
                "policy_version": question.policy_version,
                "document": self._backing.document(question.document),
                "now": self._backing.now(),
            }
            self._db.change(_INSERT, values)
            return self.get(run, values["id"])

    def get(self, run: str, approval_id: str) -> Approval:
        """One approval of this run. Raises NotFound."""
        row = self._db.row("SELECT * FROM approvals WHERE run = ? AND id = ?", (run, approval_id))
        if row is None:
            raise NotFound(f"no approval {approval_id!r} in {run}", [a.id for a in self.list(run)][-3:])
        return _approval(row)

    def answer(self, run: str, approval_id: str, answer: Answer) -> Approval:
        """Store the answer to a pending row; an approval expires 30 minutes later.

        Raises NotFound, WrongDigest, Conflict for an answer that does not fit what was asked, and
        AlreadyDecided if it was answered before or is stale.
        """
        asked = self.get(run, approval_id)
        _check_fits(asked, answer)
        now = self._backing.clock.now()
        values = {
            "run": run,
            "id": approval_id,
            "decision": answer.decision,
            "now": stamp(now),
            "expires": stamp(now + LIFETIME) if answer.decision == "approved" else None,
            "by": self._backing.clean(answer.by),
            "via": answer.via,
            "reason": self._backing.clean(answer.reason),
        }
        if not self._db.change(_ANSWER, values):
            raise AlreadyDecided(_decided(self.get(run, approval_id)))
        return self.get(run, approval_id)

    def asked(self, run: str, approval_id: str, digest: str) -> Approval:
        """The pending question with this digest. Raises NotFound, WrongDigest, AlreadyDecided."""
        found = self.get(run, approval_id)
        _check_digest(found, digest)
        if found.status != "pending":
            raise AlreadyDecided(_decided(found))
        return found

    def use(self, run: str, approval_id: str, *, subject: str, digest: str, policy_version: str = "") -> None:
        """Use up an approval of exactly this call. Raises NotApproved with the reason, NotFound."""
        values = {
            "run": run,
            "id": approval_id,
            "subject": subject,
            "digest": digest,
            "policy_version": policy_version,
            "now": self._backing.now(),
        }
        if not self._db.change(_USE, values):
            raise NotApproved(self._why_unusable(self.get(run, approval_id), subject, digest, policy_version))

    def stale(self, run: str, approval_id: str, why: str) -> bool:
        """Withdraw a row that was not used or denied; False if it was."""
        values = {"run": run, "id": approval_id, "why": self._backing.clean(why)}
        return bool(self._db.change(_STALE, values))

    def list(self, run: str | None = None, status: str | None = None) -> tuple[Approval, ...]:
        """Approvals of one run or of all, oldest first."""
        return tuple(_approval(row) for row in self._db.rows(_LIST, {"run": run, "status": status}))

    def pending(self, project: str, limit: int) -> tuple[Approval, ...]:
        """What waits for an answer in the runs of a project, oldest first."""
        return tuple(_approval(row) for row in self._db.rows(_PENDING, {"project": project, "limit": limit}))

    def is_valid(self, approval: Approval) -> bool:
        """Whether it is approved and has not expired at this moment."""
        return approval.status == "approved" and not self._expired(approval.expires)

    def _expired(self, expires: str | None) -> bool:
        return expires is not None and expires <= self._backing.now()

    def _why_stale(self, row: Row, question: Question) -> str:
        if row["digest"] != question.digest:
            return "the call was changed"
        if row["status"] not in ("pending", "approved"):
            return ""
        if row["policy_version"] != question.policy_version:
            return "the policy was changed"
        if row["status"] == "approved" and self._expired(row["expires"]):
            return f"expired at {row['expires']}"
        return ""

    def _why_unusable(self, found: Approval, subject: str, digest: str, policy_version: str) -> str:
        name = f"{found.id} of {found.run}"
        if found.status != "approved" or found.about != "call":
            return f"{name} is {found.status}: it cannot be used"
        if (found.subject, found.digest) != (subject, digest):
            return f"{name} was given for another call: this one must be asked"
        if found.policy_version != policy_version:
            return f"{name} was given under another policy: it must be asked again"
        return f"{name} expired at {found.expires}: it must be asked again"

    def _next_id(self, run: str, about: About) -> str:
        letter = "Q" if about == "question" else "A"
        row = self._db.row(
            "SELECT count(*) FROM approvals WHERE run = ? AND substr(id, 1, 1) = ?", (run, letter)
        )
        return f"{letter}{row[0] + 1 if row else 1}"


def _check_fits(asked: Approval, answer: Answer) -> None:
    if (answer.decision == "answered") is (asked.about == "call"):
        how = "approve or deny it" if asked.about == "call" else "answer or resolve it"
        raise Conflict(f"{asked.id} cannot be {answer.decision}: {how}")
    if answer.digest or answer.decision == "approved":
        _check_digest(asked, answer.digest)


def _check_digest(asked: Approval, named: str) -> None:
    plain = named.replace("-", "").lower()
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST_DIGEST},64}}", plain):
        raise WrongDigest(
            f"{named!r} is no digest: give the {SHORTEST_DIGEST} hex digits that are shown with {asked.id}, dashes or not"
        )
    if not asked.digest.startswith(plain):
        raise WrongDigest(f"{asked.id} has another digest than {named}: look at it again before you answer")


def _decided(found: Approval) -> str:
    if found.status == "stale":
        return f"{found.id} is no longer asked: {found.reason}"
    return f"{found.id} is already decided: {found.status} by {found.answered_by} via {found.via} at {found.answered}"


def _approval(row: Row) -> Approval:
    values = {name: row[name] for name in _COLUMNS}
    return Approval(**{**values, "document": json.loads(row["document"])})

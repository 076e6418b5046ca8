"""A person's answer, stored: compare-and-set in the rows, and the event that reports it in the same transaction.

Needs no part of the framework: `approve`, `deny` and `resolve` answer in milliseconds, and another process, or
this one, lets the run go on.
"""

import getpass
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import ValidationError

from opsleuth.checkpoints.approvals import Approval, ApprovalAnswer, Via
from opsleuth.checkpoints.effects import Outcome
from opsleuth.checkpoints.errors import AlreadyDecidedError
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.state.calls import CallRequest, Risk
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import StopReason
from opsleuth.state.state_paths import parse_typed_value


@dataclass(frozen=True, slots=True)
class OperatorReply:
    """What a person answered to one question.

    `digest` names what the person saw; only an approval needs it. `confirm` is the target's name as the person typed
    it, for a call that cannot be undone. `arguments` belongs to an edit, `outcome` to an unknown effect.
    """

    decision: Literal["approved", "denied", "edited", "resolved"]
    reason: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    digest: str = ""
    confirm: str | None = None


class ApprovalPrompt(Protocol):
    """Puts one question to a person and waits. None: not now, it stays pending.

    `current` reads the question's row: another process may answer it meanwhile.
    """

    def __call__(self, question: Approval, current: Callable[[], Approval]) -> OperatorReply | None: ...


@dataclass(frozen=True, slots=True)
class AnsweringPerson:
    """Who answers, and on which way."""

    name: str
    via: Via


def local_operator(via: Via) -> AnsweringPerson:
    """Whoever runs this process."""
    try:
        return AnsweringPerson(getpass.getuser(), via)
    except (KeyError, OSError):
        return AnsweringPerson("unknown user", via)


def record_answer(
    store: Store, run: str, approval_id: str, reply: OperatorReply, person: AnsweringPerson
) -> Approval:
    """Store a person's answer to one question, whichever way it came: terminal, command or API. Returns the answered row.

    Raises NotFoundError, WrongDigestError, AlreadyDecidedError, UsageError for an answer that does not fit the question, and
    ConflictError if an effect is not unknown any more. An edit is not an answer: it makes another call, which is asked again.
    """
    if reply.digest and reply.decision != "approved":
        store.approvals.asked(run, approval_id, reply.digest, to_deny=reply.decision == "denied")
    if reply.decision == "approved":
        return _approve_call(store, run, approval_id, reply.digest, person, confirm=reply.confirm)
    if reply.decision == "denied":
        return _deny_call(store, run, approval_id, reply.reason, person)
    if reply.decision == "resolved" and reply.outcome is not None:
        return _resolve_effect(store, run, approval_id, reply.outcome, reply.reason, person)
    raise UsageError(
        f"{approval_id} needs an answer: approve it, deny it, or resolve it as happened or absent"
    )


def _approve_call(
    store: Store,
    run: str,
    approval_id: str,
    digest: str,
    person: AnsweringPerson,
    *,
    confirm: str | None = None,
) -> Approval:
    """Approve exactly the call with this digest. Raises NotFoundError, WrongDigestError, AlreadyDecidedError.

    Raises UsageError for an edited call that its own check has refused, and for an irreversible one without its target's name.
    """
    asked = _find_pending_approval(store, run, approval_id, "call", "opsleuth resolve")
    if asked.document.get("unfit"):
        raise UsageError(
            f"{approval_id} cannot be approved: its check beforehand says {asked.document.get('precheck')}. "
            "Edit it again (--edit NAME=VALUE), or deny it"
        )
    if asked.document.get("risk") == Risk.IRREVERSIBLE and confirm != asked.document.get("target"):
        raise UsageError(
            f"{approval_id} cannot be undone: type its target's name as well, --confirm-target "
            f"{asked.document.get('target')}"
        )
    return _store_answer(
        store, asked, ApprovalAnswer(decision="approved", by=person.name, via=person.via, digest=digest)
    )


def _deny_call(store: Store, run: str, approval_id: str, reason: str, person: AnsweringPerson) -> Approval:
    """Deny a call, also one that was approved and has not run; the reason goes to the planner as data. Raises NotFoundError, AlreadyDecidedError."""
    asked = _find_pending_approval(store, run, approval_id, "call", "opsleuth resolve")
    answer = ApprovalAnswer(
        decision="denied", by=person.name, via=person.via, digest=asked.digest, reason=reason
    )
    return _store_answer(store, asked, answer)


def _resolve_effect(
    store: Store, run: str, approval_id: str, outcome: Outcome, reason: str, person: AnsweringPerson
) -> Approval:
    """A person's word on an unknown effect: the question and the ledger change together, or not at all.

    Raises NotFoundError, AlreadyDecidedError, and ConflictError if the effect is not unknown any more.
    """
    asked = _find_pending_approval(store, run, approval_id, "effect", "opsleuth approve or deny")
    answer = ApprovalAnswer(
        decision="answered",
        by=person.name,
        via=person.via,
        digest=asked.digest,
        reason=f"{outcome}: {reason}",
    )
    key = asked.document["key"]
    with store.transaction():
        answered = _store_answer(store, asked, answer)
        store.effects.resolve(run, key, outcome, by=person.name, reason=reason)
    return answered


def _find_pending_approval(store: Store, run: str, approval_id: str, about: str, instead: str) -> Approval:
    asked = store.approvals.get(run, approval_id)
    row = store.runs.get(run)
    ended = row is not None and row.stop_reason in _ENDED
    if row is not None and ended and asked.about == "call" and asked.status in ("pending", "stale"):
        raise AlreadyDecidedError(
            f"{approval_id} is not asked any more: {run} has ended ({row.stop_reason}). "
            f"See what came of it: opsleuth report {run}"
        )
    if asked.about != about:
        raise UsageError(f"{approval_id} asks about {_ABOUT[asked.about]}: answer it with {instead}")
    return asked


_ENDED = (StopReason.CONCLUDED, StopReason.TERMINATED)
_ABOUT = {"call": "a call", "effect": "what became of an effect"}


def _store_answer(store: Store, asked: Approval, answer: ApprovalAnswer) -> Approval:
    with store.transaction():
        answered = store.approvals.answer(asked.run, asked.id, answer)
        store.events.append(
            asked.run,
            "approval.answered",
            {
                "id": asked.id,
                "call": asked.subject,
                "tool": asked.document.get("tool"),
                "digest": asked.digest,
                "hash": asked.digest,  # as earlier versions called it; goes with the next version
                "decision": answered.status,
                "reason": answer.reason,
                "by": answer.by,
                "via": answer.via,
                "expires": answered.expires,
            },
        )
    return answered


def parse_typed_call(tool: object, arguments: object) -> CallRequest:
    """A call as a person typed it. Raises UsageError for anything that is not a call at all."""
    try:
        return CallRequest.model_validate({"tool": tool, "arguments": arguments})
    except ValidationError as error:
        raise UsageError(f"that is not a call: {format_validation_errors(error)}") from None


def apply_argument_edits(arguments: Mapping[str, Any], edits: Sequence[str]) -> dict[str, Any]:
    """The arguments with each `NAME=VALUE` set; a value that is not JSON is text. Raises UsageError for another form."""
    result = dict(arguments)
    for edit in edits:
        name, equals, value = edit.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{edit!r} is not an edit: write NAME=VALUE, such as replicas=6")
        result[name.strip()] = parse_typed_value(value)
    return result

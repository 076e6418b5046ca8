"""A person's answer, stored: compare-and-set in the rows, and the event that tells of it in the same transaction.

Needs no part of the framework: `approve`, `deny` and `resolve` answer in milliseconds, and another process, or
this one, lets the run go on.
"""

import getpass
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import ValidationError

from opsleuth.checkpoints.approvals import Answer, Approval, Via
from opsleuth.checkpoints.effects import Outcome
from opsleuth.checkpoints.store import Store
from opsleuth.state.calls import CallRequest, Risk
from opsleuth.state.canonical import from_json
from opsleuth.state.configfile import problems
from opsleuth.state.errors import UsageError


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person answered to one question. `arguments` belongs to an edit, `outcome` to an unknown effect."""

    decision: Literal["approved", "denied", "edited", "resolved"]
    reason: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None


class Asker(Protocol):
    """Puts one question to a person and waits. None: not now, it stays pending.

    `current` reads the question's row: another process may answer it meanwhile.
    """

    def __call__(self, question: Approval, current: Callable[[], Approval]) -> Reply | None: ...


@dataclass(frozen=True, slots=True)
class Person:
    """Who answers, and on which way."""

    name: str
    via: Via


def operator(via: Via) -> Person:
    """Whoever runs this process."""
    try:
        return Person(getpass.getuser(), via)
    except (KeyError, OSError):
        return Person("unknown user", via)


def approve(
    store: Store, run: str, approval_id: str, hashed: str, person: Person, *, confirm: str | None = None
) -> Approval:
    """Approve exactly the call with this digest. Raises NotFound, WrongDigest, AlreadyDecided.

    An irreversible call needs its target's name besides: raises UsageError.
    """
    asked = _pending(store, run, approval_id, "call", "opsleuth resolve")
    if asked.document.get("risk") == Risk.IRREVERSIBLE and confirm != asked.document.get("target"):
        raise UsageError(
            f"{approval_id} cannot be undone: type its target's name as well, --confirm-target "
            f"{asked.document.get('target')}"
        )
    return _answer(store, asked, Answer(decision="approved", by=person.name, via=person.via, digest=hashed))


def deny(store: Store, run: str, approval_id: str, reason: str, person: Person) -> Approval:
    """Deny a call; the reason goes to the planner as data. Raises NotFound, AlreadyDecided."""
    asked = _pending(store, run, approval_id, "call", "opsleuth resolve")
    answer = Answer(decision="denied", by=person.name, via=person.via, digest=asked.digest, reason=reason)
    return _answer(store, asked, answer)


def resolve(
    store: Store, run: str, approval_id: str, outcome: Outcome, reason: str, person: Person
) -> Approval:
    """A person's word on an unknown effect: the question and the ledger change together, or not at all.

    Raises NotFound, AlreadyDecided, and Conflict if the effect is not unknown any more.
    """
    asked = _pending(store, run, approval_id, "effect", "opsleuth approve or deny")
    answer = Answer(
        decision="answered",
        by=person.name,
        via=person.via,
        digest=asked.digest,
        reason=f"{outcome}: {reason}",
    )
    key = asked.document["key"]
    with store.transaction():
        answered = _answer(store, asked, answer)
        store.effects.resolve(run, key, outcome, by=person.name, reason=reason)
    return answered


def _pending(store: Store, run: str, approval_id: str, about: str, instead: str) -> Approval:
    asked = store.approvals.get(run, approval_id)
    if asked.about != about:
        raise UsageError(f"{approval_id} asks about {_ABOUT[asked.about]}: answer it with {instead}")
    return asked


_ABOUT = {"call": "a call", "effect": "what became of an effect", "question": "something else"}


def _answer(store: Store, asked: Approval, answer: Answer) -> Approval:
    with store.transaction():
        answered = store.approvals.answer(asked.run, asked.id, answer)
        store.events.append(
            asked.run,
            "approval.answered",
            {
                "id": asked.id,
                "call": asked.subject,
                "tool": asked.document.get("tool"),
                "hash": asked.digest,
                "decision": answered.status,
                "reason": answer.reason,
                "by": answer.by,
                "via": answer.via,
                "expires": answered.expires,
            },
        )
    return answered


def call_of(tool: object, arguments: object) -> CallRequest:
    """A call as a person typed it. Raises UsageError for what is no call at all."""
    try:
        return CallRequest.model_validate({"tool": tool, "arguments": arguments})
    except ValidationError as error:
        raise UsageError(f"that is no call: {problems(error)}") from None


def changed(arguments: Mapping[str, Any], edits: Sequence[str]) -> dict[str, Any]:
    """The arguments with each `NAME=VALUE` set; a value that is no JSON is text. Raises UsageError for another form."""
    result = dict(arguments)
    for edit in edits:
        name, equals, value = edit.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{edit!r} is no edit: write NAME=VALUE, such as replicas=6")
        try:
            result[name.strip()] = from_json(value)
        except ValueError:
            result[name.strip()] = value
    return result

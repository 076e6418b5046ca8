"""Asking people while the graph waits: at this process's terminal, or by rows that another process answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.types import Command, StateSnapshot
from pydantic import ValidationError

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.errors import Conflict
from opsleuth.graph import decisions, questions
from opsleuth.graph.decisions import Asker, Reply
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import CallRequest
from opsleuth.state.outcome import Status
from opsleuth.tools.spec import InvalidArguments


@dataclass(frozen=True, slots=True)
class Answering:
    """The graph waits for people; `limits` are new totals for when it goes on.

    `first` may be what it goes on with at once, instead of asking. The limits travel with the answers: as an
    update of their own they would be written twice when a process dies between the answer and its checkpoint.
    """

    limits: Mapping[str, Any]
    first: Callable[[StateSnapshot, Deps], Command[str]] | None = None


def answered(
    snapshot: StateSnapshot, waiting: Answering, deps: Deps, asker: Asker | None
) -> Command[str] | None:
    """What the graph goes on with, or None while an answer is missing and nobody here gives it."""
    if waiting.first is not None:
        return waiting.first(snapshot, deps)
    while pending := questions.ask(snapshot, deps):
        reply = _put(asker, pending[0], deps) if asker else None
        if reply is None and _row(pending[0], deps)().status == "pending":
            return None
        if reply is None:
            continue
        if reply.decision != "edited":
            _store(reply, pending[0], deps)
        elif wrong := fault(pending[0], reply.arguments, deps):
            deps.trace.emit("warning", code="edit", message=wrong, hint="nothing was changed")
        else:
            return Command(resume=questions.edited(snapshot, pending[0], reply.arguments))
    return Command(resume=questions.answers(snapshot, deps, waiting.limits))


def _put(asker: Asker, asked: Approval, deps: Deps) -> Reply | None:
    """Ask here; the run's row says meanwhile, and after an end in the middle, that it waits."""
    deps.store.runs.update(deps.run, status=Status.WAITING)
    reply = asker(asked, _row(asked, deps))
    deps.store.runs.update(deps.run, status=Status.RUNNING)
    return reply


def fault(asked: Approval, arguments: Mapping[str, Any], deps: Deps) -> str:
    """What is wrong with edited arguments, in words; empty if they are accepted."""
    try:
        deps.toolbox.check(CallRequest(tool=asked.document["tool"], arguments=dict(arguments)))
    except (InvalidArguments, ValidationError) as error:
        return str(error)
    return ""


def _row(asked: Approval, deps: Deps) -> Callable[[], Approval]:
    return lambda: deps.store.approvals.get(deps.run, asked.id)


def _store(reply: Reply, asked: Approval, deps: Deps) -> None:
    """The answer of the person at this terminal; one that came from elsewhere meanwhile stands."""
    store, person = deps.store, decisions.operator("tty")
    try:
        if reply.decision == "approved":
            confirm = asked.document.get("target")  # the terminal has let the person type it
            decisions.approve(store, deps.run, asked.id, asked.digest, person, confirm=confirm)
        elif reply.decision == "denied":
            decisions.deny(store, deps.run, asked.id, reply.reason, person)
        elif reply.outcome is not None:
            decisions.resolve(store, deps.run, asked.id, reply.outcome, reply.reason, person)
    except Conflict as conflict:
        deps.trace.emit("warning", code="answered", message=str(conflict), hint="the first answer stands")

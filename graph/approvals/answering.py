"""Asking people while the graph waits: at this process's terminal, or by rows that another process answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from langgraph.types import Command, StateSnapshot
from pydantic import ValidationError

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.errors import ConflictError
from opsleuth.graph.approvals import decisions, questions
from opsleuth.graph.approvals.decisions import ApprovalPrompt, OperatorReply
from opsleuth.nodes.deps import Deps
from opsleuth.state.calls import CallGate, CallRequest
from opsleuth.state.run_status import Status
from opsleuth.tools.spec import InvalidArgumentsError


@dataclass(frozen=True, slots=True)
class AwaitAnswers:
    """The graph waits for people; `limits` are new totals for when it goes on.

    `first` may be what it continues with at once, instead of asking. The limits travel with the answers: as an
    update of their own they would be written twice when a process dies between the answer and its checkpoint.
    """

    limits: Mapping[str, Any]
    first: Callable[[StateSnapshot, Deps], Command[str]] | None = None


def collect_answers(
    snapshot: StateSnapshot, waiting: AwaitAnswers, deps: Deps, asker: ApprovalPrompt | None
) -> Command[str] | None:
    """What the graph continues with, or None while an answer is missing and nobody here gives it."""
    if waiting.first is not None:
        return waiting.first(snapshot, deps)
    while pending := questions.request_approvals(snapshot, deps):
        reply = _prompt_for_answer(asker, pending[0], deps) if asker else None
        if reply is None and _approval_reader(pending[0], deps)().status == "pending":
            return None
        if reply is None:
            continue
        if reply.decision != "edited":
            _store_terminal_answer(reply, pending[0], deps)
        elif wrong := find_edit_fault(pending[0], reply.arguments, deps):
            deps.trace.emit("warning", code="edit", message=wrong, hint="nothing was changed")
        else:
            return Command(resume=questions.resume_value_for_edit(snapshot, pending[0], reply.arguments))
    return Command(resume=questions.resume_value_from_answers(snapshot, deps, waiting.limits))


def _prompt_for_answer(asker: ApprovalPrompt, asked: Approval, deps: Deps) -> OperatorReply | None:
    """Ask here; the run's row says meanwhile, and after an end in the middle, that it waits."""
    deps.store.runs.update(deps.run, status=Status.WAITING)
    reply = asker(asked, _approval_reader(asked, deps))
    deps.store.runs.update(deps.run, status=Status.RUNNING)
    return reply


def find_edit_fault(asked: Approval, arguments: Mapping[str, Any], deps: Deps) -> str:
    """What is wrong with edited arguments, in words; empty if they are accepted."""
    try:
        request = CallRequest(tool=asked.document["tool"], arguments=dict(arguments))
        checked = deps.toolbox.check(request)
    except (InvalidArgumentsError, ValidationError) as error:
        return str(error)
    edited = checked.call(request, call_id=asked.subject, number=1)
    return f"refused: {edited.gate_reason}" if edited.gate is CallGate.REFUSED else ""


def _approval_reader(asked: Approval, deps: Deps) -> Callable[[], Approval]:
    return lambda: deps.store.approvals.get(deps.run, asked.id)


def _store_terminal_answer(reply: OperatorReply, asked: Approval, deps: Deps) -> None:
    """The answer of the person at this terminal; an answer that came from elsewhere meanwhile wins."""
    # The terminal has shown exactly this question, and has let the person type the target's name.
    shown = replace(reply, digest=asked.digest, confirm=asked.document.get("target"))
    try:
        decisions.record_answer(deps.store, deps.run, asked.id, shown, decisions.local_operator("tty"))
    except ConflictError as conflict:
        deps.trace.emit("warning", code="answered", message=str(conflict), hint="the first answer stands")

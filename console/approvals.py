"""The commands by which people decide: `approvals`, `approve`, `deny`, `resolve`. They load no framework before they resume."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from opsleuth.checkpoints.approvals import Approval
from opsleuth.checkpoints.errors import Busy
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.console import events, running
from opsleuth.console.options import Options
from opsleuth.console.output import note, screen_of
from opsleuth.console.questions import one_line, panel
from opsleuth.console.reading import found_run
from opsleuth.graph import decisions
from opsleuth.state.clock import SystemClock
from opsleuth.state.outcome import ExitCode

_CLOCK = SystemClock()


@contextmanager
def open_store(options: Options, *, read_only: bool = False) -> Iterator[Store]:
    """The store of these options, its secrets redacted."""
    with Store.open(options.database, _CLOCK, Redactor(), read_only=read_only) as store:
        yield store


def approvals(options: Options, run_id: str | None, *, every: bool) -> int:
    """`approvals`: what waits for a person; with `every` also what was answered."""
    with open_store(options, read_only=True) as store:
        run = store.runs.find(run_id).id if run_id else None
        found = store.approvals.list(run, None if every else "pending")
    if options.json:
        events.write_json(sys.stdout, {"approvals": [_document(row) for row in found]})
        return 0
    screen = screen_of(options)
    if run is None or every:
        for row in found:
            screen.line("  ".join(one_line(row)))
        if found and not every:
            note(f"the whole of it, and how to answer: opsleuth approvals {found[0].run}")
    else:
        for row in found:
            for line in panel(row, screen.width or 100, screen.encoding):
                screen.stream.write(line + "\n")
            screen.stream.write(f"  {_how(row)}\n\n")
    if not found:
        note("nothing waits for an answer")
    return 0


def approve(
    options: Options,
    run_id: str,
    approval_id: str,
    *,
    hashed: str,
    edits: Sequence[str] = (),
    confirm: str | None = None,
    go_on: bool = True,
) -> int:
    """`approve`: the digest says to exactly which call. An edit makes another call, which is asked again."""
    if edits:
        return _edit(options, run_id, approval_id, hashed, edits)

    def answer(store: Store, run: RunRow) -> Approval:
        person = decisions.operator("command")
        return decisions.approve(store, run.id, approval_id, hashed, person, confirm=confirm)

    return _decide(options, run_id, answer, go_on=go_on)


def deny(options: Options, run_id: str, approval_id: str, reason: str, *, go_on: bool = True) -> int:
    """`deny`: the call does not run, the planner is told why."""

    def answer(store: Store, run: RunRow) -> Approval:
        return decisions.deny(store, run.id, approval_id, reason, decisions.operator("command"))

    return _decide(options, run_id, answer, go_on=go_on)


def resolve(
    options: Options,
    run_id: str,
    approval_id: str,
    outcome: Literal["happened", "absent"],
    reason: str,
    *,
    go_on: bool = True,
) -> int:
    """`resolve`: a person's word on an effect whose outcome nobody saw."""

    def answer(store: Store, run: RunRow) -> Approval:
        person = decisions.operator("command")
        return decisions.resolve(store, run.id, approval_id, outcome, reason, person)

    return _decide(options, run_id, answer, go_on=go_on)


def _decide(
    options: Options, run_id: str, answer: Callable[[Store, RunRow], Approval], *, go_on: bool
) -> int:
    """Store the answer; then, if nothing else waits and nobody holds the run, let it go on."""
    with open_store(options) as store:
        run = store.runs.find(run_id)
        answered = answer(store, run)
        waiting = [row.id for row in store.approvals.list(run.id, "pending")]
    note(f"{answered.id} of {run.id}: {answered.status} ({answered.document.get('tool')})")
    if options.json and (waiting or not go_on):
        events.write_json(sys.stdout, _document(answered))
    if waiting:
        note(f"{', '.join(waiting)} of {run.id} still wait: opsleuth approvals {run.id}")
        return ExitCode.WAITING
    if not go_on or not run.resumable:
        return ExitCode.OK
    try:
        return running.resume(run.id, options)
    except Busy as busy:
        note(f"process {busy.pid} holds the run and goes on with it")
        return ExitCode.OK


def _edit(options: Options, run_id: str, approval_id: str, hashed: str, edits: Sequence[str]) -> int:
    run = found_run(options, run_id)
    return running.attempt(options, lambda runner: runner.edit(run.id, approval_id, hashed, edits))


def _how(question: Approval) -> str:
    """The commands that answer it."""
    address = f"{question.run} {question.id}"
    if question.about == "effect":
        return f"answer: opsleuth resolve {address} --happened|--absent --reason TEXT"
    return (
        f"answer: opsleuth approve {address} --hash {question.digest[:16]}   or   "
        f"opsleuth deny {address} --reason TEXT"
    )


def _document(row: Approval) -> Mapping[str, Any]:
    return {
        name: getattr(row, name)
        for name in (
            "run", "id", "about", "subject", "status", "digest", "policy_version", "requested", "answered",
            "expires", "answered_by", "via", "reason", "used", "document",
        )
    }  # fmt: skip

"""`opsleuth approve`, `deny` and `resolve`: a person's answer. The framework is loaded only to resume the run."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from opsleuth.checkpoints.effects import Outcome
from opsleuth.checkpoints.errors import RunBusyError
from opsleuth.checkpoints.processes import is_held
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console import event_lines
from opsleuth.console.commands.approvals import approval_to_json
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import write_note
from opsleuth.console.run_attempt import attempt_run, resume_run
from opsleuth.console.store_access import find_run, open_store_for_writing
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import ExitCode

if TYPE_CHECKING:
    from opsleuth.checkpoints.store import Store
    from opsleuth.graph.approvals.decisions import OperatorReply

NO_RESUME_OPTION = click.option("--no-resume", is_flag=True, help="Store the answer only; resume later.")


@click.command("approve", cls=CliCommand)
@click.argument("run_id", metavar="RUN")
@click.argument("approval_id", metavar="A1")
@click.option("--digest", required=True, metavar="H", help="16 digits of the digest that was shown.")
@click.option("--hash", "digest", hidden=True)  # the name of --digest in earlier versions
@click.option(
    "--edit", "edits", multiple=True, metavar="NAME=VALUE", help="Change an argument; it is asked again."
)
@click.option(
    "--confirm-target", metavar="NAME", help="The target's name: needed where nothing can be undone."
)
@NO_RESUME_OPTION
def approve_call(
    run_id: str,
    approval_id: str,
    digest: str,
    edits: tuple[str, ...],
    confirm_target: str | None,
    *,
    no_resume: bool,
) -> int:
    """Let exactly one call run: the one with this digest."""
    options = current_options()
    if edits:
        return edit_call(options, run_id, approval_id, digest, edits)

    def make_reply() -> "OperatorReply":
        from opsleuth.graph.approvals.decisions import OperatorReply

        return OperatorReply("approved", digest=digest, confirm=confirm_target)

    return store_answer(options, run_id, approval_id, make_reply, go_on=not no_resume)


@click.command("deny", cls=CliCommand)
@click.argument("run_id", metavar="RUN")
@click.argument("approval_id", metavar="A1")
@click.option("--digest", metavar="H", help="Deny only the call with this digest.")
@click.option("--reason", required=True, metavar="TEXT", help="Why, in quotes; the planner reads it.")
@NO_RESUME_OPTION
def deny_call(run_id: str, approval_id: str, digest: str | None, reason: str, *, no_resume: bool) -> int:
    """Refuse a call, also one that was approved and has not run; the run goes on without it."""

    def make_reply() -> "OperatorReply":
        from opsleuth.graph.approvals.decisions import OperatorReply

        return OperatorReply("denied", reason=reason, digest=digest or "")

    return store_answer(current_options(), run_id, approval_id, make_reply, go_on=not no_resume)


@click.command("resolve", cls=CliCommand)
@click.argument("run_id", metavar="RUN")
@click.argument("approval_id", metavar="A1")
@click.option("--happened", "outcome", flag_value="happened", help="The change was made.")
@click.option("--absent", "outcome", flag_value="absent", help="The change was not made.")
@click.option("--reason", required=True, metavar="TEXT", help="How you know; this is recorded.")
@NO_RESUME_OPTION
def resolve_effect(
    run_id: str, approval_id: str, outcome: str | None, reason: str, *, no_resume: bool
) -> int:
    """Record the outcome of a change that nobody saw."""
    if outcome not in ("happened", "absent"):
        raise click.UsageError("say which: --happened or --absent")

    happened: Outcome = "happened" if outcome == "happened" else "absent"

    def make_reply() -> "OperatorReply":
        from opsleuth.graph.approvals.decisions import OperatorReply

        return OperatorReply("resolved", reason=reason, outcome=happened)

    return store_answer(current_options(), run_id, approval_id, make_reply, go_on=not no_resume)


def store_answer(
    options: GlobalOptions,
    run_id: str,
    approval_id: str,
    make_reply: "Callable[[], OperatorReply]",
    *,
    go_on: bool,
) -> int:
    """Store the answer; then, if nothing else waits and no process holds the run, let it go on."""
    from opsleuth.graph.approvals.decisions import local_operator, record_answer

    with open_store_for_writing(options) as store:
        run = store.runs.find(run_id)
        reply = make_reply()
        if reply.decision == "approved":
            restrict_before_approval(options, store, run)
        answered = record_answer(store, run.id, approval_id, reply, local_operator("command"))
        waiting = [row.id for row in store.approvals.list(run.id, "pending")]
    write_note(f"{answered.id} of {run.id}: {answered.status} ({answered.document.get('tool')})")
    if options.json and (waiting or not go_on):
        event_lines.write_json(sys.stdout, approval_to_json(answered))
    if waiting:
        write_note(f"{', '.join(waiting)} of {run.id} still wait: opsleuth approvals {run.id}")
        return ExitCode.WAITING
    if not go_on or not run.resumable:
        return ExitCode.OK
    write_note(f"resuming {run.id} now (--no-resume only stores the answer)")
    try:
        return resume_run(options, run.id)
    except RunBusyError as busy:
        write_note(f"process {busy.pid} holds the run and continues it")
        return ExitCode.OK


def restrict_before_approval(options: GlobalOptions, store: "Store", run: RunRow) -> None:
    """Let the run keep the policy that is given with an approval, no matter who resumes it.

    Raises UsageError where an approval would contradict the options: read-only, or a process that holds the run and
    would not hear of the policy; ConfigError for a policy file that is missing or broken.
    """
    if options.read_only:
        raise UsageError(
            "nothing was approved: --read-only (or OPSLEUTH_READ_ONLY, or read_only in a configuration file) allows no "
            "change. Approve without it, or refuse the call with opsleuth deny"
        )
    if options.policy is None:
        return
    from opsleuth.console.run_settings import restrictions_from_options
    from opsleuth.graph.lifecycle.first_state import RunSettings
    from opsleuth.graph.lifecycle.wiring import policy_of

    if is_held(run):
        raise UsageError(
            f"nothing was approved: process {run.pid} holds {run.id} and cannot be given --policy now. "
            "Pause the run first (opsleuth pause), or answer without --policy"
        )
    settings = restrictions_from_options(options).apply(RunSettings.of(run.settings), policy_of)
    store.runs.update(run.id, settings=dict(run.settings) | settings.to_json())


def edit_call(
    options: GlobalOptions, run_id: str, approval_id: str, digest: str, edits: Sequence[str]
) -> int:
    """Change arguments of the call: that makes another call, which is asked again."""
    run = find_run(options, run_id)
    return attempt_run(options, lambda runner: runner.edit(run.id, approval_id, digest, edits))

"""The commands by which people decide: `approvals`, `approve`, `deny`, `resolve`, `policy`, `pause`, `cancel`, `terminate`, `retry`."""

from pathlib import Path

import click

from opsleuth.console.options import Command, Group, given


@click.command(cls=Command)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--all", "every", is_flag=True, help="Also what was answered.")
def approvals(run_id: str | None, *, every: bool) -> int:
    """What waits for a person: calls to confirm, and effects whose outcome nobody saw."""
    from opsleuth.console import approvals

    return approvals.approvals(given(), run_id, every=every)


_LATER = click.option("--no-resume", is_flag=True, help="Store the answer only; resume later.")


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("approval_id", metavar="A1")
@click.option("--hash", "hashed", required=True, metavar="H", help="16 digits of the digest that was shown.")
@click.option(
    "--edit", "edits", multiple=True, metavar="NAME=VALUE", help="Change an argument; it is asked again."
)
@click.option(
    "--confirm-target", metavar="NAME", help="The target's name: needed where nothing can be undone."
)
@_LATER
def approve(
    run_id: str,
    approval_id: str,
    hashed: str,
    edits: tuple[str, ...],
    confirm_target: str | None,
    *,
    no_resume: bool,
) -> int:
    """Let exactly one call run: the one with this digest."""
    from opsleuth.console import approvals

    return approvals.approve(
        given(), run_id, approval_id, hashed=hashed, edits=edits, confirm=confirm_target, go_on=not no_resume
    )


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("approval_id", metavar="A1")
@click.option("--reason", required=True, metavar="TEXT", help="The planner is told.")
@_LATER
def deny(run_id: str, approval_id: str, reason: str, *, no_resume: bool) -> int:
    """Refuse a call; the run goes on without it."""
    from opsleuth.console import approvals

    return approvals.deny(given(), run_id, approval_id, reason, go_on=not no_resume)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.argument("approval_id", metavar="A1")
@click.option("--happened", "outcome", flag_value="happened", help="The change was made.")
@click.option("--absent", "outcome", flag_value="absent", help="The change was not made.")
@click.option("--reason", required=True, metavar="TEXT", help="How you know: it goes into the record.")
@_LATER
def resolve(run_id: str, approval_id: str, outcome: str | None, reason: str, *, no_resume: bool) -> int:
    """Say what became of a change whose outcome nobody saw."""
    from opsleuth.console import approvals

    if outcome not in ("happened", "absent"):
        raise click.UsageError("say which: --happened or --absent")
    return approvals.resolve(given(), run_id, approval_id, outcome, reason, go_on=not no_resume)  # type: ignore[arg-type]


@click.group("policy", cls=Group)
def policy() -> None:
    """The rules of what may run."""


@policy.command("explain")
@click.argument("call", nargs=-1, required=True, metavar="CALL")
def policy_explain(call: tuple[str, ...]) -> int:
    """What would happen to CALL, and which rule says so: service_scale service=shop replicas=3."""
    from opsleuth.console import rules

    return rules.explain(given(), call)


@policy.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def policy_check(file: Path) -> int:
    """Whether FILE can be used as a policy file."""
    from opsleuth.console import rules

    return rules.check(given(), file)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
def pause(run_id: str) -> int:
    """Stop a run where it is; resume goes on from there."""
    from opsleuth.console import steering

    return steering.pause(given(), run_id)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
def cancel(run_id: str) -> int:
    """End a run politely: a report of what was found, and it can still be resumed."""
    from opsleuth.console import steering

    return steering.end(given(), run_id, "cancel", "")


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
@click.option("--reason", required=True, metavar="TEXT", help="It goes into the record.")
def terminate(run_id: str, reason: str) -> int:
    """End a run for good."""
    from opsleuth.console import steering

    return steering.end(given(), run_id, "terminate", reason)


@click.command(cls=Command)
@click.argument("run_id", metavar="RUN")
def retry(run_id: str) -> int:
    """Go on with a run, and make the failed look-ups of its last turn again; never a change."""
    from opsleuth.console import steering

    return steering.retry(given(), run_id)


COMMANDS: tuple[click.Command, ...] = (
    approvals,
    approve,
    deny,
    resolve,
    policy,
    pause,
    cancel,
    terminate,
    retry,
)

"""The commands of the service: `serve`, `worker`, `token`. What they need is loaded when they run."""

from datetime import timedelta
from pathlib import Path

import click

from opsleuth.console.options import Command, Duration, Group, given


@click.command(cls=Command)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8080, show_default=True, help="0: any that is free."
)
@click.option(
    "--case", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
    help="A recorded incident that every run looks into, to try the service out.",
)  # fmt: skip
def serve(host: str, port: int, case: Path | None) -> int:
    """Accept investigations over HTTP. The database must be PostgreSQL; workers do the work."""
    from opsleuth.service import serving

    return serving.serve(given(), host, port, case)


@click.command(cls=Command)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 200),
    default=4,
    show_default=True,
    metavar="N",
    help="Runs at once.",
)
def worker(concurrency: int) -> int:
    """Take runs from the queue, on this host and any other. SIGTERM: no new ones, the rest pause at the next node."""
    from opsleuth.service.working import work

    return work(given(), concurrency)


@click.group(cls=Group)
def token() -> None:
    """Who may use the API."""


@token.command("create")
@click.argument("name")
@click.option("--team", required=True, help="Whose runs it sees and starts.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["view", "run", "approve"]),
    help="What it may; view always.",
)
@click.option(
    "--expires", type=Duration(), metavar="D", help="Holds so long, such as 90d (default: until revoked)."
)
def create(name: str, team: str, roles: tuple[str, ...], expires: timedelta | None) -> int:
    """Make a token for NAME, which approvals will name. It is printed once and stored nowhere."""
    from opsleuth.service import tokens

    return tokens.create(given(), name, team, roles, expires)


@token.command("list")
def list_tokens() -> int:
    """All tokens, without their secrets."""
    from opsleuth.service import tokens

    return tokens.listed(given())


@token.command("revoke")
@click.argument("token_id", metavar="ID")
def revoke(token_id: str) -> int:
    """From now on the token opens nothing."""
    from opsleuth.service import tokens

    return tokens.revoke(given(), token_id)


COMMANDS: tuple[click.Command, ...] = (serve, worker, token)

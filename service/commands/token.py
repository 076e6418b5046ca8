"""`opsleuth token`: who may use the API."""

import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import cast

import click

from opsleuth.checkpoints.service.tokens import ApiToken, Role
from opsleuth.console import event_lines
from opsleuth.console.options import CliGroup, DurationType, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.store_access import open_store_for_reading, open_store_for_writing
from opsleuth.state.clock import SystemClock

TOKEN_FIELDS = ("id", "name", "team", "created", "expires", "revoked")
"""What is shown of a token: all but its secret, of which only a hash is stored."""


@click.group("token", cls=CliGroup)
def token_group() -> None:
    """Who may use the API."""


@token_group.command("create")
@click.argument("name")
@click.option("--team", required=True, help="Whose runs it sees and starts.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice(["view", "run", "approve"]),
    help="What it may do; view is always included.",
)
@click.option(
    "--expires",
    type=DurationType(),
    metavar="D",
    help="How long it is valid, such as 90d (default: until revoked).",
)
def create_token(name: str, team: str, roles: tuple[str, ...], expires: timedelta | None) -> int:
    """Make a token for NAME, which approvals will name. It is printed once and stored nowhere."""
    options = current_options()
    until = SystemClock().now() + expires if expires else None
    with open_store_for_writing(options) as store:
        token, text = store.tokens.create(name, team, cast("Sequence[Role]", roles), until)
    if options.json:
        event_lines.write_json(sys.stdout, token_to_json(token) | {"token": text})
    else:  # alone on stdout, so that it can go straight where it is kept
        sys.stdout.write(text + "\n")
    write_note(f"token {token.id} of {name}, team {team}, may {render_roles(token)}: it is not shown again")
    return 0


@token_group.command("list")
def list_tokens() -> int:
    """All tokens, without their secrets."""
    options = current_options()
    with open_store_for_reading(options) as store:
        found = store.tokens.list()
    if options.json:
        event_lines.write_json(sys.stdout, {"tokens": [token_to_json(token) for token in found]})
        return 0
    screen = screen_for_options(options)
    for token in found:
        validity = render_validity(token)
        screen.line(f"{token.id}  {validity:<30}  {token.team}  {render_roles(token)}  {token.name}")
    return 0


@token_group.command("revoke")
@click.argument("token_id", metavar="ID")
def revoke_token(token_id: str) -> int:
    """From now on the token opens nothing."""
    with open_store_for_writing(current_options()) as store:
        token = store.tokens.revoke(token_id)
    write_note(f"token {token.id} of {token.name} is revoked")
    return 0


def token_to_json(token: ApiToken) -> dict[str, object]:
    return {name: getattr(token, name) for name in TOKEN_FIELDS} | {"roles": sorted(token.roles)}


def render_roles(token: ApiToken) -> str:
    return ", ".join(sorted(token.roles))


def render_validity(token: ApiToken) -> str:
    if token.revoked:
        return f"revoked {token.revoked}"
    return f"until {token.expires}" if token.expires else "valid until revoked"

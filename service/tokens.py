"""`token`: create, list, revoke."""

import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import cast

from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.tokens import Role, Token
from opsleuth.console import events
from opsleuth.console.options import Options
from opsleuth.console.output import note, screen_of
from opsleuth.state.clock import SystemClock

_CLOCK = SystemClock()


def create(options: Options, name: str, team: str, roles: Sequence[str], expires: timedelta | None) -> int:
    """`token create`: the token alone on stdout, so that it can go straight where it is kept."""
    until = _CLOCK.now() + expires if expires else None
    with Store.open(options.database, _CLOCK, Redactor()) as store:
        made, text = store.tokens.create(name, team, cast("Sequence[Role]", roles), until)
    if options.json:
        events.write_json(sys.stdout, _document(made) | {"token": text})
    else:
        sys.stdout.write(text + "\n")
    note(f"token {made.id} of {name}, team {team}, may {_roles(made)}: it is not shown again")
    return 0


def listed(options: Options) -> int:
    """`token list`."""
    with Store.open(options.database, _CLOCK, Redactor(), read_only=True) as store:
        found = store.tokens.list()
    if options.json:
        events.write_json(sys.stdout, {"tokens": [_document(token) for token in found]})
        return 0
    screen = screen_of(options)
    for token in found:
        screen.line(f"{token.id}  {_standing(token):<30}  {token.team}  {_roles(token)}  {token.name}")
    return 0


def revoke(options: Options, token_id: str) -> int:
    """`token revoke`. Raises NotFound."""
    with Store.open(options.database, _CLOCK, Redactor()) as store:
        token = store.tokens.revoke(token_id)
    note(f"token {token.id} of {token.name} is revoked")
    return 0


def _document(token: Token) -> dict[str, object]:
    fields = ("id", "name", "team", "created", "expires", "revoked")
    return {name: getattr(token, name) for name in fields} | {"roles": sorted(token.roles)}


def _roles(token: Token) -> str:
    return ", ".join(sorted(token.roles))


def _standing(token: Token) -> str:
    if token.revoked:
        return f"revoked {token.revoked}"
    return f"until {token.expires}" if token.expires else "valid until revoked"

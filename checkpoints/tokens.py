"""Tokens of the API: who asks, for which team, and what that one may do. Only a hash of the secret is stored."""

import hashlib
import hmac
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.db import Row
from opsleuth.checkpoints.errors import NotFound
from opsleuth.state.clock import stamp

Role = Literal["view", "run", "approve"]
ROLES: tuple[Role, ...] = get_args(Role)
PREFIX = "opsleuth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token as stored. `id` is its public half; `name` is whom an approval names as its giver."""

    id: str
    name: str
    team: str
    roles: frozenset[Role]
    created: str
    expires: str | None = None
    revoked: str | None = None


_INSERT = """
INSERT INTO tokens (id, name, team, roles, hash, created, expires)
VALUES (:id, :name, :team, :roles, :hash, :created, :expires)
"""
_REVOKE = "UPDATE tokens SET revoked = :now WHERE id = :id AND revoked IS NULL"


class Tokens:
    """The table of tokens."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._db = backing, backing.db

    def create(
        self, name: str, team: str, roles: Collection[Role], expires: datetime | None = None
    ) -> tuple[Token, str]:
        """A new token, and its text: `opsleuth_<id>_<secret>`, which nobody can read again. `view` is always in."""
        public, secret = secrets.token_hex(6), secrets.token_hex(24)
        values = {
            "id": public,
            "name": name,
            "team": team,
            "roles": " ".join(role for role in ROLES if role in {"view", *roles}),
            "hash": _hash(secret),
            "created": self._backing.now(),
            "expires": stamp(expires) if expires else None,
        }
        self._db.change(_INSERT, values)
        return self.get(public), f"{PREFIX}_{public}_{secret}"

    def check(self, text: str) -> Token | None:
        """The token that this text is, None for any that is unknown, wrong, expired or revoked."""
        prefix, _, rest = text.partition("_")
        public, _, secret = rest.partition("_")
        row = self._db.row("SELECT * FROM tokens WHERE id = ?", (public,)) if prefix == PREFIX else None
        # As much work for an unknown id as for a wrong secret: the time tells nothing.
        right = hmac.compare_digest(_hash(secret), row["hash"] if row else _hash(""))
        if row is None or not right or row["revoked"]:
            return None
        token = _token(row)
        return None if self._has_expired(token) else token

    def is_valid(self, token_id: str) -> bool:
        """Whether a token that was checked before is still neither revoked nor expired."""
        row = self._db.row("SELECT * FROM tokens WHERE id = ?", (token_id,))
        return row is not None and not row["revoked"] and not self._has_expired(_token(row))

    def get(self, token_id: str) -> Token:
        """One token. Raises NotFound."""
        row = self._db.row("SELECT * FROM tokens WHERE id = ?", (token_id,))
        if row is None:
            raise NotFound(f"no token {token_id!r}", [token.id for token in self.list()][:3])
        return _token(row)

    def list(self) -> tuple[Token, ...]:
        """All tokens, oldest first, also those that are revoked or expired."""
        return tuple(_token(row) for row in self._db.rows("SELECT * FROM tokens ORDER BY created, id"))

    def revoke(self, token_id: str) -> Token:
        """From now on it is not valid. Raises NotFound; revoking twice changes nothing."""
        self._db.change(_REVOKE, {"id": token_id, "now": self._backing.now()})
        return self.get(token_id)

    def _has_expired(self, token: Token) -> bool:
        return token.expires is not None and token.expires <= self._backing.now()


def _hash(secret: str) -> str:
    """SHA-256 is enough: a secret has 192 random bits, there is nothing to guess."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Row) -> Token:
    given = set(row["roles"].split())
    return Token(
        id=row["id"],
        name=row["name"],
        team=row["team"],
        roles=frozenset(role for role in ROLES if role in given),
        created=row["created"],
        expires=row["expires"],
        revoked=row["revoked"],
    )

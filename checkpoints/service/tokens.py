"""API tokens: their owner, team and permissions. Only a hash of the secret is stored."""

import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from opsleuth.checkpoints.database import Row
from opsleuth.checkpoints.decoding import decode_row
from opsleuth.checkpoints.errors import ConflictError, NotFoundError
from opsleuth.checkpoints.table_context import Table
from opsleuth.state.clock import format_timestamp

Role = Literal["view", "run", "approve"]
ROLES: tuple[Role, ...] = get_args(Role)
PREFIX = "opsleuth"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
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


class TokensTable(Table):
    """The table of tokens."""

    def create(
        self, name: str, team: str, roles: Collection[Role], expires: datetime | None = None
    ) -> tuple[ApiToken, str]:
        """A new token, and its text: `opsleuth_<id>_<secret>`, which nobody can read again. `view` is always in.

        Raises ConflictError where a token of this name is in use: an approval names its giver by it.
        """
        if any(token.name == name and self.is_valid(token.id) for token in self.list()):
            raise ConflictError(f"the token name {name} is in use: choose another, or revoke that one")
        public, secret = secrets.token_hex(6), secrets.token_hex(24)
        values = {
            "id": public,
            "name": name,
            "team": team,
            "roles": " ".join(role for role in ROLES if role in {"view", *roles}),
            "hash": _hash_secret(secret),
            "created": self._backing.now(),
            "expires": format_timestamp(expires) if expires else None,
        }
        self._db.change(_INSERT, values)
        return self.get(public), f"{PREFIX}_{public}_{secret}"

    def check(self, text: str) -> ApiToken | None:
        """The token that this text is, None for any that is unknown, wrong, expired or revoked."""
        prefix, _, rest = text.partition("_")
        public, _, secret = rest.partition("_")
        row = self._db.row("SELECT * FROM tokens WHERE id = ?", (public,)) if prefix == PREFIX else None
        # As much work for an unknown id as for a wrong secret: the time tells nothing.
        right = hmac.compare_digest(_hash_secret(secret), row["hash"] if row else _hash_secret(""))
        if row is None or not right or row["revoked"]:
            return None
        token = _token_from_row(row)
        return None if self._has_expired(token) else token

    def is_valid(self, token_id: str) -> bool:
        """Whether a token that was checked before is still neither revoked nor expired."""
        row = self._db.row("SELECT * FROM tokens WHERE id = ?", (token_id,))
        return row is not None and not row["revoked"] and not self._has_expired(_token_from_row(row))

    def list_hashes(self) -> dict[str, str]:
        """The hash of the secret of each valid token, by its public half."""
        rows = self._db.rows("SELECT id, hash, expires FROM tokens WHERE revoked IS NULL")
        now = self._backing.now()
        return {
            str(row["id"]): str(row["hash"]) for row in rows if not row["expires"] or row["expires"] > now
        }

    def get(self, token_id: str) -> ApiToken:
        """One token. Raises NotFoundError."""
        row = self._db.row("SELECT * FROM tokens WHERE id = ?", (token_id,))
        if row is None:
            raise NotFoundError(f"no token {token_id!r}", [token.id for token in self.list()][:3])
        return _token_from_row(row)

    def list(self) -> tuple[ApiToken, ...]:
        """All tokens, oldest first, also those that are revoked or expired."""
        return tuple(
            _token_from_row(row) for row in self._db.rows("SELECT * FROM tokens ORDER BY created, id")
        )

    def revoke(self, token_id: str) -> ApiToken:
        """From now on it is not valid. Raises NotFoundError; revoking twice changes nothing."""
        self._db.change(_REVOKE, {"id": token_id, "now": self._backing.now()})
        return self.get(token_id)

    def _has_expired(self, token: ApiToken) -> bool:
        return token.expires is not None and token.expires <= self._backing.now()


def is_listed_token(text: str, hashes: Mapping[str, str]) -> bool:
    """Whether this is the text of a token whose hash is among these, by its public half."""
    prefix, _, rest = text.partition("_")
    public, _, secret = rest.partition("_")
    known = hashes.get(public, _hash_secret(""))
    return hmac.compare_digest(_hash_secret(secret), known) and prefix == PREFIX and public in hashes


def _hash_secret(secret: str) -> str:
    """SHA-256 is enough: a secret has 192 random bits, there is nothing to guess."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token_from_row(row: Row) -> ApiToken:
    return decode_row(ApiToken, row, {"roles": lambda text: frozenset(ROLES).intersection(text.split())})

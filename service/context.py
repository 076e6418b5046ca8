"""What every address of the API needs: the stores, the intake, the settings, and who asks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from opsleuth.checkpoints.errors import NotFound
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.tokens import Role, Token
from opsleuth.service.intake import Intake
from opsleuth.service.limits import Familiar, Pace
from opsleuth.service.metrics import Traffic
from opsleuth.service.settings import Service
from opsleuth.service.stores import Stores
from opsleuth.state.clock import Clock

MOST_STREAMS = 20
"""Event streams that one token may have open."""
STRANGERS_PER_MINUTE = 60
"""Requests without a valid token or signature from one address; beyond that the answer is 429."""
NO_TASK = "there is no such task"
"""The one answer for a run that does not exist and for another team's: neither can be told from the other."""


class Refused(Exception):
    """The request cannot be served: an HTTP status, a word for programs, a sentence for people."""

    def __init__(
        self, status: int, error: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.error, self.message, self.headers = status, error, message, dict(headers or {})


@dataclass(frozen=True, slots=True)
class ApiContext:
    """One process of the API."""

    stores: Stores
    intake: Intake
    service: Service
    clock: Clock
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The secret of each sender that signs, by its name."""
    traffic: Traffic = field(default_factory=Traffic)
    streams: dict[str, int] = field(default_factory=dict)
    pace: Pace = field(init=False)
    unauthenticated_pace: Pace = field(init=False)
    familiar: Familiar = field(default_factory=Familiar)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pace", Pace(self.service.requests_per_minute, self.clock.monotonic))
        object.__setattr__(self, "unauthenticated_pace", Pace(STRANGERS_PER_MINUTE, self.clock.monotonic))


def context(request: Request) -> ApiContext:
    found: ApiContext = request.app.state.context
    return found


Context = Annotated[ApiContext, Depends(context)]
_bearer = HTTPBearer(auto_error=False, description="A token: `opsleuth token create`.")


async def caller(
    context: Context,
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Token:
    """Who asks, by the token. Refuses 401 without a valid one, 429 for who asks too often.

    Where many without a valid one came from the same address, the database is asked about familiar tokens only.
    """
    text = given.credentials if given else ""
    if text not in context.familiar:
        refused_if(context.unauthenticated_pace.left(host_of(request)))
    token = await context.stores(lambda store: store.tokens.check(text)) if text else None
    if token is None:
        context.familiar.discard(text)
        refused_if(context.unauthenticated_pace.wait(host_of(request)))
        raise Refused(
            401,
            "unauthorized",
            "a valid token is needed: Authorization: Bearer opsleuth_…",
            {"WWW-Authenticate": "Bearer"},
        )
    context.familiar.add(text)
    refused_if(context.pace.wait(token.id))
    return token


def host_of(request: Request) -> str:
    """The address that a request comes from; of a proxy, if there is one in front."""
    return request.client.host if request.client else ""


def refused_if(wait: float) -> None:
    """Refuse 429 where the caller has to wait for so many seconds."""
    if wait > 0:
        seconds = str(int(wait) + 1)
        raise Refused(
            429, "too_many_requests", f"too many requests: wait {seconds} s", {"Retry-After": seconds}
        )


def _with(role: Role) -> Any:  # noqa: ANN401 - FastAPI's own marker
    def check(token: Annotated[Token, Depends(caller)]) -> Token:
        if role not in token.roles:
            has = ", ".join(sorted(token.roles))
            raise Refused(403, "forbidden", f"this needs a token with the role {role}; this one has {has}")
        return token

    return Depends(check)


Viewer = Annotated[Token, _with("view")]
Starter = Annotated[Token, _with("run")]
Approver = Annotated[Token, _with("approve")]


def of_team(store: Store, run: str, token: Token) -> RunRow:
    """The run with exactly this id, if it is this team's. Raises NotFound, the same for every other."""
    row = store.runs.get(run)
    if row is None or row.project != token.team:
        raise NotFound(NO_TASK)
    return row

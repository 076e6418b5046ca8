"""What every address of the API needs: the stores, the intake, the settings, and who asks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from opsleuth.checkpoints.service.tokens import ApiToken, is_listed_token
from opsleuth.configuration.service_settings import ServiceSettings
from opsleuth.service.intake import RequestIntake
from opsleuth.service.intake_lanes import IntakeLanes
from opsleuth.service.metrics import RequestMetrics
from opsleuth.service.request_limits import CallerRateLimit, KnownTokens
from opsleuth.service.sns_messages import SnsMessages
from opsleuth.service.store_pool import StorePool
from opsleuth.state.clock import Clock
from opsleuth.state.errors import OpsleuthError

HASHES_SECONDS = 2.0
"""So old may the list of tokens be that callers are looked up in whose address has asked too often."""
MOST_STREAMS = 20
"""Event streams that one token may have open."""
UNAUTHENTICATED_PER_MINUTE = 60
"""Requests without a valid token or signature from one address; beyond that the answer is 429."""


class RequestRefusedError(OpsleuthError):
    """The request cannot be served: an HTTP status, a word for programs, a sentence for people."""

    def __init__(
        self, status: int, error: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.error, self.message, self.headers = status, error, message, dict(headers or {})


class TokenHashes:
    """The hashes of all valid tokens by their public half, read again when they are older than a moment."""

    def __init__(self) -> None:
        self._hashes: Mapping[str, str] = {}
        self._read = -inf

    async def read(self, stores: StorePool, clock: Clock) -> Mapping[str, str]:
        """The hashes as they were at most `HASHES_SECONDS` ago."""
        now = clock.monotonic()
        if now - self._read >= HASHES_SECONDS:
            self._read = now
            self._hashes = await stores(lambda store: store.tokens.list_hashes())
        return self._hashes


@dataclass(frozen=True, slots=True)
class ApiContext:
    """One process of the API."""

    stores: StorePool
    lanes: IntakeLanes
    intake: RequestIntake
    service: ServiceSettings
    clock: Clock
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The secret of each sender that signs with one, by its name."""
    sns: SnsMessages = field(default_factory=SnsMessages)
    traffic: RequestMetrics = field(default_factory=RequestMetrics)
    streams: dict[str, int] = field(default_factory=dict)
    pace: CallerRateLimit = field(init=False)
    unauthenticated_pace: CallerRateLimit = field(init=False)
    known_tokens: KnownTokens = field(default_factory=KnownTokens)
    token_hashes: TokenHashes = field(default_factory=TokenHashes)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "pace", CallerRateLimit(self.service.requests_per_minute, self.clock.monotonic)
        )
        object.__setattr__(
            self, "unauthenticated_pace", CallerRateLimit(UNAUTHENTICATED_PER_MINUTE, self.clock.monotonic)
        )


def get_api_context(request: Request) -> ApiContext:
    found: ApiContext = request.app.state.context
    return found


Context = Annotated[ApiContext, Depends(get_api_context)]
_bearer = HTTPBearer(auto_error=False, description="A token: `opsleuth token create`.")


async def authenticate_caller(
    context: Context,
    request: Request,
    given: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> ApiToken:
    """Who asks, by the token. Refuses 401 without a valid one, 429 for who asks too often."""
    known: ApiToken | None = getattr(request.state, "token", None)
    if known is not None:  # it was checked before the body was read
        return known
    return await authenticate_bearer(context, client_host(request), given.credentials if given else "")


async def authenticate_bearer(context: ApiContext, host: str, text: str) -> ApiToken:
    """Whose token this text is, sent from this address. Refuses 401 for no valid one, 429 for who asks too often.

    Where many without a valid one came from the same address, the database is asked about familiar tokens only, and about those that
    the list of all tokens holds: nobody can lock out a valid token.
    """
    if text not in context.known_tokens and (wait := context.unauthenticated_pace.left(host)) > 0:
        hashes = await context.token_hashes.read(context.stores, context.clock)
        if not is_listed_token(text, hashes):
            refuse_too_many_requests(wait)
    token = await context.stores(lambda store: store.tokens.check(text)) if text else None
    if token is None:
        context.known_tokens.discard(text)
        refuse_too_many_requests(context.unauthenticated_pace.wait(host))
        raise RequestRefusedError(
            401,
            "unauthorized",
            "a valid token is needed: Authorization: Bearer opsleuth_…",
            {"WWW-Authenticate": "Bearer"},
        )
    context.known_tokens.add(text)
    refuse_too_many_requests(context.pace.wait(token.id))
    return token


def client_host(request: Request) -> str:
    """The address that a request comes from; of a proxy, if there is one in front."""
    return request.client.host if request.client else ""


def refuse_too_many_requests(wait: float) -> None:
    """Refuse 429 where the caller has to wait for this many seconds."""
    if wait > 0:
        seconds = str(int(wait) + 1)
        raise RequestRefusedError(
            429, "too_many_requests", f"too many requests: wait {seconds} s", {"Retry-After": seconds}
        )

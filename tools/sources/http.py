"""HTTP as sources use it: authentication, a bound on what is read, and every failure in its own error class.

NotPermitted   401, 403: the credentials, or what they allow
Transient      429, 502, 503, 504, a reset connection or an answer that broke off: the executor tries again
Unavailable    nobody there, a name that does not resolve, a certificate nobody vouches for, no such path,
               an answer that is too large or no JSON
TimeoutError   no answer in time
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from urllib.parse import urlencode

import httpx

from opsleuth import __version__
from opsleuth.state.clock import Clock
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.sources.settings import Http
from opsleuth.tools.spec import NotPermitted, ToolError, Transient, Unavailable

_RETRIED = frozenset({429, 502, 503, 504})
_LONGEST_WAIT = 60.0
_QUOTED = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON document, and how many bytes it came in."""

    document: Any
    size: int = 0


@dataclass(slots=True)
class Api:
    """One backend over HTTP.

    `log` holds a line for each request that was sent: method, URL, status, bytes. `skew` is the server's clock
    less ours in seconds, by its last answer; None where it did not tell.
    """

    name: str
    settings: Http
    vault: Vault
    clock: Clock
    log: list[str] = field(default_factory=list)
    skew: float | None = None

    @asynccontextmanager
    async def session(self) -> AsyncIterator["Session"]:
        """Requests over shared connections. Raises Unavailable where a secret or a certificate cannot be read."""
        settings = self.settings
        # In threads: a secret may come from a command that takes its time.
        headers, auth = await asyncio.to_thread(lambda: (self._headers(), self._basic()))
        async with httpx.AsyncClient(
            headers=headers,
            auth=auth,
            verify=_trust(self.name, settings),
            proxy=settings.proxy,
            timeout=httpx.Timeout(settings.timeout, connect=min(3.0, settings.timeout)),
            limits=httpx.Limits(max_connections=8),
            follow_redirects=False,
        ) as client:
            yield Session(self, client)

    def _headers(self) -> Mapping[str, str]:
        settings, reveal = self.settings, self.vault.reveal
        headers = {"accept": "application/json", "user-agent": f"opsleuth/{__version__}", **settings.headers}
        headers |= {name: reveal(secret) for name, secret in settings.secret_headers.items()}
        if settings.token is not None:
            headers["authorization"] = f"Bearer {reveal(settings.token)}"
        return headers

    def _basic(self) -> httpx.BasicAuth | None:
        settings = self.settings
        if settings.user is None or settings.password is None:
            return None
        return httpx.BasicAuth(settings.user, self.vault.reveal(settings.password))


@dataclass(frozen=True, slots=True)
class Session:
    """Requests of one fetch."""

    api: Api
    client: httpx.AsyncClient

    async def get(self, path: str, **parameters: str) -> Answer:
        return await self._ask("GET", path, parameters)

    async def post(self, path: str, **parameters: str) -> Answer:
        """The parameters as a form: a query may be longer than a URL."""
        return await self._ask("POST", path, parameters)

    async def _ask(self, method: str, path: str, parameters: Mapping[str, str]) -> Answer:
        url = self.api.settings.url.rstrip("/") + path
        sent = {"params": parameters} if method == "GET" else {"data": parameters}
        line = f"{method} {url}" + (f"?{urlencode(parameters)}" if parameters else "")
        try:
            async with self.client.stream(method, url, **sent) as response:  # type: ignore[arg-type]
                body = await self._bounded(response)
        except ToolError as error:
            self.api.log.append(f"{line} -> {error}")
            raise
        except httpx.TimeoutException as error:
            self.api.log.append(f"{line} -> no answer in time")
            late = "connection" if isinstance(error, httpx.ConnectTimeout) else "answer"
            raise TimeoutError(f"{self.api.name}: no {late} in time from {url}") from None
        except (httpx.TransportError, httpx.InvalidURL, ssl.SSLError) as error:
            self.api.log.append(f"{line} -> {type(error).__name__}")
            _broken(self.api.name, url, error)
        self.api.log.append(f"{line} -> {response.status_code}, {len(body):,} bytes")
        self.api.skew = _skew(response, self.api.clock.now())
        return _answer(self.api, url, response, body)

    async def _bounded(self, response: httpx.Response) -> bytes:
        """The body, as far as the limit goes: nothing larger is ever held."""
        limit, parts, size = self.api.settings.max_bytes, [], 0
        async for part in response.aiter_bytes():
            size += len(part)
            if size > limit:
                raise Unavailable(
                    f"{self.api.name}: an answer is larger than {limit:,} bytes: narrow what is asked, or raise max_bytes"
                )
            parts.append(part)
        return b"".join(parts)


def _trust(name: str, settings: Http) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.client_cert is not None:
            context.load_cert_chain(settings.client_cert, settings.client_key)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise Unavailable(f"{name}: ca_file, client_cert or client_key cannot be read: {reason}") from None
    return context


def _broken(name: str, url: str, error: Exception) -> NoReturn:
    """The error of a request that brought no whole answer."""
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError):
        if "CERTIFICATE" in text.upper() or "SSL" in text.upper():
            raise Unavailable(
                f"{name}: {url} cannot be trusted ({text}): set ca_file, or mend the certificate"
            )
        raise Unavailable(f"{name}: nobody answers at {url} ({text}): check url and network")
    if isinstance(error, httpx.ReadError | httpx.RemoteProtocolError | httpx.WriteError | httpx.CloseError):
        raise Transient(f"{name}: the connection to {url} broke off ({text})")
    raise Unavailable(f"{name}: {url} cannot be asked ({type(error).__name__}: {text})")


def _answer(api: Api, url: str, response: httpx.Response, body: bytes) -> Answer:
    name, status, now = api.name, response.status_code, api.clock.now()
    if status in (401, 403):
        what = "does not know the credentials" if status == 401 else "does not allow this"
        raise NotPermitted(f"{name}: {url} {what} ({status}{_quoted(body)})")
    if status in _RETRIED:
        raise Transient(f"{name}: {url} answered {status}{_quoted(body)}", _wait(response, now))
    if status // 100 == 3:
        raise Unavailable(
            f"{name}: {url} leads elsewhere ({status} to {response.headers.get('location', '?')[:200]}): set url to the place itself"
        )
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Unavailable(
            f"{name}: {url} answered {status} with {response.headers.get('content-type', 'no content type')}, "
            f"not JSON{_quoted(body)}: is this the API's address?"
        ) from None
    if status // 100 != 2:
        raise Unavailable(f"{name}: {url} answered {status}{_quoted(body)}")
    return Answer(document, len(body))


def _quoted(body: bytes) -> str:
    text = " ".join(body[: _QUOTED * 4].decode("utf-8", "replace").split())[:_QUOTED]
    return f": {text}" if text else ""


def _wait(response: httpx.Response, now: datetime) -> float | None:
    """Seconds until the server wants to be asked again, from Retry-After."""
    given = response.headers.get("retry-after", "")
    if given.isdigit():
        return min(float(given), _LONGEST_WAIT)
    when = _date(given)
    return None if when is None else min(max(0.0, (when - now).total_seconds()), _LONGEST_WAIT)


def _skew(response: httpx.Response, now: datetime) -> float | None:
    when = _date(response.headers.get("date", ""))
    return None if when is None else (when - now).total_seconds()


def _date(text: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)

"""HTTP as sources use it: authentication, a bound on what is read, and every failure in its own error class.

NotPermitted   401, 403: the credentials, or what they allow
Transient      429, 502, 503, 504, a quota used up for now, a reset connection or an answer that broke off: the
               executor tries again
Unavailable    nobody there, a name that does not resolve, a certificate nobody vouches for, an answer that is too
               large or no JSON
Refused        any other status, such as 404 for no such path; an Unavailable that knows its status
TimeoutError   no answer in time

NotReached and LateConnection are the Unavailable and the TimeoutError of a request that was never sent.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
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
_LONGEST_ERROR = 100_000


class NotReached(Unavailable):
    """No connection came about: nothing was sent."""


class LateConnection(TimeoutError):
    """No connection came about in time: nothing was sent."""


class Refused(Unavailable):
    """The server answered, with a status that says no: `status_code`."""

    def __init__(self, text: str, status_code: int) -> None:
        super().__init__(text)
        self.status_code = status_code


@dataclass(frozen=True, slots=True)
class Answer:
    """A JSON document, and how many bytes it came in."""

    document: Any
    size: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """Who we are and whom we trust, where that stands in no settings of ours (a kubeconfig)."""

    headers: Mapping[str, str]
    trust: ssl.SSLContext


@dataclass(slots=True)
class Api:
    """One backend over HTTP.

    `log` holds a line for each request that was sent: method, URL, status, bytes. `skew` is the server's clock
    less ours in seconds, by its last answer; None where it did not tell. `access` stands in for the credentials
    of the settings; it may take its time, and runs in a thread.
    """

    name: str
    settings: Http
    vault: Vault
    clock: Clock
    access: Callable[[], Access] | None = None
    log: list[str] = field(default_factory=list)
    skew: float | None = None

    @asynccontextmanager
    async def session(self) -> AsyncIterator["Session"]:
        """Requests over shared connections. Raises Unavailable where a secret or a certificate cannot be read."""
        settings = self.settings
        # In threads: a secret may come from a command that takes its time.
        access, auth = await asyncio.to_thread(lambda: (self._access(), self._basic()))
        async with httpx.AsyncClient(
            headers=access.headers,
            auth=auth,
            verify=access.trust,
            proxy=settings.proxy,
            timeout=httpx.Timeout(settings.timeout, connect=min(3.0, settings.timeout)),
            limits=httpx.Limits(max_connections=8),
            follow_redirects=False,
        ) as client:
            yield Session(self, client)

    def _access(self) -> Access:
        if self.access is None:
            return Access(self._headers(), _trust(self.name, self.settings))
        given = self.access()
        return Access({**self._headers(), **given.headers}, given.trust)

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
        return self._json(*await self.ask("GET", path, params=parameters))

    async def post(self, path: str, **parameters: str) -> Answer:
        """The parameters as a form: a query may be longer than a URL."""
        return self._json(*await self.ask("POST", path, data=parameters))

    async def send(
        self,
        method: str,
        path: str,
        document: Any,  # noqa: ANN401 - any JSON value
        kind: str = "application/json",
        **parameters: str,
    ) -> Answer:
        """A JSON document as the body, of content type `kind`."""
        body = json.dumps(document, separators=(",", ":")).encode()
        return self._json(
            *await self.ask(method, path, params=parameters, content=body, headers={"content-type": kind})
        )

    async def text(self, path: str, *pairs: tuple[str, str], **parameters: str) -> str:
        """An answer that is plain text; what is no UTF-8 in it becomes replacement marks. Of `pairs` names may repeat."""
        response, body = await self.ask("GET", path, params=[*pairs, *parameters.items()])
        _check(self.api, response, body)
        return body.decode("utf-8", "replace")

    def _json(self, response: httpx.Response, body: bytes) -> Answer:
        _check(self.api, response, body)
        try:
            return Answer(json.loads(body), len(body))
        except (ValueError, RecursionError):
            raise Unavailable(_no_json(self.api.name, response, body)) from None

    async def ask(
        self,
        method: str,
        path: str,
        **sent: Any,  # noqa: ANN401 - what httpx takes
    ) -> tuple[httpx.Response, bytes]:
        """The answer and its whole body, whatever its status."""
        url = self.api.settings.url.rstrip("/") + path
        line = f"{method} {url}{_shown(sent)}"
        try:
            async with self.client.stream(method, url, **sent) as response:
                body = await self._bounded(response)
        except ToolError as error:
            self.api.log.append(f"{line} -> {error}")
            raise
        except httpx.TimeoutException as error:
            self.api.log.append(f"{line} -> no answer in time")
            if isinstance(error, httpx.ConnectTimeout):
                raise LateConnection(f"{self.api.name}: no connection in time from {url}") from None
            raise TimeoutError(f"{self.api.name}: no answer in time from {url}") from None
        except (httpx.TransportError, httpx.InvalidURL, ssl.SSLError) as error:
            self.api.log.append(f"{line} -> {type(error).__name__}")
            _broken(self.api.name, url, error)
        self.api.log.append(f"{line} -> {response.status_code}, {len(body):,} bytes")
        self.api.skew = _skew(response, self.api.clock.now())
        return response, body

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
            raise NotReached(
                f"{name}: {url} cannot be trusted ({text}): set ca_file, or mend the certificate"
            )
        raise NotReached(f"{name}: nobody answers at {url} ({text}): check url and network")
    if isinstance(error, httpx.ReadError | httpx.RemoteProtocolError | httpx.WriteError | httpx.CloseError):
        raise Transient(f"{name}: the connection to {url} broke off ({text})")
    raise Unavailable(f"{name}: {url} cannot be asked ({type(error).__name__}: {text})")


def _shown(sent: Mapping[str, Any]) -> str:
    """The parameters or the document of a request, for the log of what was asked."""
    if body := sent.get("content"):
        return f" {body[:_QUOTED].decode('utf-8', 'replace')}"
    parameters = sent.get("params") or sent.get("data")
    return f"?{urlencode(parameters)}" if parameters else ""


def _check(api: Api, response: httpx.Response, body: bytes) -> None:
    """Raises the error of an answer whose status says anything but yes."""
    name, status, url = api.name, response.status_code, response.url.copy_with(query=None)
    if status in _RETRIED or (status == 403 and response.headers.get("x-ratelimit-remaining") == "0"):
        raise Transient(f"{name}: {url} answered {status}{_quoted(body)}", _wait(response, api.clock.now()))
    if status in (401, 403):
        what = "does not know the credentials" if status == 401 else "does not allow this"
        raise NotPermitted(f"{name}: {url} {what} ({status}{_quoted(body)})")
    if status // 100 == 3:
        raise Unavailable(
            f"{name}: {url} leads elsewhere ({status} to {response.headers.get('location', '?')[:200]}): set url to the place itself"
        )
    if status // 100 != 2:
        html = "html" in response.headers.get("content-type", "")
        text = _no_json(name, response, body) if html else f"{name}: {url} answered {status}{_quoted(body)}"
        raise Refused(text, status)


def _no_json(name: str, response: httpx.Response, body: bytes) -> str:
    return (
        f"{name}: {response.url.copy_with(query=None)} answered {response.status_code} with "
        f"{response.headers.get('content-type', 'no content type')}, not JSON{_quoted(body)}: is this the API's address?"
    )


def _quoted(body: bytes) -> str:
    """What the server said, for an error text: the message of a JSON document, else how the body begins."""
    said = _message(body) or body[: _QUOTED * 4].decode("utf-8", "replace")
    text = " ".join(said.split())[:_QUOTED]
    return f": {text}" if text else ""


def _message(body: bytes) -> str:
    if not body.startswith(b"{") or len(body) > _LONGEST_ERROR:
        return ""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    said = document.get("message")
    return said if isinstance(said, str) else ""


def _wait(response: httpx.Response, now: datetime) -> float | None:
    """Seconds until the server wants to be asked again, from Retry-After or a quota's own header."""
    given = response.headers.get("retry-after", "")
    if not given and (reset := response.headers.get("x-ratelimit-reset", "")).isdigit():
        return min(max(0.0, float(reset) - now.timestamp()), _LONGEST_WAIT)
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

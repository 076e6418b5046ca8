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
from datetime import datetime
from http import HTTPStatus
from typing import Any, NoReturn
from urllib.parse import urlencode

import httpx

from opsleuth import __version__
from opsleuth.configuration.proxies import ChosenProxy, choose_proxy
from opsleuth.configuration.secret_references import Vault
from opsleuth.configuration.source_settings import HttpSettings
from opsleuth.state.clock import Clock
from opsleuth.state.errors import ConfigError, OpsleuthError
from opsleuth.state.garbage_collection import pause_garbage_collection
from opsleuth.state.http_dates import read_http_date, read_retry_after
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.spec import NotPermittedError, ToolError, TransientError, UnavailableError

_RETRIED = frozenset({429, 502, 503, 504})
_LONGEST_WAIT = 60.0
_QUOTED = 300
_LONGEST_ERROR = 100_000


class NotConnectedError(UnavailableError):
    """No connection came about: nothing was sent."""


class ConnectTimeoutError(OpsleuthError, TimeoutError):
    """No connection came about in time: nothing was sent."""

    exit_code = ExitCode.UNREACHABLE


class HttpStatusError(UnavailableError):
    """The server answered, with a status that says no: `status_code`."""

    def __init__(self, text: str, status_code: int) -> None:
        super().__init__(text)
        self.status_code = status_code


@dataclass(frozen=True, slots=True)
class JsonResponse:
    """A JSON document, how many bytes it came in, and whether its `Link` header names a next page."""

    document: Any
    size: int = 0
    has_next: bool = False


@dataclass(frozen=True, slots=True)
class HttpCredentials:
    """Who we are and whom we trust, where that appears in no settings of ours (a kubeconfig)."""

    headers: Mapping[str, str]
    trust: ssl.SSLContext


@dataclass(slots=True)
class HttpApi:
    """One backend over HTTP.

    `log` holds a line for each request that was sent: method, URL, status, bytes. `skew` is the server's clock
    less ours in seconds, by its last answer; None where it did not tell. `partial` is what the server says that its
    answers lack, `remarks` what else it says of them. `access` stands in for the credentials
    of the settings; it may take its time, and runs in a thread.
    """

    name: str
    settings: HttpSettings
    vault: Vault
    clock: Clock
    access: Callable[[], HttpCredentials] | None = None
    log: list[str] = field(default_factory=list)
    skew: float | None = None
    partial: dict[str, None] = field(default_factory=dict)
    remarks: dict[str, None] = field(default_factory=dict)

    @asynccontextmanager
    async def session(self) -> AsyncIterator["HttpSession"]:
        """Requests over shared connections. Raises UnavailableError where a secret or a certificate cannot be read."""
        settings, proxy = self.settings, self._proxy()
        # In threads: a secret may come from a command that takes its time.
        access, auth = await asyncio.to_thread(lambda: (self._access(), self._basic()))
        async with httpx.AsyncClient(
            headers=access.headers,
            auth=auth,
            verify=access.trust,
            proxy=proxy.url if proxy else None,
            trust_env=False,  # the proxy is chosen above, the certificates are given
            timeout=httpx.Timeout(settings.timeout, connect=min(3.0, settings.timeout)),
            limits=httpx.Limits(max_connections=8),
            follow_redirects=False,
        ) as client:
            yield HttpSession(self, client, proxy)

    def _proxy(self) -> ChosenProxy | None:
        try:
            return choose_proxy(self.settings.url, self.settings.proxy)
        except ConfigError as error:
            raise UnavailableError(f"{self.name}: {error}") from None

    def _access(self) -> HttpCredentials:
        if self.access is None:
            return HttpCredentials(self._headers(), _build_tls_context(self.name, self.settings))
        given = self.access()
        return HttpCredentials({**self._headers(), **given.headers}, given.trust)

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
class HttpSession:
    """The requests of one fetch."""

    api: HttpApi
    client: httpx.AsyncClient
    proxy: ChosenProxy | None = None

    async def get(self, path: str, **parameters: str) -> JsonResponse:
        return self._json(*await self.ask("GET", path, params=parameters))

    async def get_as(self, accept: str, path: str, **parameters: str) -> JsonResponse:
        """The answer in another form of JSON than the usual one."""
        return self._json(*await self.ask("GET", path, params=parameters, headers={"accept": accept}))

    async def post(self, path: str, **parameters: str) -> JsonResponse:
        """The parameters as a form: a query may be longer than a URL."""
        return self._json(*await self.ask("POST", path, data=parameters))

    async def send(
        self,
        method: str,
        path: str,
        document: JSON,
        kind: str = "application/json",
        **parameters: str,
    ) -> JsonResponse:
        """A JSON document as the body, of content type `kind`."""
        body = json.dumps(document, separators=(",", ":")).encode()
        return self._json(
            *await self.ask(method, path, params=parameters, content=body, headers={"content-type": kind})
        )

    async def text(self, path: str, *pairs: tuple[str, str], **parameters: str) -> str:
        """An answer that is plain text; anything that is not UTF-8 in it becomes replacement marks. Of `pairs` names may repeat."""
        response, body = await self.ask("GET", path, params=[*pairs, *parameters.items()])
        _check_status(self.api, response, body)
        return body.decode("utf-8", "replace")

    def _json(self, response: httpx.Response, body: bytes) -> JsonResponse:
        _check_status(self.api, response, body)
        try:
            with pause_garbage_collection():
                document = json.loads(body)
            return JsonResponse(document, len(body), 'rel="next"' in response.headers.get("link", ""))
        except (ValueError, RecursionError):
            raise UnavailableError(_not_json_text(self.api.name, response, body)) from None

    async def ask(
        self,
        method: str,
        path: str,
        **sent: Any,  # noqa: ANN401 - what httpx takes
    ) -> tuple[httpx.Response, bytes]:
        """The answer and its whole body, whatever its status."""
        url = self.api.settings.url.rstrip("/") + path
        line = f"{method} {url}{_request_summary(sent)}"
        try:
            async with self.client.stream(method, url, **sent) as response:
                body = await self._bounded(response)
        except ToolError as error:
            self.api.log.append(f"{line} -> {error}")
            raise
        except httpx.TimeoutException as error:
            self.api.log.append(f"{line} -> no answer in time")
            if isinstance(error, httpx.ConnectTimeout):
                way = f" through the proxy {self.proxy.shown}" if self.proxy else ""
                raise ConnectTimeoutError(f"{self.api.name}: no connection in time from {url}{way}") from None
            raise TimeoutError(f"{self.api.name}: no answer in time from {url}") from None
        except (httpx.TransportError, httpx.InvalidURL, ssl.SSLError) as error:
            self.api.log.append(f"{line} -> {type(error).__name__}")
            if self.proxy is not None:
                _raise_proxy_error(self.api.name, self.proxy, error)
            _raise_transport_error(self.api.name, url, error)
        if response.status_code == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED and self.proxy is not None:
            raise NotConnectedError(_proxy_credentials_text(self.api.name, self.proxy))
        self.api.log.append(f"{line} -> {response.status_code}, {len(body):,} bytes")
        self.api.skew = _clock_skew(response, self.api.clock.now())
        return response, body

    async def _bounded(self, response: httpx.Response) -> bytes:
        """The body, as far as the limit goes: nothing larger is ever held."""
        limit, parts, size = self.api.settings.max_bytes, [], 0
        async for part in response.aiter_bytes():
            size += len(part)
            if size > limit:
                raise UnavailableError(
                    f"{self.api.name}: an answer is larger than {limit:,} bytes: narrow what is asked, or raise max_bytes"
                )
            parts.append(part)
        return b"".join(parts)


def _build_tls_context(name: str, settings: HttpSettings) -> ssl.SSLContext:
    if settings.url.lower().startswith("http:") and not (settings.ca_file or settings.client_cert):
        # Reading the system's certificates takes longer than a request on a fast network: this context trusts none.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
        if settings.client_cert is not None:
            context.load_cert_chain(settings.client_cert, settings.client_key)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UnavailableError(
            f"{name}: ca_file, client_cert or client_key cannot be read: {reason}"
        ) from None
    return context


def _raise_proxy_error(name: str, proxy: ChosenProxy, error: Exception) -> None:
    """The error of a request that did not get past the proxy; returns where the proxy is not to blame."""
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ProxyError):
        if text.startswith("407"):
            raise NotConnectedError(_proxy_credentials_text(name, proxy)) from None
        raise NotConnectedError(
            f"{name}: the proxy {proxy.shown} does not connect ({text}): allow the address there, or name it in NO_PROXY"
        ) from None
    if (
        isinstance(error, httpx.ConnectError)
        and "SSL" not in text.upper()
        and "CERTIFICATE" not in text.upper()
    ):
        raise NotConnectedError(
            f"{name}: the proxy {proxy.shown} cannot be reached ({text}): correct it, or name the address in NO_PROXY"
        ) from None


def _proxy_credentials_text(name: str, proxy: ChosenProxy) -> str:
    return f"{name}: the proxy {proxy.shown} asks for credentials (407): write them into it as http://user:password@host:port"


def _raise_transport_error(name: str, url: str, error: Exception) -> NoReturn:
    """The error of a request that brought no whole answer."""
    text = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError):
        if "CERTIFICATE" in text.upper() or "SSL" in text.upper():
            raise NotConnectedError(
                f"{name}: {url} cannot be trusted ({text}): set ca_file, or fix the certificate"
            )
        raise NotConnectedError(f"{name}: nothing answers at {url} ({text}): check url and network")
    if isinstance(error, httpx.ReadError | httpx.RemoteProtocolError | httpx.WriteError | httpx.CloseError):
        raise TransientError(f"{name}: the connection to {url} broke off ({text})")
    raise UnavailableError(f"{name}: {url} cannot be asked ({type(error).__name__}: {text})")


def _request_summary(sent: Mapping[str, Any]) -> str:
    """The parameters or the document of a request, for the log of what was asked."""
    if body := sent.get("content"):
        return f" {body[:_QUOTED].decode('utf-8', 'replace')}"
    parameters = sent.get("params") or sent.get("data")
    return f"?{urlencode(parameters)}" if parameters else ""


def _check_status(api: HttpApi, response: httpx.Response, body: bytes) -> None:
    """Raises the error of an answer whose status says anything but yes."""
    name, status, url = api.name, response.status_code, response.url.copy_with(query=None)
    if status in _RETRIED or (status == 403 and response.headers.get("x-ratelimit-remaining") == "0"):
        raise TransientError(
            f"{name}: {url} answered {status}{_quote_body(body)}",
            _retry_after_seconds(response, api.clock.now()),
        )
    if status in (401, 403):
        what = "does not accept the credentials" if status == 401 else "does not allow this"
        raise NotPermittedError(f"{name}: {url} {what} ({status}{_quote_body(body)})")
    if status // 100 == 3:
        raise UnavailableError(
            f"{name}: {url} leads elsewhere ({status} to {response.headers.get('location', '?')[:200]}): set url to the place itself"
        )
    if status // 100 != 2:
        html = "html" in response.headers.get("content-type", "")
        text = (
            _not_json_text(name, response, body)
            if html
            else f"{name}: {url} answered {status}{_quote_body(body)}"
        )
        raise HttpStatusError(text, status)


def _not_json_text(name: str, response: httpx.Response, body: bytes) -> str:
    return (
        f"{name}: {response.url.copy_with(query=None)} answered {response.status_code} with "
        f"{response.headers.get('content-type', 'no content type')}, not JSON{_quote_body(body)}: is this the API's address?"
    )


def _quote_body(body: bytes) -> str:
    """What the server said, for an error text: the message of a JSON document, else how the body begins."""
    said = _json_error_message(body) or body[: _QUOTED * 4].decode("utf-8", "replace")
    text = " ".join(said.split())[:_QUOTED]
    return f": {text}" if text else ""


def _json_error_message(body: bytes) -> str:
    if not body.startswith(b"{") or len(body) > _LONGEST_ERROR:
        return ""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    said = document.get("message")
    return said if isinstance(said, str) else ""


def _retry_after_seconds(response: httpx.Response, now: datetime) -> float | None:
    """Seconds until the server wants to be asked again, from Retry-After or a quota's own header."""
    given = response.headers.get("retry-after", "")
    if not given and (reset := response.headers.get("x-ratelimit-reset", "")).isdigit():
        return min(max(0.0, float(reset) - now.timestamp()), _LONGEST_WAIT)
    wait = read_retry_after(given, now)
    return None if wait is None else min(wait, _LONGEST_WAIT)


def _clock_skew(response: httpx.Response, now: datetime) -> float | None:
    when = read_http_date(response.headers.get("date", ""))
    return None if when is None else (when - now).total_seconds()

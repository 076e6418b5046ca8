"""What went wrong at an endpoint, in our own words with the remedy; nothing of the library's text stands alone.

Failure      what `explain` makes of any error: what kind it is, in words, and whether it may heal by itself
"""

import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, NamedTuple

import httpx2
import openai
from langchain_core.exceptions import ContextOverflowError

from opsleuth.configuration.model_settings import ModelSettings
from opsleuth.configuration.proxies import ChosenProxy
from opsleuth.models.rate_limit_waits import find_asked_wait
from opsleuth.models.response_tap import MOST_BYTES, ReplyTooLongError
from opsleuth.state.errors import ConfigError
from opsleuth.tools.tape import ReplayDivergedError

REQUEST_ERRORS = (
    openai.OpenAIError,
    httpx2.HTTPError,
    ReplyTooLongError,
    ConfigError,
    ReplayDivergedError,
    TimeoutError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
)
"""Everything that a call through the library is known to raise: three trees, and what odd replies trip over."""

_QUOTA = ("insufficient_quota", "billing", "credit balance", "exceeded your current quota")
_TOO_LONG = (
    "context_length",
    "context length",
    "context window",
    "maximum context",
    "exceeds the available context",
    "exceed_context_size",
    "prompt is too long",
    "too many tokens",
)
_MODE = (
    "tool",
    "function",
    "response_format",
    "json_schema",
    "json_object",
    "grammar",
    "guided",
    "structured",
    "schema",
)


OPTIONAL_PARAMETERS = ("max_completion_tokens", "max_tokens", "temperature")
"""Request parameters that can be left out or sent under another name."""
_NOT_TAKEN = (
    "unsupported",
    "not support",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "not available",
    "deprecated",
)
_LOADING = re.compile(r"loading|warming up|starting up", re.IGNORECASE)
_STATUS_OF_WORDS = {
    "rate_limit": 429,
    "insufficient_quota": 429,
    "resource_exhausted": 429,
    "invalid_api_key": 401,
    "authentication": 401,
    "permission": 403,
    "model_not_found": 404,
    "invalid_request": 400,
    "overloaded": 503,
    "unavailable": 503,
}
"""The statuses of error codes in the body of a reply whose own status is 200."""


class FailureKind(Enum):
    """What to do about a failure."""

    LOADING = auto()  # ask again until it is ready, however often
    PARAMETER = auto()  # ask again without this parameter
    HEALS = auto()  # try again after a pause, then give up for now
    DOWN = auto()  # give up for now
    CONFIG = auto()  # nothing helps before the configuration is fixed
    TOO_LONG = auto()  # ask with less
    MODE = auto()  # the server does not know this way of asking
    MALFORMED = auto()  # it answered, but no decision


class EndpointFailure(NamedTuple):
    """`wait` in seconds is what the server asked for, `parameter` what it does not take."""

    kind: FailureKind
    text: str
    wait: float = 0.0
    parameter: str = ""


class ServerError(NamedTuple):
    """What a server reported: the status (also where it appears in the body of a 200), its words on one line, its code."""

    status: int
    said: str
    code: str = ""
    headers: Mapping[str, str] = {}

    @property
    def quoted(self) -> str:
        """Its words for the end of our own text."""
        return f'; it says: "{self.said[:200]}"' if self.said else ""


def explain_endpoint_error(
    error: Exception, body: str, settings: ModelSettings, proxy: ChosenProxy | None = None
) -> EndpointFailure:
    """What an error of one request means. `body` is the reply's body as far as it came, `proxy` what it went through."""
    where, cause = settings.base_url, _innermost_error(error)
    if isinstance(cause, ReplayDivergedError | ConfigError):  # a replay that diverged from its recording
        return EndpointFailure(FailureKind.CONFIG, str(cause))
    if isinstance(cause, ReplyTooLongError):
        return EndpointFailure(
            FailureKind.MALFORMED, f"the reply of {where} is longer than {MOST_BYTES} bytes"
        )
    if proxy is not None and (blamed := _failure_of_proxy(error, proxy)):
        return blamed
    if isinstance(error, ContextOverflowError):
        return EndpointFailure(FailureKind.TOO_LONG, _too_long_text(settings))
    if isinstance(error, openai.APIStatusError):
        return _failure_from_status(_read_status_error(error), settings)
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        text = f"{where} gave no complete answer within {settings.timeout:g} s: raise `timeout`, or ask another endpoint"
        return EndpointFailure(FailureKind.HEALS, text)
    if "certificate verify failed" in str(cause).lower():
        text = f"{where} shows a certificate that is not trusted: name the file of its authority in ca_file"
        return EndpointFailure(FailureKind.CONFIG, text)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return EndpointFailure(
            FailureKind.HEALS,
            f"{where} cannot be reached ({type(cause).__name__}): is it running, is the address right?",
        )
    return _failure_from_odd_reply(body, settings)


def _failure_of_proxy(error: Exception, proxy: ChosenProxy) -> EndpointFailure | None:
    """What the proxy did wrong, None where it is not to blame."""
    status = error.status_code if isinstance(error, openai.APIStatusError) else None
    chain = list(_error_chain(error))
    refused = next((str(e) for e in chain if isinstance(e, httpx2.ProxyError)), None)
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED or (refused or "").startswith("407"):
        text = f"the proxy {proxy.shown} asks for credentials (407): write them into it as http://user:password@host:port"
        return EndpointFailure(FailureKind.CONFIG, text)
    if refused is not None:
        text = f"the proxy {proxy.shown} does not connect ({refused}): allow the address there, or name it in NO_PROXY"
        return EndpointFailure(FailureKind.HEALS, text)
    handshake = any("ssl" in str(e).lower() for e in chain)  # the proxy connected, the endpoint's TLS failed
    if not handshake and any(isinstance(e, httpx2.ConnectError) for e in chain):
        text = f"the proxy {proxy.shown} cannot be reached: correct it, or name the address in NO_PROXY"
        return EndpointFailure(FailureKind.HEALS, text)
    return None


def _error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it comes from: the libraries wrap it more than once."""
    while error is not None:
        yield error
        error = error.__cause__


def _innermost_error(error: BaseException) -> BaseException:
    """What a connection error comes from: the libraries wrap it more than once."""
    *_, innermost = _error_chain(error)
    return innermost


def _failure_from_status(error: ServerError, settings: ModelSettings) -> EndpointFailure:
    status, where, low = error.status, settings.base_url, error.said.lower()
    if status in (401, 403):
        kept = settings.key_file or settings.key_env or settings.key_command or "OPSLEUTH_API_KEY"
        text = f"{where} refused the key ({status}): check the key that {kept} holds{error.quoted}"
        return EndpointFailure(FailureKind.CONFIG, text)
    if any(mark in low for mark in _TOO_LONG):
        return EndpointFailure(FailureKind.TOO_LONG, _too_long_text(settings))
    if status == 429:
        return _failure_from_rate_limit(error, where)
    if status in (400, 422) and (parameter := _refused_parameter(low)):
        text = f"{where} does not take {parameter} ({status}){error.quoted}"
        return EndpointFailure(FailureKind.PARAMETER, text, parameter=parameter)
    if status in (400, 404, 405, 415, 422, 500, 501) and any(mark in low for mark in _MODE):
        text = f"{where} does not take this form of request ({status}){error.quoted}"
        return EndpointFailure(FailureKind.MODE, text)
    if status == 404:
        text = f"{where} knows no model {settings.model!r}, or the address is wrong (404): check model and base_url"
        return EndpointFailure(FailureKind.CONFIG, text + error.quoted)
    if status in (408, 409) or status >= 500:
        return _failure_that_heals(error, where)
    return EndpointFailure(FailureKind.CONFIG, f"{where} refused the request ({status}){error.quoted}")


def _failure_that_heals(error: ServerError, where: str) -> EndpointFailure:
    wait = find_asked_wait(error.headers, error.said)
    if error.status == 503 and _LOADING.search(error.said):
        return EndpointFailure(
            FailureKind.LOADING, f"{where} is still loading the model (503){error.quoted}", wait
        )
    return EndpointFailure(FailureKind.HEALS, f"{where} failed ({error.status}){error.quoted}", wait)


def _refused_parameter(low: str) -> str | None:
    """The optional parameter that a server says it does not take."""
    if not any(mark in low for mark in _NOT_TAKEN):
        return None
    named = [(low.find(name), name) for name in OPTIONAL_PARAMETERS if re.search(rf"\b{name}\b", low)]
    return min(named)[1] if named else None


def _failure_from_rate_limit(error: ServerError, where: str) -> EndpointFailure:
    if error.code == "insufficient_quota" or any(mark in error.said.lower() for mark in _QUOTA):
        return EndpointFailure(
            FailureKind.DOWN,
            f"the quota of this key at {where} is used up (429): add credit, or use another key or endpoint",
        )
    wait = find_asked_wait(error.headers, error.said)
    asks = f" and asks to wait {wait:.0f} s" if wait else ""
    return EndpointFailure(
        FailureKind.HEALS, f"{where} is limiting requests (429){asks}: resume later, or lower its load", wait
    )


def _failure_from_odd_reply(body: str, settings: ModelSettings) -> EndpointFailure:
    """A reply that the library could not make anything of."""
    where, start = settings.base_url, body.lstrip()[:1]
    if (reported := find_reported_error(body)) is not None:
        return _failure_from_status(reported, settings)
    if start == "<":
        text = f"{where} answered with a web page, not JSON: base_url should be the API's address, most end in /v1"
        return EndpointFailure(FailureKind.CONFIG, text)
    if body.lstrip().startswith("data:"):
        return EndpointFailure(
            FailureKind.CONFIG,
            f"{where} streams although it was not asked to: set stream = true in the profile",
        )
    if start in ("{", "["):
        return EndpointFailure(FailureKind.MALFORMED, "the endpoint's reply holds no choice that can be read")
    return EndpointFailure(
        FailureKind.HEALS, f"{where} gave no readable answer: is it an OpenAI-compatible endpoint?"
    )


def find_reported_error(body: str) -> ServerError | None:
    """The error in the body of a reply with status 200, whole or streamed; None where it holds none."""
    for text in (body, *(line[5:] for line in body.splitlines() if line.startswith("data:"))):
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and (found := _error_in_document(document)):
            return found
    return None


def _error_in_document(document: Mapping[str, Any]) -> ServerError | None:
    error = document.get("error")
    choices = document.get("choices")
    if not error and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        error = choices[0].get("error")
    if not error and not choices:
        plain = document.get("message") or document.get("detail")
        error = {"message": plain, "code": document.get("code")} if plain else None
    if not error:
        return None
    if not isinstance(error, Mapping):
        error = {"message": error}
    code = error.get("code") or error.get("type")
    said = " ".join(str(error.get("message") or error.get("detail") or code or error).split())
    return ServerError(_status_of_code(error.get("code"), error.get("type")), said, str(code or ""))


def _status_of_code(*codes: object) -> int:
    """The status that the code of an error stands for; 500 for one that says nothing more."""
    for code in codes:
        text = str(code or "")
        if text.isdigit() and 400 <= int(text) <= 599:
            return int(text)
        for mark, status in _STATUS_OF_WORDS.items():
            if mark in text.lower():
                return status
    return 500


def _read_status_error(error: openai.APIStatusError) -> ServerError:
    """The server's own words, short and on one line."""
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    if said is None and isinstance(body, dict):
        said = body.get("detail") or body.get("error")
    text = " ".join(str(said if said is not None else "").split())
    code = str(error.code or "")
    if code and code not in text:
        text = f"{text} [{code}]"
    return ServerError(error.status_code, text, code, error.response.headers)


def _too_long_text(settings: ModelSettings) -> str:
    return (
        f"the request is longer than the window of {settings.model}, although context_tokens is {settings.context_tokens}: "
        "set context_tokens to the model's real window"
    )

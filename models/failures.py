"""What went wrong at an endpoint, in our own words with the remedy; nothing of the library's text stands alone.

Failure      what `explain` makes of any error: what kind it is, in words, and whether it may heal by itself
"""

import email.utils
import time
from enum import Enum, auto
from typing import NamedTuple

import httpx2
import openai
from langchain_core.exceptions import ContextOverflowError

from opsleuth.models.http import MOST_BYTES, TooLong
from opsleuth.models.settings import ModelSettings
from opsleuth.state.errors import OpsleuthError

RAISED = (
    openai.OpenAIError,
    httpx2.HTTPError,
    TooLong,
    OpsleuthError,
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


class Kind(Enum):
    """What is to be done about a failure."""

    HEALS = auto()  # try again after a pause, then give up for now
    DOWN = auto()  # give up for now
    CONFIG = auto()  # nothing helps before the configuration is mended
    TOO_LONG = auto()  # ask with less
    MODE = auto()  # the server does not know this way of asking
    MALFORMED = auto()  # it answered, but no decision


class Failure(NamedTuple):
    """`wait` in seconds is what the server asked for."""

    kind: Kind
    text: str
    wait: float = 0.0


def explain(error: Exception, body: str, settings: ModelSettings) -> Failure:
    """What an error of one request means. `body` is the reply's body as far as it came."""
    where, cause = settings.base_url, _root(error)
    if isinstance(cause, OpsleuthError):  # a replay that has left its recording
        return Failure(Kind.CONFIG, str(cause))
    if isinstance(cause, TooLong):
        return Failure(Kind.MALFORMED, f"the reply of {where} is longer than {MOST_BYTES} bytes")
    if isinstance(error, ContextOverflowError):
        return Failure(Kind.TOO_LONG, _too_long(settings))
    if isinstance(error, openai.APIStatusError):
        return _status(error, settings)
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        text = f"{where} gave no whole answer within {settings.timeout:g} s: raise `timeout`, or ask another endpoint"
        return Failure(Kind.HEALS, text)
    if "certificate verify failed" in str(cause).lower():
        text = f"{where} shows a certificate that is not trusted: name the file of its authority in ca_file"
        return Failure(Kind.CONFIG, text)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return Failure(
            Kind.HEALS,
            f"{where} cannot be reached ({type(cause).__name__}): is it running, is the address right?",
        )
    return _odd_reply(body, where)


def _root(error: BaseException) -> BaseException:
    """What a connection error comes from: the libraries wrap it more than once."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _status(error: openai.APIStatusError, settings: ModelSettings) -> Failure:
    status, where, said = error.status_code, settings.base_url, _said(error)
    low = said.lower()
    if status in (401, 403):
        kept = settings.key_file or settings.key_env or settings.key_command or "OPSLEUTH_API_KEY"
        return Failure(
            Kind.CONFIG, f"{where} refused the key ({status}): check the key that {kept} holds{_quoted(said)}"
        )
    if any(mark in low for mark in _TOO_LONG):
        return Failure(Kind.TOO_LONG, _too_long(settings))
    if status == 429:
        return _limited(error, low, where)
    if status in (400, 404, 405, 415, 422, 500, 501) and any(mark in low for mark in _MODE):
        return Failure(Kind.MODE, f"{where} does not take this form of request ({status}){_quoted(said)}")
    if status == 404:
        text = f"{where} knows no model {settings.model!r}, or the address is wrong (404): check model and base_url"
        return Failure(Kind.CONFIG, text + _quoted(said))
    if status in (408, 409) or status >= 500:
        return Failure(Kind.HEALS, f"{where} failed ({status}){_quoted(said)}", _retry_after(error))
    return Failure(Kind.CONFIG, f"{where} refused the request ({status}){_quoted(said)}")


def _limited(error: openai.APIStatusError, low: str, where: str) -> Failure:
    if error.code == "insufficient_quota" or any(mark in low for mark in _QUOTA):
        return Failure(
            Kind.DOWN,
            f"the quota of this key at {where} is used up (429): add credit, or use another key or endpoint",
        )
    wait = _retry_after(error)
    asks = f" and asks to wait {wait:.0f} s" if wait else ""
    return Failure(
        Kind.HEALS, f"{where} is limiting requests (429){asks}: resume later, or lower its load", wait
    )


def _odd_reply(body: str, where: str) -> Failure:
    """A reply that the library could not make anything of."""
    start = body.lstrip()[:1]
    if start == "<":
        text = f"{where} answered with a web page, not JSON: base_url should be the API's address, most end in /v1"
        return Failure(Kind.CONFIG, text)
    if body.lstrip().startswith("data:"):
        return Failure(
            Kind.CONFIG, f"{where} streams although it was not asked to: set stream = true in the profile"
        )
    if start in ("{", "["):
        return Failure(Kind.MALFORMED, "the endpoint's reply holds no choice that can be read")
    return Failure(Kind.HEALS, f"{where} gave no readable answer: is it an OpenAI-compatible endpoint?")


def _said(error: openai.APIStatusError) -> str:
    """The server's own words, short and on one line."""
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    if said is None and isinstance(body, dict):
        said = body.get("detail") or body.get("error")
    text = " ".join(str(said if said is not None else "").split())
    return f"{text} [{error.code}]" if error.code and str(error.code) not in text else text


def _quoted(said: str) -> str:
    return f'; it says: "{said[:200]}"' if said else ""


def _too_long(settings: ModelSettings) -> str:
    return (
        f"the request is longer than the window of {settings.model}, although context_tokens is {settings.context_tokens}: "
        "set context_tokens to the model's real window"
    )


def _retry_after(error: openai.APIStatusError) -> float:
    """Seconds that the server asks to wait, 0 if it does not say."""
    headers = error.response.headers
    if ms := _number(headers.get("retry-after-ms")):
        return ms / 1000
    value = headers.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    moment = email.utils.parsedate_tz(value)
    return max(email.utils.mktime_tz(moment) - time.time(), 0.0) if moment else 0.0


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e6 else None

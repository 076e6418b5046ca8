"""HTTP calls that the operator declared: one address, one method, values only in their holes.

    [http.flush-cache]
    url = "https://cache.example.com/zones/{zone}/flush"     # scheme and host hold no hole
    purpose = "Flush one zone of the cache."
    parameters.zone = "[a-z]{1,20}"
    body = { zone = "{zone}", hard = false }                 # JSON; the method is then POST
    token = { env = "CACHE_TOKEN" }                          # or headers, secret_headers
    target = "cache/{zone}"
    takes_key = true                                         # it applies two requests with one Idempotency-Key once
    check = { url = "https://cache.example.com/zones/{zone}", field = "state", equals = "empty" }
    probe = { url = "https://cache.example.com/requests/{key}" }   # 200: it happened, 404: it did not

Every change carries the key of this very change in `key_header`. Redirects are not followed. A certificate is
checked at every address, an answer is read as far as its bound.
"""

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any, Literal, NamedTuple, Self
from urllib.parse import quote, unquote, urlsplit

from pydantic import Field, JsonValue, StringConstraints, model_validator

from opsleuth.state.base import Frozen, Name, Sentence
from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.declared.declaration import Declaration
from opsleuth.tools.declared.parameters import HOLE, filled, holes, spelled
from opsleuth.tools.effects.answers import REFUSED, check_made
from opsleuth.tools.sources.http import Api, LateConnection, NotReached, Session
from opsleuth.tools.sources.secrets import Secret, Vault
from opsleuth.tools.sources.settings import Http
from opsleuth.tools.spec import (
    Arguments,
    InvalidArguments,
    NotPermitted,
    OutcomeUnknown,
    Run,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSpec,
    Transient,
    Unavailable,
)

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s@?#{}/]+(/\S*)?$", max_length=2_000)]
LARGEST_ANSWER = 5_000_000
"""Bytes of one answer, after unpacking."""
_Values = Mapping[str, Any]


class _Place(Http):
    """One address of a call, with a time limit of its own."""

    timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    max_bytes: int = LARGEST_ANSWER


class _Answer(NamedTuple):
    """What came back from an address."""

    asked: str
    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def is_success(self) -> bool:
        return self.status // 100 == 2


class Look(Frozen):
    """A GET that tells how things stand: 200 is yes, 404 is no; with `field` its value decides."""

    url: Url
    field: Name | None = None
    equals: JsonValue = None


class HttpCall(Declaration):
    """One declared call. `field` of a look is a path such as `status.phase`."""

    url: Url
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    body: dict[str, JsonValue] | None = None
    headers: dict[Name, Sentence] = Field(default_factory=dict)
    secret_headers: dict[Name, Secret] = Field(default_factory=dict)
    token: Secret | None = None
    key_header: Name = "Idempotency-Key"
    check: Look | None = None
    probe: Look | None = None
    ca_file: Name | None = None

    @model_validator(mode="after")
    def _usable(self) -> Self:
        looks = [look.url for look in (self.check, self.probe) if look]
        self.check_names([self.url, json.dumps(self.body), self.target or "", *looks])
        reads = self.risk is Risk.READ
        if reads and (self.way != "GET" or self.check or self.probe):
            raise ValueError("a call that only reads is a GET without body, check and probe")
        if not reads and self.way == "GET":
            raise ValueError('a GET changes nothing: say risk = "read", or another method')
        if "key" in holes([self.probe.url if self.probe else ""]) or not self.probe:
            return self
        raise ValueError("the probe asks for this very change: its url holds {key}")

    @property
    def way(self) -> str:
        """The method; POST where there is a body, or where something is changed."""
        return self.method or ("GET" if self.risk is Risk.READ and self.body is None else "POST")


def http_tool(call: HttpCall, vault: Vault) -> ToolSpec:
    """The call as a tool of its own, `http_call_<name>`."""

    async def change(arguments: Arguments, context: ToolContext) -> ToolResult:
        values = call.values(arguments, context.idempotency_key)
        for look in filter(None, (call.check, call.probe)):
            _address(look.url, values)  # what cannot be looked at afterwards is not begun
        return _changed(call, await _sent(call, vault, values, context))

    async def read(arguments: Arguments, context: ToolContext) -> ToolResult:
        answer = await _read(call, vault, call.url, call.values(arguments, None), context)
        absent = answer.status == HTTPStatus.NOT_FOUND
        return _result(call, answer, ResultStatus.NONE_MATCHED if absent else ResultStatus.OK)

    return call.spec(
        "http_call",
        Arguments,
        read if call.risk is Risk.READ else change,
        postcondition=_looked(call, vault, call.check) if call.check else None,
        probe=_looked(call, vault, call.probe) if call.probe else None,
    )


def _looked(call: HttpCall, vault: Vault, look: Look) -> Run:
    async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
        values = call.values(arguments, context.idempotency_key)
        answer = await _read(call, vault, look.url, values, context)
        if answer.status == HTTPStatus.NOT_FOUND:
            return _result(call, answer, ResultStatus.NONE_MATCHED)
        holds = look.field is None or _at(_document(answer), look.field) == look.equals
        return _result(call, answer, ResultStatus.OK if holds else ResultStatus.NONE_MATCHED)

    return run


async def _sent(call: HttpCall, vault: Vault, values: _Values, context: ToolContext) -> _Answer:
    """The answer to the change. Raises Unavailable where nothing was sent, else OutcomeUnknown."""
    api, path = _api(call, vault, _address(call.url, values), context)
    headers = {call.key_header: str(values["key"])} if values["key"] else {}
    sent: dict[str, Any] = {"headers": headers}
    if call.body is not None:
        headers["content-type"] = "application/json"
        sent["content"] = json.dumps(_filled_json(call.body, values), separators=(",", ":")).encode()
    async with api.session() as session:
        try:
            return await _answer(session, call.way, path, **sent)
        except (NotReached, LateConnection) as error:
            raise Unavailable(f"nothing was sent: {error}") from None
        except (ToolError, TimeoutError) as error:
            raise OutcomeUnknown(f"after the request was sent: {error}") from None


async def _read(call: HttpCall, vault: Vault, url: str, values: _Values, context: ToolContext) -> _Answer:
    """The answer to a GET, 404 included. Raises NotPermitted, Transient, Unavailable, TimeoutError."""
    api, path = _api(call, vault, _address(url, values), context)
    async with api.session() as session:
        answer = await _answer(session, "GET", path)
    if answer.status in REFUSED:
        raise NotPermitted(f"{call.name} refuses ({answer.status}): {cut_text(answer.text, 300)}")
    if not answer.is_success and answer.status != HTTPStatus.NOT_FOUND:
        raise Transient(f"{call.name} answered {answer.status}: {cut_text(answer.text, 300)}")
    return answer


def _changed(call: HttpCall, answer: _Answer) -> ToolResult:
    check_made(answer.status, call.name, cut_text(answer.text, 500))
    return _result(call, answer, ResultStatus.OK)


def _api(call: HttpCall, vault: Vault, address: str, context: ToolContext) -> tuple[Api, str]:
    """Whom to ask, and the rest of the address."""
    parts = urlsplit(address)
    place = _Place(
        url=f"{parts.scheme}://{parts.netloc}",
        token=call.token,
        headers=call.headers,
        secret_headers=call.secret_headers,
        ca_file=call.ca_file,
        timeout=call.seconds,
    )
    return Api(call.name, place, vault, context.clock), address.removeprefix(place.url) or "/"


async def _answer(session: Session, method: str, path: str, **sent: Any) -> _Answer:  # noqa: ANN401 - what httpx takes
    response, body = await session.ask(method, path, **sent)
    return _Answer(f"{method} {response.url}", response.status_code, body)


def _address(url: str, values: _Values) -> str:
    """The address with every value as one part of a path or one value of a query, whatever it holds.

    Raises InvalidArguments for a value that would lead to another path: clients and servers resolve `..`, spelled
    out or not.
    """
    path, mark, query = url.partition("?")
    parts = [_part(part, values) for part in path.split("/")]
    return "/".join(parts) + mark + _quoted(query, values)


def _part(template: str, values: _Values) -> str:
    made = _quoted(template, values)
    if made != template and not {"", ".", ".."}.isdisjoint(re.split(r"[/\\]", unquote(unquote(made)))):
        raise InvalidArguments(
            f"{unquote(made)!r} is no part of a path: it is empty, or leads to another one through . or .."
        )
    return made


def _quoted(template: str, values: _Values) -> str:
    return HOLE.sub(lambda hole: quote(spelled(values[hole[1]]), safe=""), template)


def _filled_json(value: JsonValue, values: _Values) -> Any:  # noqa: ANN401 - any JSON value
    """The body with its holes filled; a text that is a hole alone becomes the value with its type."""
    if isinstance(value, str):
        whole = HOLE.fullmatch(value)
        return values[whole[1]] if whole else filled(value, values)
    if isinstance(value, dict):
        return {key: _filled_json(item, values) for key, item in value.items()}
    return [_filled_json(item, values) for item in value] if isinstance(value, list) else value


def _document(answer: _Answer) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        return None


def _at(document: Any, path: str) -> Any:  # noqa: ANN401 - any JSON value
    for part in path.split("."):
        document = document.get(part) if isinstance(document, Mapping) else None
    return document


def _result(call: HttpCall, answer: _Answer, status: ResultStatus) -> ToolResult:
    document = _document(answer)
    small = document is not None and len(answer.body) <= call.output_bytes
    said = document if small else cut_text(answer.text, call.output_bytes)
    first = " ".join(answer.text.split())[:200]
    return ToolResult(
        record={"status": answer.status, "answer": said, "bytes": len(answer.body)},
        headline=f"{call.name}: {answer.status} {first}".rstrip(),
        status=status,
        source=call.name,
        query=answer.asked,
    )

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

from opsleuth.configuration.secret_references import Secret, Vault
from opsleuth.configuration.source_settings import HttpSettings
from opsleuth.state.base import FrozenModel, Name, Sentence
from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.state.json_types import JSON
from opsleuth.tools.declared.declaration import ToolDeclaration
from opsleuth.tools.declared.parameters import (
    PLACEHOLDER,
    fill_placeholders,
    find_placeholders,
    placeholder_text,
)
from opsleuth.tools.effects.http_outcomes import check_change_made, check_read_answered
from opsleuth.tools.sources.http_client import (
    ConnectTimeoutError,
    HttpApi,
    HttpSession,
    NotConnectedError,
)
from opsleuth.tools.spec import (
    Arguments,
    InvalidArgumentsError,
    OutcomeUnknownError,
    Run,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSpec,
    UnavailableError,
)
from opsleuth.tools.truncation import cut_text

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s@?#{}/]+(/\S*)?$", max_length=2_000)]
LARGEST_ANSWER = 5_000_000
"""Bytes of one answer, after unpacking."""
_WORTH_ANOTHER_TRY = frozenset(
    {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}
)
_Values = Mapping[str, Any]


class _CallEndpoint(HttpSettings):
    """One address of a call, with a time limit of its own."""

    timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    max_bytes: int = LARGEST_ANSWER


class _CallResponse(NamedTuple):
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


class HttpProbe(FrozenModel):
    """A GET that reports the state: 200 means yes, 404 no; with `field` its value decides."""

    url: Url
    field: Name | None = None
    equals: JsonValue = None


class DeclaredHttpCall(ToolDeclaration):
    """One declared call. `field` of a look is a path such as `status.phase`."""

    url: Url
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] | None = None
    body: dict[str, JsonValue] | None = None
    headers: dict[Name, Sentence] = Field(default_factory=dict)
    secret_headers: dict[Name, Secret] = Field(default_factory=dict)
    token: Secret | None = None
    key_header: Name = "Idempotency-Key"
    check: HttpProbe | None = None
    probe: HttpProbe | None = None
    ca_file: Name | None = None

    @model_validator(mode="after")
    def _usable(self) -> Self:
        looks = [look.url for look in (self.check, self.probe) if look]
        self.check_names([self.url, json.dumps(self.body), self.target or "", *looks])
        reads = self.risk is Risk.READ
        if reads and (self.effective_method != "GET" or self.check or self.probe):
            raise ValueError("a call that only reads is a GET without body, check and probe")
        if not reads and self.effective_method == "GET":
            raise ValueError('a GET changes nothing: say risk = "read", or another method')
        if "key" in find_placeholders([self.probe.url if self.probe else ""]) or not self.probe:
            return self
        raise ValueError("the probe asks for this very change: its url holds {key}")

    @property
    def effective_method(self) -> str:
        """The method; POST where there is a body, or where something is changed."""
        return self.method or ("GET" if self.risk is Risk.READ and self.body is None else "POST")


def build_http_tool(call: DeclaredHttpCall, vault: Vault) -> ToolSpec:
    """The call as a tool of its own, `http_call_<name>`."""

    async def change(arguments: Arguments, context: ToolContext) -> ToolResult:
        values = call.values(arguments, context.idempotency_key)
        for look in filter(None, (call.check, call.probe)):
            _fill_address(look.url, values)  # what cannot be looked at afterwards is not begun
        return _change_result(call, await _send_change(call, vault, values, context))

    async def read(arguments: Arguments, context: ToolContext) -> ToolResult:
        answer = await _send_read(call, vault, call.url, call.values(arguments, None), context)
        absent = answer.status == HTTPStatus.NOT_FOUND
        return _call_result(call, answer, ResultStatus.NONE_MATCHED if absent else ResultStatus.OK)

    return call.spec(
        "http_call",
        Arguments,
        read if call.risk is Risk.READ else change,
        postcondition=_build_probe(call, vault, call.check) if call.check else None,
        probe=_build_probe(call, vault, call.probe) if call.probe else None,
        binding=lambda arguments: _describe_http_call(call, arguments),
    )


def _describe_http_call(call: DeclaredHttpCall, arguments: Arguments) -> dict[str, JSON]:
    """The request as it would be sent, for whoever approves it; of secrets only where they lie."""
    values = call.values(arguments, "{key}")
    declared = call.model_dump(
        mode="json", include={"headers", "secret_headers", "token", "ca_file", "check", "probe"}
    )
    return {
        "request": f"{call.effective_method} {_fill_address(call.url, values)}",
        "body": _fill_json(call.body, values) if call.body is not None else None,
        "key_header": call.key_header,
        **{name: value for name, value in declared.items() if value},
    }


def _build_probe(call: DeclaredHttpCall, vault: Vault, look: HttpProbe) -> Run:
    async def run(arguments: Arguments, context: ToolContext) -> ToolResult:
        values = call.values(arguments, context.idempotency_key)
        answer = await _send_read(call, vault, look.url, values, context)
        if answer.status == HTTPStatus.NOT_FOUND:
            return _call_result(call, answer, ResultStatus.NONE_MATCHED)
        holds = look.field is None or _value_at_path(_parse_json_body(answer), look.field) == look.equals
        return _call_result(call, answer, ResultStatus.OK if holds else ResultStatus.NONE_MATCHED)

    return run


async def _send_change(
    call: DeclaredHttpCall, vault: Vault, values: _Values, context: ToolContext
) -> _CallResponse:
    """The answer to the change. Raises UnavailableError where nothing was sent, else OutcomeUnknownError."""
    api, path = _api_and_path_from_address(call, vault, _fill_address(call.url, values), context)
    headers = {call.key_header: str(values["key"])} if values["key"] else {}
    sent: dict[str, Any] = {"headers": headers}
    if call.body is not None:
        headers["content-type"] = "application/json"
        sent["content"] = json.dumps(_fill_json(call.body, values), separators=(",", ":")).encode()
    async with api.session() as session:
        try:
            return await _send_request(session, call.effective_method, path, **sent)
        except (NotConnectedError, ConnectTimeoutError) as error:
            raise UnavailableError(f"nothing was sent: {error}") from None
        except (ToolError, TimeoutError) as error:
            raise OutcomeUnknownError(f"after the request was sent: {error}") from None


async def _send_read(
    call: DeclaredHttpCall, vault: Vault, url: str, values: _Values, context: ToolContext
) -> _CallResponse:
    """The answer to a GET, 404 included. Raises the errors of `check_read_answered`, UnavailableError, TimeoutError."""
    api, path = _api_and_path_from_address(call, vault, _fill_address(url, values), context)
    async with api.session() as session:
        answer = await _send_request(session, "GET", path)
    if answer.status != HTTPStatus.NOT_FOUND:
        check_read_answered(answer.status, call.name, cut_text(answer.text, 300))
    return answer


def _change_result(call: DeclaredHttpCall, answer: _CallResponse) -> ToolResult:
    check_change_made(answer.status, call.name, cut_text(answer.text, 500))
    return _call_result(call, answer, ResultStatus.OK)


def _api_and_path_from_address(
    call: DeclaredHttpCall, vault: Vault, address: str, context: ToolContext
) -> tuple[HttpApi, str]:
    """Whom to ask, and the rest of the address."""
    parts = urlsplit(address)
    place = _CallEndpoint(
        url=f"{parts.scheme}://{parts.netloc}",
        token=call.token,
        headers=call.headers,
        secret_headers=call.secret_headers,
        ca_file=call.ca_file,
        timeout=call.seconds,
    )
    return HttpApi(call.name, place, vault, context.clock), address.removeprefix(place.url) or "/"


async def _send_request(session: HttpSession, method: str, path: str, **sent: object) -> _CallResponse:
    response, body = await session.ask(method, path, **sent)
    return _CallResponse(f"{method} {response.url}", response.status_code, body)


def _fill_address(url: str, values: _Values) -> str:
    """The address with every value as one part of a path or one value of a query, whatever it holds.

    Raises InvalidArgumentsError for a value that would lead to another path: clients and servers resolve `..`, spelled
    out or not.
    """
    path, mark, query = url.partition("?")
    parts = [_fill_path_part(part, values) for part in path.split("/")]
    return "/".join(parts) + mark + _fill_url_template(query, values)


def _fill_path_part(template: str, values: _Values) -> str:
    made = _fill_url_template(template, values)
    if made != template and not {"", ".", ".."}.isdisjoint(re.split(r"[/\\]", unquote(unquote(made)))):
        raise InvalidArgumentsError(
            f"{unquote(made)!r} cannot be part of a path: it is empty, or leads elsewhere through . or .."
        )
    return made


def _fill_url_template(template: str, values: _Values) -> str:
    return PLACEHOLDER.sub(lambda hole: quote(placeholder_text(values[hole[1]]), safe=""), template)


def _fill_json(value: JsonValue, values: _Values) -> JSON:
    """The body with its holes filled; a text that is a hole alone becomes the value with its type."""
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        return values[whole[1]] if whole else fill_placeholders(value, values)
    if isinstance(value, dict):
        return {key: _fill_json(item, values) for key, item in value.items()}
    return [_fill_json(item, values) for item in value] if isinstance(value, list) else value


def _parse_json_body(answer: _CallResponse) -> JSON:
    try:
        return json.loads(answer.body)
    except (ValueError, RecursionError):
        return None


def _value_at_path(document: JSON, path: str) -> JSON:
    for part in path.split("."):
        document = document.get(part) if isinstance(document, Mapping) else None
    return document


def _call_result(call: DeclaredHttpCall, answer: _CallResponse, status: ResultStatus) -> ToolResult:
    document = _parse_json_body(answer)
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

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

Every change carries the key of this very change in `key_header`. Redirects are not followed.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

import httpx
from pydantic import Field, JsonValue, StringConstraints, model_validator

from opsleuth.state.base import Frozen, Name, Sentence
from opsleuth.state.calls import ResultStatus, Risk
from opsleuth.tools.bounds import cut_text
from opsleuth.tools.declared.declaration import Declaration
from opsleuth.tools.declared.parameters import HOLE, filled, holes, spelled
from opsleuth.tools.effects.plane import REFUSED, WRONG
from opsleuth.tools.sources.secrets import Secret, Vault
from opsleuth.tools.spec import (
    Arguments,
    InvalidArguments,
    NotPermitted,
    OutcomeUnknown,
    Run,
    ToolContext,
    ToolResult,
    ToolSpec,
    Transient,
    Unavailable,
)

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s@?#{}/]+(/\S*)?$", max_length=2_000)]
_Values = Mapping[str, Any]


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
        try:
            answer = await _sent(call, vault, values)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unavailable(f"{call.name} cannot be reached, nothing was sent: {error}") from None
        except httpx.HTTPError as error:
            raise OutcomeUnknown(f"{call.name}: {type(error).__name__} after the request was sent") from None
        return _changed(call, answer)

    async def read(arguments: Arguments, _: ToolContext) -> ToolResult:
        answer = await _read(call, vault, call.url, call.values(arguments, None))
        absent = answer.status_code == httpx.codes.NOT_FOUND
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
        answer = await _read(call, vault, look.url, call.values(arguments, context.idempotency_key))
        if answer.status_code == httpx.codes.NOT_FOUND:
            return _result(call, answer, ResultStatus.NONE_MATCHED)
        holds = look.field is None or _at(_document(answer), look.field) == look.equals
        return _result(call, answer, ResultStatus.OK if holds else ResultStatus.NONE_MATCHED)

    return run


async def _sent(call: HttpCall, vault: Vault, values: _Values) -> httpx.Response:
    key = {call.key_header: str(values["key"])} if values["key"] else {}
    body = None if call.body is None else _filled_json(call.body, values)
    async with _client(call, vault) as client:
        return await client.request(call.way, _address(call.url, values), json=body, headers=key)


async def _read(call: HttpCall, vault: Vault, url: str, values: _Values) -> httpx.Response:
    """The answer to a GET, 404 included. Raises NotPermitted, Transient, Unavailable."""
    async with _client(call, vault) as client:
        try:
            answer = await client.get(_address(url, values))
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Unavailable(f"{call.name} cannot be reached: {error}") from None
        except httpx.HTTPError as error:
            raise Transient(f"{call.name}: {type(error).__name__}") from None
    if answer.status_code in REFUSED:
        raise NotPermitted(f"{call.name} refuses ({answer.status_code}): {cut_text(answer.text, 300)}")
    if not answer.is_success and answer.status_code != httpx.codes.NOT_FOUND:
        raise Transient(f"{call.name} answered {answer.status_code}: {cut_text(answer.text, 300)}")
    return answer


def _changed(call: HttpCall, answer: httpx.Response) -> ToolResult:
    said = f"({answer.status_code}): {cut_text(answer.text, 500)}"
    if answer.status_code in REFUSED:
        raise NotPermitted(f"{call.name} was refused {said}")
    if answer.status_code in WRONG:
        raise InvalidArguments(f"{call.name} cannot be done {said}")
    if not answer.is_success:
        raise OutcomeUnknown(f"{call.name} was answered {said}")
    return _result(call, answer, ResultStatus.OK)


def _client(call: HttpCall, vault: Vault) -> httpx.AsyncClient:
    headers = call.headers | {name: vault.reveal(secret) for name, secret in call.secret_headers.items()}
    if call.token is not None:
        headers["Authorization"] = f"Bearer {vault.reveal(call.token)}"
    secure = call.url.startswith("https:")
    verify: Any = call.ca_file if secure and call.ca_file else secure
    return httpx.AsyncClient(headers=headers, timeout=call.seconds, verify=verify, trust_env=False)


def _address(url: str, values: _Values) -> str:
    """The address with every value as one part of a path or one value of a query, whatever it holds."""
    return HOLE.sub(lambda hole: quote(spelled(values[hole[1]]), safe=""), url)


def _filled_json(value: JsonValue, values: _Values) -> Any:  # noqa: ANN401 - any JSON value
    """The body with its holes filled; a text that is a hole alone becomes the value with its type."""
    if isinstance(value, str):
        whole = HOLE.fullmatch(value)
        return values[whole[1]] if whole else filled(value, values)
    if isinstance(value, dict):
        return {key: _filled_json(item, values) for key, item in value.items()}
    return [_filled_json(item, values) for item in value] if isinstance(value, list) else value


def _document(answer: httpx.Response) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return answer.json()
    except (ValueError, RecursionError):
        return None


def _at(document: Any, path: str) -> Any:  # noqa: ANN401 - any JSON value
    for part in path.split("."):
        document = document.get(part) if isinstance(document, Mapping) else None
    return document


def _result(call: HttpCall, answer: httpx.Response, status: ResultStatus) -> ToolResult:
    document = _document(answer)
    small = document is not None and len(answer.content) <= call.output_bytes
    said = document if small else cut_text(answer.text, call.output_bytes)
    first = " ".join(answer.text.split())[:200]
    return ToolResult(
        record={"status": answer.status_code, "answer": said, "bytes": len(answer.content)},
        headline=f"{call.name}: {answer.status_code} {first}".rstrip(),
        status=status,
        source=call.name,
        query=f"{answer.request.method} {answer.request.url}",
    )

"""The control plane as a platform: changes over HTTP, each with an idempotency key and the revision it was meant for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from opsleuth.tools.effects.answers import REFUSED, check_made
from opsleuth.tools.effects.platform import KINDS, Kind, Operation, ServiceView
from opsleuth.tools.spec import NotPermitted, OutcomeUnknown, Transient, Unavailable

# The executor ends a call at its deadline; this only keeps a forgotten one from staying for ever.
LAST_RESORT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The control plane at `url`. `keys` is the operator's word on whether it honours idempotency keys."""

    url: str
    name: str = "plane"
    environment: str = "production"
    keys: bool = True

    @property
    def kinds(self) -> frozenset[Kind]:
        return KINDS

    async def rehearse(self, operation: Operation, revision: str) -> str:
        """It has no dry run."""
        del operation, revision
        return ""

    async def service(self, name: str) -> ServiceView | None:
        document = await self.read(f"services/{quote(name, safe='')}")
        return None if document is None else _view(document)

    async def submit(self, operation: Operation, key: str, revision: str | None = None) -> Mapping[str, Any]:
        headers = {"Idempotency-Key": key} | ({"If-Match": f'"{revision}"'} if revision is not None else {})
        body = {"target": operation.target, "arguments": dict(operation.arguments)}
        async with self._client() as client:
            try:
                answer = await client.post(f"operations/{operation.kind}", json=body, headers=headers)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise Unavailable(f"{self.name} cannot be reached, nothing was sent: {error}") from None
            except httpx.HTTPError as error:
                what = f"{type(error).__name__} after {operation.kind} of {operation.target} was sent"
                raise OutcomeUnknown(f"{self.name}: {what}") from None
        return self._outcome(answer, operation)

    async def applied(self, operation: Operation, key: str, begun: datetime | None = None) -> bool | None:
        """Raises Transient and Unavailable; a control plane that refuses the look-up cannot tell."""
        del begun
        try:
            found = await self.read(f"applied/{operation.kind}", target=operation.target, key=key)
        except NotPermitted:
            return None
        return None if found is None else bool(found["applied"])

    async def read(self, path: str, **query: str) -> dict[str, Any] | None:
        """A document of the control plane, None where there is nothing of that name."""
        async with self._client() as client:
            try:
                answer = await client.get(path, params=query)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise Unavailable(f"{self.name} cannot be reached: {error}") from None
            except httpx.HTTPError as error:
                raise Transient(f"{self.name}: {type(error).__name__} while reading {path}") from None
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        if answer.status_code in REFUSED:
            raise NotPermitted(f"{self.name} refuses {path}: {_said(answer)}")
        if not answer.is_success:
            raise Transient(f"{self.name} answered {answer.status_code} to {path}: {_said(answer)}")
        return _document(answer)

    def _outcome(self, answer: httpx.Response, operation: Operation) -> Mapping[str, Any]:
        what = f"{operation.kind} of {operation.target} by {self.name}"
        check_made(answer.status_code, what, _said(answer))
        try:
            return _document(answer)
        except Transient as error:
            raise OutcomeUnknown(f"{self.name}: {error}") from None

    def _client(self) -> httpx.AsyncClient:
        # A context for TLS costs more than a request on loopback, and a plain address needs none.
        return httpx.AsyncClient(
            base_url=self.url,
            timeout=LAST_RESORT_SECONDS,
            verify=self.url.startswith("https:"),
            trust_env=False,
        )


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except json.JSONDecodeError:
        raise Transient("the answer is no JSON") from None
    if not isinstance(document, dict):
        raise Transient(f"the answer is a {type(document).__name__}, not a JSON object")
    return document


def _said(answer: httpx.Response) -> str:
    try:
        return str(_document(answer).get("error", ""))[:300]
    except Transient:
        return answer.text[:300]


def _view(document: Mapping[str, Any]) -> ServiceView:
    return ServiceView(
        name=document["name"],
        version=document["version"],
        versions=tuple(document["versions"]),
        replicas=document["replicas"],
        restarts=document["restarts"],
        health=document["health"],
        revision=str(document["revision"]),
        flags=document["flags"],
    )

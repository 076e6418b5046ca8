"""The control plane as a platform: changes over HTTP, each with an idempotency key and the revision it was meant for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx

from opsleuth.tools.effects.http_outcomes import check_change_made, check_read_answered
from opsleuth.tools.effects.platform import KINDS, Kind, MeasureReading, PlatformOperation, ServiceView
from opsleuth.tools.spec import NotPermittedError, OutcomeUnknownError, TransientError, UnavailableError

# The executor ends a call at its deadline; this only keeps a forgotten one from staying forever.
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

    def describe_place(self) -> str:
        """Where its changes go."""
        return self.url

    async def dry_run(self, operation: PlatformOperation, revision: str) -> str:
        """It has no dry run."""
        del operation, revision
        return ""

    async def service(self, name: str) -> ServiceView | None:
        document = await self.read(f"services/{quote(name, safe='')}")
        return None if document is None else _build_service_view(document)

    async def submit(
        self, operation: PlatformOperation, key: str, revision: str | None = None
    ) -> Mapping[str, Any]:
        headers = {"Idempotency-Key": key} | ({"If-Match": f'"{revision}"'} if revision is not None else {})
        body = {"target": operation.target, "arguments": dict(operation.arguments)}
        async with self._client() as client:
            try:
                answer = await client.post(f"operations/{operation.kind}", json=body, headers=headers)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise UnavailableError(f"{self.name} cannot be reached, nothing was sent: {error}") from None
            except httpx.HTTPError as error:
                what = f"{type(error).__name__} after {operation.kind} of {operation.target} was sent"
                raise OutcomeUnknownError(f"{self.name}: {what}") from None
        return self._outcome(answer, operation)

    async def applied(
        self, operation: PlatformOperation, key: str, begun: datetime | None = None
    ) -> bool | None:
        """Raises TransientError and UnavailableError; a control plane that refuses the look-up cannot tell."""
        del begun
        try:
            found = await self.read(f"applied/{operation.kind}", target=operation.target, key=key)
        except NotPermittedError:
            return None
        return None if found is None else bool(found["applied"])

    async def read(self, path: str, **query: str) -> dict[str, Any] | None:
        """A document of the control plane, None where there is nothing of that name."""
        async with self._client() as client:
            try:
                answer = await client.get(path, params=query)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise UnavailableError(f"{self.name} cannot be reached: {error}") from None
            except httpx.HTTPError as error:
                raise TransientError(f"{self.name}: {type(error).__name__} while reading {path}") from None
        if answer.status_code == HTTPStatus.NOT_FOUND:
            return None
        check_read_answered(answer.status_code, f"{self.name}, asked for {path},", _error_text(answer))
        return _parse_json_object(answer)

    def _outcome(self, answer: httpx.Response, operation: PlatformOperation) -> Mapping[str, Any]:
        what = f"{operation.kind} of {operation.target} by {self.name}"
        check_change_made(answer.status_code, what, _error_text(answer))
        try:
            return _parse_json_object(answer)
        except TransientError as error:
            raise OutcomeUnknownError(f"{self.name}: {error}") from None

    def _client(self) -> httpx.AsyncClient:
        # A context for TLS costs more than a request on loopback, and a plain address needs none.
        return httpx.AsyncClient(
            base_url=self.url,
            timeout=LAST_RESORT_SECONDS,
            verify=self.url.startswith("https:"),
            trust_env=False,
        )


def _parse_measures(given: object) -> dict[str, MeasureReading]:
    """The readings that have a number; a control plane that sends none, or others, measures nothing."""
    rows = given.items() if isinstance(given, dict) else ()
    return {
        str(name): MeasureReading(float(row["value"]), str(row.get("unit") or ""))
        for name, row in rows
        if isinstance(row, dict) and isinstance(row.get("value"), int | float)
    }


def _parse_json_object(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except json.JSONDecodeError:
        raise TransientError("the answer is not JSON") from None
    if not isinstance(document, dict):
        raise TransientError(f"the answer is a {type(document).__name__}, not a JSON object")
    return document


def _error_text(answer: httpx.Response) -> str:
    try:
        return str(_parse_json_object(answer).get("error", ""))[:300]
    except TransientError:
        return answer.text[:300]


def _build_service_view(document: Mapping[str, Any]) -> ServiceView:
    return ServiceView(
        name=document["name"],
        version=document["version"],
        versions=tuple(document["versions"]),
        replicas=document["replicas"],
        restarts=document["restarts"],
        health=document["health"],
        revision=str(document["revision"]),
        flags=document["flags"],
        measures=_parse_measures(document.get("measures")),
    )

"""The API of one Kubernetes cluster: reached as a kubeconfig says, lists taken in pages."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opsleuth.state.clock import Clock
from opsleuth.state.folders import expanded
from opsleuth.tools.sources.http import Api, Refused, Session
from opsleuth.tools.sources.kube_access import KubeAccess
from opsleuth.tools.sources.kubeconfig import Context, open_context, usual_paths
from opsleuth.tools.sources.secrets import Vault
from opsleuth.tools.sources.settings import Http, Kubernetes
from opsleuth.tools.spec import NotPermitted, ToolError, Unavailable

PAGE = 500
MOST_ITEMS = 20_000
_GONE = 410


class _Meta(BaseModel):
    more: str = Field(default="", alias="continue")


class _List(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    metadata: _Meta = Field(default_factory=_Meta)
    items: list[dict[str, Any]] | None


@dataclass(slots=True)
class Looked:
    """What one fetch could not see, in words; what was refused, out of how many requests."""

    missed: list[str] = field(default_factory=list)
    refusals: list[ToolError] = field(default_factory=list)
    asked: int = 0


class KubeApi:
    """One cluster. `api.log` of a session holds what was asked; `context` is known once a session was opened."""

    def __init__(self, name: str, settings: Kubernetes, vault: Vault, clock: Clock) -> None:
        self.name = name
        self._settings = settings
        self._vault = vault
        self._clock = clock
        self._access: KubeAccess | None = None

    @property
    def context(self) -> Context | None:
        return self._access.context if self._access else None

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Raises Unavailable, NotPermitted where the kubeconfig or its credentials are not there."""
        if self._access is None:
            self._access = await asyncio.to_thread(self._open)
        access = self._access
        async with self._api(access).session() as session:
            try:
                yield session
            except NotPermitted:
                access.forget()
                raise

    def _open(self) -> KubeAccess:
        given = self._settings.kubeconfig
        # kubectl's own list may name several files; one that is configured is one.
        paths = usual_paths() if given is None else [expanded(given)]
        context = open_context(self.name, paths, self._settings.context)
        if context.cluster.tls_server_name:
            raise Unavailable(
                f"{self.name}: tls-server-name in the kubeconfig is not supported: use server's own name"
            )
        return KubeAccess(self.name, context, self._vault, self._clock)

    def _api(self, access: KubeAccess) -> Api:
        own, cluster = self._settings, access.context.cluster
        try:
            reach = Http(
                url=cluster.server,
                proxy=own.proxy or cluster.proxy_url,
                timeout=own.timeout,
                max_bytes=own.max_bytes,
            )
        except ValidationError:
            raise Unavailable(
                f"{self.name}: the kubeconfig's server {cluster.server!r} is no http(s) address"
            ) from None
        return Api(self.name, reach, self._vault, self._clock, access)


async def listed(session: Session, path: str, **parameters: str) -> Sequence[Mapping[str, Any]]:
    """The items of a list, page by page.

    A token for the next page that the cluster no longer knows (410) means beginning anew, once. Raises ToolError;
    Refused with status 404 where the cluster has no such resource.
    """
    try:
        return await _pages(session, path, parameters)
    except Refused as error:
        if error.status_code != _GONE:
            raise
    return await _pages(session, path, parameters)


async def _pages(session: Session, path: str, parameters: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = []
    more = ""
    while True:
        page = {"limit": str(PAGE), **parameters, **({"continue": more} if more else {})}
        answer = await session.get(path, **page)
        try:
            found = _List.model_validate(answer.document)
        except ValidationError:
            raise Unavailable(
                f"{session.api.name}: {path} did not answer with a list of Kubernetes"
            ) from None
        items += found.items or ()
        more = found.metadata.more
        if not more:
            return items
        if len(items) >= MOST_ITEMS:
            raise Unavailable(
                f"{session.api.name}: {path} holds more than {MOST_ITEMS:,} items: set namespaces"
            )

"""The API of one Kubernetes cluster: reached as a kubeconfig says, lists taken in pages."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import ValidationError

from opsleuth.configuration.folders import expand_home
from opsleuth.configuration.secret_references import Vault
from opsleuth.configuration.source_settings import HttpSettings, KubernetesSettings
from opsleuth.state.clock import Clock
from opsleuth.state.garbage_collection import pause_garbage_collection
from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.http_client import HttpApi, HttpSession, HttpStatusError
from opsleuth.tools.sources.kube_access import KubeAccess
from opsleuth.tools.sources.kube_documents import drop_bulk
from opsleuth.tools.sources.kube_progress import ListProgress
from opsleuth.tools.sources.kubeconfig import KubeContext, default_kubeconfig_paths, load_kube_context
from opsleuth.tools.spec import NotPermittedError, ToolError, UnavailableError

PAGE = 500
MOST_ITEMS = 20_000
_GONE = 410


@dataclass(slots=True)
class FetchGaps:
    """What one fetch could not see, in words; what was refused, out of how many requests."""

    missed: list[str] = field(default_factory=list)
    refusals: list[ToolError] = field(default_factory=list)
    asked: int = 0


class KubeApi:
    """One cluster. `api.log` of a session holds what was asked; `context` is known once a session was opened."""

    def __init__(self, name: str, settings: KubernetesSettings, vault: Vault, clock: Clock) -> None:
        self.name = name
        self._settings = settings
        self._vault = vault
        self._clock = clock
        self._access: KubeAccess | None = None

    @property
    def context(self) -> KubeContext | None:
        return self._access.context if self._access else None

    def describe_place(self) -> str:
        """The context and the server that a session reaches, in words; what is wrong where that cannot be told."""
        try:
            context = self.context or self._load_context()
        except ToolError as error:
            return f"cannot be told: {error}"
        return f"context {context.name}, server {context.cluster.server}"

    @asynccontextmanager
    async def session(self) -> AsyncIterator[HttpSession]:
        """Raises UnavailableError, NotPermittedError where the kubeconfig or its credentials are not there."""
        if self._access is None:
            self._access = await asyncio.to_thread(self._open)
        access = self._access
        async with self._api(access).session() as session:
            try:
                yield session
            except NotPermittedError:
                access.forget()
                raise

    def _load_context(self) -> KubeContext:
        given = self._settings.kubeconfig
        # kubectl's own list may name several files; one that is configured is one.
        paths = default_kubeconfig_paths() if given is None else [expand_home(given)]
        return load_kube_context(self.name, paths, self._settings.context)

    def _open(self) -> KubeAccess:
        context = self._load_context()
        if context.cluster.tls_server_name:
            raise UnavailableError(
                f"{self.name}: tls-server-name in the kubeconfig is not supported: use server's own name"
            )
        return KubeAccess(self.name, context, self._vault, self._clock)

    def _api(self, access: KubeAccess) -> HttpApi:
        own, cluster = self._settings, access.context.cluster
        try:
            reach = HttpSettings(
                url=cluster.server,
                proxy=own.proxy or cluster.proxy_url,
                timeout=own.timeout,
                max_bytes=own.max_bytes,
            )
        except ValidationError:
            raise UnavailableError(
                f"{self.name}: the kubeconfig's server {cluster.server!r} is not an http(s) address"
            ) from None
        return HttpApi(self.name, reach, self._vault, self._clock, access)


class ListRequest(NamedTuple):
    """A list to read: its path, the form of its items (default: whole objects), about how many, further parameters.

    `progress` holds what an earlier fetch has read of it, and what this one reads.
    """

    path: str
    accept: str | None = None
    most: int = MOST_ITEMS
    parameters: Mapping[str, str] = {}
    progress: ListProgress | None = None

    @property
    def key(self) -> str:
        return f"{self.path} {self.accept} {sorted(self.parameters.items())}"


async def list_items(
    session: HttpSession, path: str, progress: ListProgress | None = None
) -> Sequence[Mapping[str, Any]]:
    """The items of a list, page by page. Raises ToolError; HttpStatusError 404 where the cluster has no such resource."""
    return await read_list(session, ListRequest(path, progress=progress))


async def read_list(session: HttpSession, wanted: ListRequest) -> Sequence[Mapping[str, Any]]:
    """As `list_items`. A token for the next page that the cluster no longer knows (410) means starting over, once."""
    progress = wanted.progress or ListProgress(session.api.clock)
    try:
        return await _list_all_pages(session, wanted, progress)
    except HttpStatusError as error:
        progress.drop(wanted.key)
        if error.status_code != _GONE:
            raise
    return await _list_all_pages(session, wanted, progress)


async def _list_all_pages(
    session: HttpSession, wanted: ListRequest, progress: ListProgress
) -> Sequence[Mapping[str, Any]]:
    found, most = progress.take(wanted.key), wanted.most
    async with found.lock:
        while not found.is_complete:
            page_items, found.more = await _get_page(session, wanted, found.more)
            with pause_garbage_collection():
                found.items += [found.share(drop_bulk(item)) for item in page_items]
            found.is_complete = not found.more or len(found.items) >= most
            progress.note_page(found)
    if found.more and most == MOST_ITEMS:
        session.api.partial[f"{wanted.path} holds more than {most:,} items: the rest was not read; set namespaces"] = None  # fmt: skip
    return found.items


async def _get_page(
    session: HttpSession, wanted: ListRequest, token: str
) -> tuple[list[dict[str, Any]], str]:
    """The items of the page that the token leads to, and the token of the next one ("" where there is none)."""
    asked = {
        "limit": str(min(PAGE, wanted.most)),
        **wanted.parameters,
        **({"continue": token} if token else {}),
    }
    if wanted.accept:
        answer = await session.get_as(wanted.accept, wanted.path, **asked)
    else:
        answer = await session.get(wanted.path, **asked)
    return _read_page(session, wanted.path, answer.document)


def _read_page(session: HttpSession, path: str, document: JSON) -> tuple[list[dict[str, Any]], str]:
    """The items and the token in a page."""
    found = document if isinstance(document, dict) else {}
    items, metadata = found.get("items", ""), found.get("metadata") or {}
    rows = [] if items is None else items
    if (
        not isinstance(rows, list)
        or not isinstance(metadata, dict)
        or not all(isinstance(row, dict) for row in rows)
    ):
        raise UnavailableError(f"{session.api.name}: {path} did not answer with a Kubernetes list")
    return rows, str(metadata.get("continue") or "")

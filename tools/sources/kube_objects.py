"""Lists of the further kinds of a cluster: in pages, narrowed by the server, and at no cost where they are refused."""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from http import HTTPStatus
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import quote

from opsleuth.analysis.cluster.memory import WRITTEN
from opsleuth.analysis.cluster.objects import get_part, rows_of
from opsleuth.analysis.records import ObjectState
from opsleuth.state.garbage_collection import pause_garbage_collection
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.sources.http_client import HttpSession, HttpStatusError
from opsleuth.tools.sources.kube_api import MOST_ITEMS, FetchGaps, ListRequest, read_list
from opsleuth.tools.sources.kube_kinds import (
    FURTHER_KINDS,
    METADATA_ONLY,
    OLDER_ENDPOINTS,
    FurtherKind,
    find_versions,
    list_base_paths,
)
from opsleuth.tools.sources.kube_progress import ListProgress
from opsleuth.tools.sources.kube_rows import Document, object_state_from_document
from opsleuth.tools.sources.live_source import SourceCheck
from opsleuth.tools.sources.object_memory import ObjectListing
from opsleuth.tools.spec import NotPermittedError, UnavailableError

_RELEASES = FurtherKind(
    "Secret", "", ("v1",), "secrets", narrowed={"labelSelector": "owner=helm"}, content=False
)


class ClusterPlace(NamedTuple):
    """Which namespaces are looked at (none: all), and the one that is tried where the role may not look at all.

    `progress` holds how far an earlier fetch came.
    """

    namespaces: Sequence[str]
    home: str | None
    progress: ListProgress | None = None


async def list_further(
    session: HttpSession,
    place: ClusterPlace,
    looked: FetchGaps,
    captured: float,
    *,
    listing: ObjectListing,
    secret_keys: bool = False,
) -> Sequence[ObjectState]:
    """The states of all further kinds that the cluster has and the role may list; `listing` is notified of each.

    What may not be listed is one sentence in `looked`. With `secret_keys` a Secret holds the names of its keys.
    """
    served = await find_versions(session)
    wanted = list(FURTHER_KINDS)
    if served is not None and "discovery.k8s.io" not in served:
        wanted.append(OLDER_ENDPOINTS)
    reader = _Reader(session, place, served)
    found = await gather_or_cancel(map(reader.read, wanted))
    if reader.refused:
        looked.missed.append(f"the role may not list {', '.join(sorted(reader.refused))}")
    looked.missed += reader.failed
    with pause_garbage_collection():
        for kind, documents in zip(wanted, found, strict=True):
            complete = kind.kind not in reader.incomplete
            listing.add(kind.kind, documents, with_content=kind.content, is_complete=complete)
        return [
            object_state_from_document(
                kind.kind, _without_content(document, kind, secret_keys=secret_keys), captured
            )
            for kind, documents in zip(wanted, found, strict=True)
            for document in documents
        ]


async def list_written(session: HttpSession, place: ClusterPlace, captured: float) -> Sequence[ObjectState]:
    """Metadata of what people and pipelines write (who wrote it last, and when), and of Helm's releases.

    What may not be listed is left out without a word: the list of objects says so already.
    """
    served = await find_versions(session)
    asked = [kind._replace(content=False, narrowed={}) for kind in FURTHER_KINDS if kind.kind in WRITTEN]
    asked = [_RELEASES if kind.kind == "Secret" else kind for kind in asked]
    return await _list_metadata(_Reader(session, place, served), asked, captured)


async def list_releases(session: HttpSession, place: ClusterPlace, captured: float) -> Sequence[ObjectState]:
    """Metadata of the Secrets in which Helm keeps the revisions of its releases."""
    return await _list_metadata(_Reader(session, place, None), [_RELEASES], captured)


async def _list_metadata(
    reader: "_Reader", asked: Sequence[FurtherKind], captured: float
) -> Sequence[ObjectState]:
    found = await gather_or_cancel(map(reader.read, asked))
    return [
        object_state_from_document(kind.kind, _without_content(document, kind), captured)
        for kind, documents in zip(asked, found, strict=True)
        for document in documents
    ]


async def check_further(session: HttpSession, place: ClusterPlace) -> SourceCheck:
    """Which of the further kinds the role may list, for `doctor`: none of them is needed."""
    served = await find_versions(session)
    reader = _Reader(session, place, served, most=1)
    await gather_or_cancel(map(reader.read, FURTHER_KINDS))
    if failed := (*sorted(reader.refused), *reader.failed):
        return SourceCheck(
            "further kinds", "ok", f"used as far as allowed; not allowed: {', '.join(failed)}"[:600]
        )
    return SourceCheck("further kinds", "ok", "may be listed")


class _Reader:
    """Lists one kind after another, and keeps what was refused."""

    def __init__(
        self,
        session: HttpSession,
        place: ClusterPlace,
        served: Mapping[str, Sequence[str]] | None,
        most: int = MOST_ITEMS,
    ) -> None:
        self._session = session
        self._most = most
        self._served = served
        self._namespaces, self._home, self._progress = place
        self.refused: list[str] = []
        self.failed: list[str] = []
        self.incomplete: set[str] = set()

    async def read(self, kind: FurtherKind) -> Sequence[Document]:
        try:
            return await self._read_first_known(kind)
        except NotPermittedError:
            self.refused.append(kind.plural)
        except (UnavailableError, TimeoutError) as error:
            self.failed.append(f"{kind.plural}: {error}"[:300])
        self.incomplete.add(kind.kind)
        return ()

    async def _read_first_known(self, kind: FurtherKind) -> Sequence[Document]:
        """From the first of its versions that knows the kind; nothing where none does."""
        for base in list_base_paths(kind, self._served):
            try:
                return await self._allowed(kind, base)
            except HttpStatusError as error:
                if error.status_code != HTTPStatus.NOT_FOUND:
                    raise
        return ()

    async def _allowed(self, kind: FurtherKind, base: str) -> Sequence[Document]:
        if kind.kind == "Namespace" and self._namespaces:
            return await self._join(
                self._list(kind, f"{base}/{kind.plural}", fieldSelector=f"metadata.name={name}")
                for name in self._namespaces
            )
        if not kind.namespaced:
            return await self._list(kind, f"{base}/{kind.plural}")
        if self._namespaces:
            paths = (_build_namespace_path(kind, base, name) for name in self._namespaces)
            return await self._join(self._list(kind, path) for path in paths)
        try:
            return await self._list(kind, f"{base}/{kind.plural}")
        except NotPermittedError:
            if self._home is None:
                raise
            self.incomplete.add(kind.kind)
            return await self._list(kind, _build_namespace_path(kind, base, self._home))

    async def _join(self, lists: Iterable[Coroutine[Any, Any, Sequence[Document]]]) -> Sequence[Document]:
        return list(chain.from_iterable(await gather_or_cancel(lists)))

    async def _list(self, kind: FurtherKind, path: str, **narrowed: str) -> Sequence[Document]:
        accept = None if kind.content else METADATA_ONLY
        wanted = ListRequest(path, accept, self._most, {**kind.narrowed, **narrowed}, self._progress)
        return await read_list(self._session, wanted)


def _build_namespace_path(kind: FurtherKind, base: str, namespace: str) -> str:
    return f"{base}/namespaces/{quote(namespace, safe='')}/{kind.plural}"


def _without_content(document: Document, kind: FurtherKind, *, secret_keys: bool = False) -> Document:
    """Of a kind whose content is not wanted only the metadata, whatever the server sent.

    Annotations may repeat the content (kubectl keeps the last applied object in one).
    """
    if kind.content:
        return document
    metadata: dict[str, Any] = dict(document.get("metadata") or {})
    metadata.pop("annotations", None)
    keys = list_secret_keys(document) if secret_keys and kind.kind == "Secret" else ()
    return {"metadata": metadata, **({"data": dict.fromkeys(keys, "")} if keys else {})}


def list_secret_keys(document: Document) -> Sequence[str]:
    """The names of a Secret's keys, as the managers that wrote them are on record; none where that is unknown."""
    owned = [get_part(row, "fieldsV1") for row in rows_of(get_part(document, "metadata"), "managedFields")]
    names = {
        name for fields in owned for part in ("f:data", "f:stringData") for name in get_part(fields, part)
    }
    return sorted(name.removeprefix("f:") for name in names if name.startswith("f:"))

"""A Kubernetes cluster: states of its objects, events, what was rolled out, and logs of pods, those before too.

Everything is listed, nothing watched. What the account may not see is said by name, and the rest is used.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import quote

from opsleuth.analysis.cluster.memory import add_workloads_touched, remembered_changes
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.records import (
    AlertFacts,
    LogLine,
    ObjectState,
    Recording,
    ServiceChange,
    TimeRange,
)
from opsleuth.configuration.source_settings import KubernetesSettings
from opsleuth.state.garbage_collection import pause_garbage_collection
from opsleuth.state.json_types import JSON
from opsleuth.state.plurals import format_count
from opsleuth.tools.concurrency import gather_or_cancel
from opsleuth.tools.sources import kube_rows as rows
from opsleuth.tools.sources.http_client import HttpSession, HttpStatusError
from opsleuth.tools.sources.http_source import check_clock_skew, clock_skew_text
from opsleuth.tools.sources.kube_api import FetchGaps, KubeApi, ListRequest, list_items
from opsleuth.tools.sources.kube_logs import PodLogReader, list_container_logs
from opsleuth.tools.sources.kube_objects import (
    ClusterPlace,
    check_further,
    list_further,
    list_releases,
    list_written,
)
from opsleuth.tools.sources.kube_progress import ListProgress
from opsleuth.tools.sources.live_source import (
    SKEW_SECONDS,
    FetchedRows,
    LiveSource,
    SourceCheck,
    SourceRuntime,
    failed_check,
)
from opsleuth.tools.sources.object_memory import ObjectListing
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import NotPermittedError, TransientError, UnavailableError


class KubeResource(NamedTuple):
    """A list of the API: what one of it is called, where it is, and whether it lies in namespaces."""

    kind: str
    group: str
    plural: str
    namespaced: bool = True


PODS = KubeResource("Pod", "/api/v1", "pods")
DEPLOYMENTS = KubeResource("Deployment", "/apis/apps/v1", "deployments")
REPLICA_SETS = KubeResource("ReplicaSet", "/apis/apps/v1", "replicasets")
REVISIONS = KubeResource("ControllerRevision", "/apis/apps/v1", "controllerrevisions")
EVENTS = KubeResource("Event", "/api/v1", "events")
OBJECTS = (
    PODS,
    DEPLOYMENTS,
    KubeResource("StatefulSet", "/apis/apps/v1", "statefulsets"),
    KubeResource("DaemonSet", "/apis/apps/v1", "daemonsets"),
    KubeResource("Job", "/apis/batch/v1", "jobs"),
    KubeResource("Node", "/api/v1", "nodes", namespaced=False),
    KubeResource("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims"),
    KubeResource("ResourceQuota", "/api/v1", "resourcequotas"),
)


class KubernetesSource(LiveSource):
    """The source of kind `kubernetes`."""

    capabilities: frozenset[Capability] = frozenset({"objects", "events", "changes", "logs"})

    def __init__(self, name: str, settings: KubernetesSettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self._naming = rows.ServiceNaming(settings.service_labels)
        self._progress = ListProgress(self.clock, reused=ListRequest(_list_path(PODS)).key)
        self._api = KubeApi(name, settings, self.vault, self.clock)
        self._since_run_before: Sequence[ServiceChange] = ()

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        read = {
            "objects": self._objects,
            "events": self._events,
            "changes": self._changes,
            "logs": self._logs,
        }
        looked = FetchGaps()
        self._progress.begin()
        async with self._api.session() as session:
            found = await read[capability](session, window, looked)
            if looked.refusals and len(looked.refusals) == looked.asked:
                raise looked.refusals[0]
        self._progress.end()
        skew = session.api.skew
        notes = (clock_skew_text(skew),) if skew is not None and abs(skew) > SKEW_SECONDS else ()
        return FetchedRows(
            {capability: found},
            tuple(session.api.log),
            notes,
            tuple(dict.fromkeys((*looked.missed, *session.api.partial))),
        )

    @property
    def advances(self) -> bool:
        return self._progress.pages > 0

    async def discover(self) -> None:
        async with self._api.session() as session:
            for document in await self._allowed(session, DEPLOYMENTS, FetchGaps()):
                self.named(self._naming.of(document))

    # --- lists -----------------------------------------------------------------------------------------------

    async def _list(
        self, session: HttpSession, resource: KubeResource, looked: FetchGaps
    ) -> Sequence[rows.Document]:
        """All of one kind that may be seen; what may not is noted in `looked`."""
        looked.asked += 1
        try:
            return await self._allowed(session, resource, looked)
        except NotPermittedError as error:
            looked.refusals.append(error)
            looked.missed.append(f"{resource.plural} may not be listed: {error}"[:400])
            return ()
        except (HttpStatusError, TransientError) as error:
            looked.refusals.append(error)
            # An older or smaller cluster does not have every kind.
            if not isinstance(error, HttpStatusError) or error.status_code != 404:
                looked.missed.append(f"{resource.plural} could not be listed: {error}"[:400])
                return ()
        return ()

    async def _allowed(
        self, session: HttpSession, resource: KubeResource, looked: FetchGaps
    ) -> Sequence[rows.Document]:
        """Where the whole cluster may not be seen, the namespace of the context often may."""
        context = self._api.context
        try:
            found = await gather_or_cancel(
                list_items(session, path, self._progress) for path in self._paths(resource)
            )
        except NotPermittedError:
            if context is None or self._settings.namespaces or not resource.namespaced:
                raise
            own = await list_items(session, _list_path(resource, context.namespace), self._progress)
            looked.missed.append(f"{resource.plural} outside namespace {context.namespace} may not be listed")
            return own
        return list(chain.from_iterable(found))

    def _paths(self, resource: KubeResource) -> Sequence[str]:
        if resource.namespaced and self._settings.namespaces:
            return [_list_path(resource, namespace) for namespace in self._settings.namespaces]
        return [_list_path(resource)]

    async def _several(
        self, session: HttpSession, resources: Sequence[KubeResource], looked: FetchGaps
    ) -> Sequence[Sequence[rows.Document]]:
        first = await self._list(session, resources[0], looked)  # alone: what is wrong with all shows there
        return [
            first,
            *await gather_or_cancel(self._list(session, resource, looked) for resource in resources[1:]),
        ]

    # --- capabilities ----------------------------------------------------------------------------------------

    async def _objects(self, session: HttpSession, window: TimeRange, looked: FetchGaps) -> Sequence[Any]:
        now = self.clock.now().timestamp()
        lists = await self._several(session, OBJECTS, looked)
        for document in lists[OBJECTS.index(DEPLOYMENTS)]:
            self.named(self._naming.of(document))
        listing = ObjectListing(self.memory)
        with pause_garbage_collection():
            for resource, found in zip(OBJECTS, lists, strict=True):
                listing.add(resource.kind, found, with_content=True, is_complete=not looked.missed)
            states = [
                rows.object_state_from_document(resource.kind, d, now)
                for resource, found in zip(OBJECTS, lists, strict=True)
                for d in found
            ]
        states += await list_further(
            session,
            self._place_looked_at(),
            looked,
            now,
            listing=listing,
            secret_keys=self._settings.secret_keys,
        )
        if not session.api.partial:  # of lists that were cut nothing is known to be gone
            self._since_run_before = listing.compare(self._describe_part(), now, window.start)
        return states

    def _describe_part(self) -> str:
        """Which part of which cluster is listed."""
        context = self._api.context
        return " ".join(
            [context.cluster.server if context else self.name, *sorted(self._settings.namespaces)]
        )

    def _place_looked_at(self) -> ClusterPlace:
        context = self._api.context
        return ClusterPlace(self._settings.namespaces, context.namespace if context else None, self._progress)

    async def _events(self, session: HttpSession, window: TimeRange, looked: FetchGaps) -> Sequence[Any]:
        since = window.start - 86_400
        found = (rows.event_from_document(document) for document in await self._list(session, EVENTS, looked))
        return sorted((e for e in found if e is not None and since <= e.time), key=lambda e: e.time)

    async def _changes(self, session: HttpSession, window: TimeRange, looked: FetchGaps) -> Sequence[Any]:
        lists = await self._several(session, (DEPLOYMENTS, REPLICA_SETS, REVISIONS), looked)
        deployments, replica_sets, revisions = lists
        told = [
            *rows.rollout_changes(deployments, replica_sets, self._naming, window.start - rows.DIFF_SECONDS),
            *rows.controller_revision_changes(revisions, self._naming),
        ]
        states = await self._list_what_remembers(session, window, deployments)
        cluster = Cluster.of(Recording(AlertFacts(""), window, objects=states))
        told += [add_workloads_touched(change, cluster) for change in self._since_run_before]
        seen = Recording(AlertFacts(""), window, objects=states, changes=told)
        told += remembered_changes(seen, cluster)
        for change in told:
            self.named(change.service)
        return sorted((change for change in told if change.time < window.end), key=lambda change: change.time)

    async def _list_what_remembers(
        self, session: HttpSession, window: TimeRange, deployments: Sequence[rows.Document]
    ) -> Sequence[ObjectState]:
        """Objects with their last writers; those already listed for this window are not listed again."""
        now, place = self.clock.now().timestamp(), self._place_looked_at()
        if listed := await self.await_fetched_rows("objects", window):
            return [*listed, *await list_releases(session, place, now)]
        written = await list_written(session, place, now)
        return [*(rows.object_state_from_document("Deployment", d, now) for d in deployments), *written]

    # --- logs ------------------------------------------------------------------------------------------------

    async def _logs(self, session: HttpSession, window: TimeRange, looked: FetchGaps) -> Sequence[LogLine]:
        pods = sorted(await self._list(session, PODS, looked), key=rows.rank_pod_by_trouble)
        most, settings = self._settings.max_pods, self._settings
        if len(pods) > most:
            looked.missed.append(
                f"logs of {len(pods) - most} of {format_count(len(pods), 'pod was', 'pods were')} not read: set namespaces or max_pods"
            )
        since = window.start - settings.before
        asked = [log for pod in pods[:most] for log in list_container_logs(pod)]
        reader = PodLogReader(session, looked, self.clock.now().timestamp() - since)
        texts = await gather_or_cancel(reader.read(log) for log in asked)
        lines = (
            line
            for log, text in zip(asked, texts, strict=True)
            for line in rows.parse_log_lines(
                text, self.named(self._service(log.pod)), log.pod, previous=log.previous
            )
            if line.time is not None and since <= line.time < window.end
        )
        found = list(islice(lines, settings.max_lines + 1))
        if len(found) > settings.max_lines:
            looked.missed.append(f"more than {settings.max_lines:,} log lines: the rest was not read")
        return sorted(found[: settings.max_lines], key=lambda line: line.time or 0.0)

    def _service(self, pod: rows.Document) -> str:
        """By label, else the name of what made the pod: a replica set's without its hash, a stateful set's as it is."""
        named = self._naming.of(pod)
        meta = pod["metadata"]
        if named != meta["name"]:
            return named
        owner = next(iter(meta.get("ownerReferences") or ()), None)
        if owner is None:
            return named
        of_template = (meta.get("labels") or {}).get("pod-template-hash", "")
        return str(owner["name"]).removesuffix(f"-{of_template}")

    # --- doctor ----------------------------------------------------------------------------------------------

    async def check(self) -> Sequence[SourceCheck]:
        async with self._api.session() as session:
            version = await session.get("/version")
            checks = [
                SourceCheck("version", "ok", str(_server_version(version.document))),
                check_clock_skew(session.api.skew),
            ]
            context = self._api.context
            checks.append(
                SourceCheck(
                    "context", "ok", f"{context.name}, namespace {context.namespace}" if context else ""
                )
            )
            wanted = (*OBJECTS, REPLICA_SETS, EVENTS)
            places = await gather_or_cancel(
                self._missing(session, name) for name in self._settings.namespaces
            )
            may = await gather_or_cancel(self._may(session, resource) for resource in wanted)
            further = await check_further(session, self._place_looked_at()._replace(progress=None))
            return [*checks, *filter(None, places), *may, further]

    async def _missing(self, session: HttpSession, namespace: str) -> SourceCheck | None:
        """What is wrong with a namespace: lists of one that is not there are empty and no error."""
        try:
            await session.get(f"/api/v1/namespaces/{quote(namespace, safe='')}")
        except NotPermittedError:  # it may be there: who may list in it need not see itself
            return None
        except HttpStatusError as error:
            if error.status_code != 404:
                raise
            return failed_check(f"namespace {namespace}", error, "correct namespaces")
        return None

    async def _may(self, session: HttpSession, resource: KubeResource) -> SourceCheck:
        try:
            await gather_or_cancel(session.get(path, limit="1") for path in self._paths(resource))
        except (NotPermittedError, UnavailableError) as error:
            if isinstance(error, HttpStatusError) and error.status_code == 404:
                return SourceCheck(resource.plural, "ok", "the cluster has none")
            return failed_check(resource.plural, error, f"allow list on {resource.plural}, or set namespaces")
        return SourceCheck(resource.plural, "ok", "may be listed")


def _list_path(resource: KubeResource, namespace: str | None = None) -> str:
    where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{resource.group}{where}/{resource.plural}"


def _server_version(document: JSON) -> str:
    return document.get("gitVersion", "not told") if isinstance(document, Mapping) else "not told"

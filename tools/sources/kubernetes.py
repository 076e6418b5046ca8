"""A Kubernetes cluster: states of its objects, events, what was rolled out, and logs of pods, those before too.

Everything is listed, nothing watched. What the account may not see is said by name, and the rest is used.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple
from urllib.parse import quote

from opsleuth.analysis.records import LogLine, Span
from opsleuth.state.words import counted
from opsleuth.tools.sources import kube_rows as rows
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.http import Refused, Session
from opsleuth.tools.sources.http_source import clock_check, skew_text
from opsleuth.tools.sources.kube_api import KubeApi, Looked, listed
from opsleuth.tools.sources.kube_logs import LogReader, containers
from opsleuth.tools.sources.live import SKEW_SECONDS, Check, Fetched, LiveSource, Surroundings, refused
from opsleuth.tools.sources.settings import Kubernetes
from opsleuth.tools.spec import NotPermitted, Unavailable
from opsleuth.tools.together import together


class Resource(NamedTuple):
    """A list of the API: what one of it is called, where it is, and whether it lies in namespaces.

    `older` is where clusters have it that do not know `group` yet.
    """

    kind: str
    group: str
    plural: str
    namespaced: bool = True
    older: str = ""


PODS = Resource("Pod", "/api/v1", "pods")
DEPLOYMENTS = Resource("Deployment", "/apis/apps/v1", "deployments")
REPLICA_SETS = Resource("ReplicaSet", "/apis/apps/v1", "replicasets")
REVISIONS = Resource("ControllerRevision", "/apis/apps/v1", "controllerrevisions")
EVENTS = Resource("Event", "/api/v1", "events")
OBJECTS = (
    PODS,
    DEPLOYMENTS,
    Resource("StatefulSet", "/apis/apps/v1", "statefulsets"),
    Resource("DaemonSet", "/apis/apps/v1", "daemonsets"),
    Resource("Job", "/apis/batch/v1", "jobs"),
    Resource("Node", "/api/v1", "nodes", namespaced=False),
    Resource(
        "HorizontalPodAutoscaler",
        "/apis/autoscaling/v2",
        "horizontalpodautoscalers",
        older="/apis/autoscaling/v2beta2",
    ),
    Resource("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims"),
    Resource("ResourceQuota", "/api/v1", "resourcequotas"),
)


class KubernetesSource(LiveSource):
    """The source of kind `kubernetes`."""

    capabilities: frozenset[Capability] = frozenset({"objects", "events", "changes", "logs"})

    def __init__(self, name: str, settings: Kubernetes, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self._naming = rows.Naming(settings.service_labels)
        self._api = KubeApi(name, settings, self.vault, self.clock)

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        read = {
            "objects": self._objects,
            "events": self._events,
            "changes": self._changes,
            "logs": self._logs,
        }
        looked = Looked()
        async with self._api.session() as session:
            found = await read[capability](session, window, looked)
            if looked.refusals and len(looked.refusals) == looked.asked:
                raise looked.refusals[0]
        skew = session.api.skew
        notes = (skew_text(skew),) if skew is not None and abs(skew) > SKEW_SECONDS else ()
        return Fetched(
            {capability: found}, tuple(session.api.log), notes, tuple(dict.fromkeys(looked.missed))
        )

    async def discover(self) -> None:
        async with self._api.session() as session:
            for document in await self._allowed(session, DEPLOYMENTS, Looked()):
                self.named(self._naming.of(document))

    # --- lists -----------------------------------------------------------------------------------------------

    async def _list(self, session: Session, resource: Resource, looked: Looked) -> Sequence[rows.Document]:
        """All of one kind that may be seen; what may not is noted in `looked`."""
        looked.asked += 1
        try:
            return await self._allowed(session, resource, looked)
        except NotPermitted as error:
            looked.refusals.append(error)
            looked.missed.append(f"{resource.plural} may not be listed: {error}"[:400])
            return ()
        except Refused as error:
            if error.status_code != 404:  # an older or smaller cluster does not have every kind
                raise
            looked.refusals.append(error)
        return await self._list(session, _older(resource), looked) if resource.older else ()

    async def _allowed(self, session: Session, resource: Resource, looked: Looked) -> Sequence[rows.Document]:
        """Where the whole cluster may not be seen, the namespace of the context often may."""
        context = self._api.context
        try:
            found = await together(listed(session, path) for path in self._paths(resource))
        except NotPermitted:
            if context is None or self._settings.namespaces or not resource.namespaced:
                raise
            own = await listed(session, _path(resource, context.namespace))
            looked.missed.append(
                f"{resource.plural} of other namespaces than {context.namespace} may not be listed"
            )
            return own
        return list(chain.from_iterable(found))

    def _paths(self, resource: Resource) -> Sequence[str]:
        if resource.namespaced and self._settings.namespaces:
            return [_path(resource, namespace) for namespace in self._settings.namespaces]
        return [_path(resource)]

    async def _several(
        self, session: Session, resources: Sequence[Resource], looked: Looked
    ) -> Sequence[Sequence[rows.Document]]:
        first = await self._list(session, resources[0], looked)  # alone: what is wrong with all shows there
        return [first, *await together(self._list(session, resource, looked) for resource in resources[1:])]

    # --- capabilities ----------------------------------------------------------------------------------------

    async def _objects(self, session: Session, window: Span, looked: Looked) -> Sequence[Any]:
        del window
        now = self.clock.now().timestamp()
        lists = await self._several(session, OBJECTS, looked)
        for document in lists[OBJECTS.index(DEPLOYMENTS)]:
            self.named(self._naming.of(document))
        pairs = zip(OBJECTS, lists, strict=True)
        return [rows.object_state(resource.kind, d, now) for resource, found in pairs for d in found]

    async def _events(self, session: Session, window: Span, looked: Looked) -> Sequence[Any]:
        since = window.start - 86_400
        found = (rows.platform_event(document) for document in await self._list(session, EVENTS, looked))
        return sorted((e for e in found if e is not None and since <= e.time), key=lambda e: e.time)

    async def _changes(self, session: Session, window: Span, looked: Looked) -> Sequence[Any]:
        lists = await self._several(session, (DEPLOYMENTS, REPLICA_SETS, REVISIONS), looked)
        deployments, replica_sets, revisions = lists
        told = [
            *rows.rollouts(deployments, replica_sets, self._naming),
            *rows.controller_revisions(revisions, self._naming),
        ]
        for change in told:
            self.named(change.service)
        return sorted((change for change in told if change.time < window.end), key=lambda change: change.time)

    # --- logs ------------------------------------------------------------------------------------------------

    async def _logs(self, session: Session, window: Span, looked: Looked) -> Sequence[LogLine]:
        pods = await self._list(session, PODS, looked)
        most, settings = self._settings.max_pods, self._settings
        if len(pods) > most:
            looked.missed.append(
                f"logs of {len(pods) - most} of {counted(len(pods), 'pod was', 'pods were')} not read: set namespaces or max_pods"
            )
        since = window.start - settings.before
        asked = [log for pod in pods[:most] for log in containers(pod)]
        reader = LogReader(session, looked, self.clock.now().timestamp() - since)
        texts = await together(reader.read(log) for log in asked)
        lines = (
            line
            for log, text in zip(asked, texts, strict=True)
            for line in rows.log_lines(
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

    async def check(self) -> Sequence[Check]:
        async with self._api.session() as session:
            version = await session.get("/version")
            checks = [Check("version", "ok", str(_told(version.document))), clock_check(session.api.skew)]
            context = self._api.context
            checks.append(
                Check("context", "ok", f"{context.name}, namespace {context.namespace}" if context else "")
            )
            wanted = (*OBJECTS, REPLICA_SETS, EVENTS)
            places = await together(self._missing(session, name) for name in self._settings.namespaces)
            may = await together(self._may(session, resource) for resource in wanted)
            return [*checks, *filter(None, places), *may]

    async def _missing(self, session: Session, namespace: str) -> Check | None:
        """What is wrong with a namespace: lists of one that is not there are empty and no error."""
        try:
            await session.get(f"/api/v1/namespaces/{quote(namespace, safe='')}")
        except NotPermitted:  # it may be there: who may list in it need not see itself
            return None
        except Refused as error:
            if error.status_code != 404:
                raise
            return refused(f"namespace {namespace}", error, "correct namespaces")
        return None

    async def _may(self, session: Session, resource: Resource) -> Check:
        try:
            await together(session.get(path, limit="1") for path in self._paths(resource))
        except (NotPermitted, Unavailable) as error:
            if isinstance(error, Refused) and error.status_code == 404:
                if resource.older:
                    return await self._may(session, _older(resource))
                return Check(resource.plural, "ok", "the cluster has none")
            return refused(resource.plural, error, f"allow list on {resource.plural}, or set namespaces")
        return Check(resource.plural, "ok", "may be listed")


def _older(resource: Resource) -> Resource:
    return resource._replace(group=resource.older, older="")


def _path(resource: Resource, namespace: str | None = None) -> str:
    where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{resource.group}{where}/{resource.plural}"


def _told(document: Any) -> str:  # noqa: ANN401 - any JSON value
    return document.get("gitVersion", "not told") if isinstance(document, Mapping) else "not told"

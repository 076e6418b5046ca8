"""Deployments of a Kubernetes cluster as a platform: restart, rollback to a version that ran before, scale.

Every change is one JSON patch that carries the resource version which was looked at (another one is answered with 409)
and writes its key into an annotation, by which it can be told later whether it happened. The same patch twice changes
nothing the second time: a rollout is begun by the key itself. A dry run of it is shown before a person decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from opsleuth.tools.effects.platform import Kind, Operation, ServiceView
from opsleuth.tools.sources.http import Refused
from opsleuth.tools.sources.kube_api import KubeApi, listed
from opsleuth.tools.sources.kube_rows import changed_lines
from opsleuth.tools.spec import InvalidArguments, NotPermitted, OutcomeUnknown, Transient, Unavailable

_REVISION = "deployment.kubernetes.io/revision"
_HASH = "pod-template-hash"
# Lines of a template's difference that stand in a question.
_SHOWN = 6
_PATCH = "application/json-patch+json"
_SAYS_NO = frozenset({HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.FORBIDDEN})
_WRONG = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.UNSUPPORTED_MEDIA_TYPE})
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KubernetesPlatform:
    """The deployments of one namespace. `deployments` maps a service to its deployment where the names differ."""

    name: str
    api: KubeApi
    namespace: str
    environment: str = "production"
    deployments: Mapping[str, str] = field(default_factory=dict)
    keys: bool = True
    kinds: frozenset[Kind] = field(default=frozenset({"restart", "rollback", "scale"}))

    async def service(self, name: str) -> ServiceView | None:
        deployment = await self._deployment(name)
        return None if deployment is None else _view(name, deployment, await self._history(deployment))

    async def rehearse(self, operation: Operation, revision: str) -> str:
        """The API server's own dry run: admission, quotas and webhooks have their say, nothing is stored."""
        before = await self._known(operation)
        try:
            answer = await self._patch(
                operation, await self._operations(operation, "rehearsed", revision), dry=True
            )
        except Refused as error:
            if error.status_code == HTTPStatus.CONFLICT:
                raise Transient(f"{self.name}: {operation.target} changed while it was looked at") from None
            raise _no(error) from None
        return f"dry run accepted: {_difference(before, answer) or 'nothing would change'}"

    async def submit(self, operation: Operation, key: str, revision: str | None = None) -> Mapping[str, Any]:
        try:
            patch = await self._operations(operation, key, revision)
        except (Transient, TimeoutError) as error:
            raise Unavailable(f"nothing was sent: {error}") from None
        try:
            answer = await self._patch(operation, patch)
        except Refused as error:
            raise _no(error) from None
        except (Unavailable, Transient, TimeoutError) as error:
            raise OutcomeUnknown(f"{self.name}: {error}") from None
        return {"status": "accepted", "generation": _meta(answer).get("generation")}

    async def applied(self, operation: Operation, key: str, begun: datetime | None = None) -> bool | None:
        del begun
        notes = _meta(await self._known(operation)).get("annotations") or {}
        return bool(notes.get(_note(operation.kind)) == key)

    async def _operations(self, operation: Operation, key: str, revision: str | None) -> Sequence[Document]:
        """The change as a JSON patch. Raises InvalidArguments for a version that never ran."""
        deployment = await self._known(operation)
        steps: list[dict[str, Any]] = []
        if revision is not None:
            steps.append({"op": "replace", "path": "/metadata/resourceVersion", "value": revision})
        if operation.kind == "scale":
            steps.append(
                {"op": "replace", "path": "/spec/replicas", "value": operation.arguments["replicas"]}
            )
        elif operation.kind == "rollback":
            template = await self._template(deployment, str(operation.arguments["version"]))
            steps.append({"op": "replace", "path": "/spec/template", "value": template})
        elif operation.kind == "restart":
            steps += _added(deployment, "/spec/template/metadata", _note("restart"), key)
        else:
            raise InvalidArguments(f"{self.name} cannot {operation.kind} anything")
        return [*steps, *_added(deployment, "/metadata", _note(operation.kind), key)]

    async def _template(self, deployment: Document, version: str) -> Document:
        history = await self._history(deployment)
        named = {**{_exact(replica_set): replica_set for replica_set in history}, **_named(history)}
        if version not in named:
            raise InvalidArguments(f"{self.name}: no replica set with version {version!r} is left")
        return _template(named[version])

    async def _known(self, operation: Operation) -> Document:
        deployment = await self._deployment(operation.target)
        if deployment is None:
            raise InvalidArguments(f"{self.name} has no deployment {operation.target!r} in {self.namespace}")
        return deployment

    async def _deployment(self, service: str) -> Document | None:
        async with self.api.session() as session:
            try:
                answer: Document = (await session.get(self._path(service))).document
            except Refused as error:
                if error.status_code == HTTPStatus.NOT_FOUND:
                    return None
                raise
        return answer

    async def _history(self, deployment: Document) -> Sequence[Document]:
        """The deployment's replica sets, the oldest revision first."""
        uid = _meta(deployment).get("uid")
        async with self.api.session() as session:
            sets = await listed(session, f"/apis/apps/v1/namespaces/{quote(self.namespace)}/replicasets")
        own = [s for s in sets if any(o.get("uid") == uid for o in _meta(s).get("ownerReferences", ()))]
        return sorted(own, key=lambda s: int(_meta(s).get("annotations", {}).get(_REVISION, "0")))

    async def _patch(self, operation: Operation, steps: Sequence[Document], *, dry: bool = False) -> Document:
        options = {"fieldManager": "opsleuth"} | ({"dryRun": "All"} if dry else {})
        async with self.api.session() as session:
            path = self._path(operation.target)
            answer: Document = (await session.send("PATCH", path, steps, _PATCH, **options)).document
        return answer

    def _path(self, service: str) -> str:
        name = self.deployments.get(service, service)
        return f"/apis/apps/v1/namespaces/{quote(self.namespace, safe='')}/deployments/{quote(name, safe='')}"


def _note(kind: str) -> str:
    return f"opsleuth/{kind}"


def _added(deployment: Document, path: str, name: str, value: str) -> Sequence[dict[str, Any]]:
    """The steps that set an annotation, also where there is none yet."""
    place: Any = deployment
    for part in path.strip("/").split("/"):
        place = place.get(part) or {}
    made = [] if place.get("annotations") else [{"op": "add", "path": f"{path}/annotations", "value": {}}]
    return [*made, {"op": "add", "path": f"{path}/annotations/{name.replace('/', '~1')}", "value": value}]


def _no(error: Refused) -> NotPermitted | InvalidArguments | OutcomeUnknown:
    """What a refusal says of the change: for certain not made, or not known."""
    if error.status_code in _SAYS_NO:
        return NotPermitted(str(error))
    return InvalidArguments(str(error)) if error.status_code in _WRONG else OutcomeUnknown(str(error))


def _meta(document: Document) -> Document:
    meta: Document = document.get("metadata") or {}
    return meta


def _version(document: Document) -> str:
    """The tag of the first container's image, or its digest's beginning."""
    containers = document.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    image = str(containers[0].get("image", ""))
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or digest[:19] or "latest"


def _template(replica_set: Document) -> Document:
    """The template as a deployment has it: without the hash that the controller adds."""
    template: Document = replica_set["spec"]["template"]
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {k: v for k, v in (meta.get("labels") or {}).items() if k != _HASH}
    return {**template, "metadata": meta}


def _exact(replica_set: Document) -> str:
    """Version and hash of the template: one image may run with several configurations."""
    return f"{_version(replica_set)}+{(_meta(replica_set).get('labels') or {}).get(_HASH, 'unknown')}"


def _named(history: Sequence[Document]) -> Mapping[str, Document]:
    """Replica sets by the names of their versions, in order. Of several of one version the newest has its plain name."""
    newest = {_version(replica_set): replica_set for replica_set in history}
    return {(_version(s) if newest[_version(s)] is s else _exact(s)): s for s in history}


def _view(service: str, deployment: Document, history: Sequence[Document]) -> ServiceView:
    meta, wanted = _meta(deployment), int(deployment["spec"].get("replicas", 1))
    named = _named(history)
    now = [name for name, s in named.items() if _template(s) == deployment["spec"]["template"]]
    return ServiceView(
        name=service,
        version=now[-1] if now else _version(deployment),
        versions=tuple(named),
        also=tuple(_exact(named[name]) for name in now),
        replicas=wanted,
        restarts=int(meta.get("generation", 0)),
        health=_health(deployment, wanted),
        revision=str(meta.get("resourceVersion", "")),
    )


def _health(deployment: Document, wanted: int) -> str:
    status = deployment.get("status") or {}
    if int(status.get("observedGeneration", 0)) < int(_meta(deployment).get("generation", 0)):
        return "not yet taken up by its controller"
    updated, available = (int(status.get(key, 0)) for key in ("updatedReplicas", "availableReplicas"))
    total = int(status.get("replicas", 0))
    if updated == available == total == wanted:
        return "healthy"
    return f"{available} of {wanted} available, {updated} up to date"


def _difference(before: Document, after: Document) -> str:
    """What a person should see of a dry run."""
    told = []
    old, new = (d["spec"].get("replicas", 1) for d in (before, after))
    if old != new:
        told.append(f"replicas {old} to {new}")
    if _version(before) != _version(after):
        told.append(f"version {_version(before)} to {_version(after)}")
    if before["spec"].get("template") != after["spec"].get("template"):
        told.append("new pods")
    if lines := changed_lines(before, after):
        more = f" and {len(lines) - _SHOWN} more lines" if len(lines) > _SHOWN else ""
        told.append(f"with {' '.join(lines[:_SHOWN])}{more}")
    return ", ".join(told)

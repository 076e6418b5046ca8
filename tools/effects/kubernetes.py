"""Deployments of a Kubernetes cluster as a platform: restart, rollback to a version that ran before, scale.

Every change is one JSON patch that carries the resource version which was looked at (another one is answered with 409)
and writes its key into an annotation, by which it can be told later whether it happened. The same patch twice changes
nothing the second time: a rollout is started by the key itself. A dry run of it is shown before a person decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from opsleuth.tools.effects.platform import Kind, PlatformOperation, ServiceView
from opsleuth.tools.sources.http_client import HttpStatusError
from opsleuth.tools.sources.kube_api import KubeApi, list_items
from opsleuth.tools.sources.kube_rows import changed_template_lines
from opsleuth.tools.spec import (
    InvalidArgumentsError,
    NotPermittedError,
    OutcomeUnknownError,
    TransientError,
    UnavailableError,
)

_REVISION = "deployment.kubernetes.io/revision"
_HASH = "pod-template-hash"
# Lines of a template's difference that appear in a question.
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
        return (
            None
            if deployment is None
            else _build_service_view(name, deployment, await self._history(deployment))
        )

    def describe_place(self) -> str:
        """Context, server and namespace, as the kubeconfig has them now."""
        return f"{self.api.describe_place()}, namespace {self.namespace}"

    async def dry_run(self, operation: PlatformOperation, revision: str) -> str:
        """The API server's own dry run: admission, quotas and webhooks have their say, nothing is stored."""
        before = await self._known(operation)
        try:
            answer = await self._patch(
                operation, await self._operations(operation, "rehearsed", revision), dry=True
            )
        except HttpStatusError as error:
            if error.status_code == HTTPStatus.CONFLICT:
                raise TransientError(
                    f"{self.name}: {operation.target} changed while it was looked at"
                ) from None
            raise _error_from_refusal(error) from None
        return f"dry run accepted: {_describe_dry_run(before, answer) or 'nothing would change'}"

    async def submit(
        self, operation: PlatformOperation, key: str, revision: str | None = None
    ) -> Mapping[str, Any]:
        try:
            patch = await self._operations(operation, key, revision)
        except (TransientError, TimeoutError) as error:
            raise UnavailableError(f"nothing was sent: {error}") from None
        try:
            answer = await self._patch(operation, patch)
        except HttpStatusError as error:
            raise _error_from_refusal(error) from None
        except (UnavailableError, TransientError, TimeoutError) as error:
            raise OutcomeUnknownError(f"{self.name}: {error}") from None
        return {"status": "accepted", "generation": _metadata_of(answer).get("generation")}

    async def applied(
        self, operation: PlatformOperation, key: str, begun: datetime | None = None
    ) -> bool | None:
        del begun
        notes = _metadata_of(await self._known(operation)).get("annotations") or {}
        return bool(notes.get(_annotation_name(operation.kind)) == key)

    async def _operations(
        self, operation: PlatformOperation, key: str, revision: str | None
    ) -> Sequence[Document]:
        """The change as a JSON patch. Raises InvalidArgumentsError for a version that never ran."""
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
            steps += _annotation_patch(
                deployment, "/spec/template/metadata", _annotation_name("restart"), key
            )
        else:
            raise InvalidArgumentsError(f"{self.name} cannot {operation.kind} anything")
        return [*steps, *_annotation_patch(deployment, "/metadata", _annotation_name(operation.kind), key)]

    async def _template(self, deployment: Document, version: str) -> Document:
        history = await self._history(deployment)
        named = {
            **{_exact_version(replica_set): replica_set for replica_set in history},
            **_replica_sets_by_version(history),
        }
        if version not in named:
            raise InvalidArgumentsError(f"{self.name}: no replica set with version {version!r} is left")
        return _template_without_hash(named[version])

    async def _known(self, operation: PlatformOperation) -> Document:
        deployment = await self._deployment(operation.target)
        if deployment is None:
            raise InvalidArgumentsError(
                f"{self.name} has no deployment {operation.target!r} in {self.namespace}"
            )
        return deployment

    async def _deployment(self, service: str) -> Document | None:
        async with self.api.session() as session:
            try:
                answer: Document = (await session.get(self._path(service))).document
            except HttpStatusError as error:
                if error.status_code == HTTPStatus.NOT_FOUND:
                    return None
                raise
        return answer

    async def _history(self, deployment: Document) -> Sequence[Document]:
        """The deployment's replica sets, the oldest revision first."""
        uid = _metadata_of(deployment).get("uid")
        async with self.api.session() as session:
            sets = await list_items(session, f"/apis/apps/v1/namespaces/{quote(self.namespace)}/replicasets")
        own = [
            s for s in sets if any(o.get("uid") == uid for o in _metadata_of(s).get("ownerReferences", ()))
        ]
        return sorted(own, key=lambda s: int(_metadata_of(s).get("annotations", {}).get(_REVISION, "0")))

    async def _patch(
        self, operation: PlatformOperation, steps: Sequence[Document], *, dry: bool = False
    ) -> Document:
        options = {"fieldManager": "opsleuth"} | ({"dryRun": "All"} if dry else {})
        async with self.api.session() as session:
            path = self._path(operation.target)
            answer: Document = (await session.send("PATCH", path, steps, _PATCH, **options)).document
        return answer

    def _path(self, service: str) -> str:
        name = self.deployments.get(service, service)
        return f"/apis/apps/v1/namespaces/{quote(self.namespace, safe='')}/deployments/{quote(name, safe='')}"


def _annotation_name(kind: str) -> str:
    return f"opsleuth/{kind}"


def _annotation_patch(deployment: Document, path: str, name: str, value: str) -> Sequence[dict[str, Any]]:
    """The steps that set an annotation, also where there is none yet."""
    place: Any = deployment
    for part in path.strip("/").split("/"):
        place = place.get(part) or {}
    made = [] if place.get("annotations") else [{"op": "add", "path": f"{path}/annotations", "value": {}}]
    return [*made, {"op": "add", "path": f"{path}/annotations/{name.replace('/', '~1')}", "value": value}]


def _error_from_refusal(
    error: HttpStatusError,
) -> NotPermittedError | InvalidArgumentsError | OutcomeUnknownError:
    """What a refusal says of the change: for certain not made, or not known."""
    if error.status_code in _SAYS_NO:
        return NotPermittedError(str(error))
    return (
        InvalidArgumentsError(str(error)) if error.status_code in _WRONG else OutcomeUnknownError(str(error))
    )


def _metadata_of(document: Document) -> Document:
    meta: Document = document.get("metadata") or {}
    return meta


def _image_version(document: Document) -> str:
    """The tag of the first container's image, or its digest's beginning."""
    containers = document.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    image = str(containers[0].get("image", ""))
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return tag or digest[:19] or "latest"


def _template_without_hash(replica_set: Document) -> Document:
    """The template as a deployment has it: without the hash that the controller adds."""
    template: Document = replica_set["spec"]["template"]
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {k: v for k, v in (meta.get("labels") or {}).items() if k != _HASH}
    return {**template, "metadata": meta}


def _exact_version(replica_set: Document) -> str:
    """Version and hash of the template: one image may run with several configurations."""
    return f"{_image_version(replica_set)}+{(_metadata_of(replica_set).get('labels') or {}).get(_HASH, 'unknown')}"


def _replica_sets_by_version(history: Sequence[Document]) -> Mapping[str, Document]:
    """Replica sets by the names of their versions, in order. Of several of one version the newest has its plain name."""
    newest = {_image_version(replica_set): replica_set for replica_set in history}
    return {(_image_version(s) if newest[_image_version(s)] is s else _exact_version(s)): s for s in history}


def _build_service_view(service: str, deployment: Document, history: Sequence[Document]) -> ServiceView:
    meta, wanted = _metadata_of(deployment), int(deployment["spec"].get("replicas", 1))
    named = _replica_sets_by_version(history)
    now = [name for name, s in named.items() if _template_without_hash(s) == deployment["spec"]["template"]]
    return ServiceView(
        name=service,
        version=now[-1] if now else _image_version(deployment),
        versions=tuple(named),
        also=tuple(_exact_version(named[name]) for name in now),
        replicas=wanted,
        restarts=int(meta.get("generation", 0)),
        health=_describe_health(deployment, wanted),
        revision=str(meta.get("resourceVersion", "")),
    )


def _describe_health(deployment: Document, wanted: int) -> str:
    status = deployment.get("status") or {}
    if int(status.get("observedGeneration", 0)) < int(_metadata_of(deployment).get("generation", 0)):
        return "not yet taken up by its controller"
    updated, available = (int(status.get(key, 0)) for key in ("updatedReplicas", "availableReplicas"))
    total = int(status.get("replicas", 0))
    if updated == available == total == wanted:
        return "healthy"
    return f"{available} of {wanted} available, {updated} up to date"


def _describe_dry_run(before: Document, after: Document) -> str:
    """What a person should see of a dry run."""
    told = []
    old, new = (d["spec"].get("replicas", 1) for d in (before, after))
    if old != new:
        told.append(f"replicas {old} to {new}")
    if _image_version(before) != _image_version(after):
        told.append(f"version {_image_version(before)} to {_image_version(after)}")
    if before["spec"].get("template") != after["spec"].get("template"):
        told.append("new pods")
    if lines := changed_template_lines(before, after):
        more = f" and {len(lines) - _SHOWN} more lines" if len(lines) > _SHOWN else ""
        told.append(f"with {' '.join(lines[:_SHOWN])}{more}")
    return ", ".join(told)

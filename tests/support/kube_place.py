"""A namespace of a real cluster: what a team does in it, and waiting until the cluster has done its part."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import httpx
from servers import until

APPS, CORE, RBAC = "/apis/apps/v1", "/api/v1", "/apis/rbac.authorization.k8s.io/v1"
REVISION = "deployment.kubernetes.io/revision"
_KINDS = {"strategic": "application/strategic-merge-patch+json", "merge": "application/merge-patch+json"}


def template(name: str, image: str, **environment: str) -> dict[str, Any]:
    """The template of a pod with one container `app`, labelled with its name."""
    variables = [{"name": key, "value": value} for key, value in environment.items()]
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "app", "image": image, "env": variables}]},
    }


class Namespace:
    """One namespace; without a name a new one that no other test knows."""

    def __init__(self, admin: httpx.Client, name: str = "") -> None:
        self.admin, self.name = admin, name or f"shop-{uuid4().hex[:6]}"
        self.make("/api/v1/namespaces", {"metadata": {"name": self.name}})

    # --- documents -------------------------------------------------------------------------------------------

    def make(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        return self._said(self.admin.post(path, json=document))

    def change(self, path: str, document: Mapping[str, Any], kind: str = "merge") -> dict[str, Any]:
        headers = {"content-type": _KINDS[kind]}
        return self._said(self.admin.patch(path, json=document, headers=headers))

    def got(self, path: str, **parameters: str) -> dict[str, Any]:
        return self._said(self.admin.get(path, params=parameters))

    def within(self, plural: str, group: str = CORE) -> str:
        return f"{group}/namespaces/{self.name}/{plural}"

    @staticmethod
    def _said(answer: httpx.Response) -> dict[str, Any]:
        assert answer.is_success, answer.text
        document: dict[str, Any] = answer.json()
        return document

    # --- what a team does ------------------------------------------------------------------------------------

    def deploy(self, name: str, image: str, replicas: int = 1, **environment: str) -> None:
        """The deployment as it should be; a new one, or another revision of one that is there."""
        body = {
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": template(name, image, **environment),
            },
        }
        if self.admin.get(self.path(name)).is_success:
            self.change(self.path(name), {"spec": body["spec"]})
        else:
            self.make(self.within("deployments", APPS), body)

    def release(self, name: str, image: str, replicas: int = 1, **environment: str) -> None:
        """Deploy, and wait until all of it runs."""
        self.deploy(name, image, replicas, **environment)
        until(lambda: self.runs(name, image))

    def allow(self, user: str, role: str, *rules: tuple[str, Sequence[str], Sequence[str]]) -> None:
        """A role in this namespace, each rule an API group, resources and verbs; and that this user has it."""
        given = [{"apiGroups": [group], "resources": list(r), "verbs": list(v)} for group, r, v in rules]
        self.make(self.within("roles", RBAC), {"metadata": {"name": role}, "rules": given})
        self.bind(user, role, "Role")

    def bind(self, user: str, role: str, kind: str = "ClusterRole") -> None:
        """That this user has the role in this namespace."""
        subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
        ref = {"kind": kind, "name": role, "apiGroup": "rbac.authorization.k8s.io"}
        body = {"metadata": {"name": f"{user}-{role}"}, "subjects": [subject], "roleRef": ref}
        self.make(self.within("rolebindings", RBAC), body)

    # --- how it is -------------------------------------------------------------------------------------------

    def path(self, name: str) -> str:
        return f"{self.within('deployments', APPS)}/{name}"

    def deployment(self, name: str) -> dict[str, Any]:
        return self.got(self.path(name))

    def image(self, name: str) -> str:
        return str(self.deployment(name)["spec"]["template"]["spec"]["containers"][0]["image"])

    def pods(self, name: str) -> list[dict[str, Any]]:
        found = self.got(self.within("pods"), labelSelector=f"app={name}")["items"]
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def revisions(self, name: str) -> list[int]:
        """The revisions of the replica sets that are left, in order."""
        return sorted(self._hashes(name))

    def exact(self, name: str, revision: int) -> str:
        """The hash of this revision's template."""
        return self._hashes(name)[revision]

    def _hashes(self, name: str) -> dict[int, str]:
        found = self.got(self.within("replicasets", APPS), labelSelector=f"app={name}")["items"]
        metas = [s["metadata"] for s in found]
        return {int(m["annotations"][REVISION]): str(m["labels"]["pod-template-hash"]) for m in metas}

    def runs(self, name: str, image: str) -> bool:
        """Whether the rollout of this image is over, and well."""
        deployment = self.deployment(name)
        status, spec = deployment.get("status") or {}, deployment["spec"]
        counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        seen = status.get("observedGeneration") == deployment["metadata"]["generation"]
        return self.image(name) == image and seen and set(counts) == {spec["replicas"]}

    def waits(self, name: str, reason: str) -> bool:
        """Whether a container of its pods waits for this reason."""
        states = [s for pod in self.pods(name) for s in pod["status"].get("containerStatuses", ())]
        return any(s["state"].get("waiting", {}).get("reason") == reason for s in states)

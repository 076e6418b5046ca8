"""The kinds of objects that are listed, and which version of each a cluster has.

The versions are asked of the cluster itself with one request, so that older spellings (`v1beta1`) are found and a
group that it does not have costs nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.tools.sources.http_client import HttpSession, HttpStatusError
from opsleuth.tools.spec import NotPermittedError

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The form of a list that holds no content of its objects: their names, times, labels and owners."""


class FurtherKind(NamedTuple):
    """A kind that is listed besides workloads: group ("" is the core), versions best first, plural.

    `narrowed` are parameters by which the server leaves out anything that is not needed; `content`: whether more than
    metadata is asked for. `older` is where clusters have the kind that do not have it in its group.
    """

    kind: str
    group: str
    versions: tuple[str, ...]
    plural: str
    namespaced: bool = True
    narrowed: Mapping[str, str] = {}
    content: bool = True
    older: str = ""


_OWN_SECRETS = {"fieldSelector": "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token"}
_NETWORKING = "networking.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"

FURTHER_KINDS: tuple[FurtherKind, ...] = (
    FurtherKind("Service", "", ("v1",), "services"),
    FurtherKind("EndpointSlice", "discovery.k8s.io", ("v1", "v1beta1"), "endpointslices"),
    FurtherKind("ConfigMap", "", ("v1",), "configmaps"),
    FurtherKind("Secret", "", ("v1",), "secrets", narrowed=_OWN_SECRETS, content=False),
    FurtherKind("ServiceAccount", "", ("v1",), "serviceaccounts", content=False),
    FurtherKind("Namespace", "", ("v1",), "namespaces", namespaced=False),
    FurtherKind("LimitRange", "", ("v1",), "limitranges"),
    FurtherKind("PersistentVolume", "", ("v1",), "persistentvolumes", namespaced=False),
    FurtherKind("CronJob", "batch", ("v1", "v1beta1"), "cronjobs"),
    FurtherKind("NetworkPolicy", _NETWORKING, ("v1",), "networkpolicies"),
    FurtherKind("Ingress", _NETWORKING, ("v1", "v1beta1"), "ingresses", older="/apis/extensions/v1beta1"),
    FurtherKind("HorizontalPodAutoscaler", "autoscaling", ("v2", "v2beta2", "v2beta1", "v1"), "horizontalpodautoscalers"),
    FurtherKind("IngressClass", _NETWORKING, ("v1", "v1beta1"), "ingressclasses", namespaced=False),
    FurtherKind("PodDisruptionBudget", "policy", ("v1", "v1beta1"), "poddisruptionbudgets"),
    FurtherKind("StorageClass", "storage.k8s.io", ("v1", "v1beta1"), "storageclasses", namespaced=False),
    FurtherKind("PriorityClass", "scheduling.k8s.io", ("v1", "v1beta1"), "priorityclasses", namespaced=False),
    FurtherKind("ValidatingWebhookConfiguration", _ADMISSION, ("v1", "v1beta1"),
                "validatingwebhookconfigurations", namespaced=False),
    FurtherKind("MutatingWebhookConfiguration", _ADMISSION, ("v1", "v1beta1"),
                "mutatingwebhookconfigurations", namespaced=False),
    FurtherKind("Role", _RBAC, ("v1", "v1beta1"), "roles", content=False),
    FurtherKind("RoleBinding", _RBAC, ("v1", "v1beta1"), "rolebindings"),
    FurtherKind("ClusterRole", _RBAC, ("v1", "v1beta1"), "clusterroles", namespaced=False, content=False),
    FurtherKind("ClusterRoleBinding", _RBAC, ("v1", "v1beta1"), "clusterrolebindings", namespaced=False),
    FurtherKind("APIService", "apiregistration.k8s.io", ("v1", "v1beta1"), "apiservices", namespaced=False),
    FurtherKind("CustomResourceDefinition", "apiextensions.k8s.io", ("v1", "v1beta1"),
                "customresourcedefinitions", namespaced=False, content=False),
    FurtherKind("Rollout", "argoproj.io", ("v1alpha1",), "rollouts"),
    FurtherKind("Application", "argoproj.io", ("v1alpha1",), "applications"),
    FurtherKind("PeerAuthentication", "security.istio.io", ("v1", "v1beta1"), "peerauthentications"),
    FurtherKind("AuthorizationPolicy", "security.istio.io", ("v1", "v1beta1"), "authorizationpolicies"),
    FurtherKind("VirtualService", "networking.istio.io", ("v1", "v1beta1", "v1alpha3"), "virtualservices"),
    FurtherKind("DestinationRule", "networking.istio.io", ("v1", "v1beta1", "v1alpha3"), "destinationrules"),
    FurtherKind("Certificate", "cert-manager.io", ("v1",), "certificates"),
)  # fmt: skip

OLDER_ENDPOINTS = FurtherKind("Endpoints", "", ("v1",), "endpoints")
"""Where a cluster has no slices."""


async def find_versions(session: HttpSession) -> Mapping[str, Sequence[str]] | None:
    """The versions of each group that the cluster serves, best first; None where it does not say."""
    try:
        answer = await session.get("/apis")
    except (NotPermittedError, HttpStatusError):
        return None
    groups = answer.document.get("groups") if isinstance(answer.document, Mapping) else None
    if not isinstance(groups, Sequence) or not groups:
        return None
    return {str(g.get("name")): _list_versions(g) for g in groups if isinstance(g, Mapping)}


def _list_versions(group: Mapping[str, Any]) -> Sequence[str]:
    rows = group.get("versions") or ()
    return [str(row["version"]) for row in rows if isinstance(row, Mapping) and row.get("version")]


def list_base_paths(kind: FurtherKind, served: Mapping[str, Sequence[str]] | None) -> Sequence[str]:
    """Where the kind may lie, such as `/apis/batch/v1`, best first; none where the cluster does not have the group.

    A version of a group need not hold all its kinds: `batch/v1` had Jobs long before it had CronJobs. So those that
    follow are tried where the first does not know the kind.
    """
    if not kind.group:
        return [f"/api/{version}" for version in kind.versions]
    known = kind.versions if served is None else served.get(kind.group, ())
    found = [f"/apis/{kind.group}/{version}" for version in kind.versions if version in known]
    _, _, group_version = kind.older.partition("/apis/")
    group, _, version = group_version.partition("/")
    if group and (served is None or version in served.get(group, ())):
        found.append(kind.older)
    return found

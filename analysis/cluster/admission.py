"""Admission webhooks without an answer, and what admission refused or changed."""

import re
from collections.abc import Iterator

from opsleuth.analysis import message_meaning
from opsleuth.analysis.cluster.deviation import ClusterView, Deviation, format_kubectl, show_yaml
from opsleuth.analysis.cluster.model import is_ready
from opsleuth.analysis.cluster.objects import ClusterObject, Document, ObjectRef, get_part, rows_of
from opsleuth.analysis.fault_phrases import NAMES_CAUSE
from opsleuth.analysis.records import PlatformEvent

_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_REFUSED = ("admission webhook", "ValidatingAdmissionPolicy", "failed calling webhook")


def find_admission_trouble(view: ClusterView) -> Iterator[Deviation]:
    """Webhooks whose refusal or absence keeps objects from being made."""
    refused = [e for e in view.events if e.type != "Normal" and any(words in e.message for words in _REFUSED)]
    for configuration in view.cluster.of_kind(*_WEBHOOKS):
        for hook in _list_webhooks(configuration):
            yield from _find_unserved_webhook(configuration, hook, view)
    for event in refused:
        yield from _explain_refusal(event, view)


def _list_webhooks(configuration: ClusterObject) -> list[Document]:
    return list(rows_of(configuration.body, "webhooks") or rows_of(configuration.spec, "webhooks"))


def _find_unserved_webhook(
    configuration: ClusterObject, hook: Document, view: ClusterView
) -> Iterator[Deviation]:
    """A webhook that must be asked, behind a Service that has no ready pod."""
    target = get_part(hook, "clientConfig", "service")
    name, namespace = str(target.get("name", "")), str(target.get("namespace", ""))
    if (
        hook.get("failurePolicy", "Fail") != "Fail"
        or not name
        or not view.cluster.lists("Service", namespace)
    ):
        return
    service = view.cluster.get("Service", namespace, name)
    pods = view.cluster.backends(service) if service else []
    if service and (any(map(is_ready, pods)) or not (pods or view.cluster.pods_in(namespace))):
        return
    why = "has no ready pod" if service else "does not exist"
    yield Deviation(
        entity=configuration.ref,
        kind="config",
        weight=NAMES_CAUSE,
        text=f"{configuration.ref} must ask Service {namespace}/{name}, which {why}: what it guards cannot be created",
        service=name,
        latent=True,
        show=show_yaml(configuration.ref),
        undo=format_kubectl("scale", ObjectRef("deployment", namespace, name), "--replicas=1"),
    )


def _explain_refusal(event: PlatformEvent, view: ClusterView) -> Iterator[Deviation]:
    """What admission refused, in its own words: by the policy that they name, else the webhook's configuration."""
    about, message = event.object, event.message
    namespace = (event.extra or {}).get("namespace")
    hook = message.partition('webhook "')[2].partition('"')[0]
    owners = [
        configuration.ref
        for configuration in view.cluster.of_kind(*_WEBHOOKS)
        if hook and any(row.get("name") == hook for row in _list_webhooks(configuration))
    ]
    kind, _, name = about.rpartition("/")
    service = name
    if kind == "ReplicaSet" and name.rpartition("-")[0]:
        kind, service = "Deployment", name.rpartition("-")[0]
    policy = _find_named_policy(message)
    entity = policy or (owners[0] if owners else ObjectRef(kind or "Object", namespace, service))
    meaning = message_meaning.read_message_meaning(message)
    untrusted = meaning is not None and meaning.kind == "certificate"
    yield Deviation(
        entity=entity,
        kind="certificate" if untrusted else "permission" if "denied" in message else "config",
        weight=NAMES_CAUSE,
        text=f"admission keeps {about.replace('/', ' ')} from creating its pods: {message[:300]}",
        service=service,
        since=event.began,
        show=show_yaml(entity),
    )


# As Kyverno and the API server's own policies word a refusal; both kinds of policy lie in no namespace.
_POLICIES = (
    ("ClusterPolicy", re.compile(r"due to the following policies\s+(?P<name>[a-z0-9][a-z0-9.-]*):")),
    ("ValidatingAdmissionPolicy", re.compile(r"ValidatingAdmissionPolicy '(?P<name>[a-z0-9][a-z0-9.-]*)'")),
)


def _find_named_policy(message: str) -> ObjectRef | None:
    found = ((kind, pattern.search(message)) for kind, pattern in _POLICIES)
    return next((ObjectRef(kind, None, match["name"]) for kind, match in found if match), None)

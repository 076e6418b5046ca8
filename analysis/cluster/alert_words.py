"""Whether an alert is about an object: by its name and the words that people use for its kind."""

import re
from collections.abc import Collection, Mapping

from opsleuth.analysis.cluster.objects import ObjectRef
from opsleuth.analysis.records import AlertFacts

# Beginnings of words, in lower case.
_KIND_WORDS: Mapping[str, tuple[str, ...]] = {
    "HorizontalPodAutoscaler": ("autoscal", "hpa", "scale", "scaling", "replica"),
    "ScaledObject": ("autoscal", "keda", "scale", "scaling", "replica"),
    "Ingress": ("ingress", "certificate", "cert", "tls", "https", "host"),
    "Certificate": ("certificate", "cert", "tls", "https"),
    "PersistentVolumeClaim": ("volume", "storage", "disk", "pvc", "claim"),
    "PodDisruptionBudget": ("drain", "evict", "pdb", "disruption", "upgrade"),
    "NetworkPolicy": ("network", "policy", "firewall", "blocked"),
    "ResourceQuota": ("quota",),
}
_RUN_BY_CLOCK = frozenset({"CronJob", "Job"})
# Shorter parts of names (`job`, `sync`, `prod`) are words of any sentence.
_LEAST_LETTERS = 5


def is_object_named(ref: ObjectRef, service: str, text: str) -> bool:
    """Whether a text names the object, or its service, together with a word for its kind."""
    words = _split_words(text)
    if ref.name not in text and service not in words and service not in text:
        return False
    starts = (ref.kind.lower(), *_KIND_WORDS.get(ref.kind, ()))
    return ref.kind.lower() in text.lower() or any(word.startswith(starts) for word in words)


def is_service_named(service: str, alert: AlertFacts) -> bool:
    """Whether the alert is about the service, or names it as a word of its own."""
    return alert.service == service or service.lower() in _split_words(alert.text)


def is_job_spoken_of(ref: ObjectRef, text: str, services: Collection[str]) -> bool:
    """Whether a text is about what a job does: jobs receive no requests, so people name their work (`settlements are late`).

    Parts of its name that are services' own names do not count.
    """
    if ref.kind not in _RUN_BY_CLOCK:
        return False
    parts = [p for p in ref.name.lower().split("-") if len(p) >= _LEAST_LETTERS and p not in services]
    return any(word.startswith(part) for word in _split_words(text) for part in parts if part.isalpha())


def _split_words(text: str) -> list[str]:
    return re.findall(r"[a-z][a-z0-9-]*", text.lower())

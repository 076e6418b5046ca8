"""Namespaces of others: nothing that the incident concerns runs there."""

import re

from opsleuth.analysis.object_owners import collect_object_owners
from opsleuth.analysis.records import Recording

_NAMED = re.compile(r"\bnamespace[ :=]+\"?([a-z0-9][a-z0-9-]*)", re.IGNORECASE)
# What runs here serves every namespace.
_OF_ALL = frozenset(
    {"kube-system", "kube-node-lease", "istio-system", "ingress-nginx", "cert-manager", "default"}
)


def foreign_namespaces(recording: Recording) -> frozenset[str]:
    """Namespaces of recorded objects and events that hold no service of the topology and are not named by the alert.

    Empty where the topology does not tell what belongs to the incident.
    """
    services = {name for edge in recording.topology or () for name in (edge.caller, edge.callee)}
    if not services:
        return frozenset()
    known = collect_object_owners(recording)
    own = set(_NAMED.findall(recording.alert.text))
    everywhere: set[str] = set()
    for state in recording.objects or ():
        if state.namespace:
            everywhere.add(state.namespace)
            if known.of(state.name, state.kind) in services:
                own.add(state.namespace)
    for event in recording.events or ():
        if namespace := (event.extra or {}).get("namespace"):
            everywhere.add(str(namespace))
            if known.of(event.object) in services:
                own.add(str(namespace))
    return frozenset(everywhere - own - _OF_ALL) if own else frozenset()

"""Which service an object of the platform belongs to, found from names that the recording itself uses.

Pods, replica sets and jobs carry generated suffixes; the service is the longest known name in front of such a
suffix. Where no name is known, the suffix forms of the Kubernetes controllers are cut off.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opsleuth.analysis.records import Recording

CONTROLLERS = frozenset({"deployment", "statefulset", "daemonset", "cronjob", "job"})
GENERATED = frozenset({"pod", "replicaset"})

# Kubernetes draws suffixes from an alphabet without vowels and look-alikes (apimachinery, util/rand), five
# characters for a pod, up to ten for a template's hash; a stateful set counts.
_SUFFIX = re.compile(r"(?:-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}$|-\d{1,4}$")
_HASH = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}$")


@dataclass(frozen=True, slots=True)
class ObjectOwners:
    """The names of services and controllers that a recording knows."""

    names: frozenset[str]
    pods: Mapping[str, str]

    def of(self, name: str, kind: str = "") -> str:
        """The service of the object `name` (`Kind/name`, `namespace/name` and a plain name are understood)."""
        prefix, _, bare = name.rpartition("/")
        kind = (kind or prefix.rpartition("/")[2]).lower()
        if bare in self.names or (kind and kind not in GENERATED | {"job"}):
            return bare
        known = self._longest_known_prefix(bare) or self.pods.get(bare)
        if known:
            return known
        return (
            _SUFFIX.sub("", bare) if kind == "pod" else _HASH.sub("", bare) if kind == "replicaset" else bare
        )

    def serving(self, name: str, kind: str) -> str:
        """As `of`; an object that is not among the known names goes by the longest of them that its name begins with."""
        found = self.of(name, kind)
        if found in self.names:
            return found
        begun = [known for known in self.names if found.startswith(f"{known}-")]
        return max(begun, key=len, default=found)

    def mentioned_service(self, text: str, besides: str = "") -> str | None:
        """The service that the words of `text` name `besides` one that is known already, if it is exactly one."""
        words = {word.rpartition("/")[2].strip(".-") for word in re.findall(r"[\w./-]+", text)}
        found = {self.pods.get(word, word) for word in words if word in self.names or word in self.pods}
        found.discard(besides)
        return found.pop() if len(found) == 1 else None

    def _longest_known_prefix(self, name: str) -> str | None:
        parts = name.split("-")
        for end in range(len(parts) - 1, 0, -1):
            head, tail = "-".join(parts[:end]), parts[end:]
            # A generated suffix holds a digit or is bare of vowels; an ordinary word makes another service.
            if head in self.names and (any(c.isdigit() for c in "".join(tail)) or _SUFFIX.search(name)):
                return head
        return None


def collect_object_owners(recording: Recording) -> ObjectOwners:
    """Every service and controller name that the recording's own rows use."""
    names = frozenset(name for name in _collect_service_names(recording) if name)
    return ObjectOwners(names, _map_pods_to_services(recording, names))


def _collect_service_names(recording: Recording) -> Iterable[str]:
    if recording.alert.service:
        yield recording.alert.service
    for edge in recording.topology or ():
        yield from (edge.caller, edge.callee)
    yield from {series.service for series in recording.metrics or ()}
    yield from {line.service for line in recording.logs or ()}
    yield from {change.service for change in recording.changes or ()}
    for state in recording.objects or ():
        if state.kind.lower() in CONTROLLERS:
            yield state.name.rpartition("/")[2]


def _map_pods_to_services(recording: Recording, names: frozenset[str]) -> dict[str, str]:
    """Pod to service as the log lines pair them; a line that a platform service wrote about a pod does not count."""
    pairs = {(line.pod, line.service) for line in recording.logs or () if line.pod and line.pod not in names}
    speaks_of: dict[str, set[str]] = {}
    for pod, service in pairs:
        speaks_of.setdefault(str(pod), set()).add(service)
    return {pod: _choose_pod_service(pod, services) for pod, services in sorted(speaks_of.items())}


def _choose_pod_service(pod: str, services: Iterable[str]) -> str:
    return max(services, key=lambda service: (pod.startswith(service), len(service), service))

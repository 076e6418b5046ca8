"""The service that a log line belongs to: replicas and containers are its instances, log shippers are not services."""

import re
from dataclasses import dataclass
from pathlib import Path

CARRIERS = frozenset(
    [
        "filebeat",
        "fluent-bit",
        "fluentbit",
        "fluentd",
        "promtail",
        "vector",
        "logstash",
        "stdout",
        "stderr",
        "docker",
        "containerd",
        "dockerd",
        "k8s",
        "kubernetes",
        "alloy",
        "grafana-agent",
        "otel-collector",
        "otelcol",
        "syslog-ng",
        "unknown",
        "none",
        "null",
        "-",
        "unknown_service",
    ]
)
"""What carries lines, or says that nothing is known."""
_GENERIC_CONTAINERS = frozenset(
    ["app", "main", "server", "container", "istio-proxy", "linkerd-proxy", "envoy", "sidecar"]
)
_UNKNOWN = re.compile(r"unknown_service(?::.*)?")
_CONTAINER_ID = re.compile(r"[0-9a-f]{12}|[0-9a-f]{64}")
_POD_OF_DEPLOYMENT = re.compile(r"(.+?)-[bcdfghjklmnpqrstvwxz2456789]{5,10}-[bcdfghjklmnpqrstvwxz2456789]{5}")
_POD_OF_DAEMON_SET = re.compile(r"(.+?)-(?=[a-z]*\d)[bcdfghjklmnpqrstvwxz2456789]{5}")
_LOOSE_POD = re.compile(r"(.+?)-(?=[a-f]*\d)[0-9a-f]{8,10}-(?=[a-z]*\d)[a-z0-9]{5}")
_ORDINAL = re.compile(r"(.+?)[-_]\d{1,3}")
_COMPOSE = re.compile(r"(?:[a-z0-9][\w.-]*?_)?(.+?)[-_]\d{1,3}")
_IIS = re.compile(r"(?:u_)?(?:ex|in|nc)\d{4,8}(?:_x)?")
_ROTATED = re.compile(r"\d{1,4}")
_PODS_FOLDER = re.compile(r"([a-z0-9-]+)_([a-z0-9.-]+)_([0-9a-f-]{2,36})")
_CONTAINERS_FILE = re.compile(r"([a-z0-9.-]+)_([a-z0-9-]+)_([a-z0-9.-]+)-[0-9a-f]{64}")
_FOLDERS_OF_LOGS = frozenset(["var", "log", "logs", "lib", "docker", "containers", "pods", "tmp"])


@dataclass(frozen=True, slots=True)
class FileNames:
    """What a file's path says about its lines: `service` is empty where it names none."""

    service: str
    pod: str | None = None
    namespace: str | None = None


def named_service(word: str | None) -> str:
    """The service that a field names; empty for carriers, for `unknown_service` and for the id of a container."""
    if not word or word.lower() in CARRIERS or _UNKNOWN.fullmatch(word) or _CONTAINER_ID.fullmatch(word):
        return ""
    return word.removesuffix(".service") or word


def workload_of_pod(pod: str) -> str:
    """The workload that a pod is a replica of, by its name; the name itself where it is not a replica's."""
    for pattern in (_POD_OF_DEPLOYMENT, _LOOSE_POD, _POD_OF_DAEMON_SET, _ORDINAL):
        if found := pattern.fullmatch(pod):
            return found[1]
    return pod


def service_of_container(container: str, pod: str | None = None) -> str:
    """The service of a container: its own name, unless that says nothing beside its pod's."""
    if pod and (container in _GENERIC_CONTAINERS or container in CARRIERS):
        return workload_of_pod(pod)
    return named_service(container)


def service_of_compose_container(container: str) -> str:
    """`tills-1` and `shop_tills_1` are replicas of tills."""
    found = _COMPOSE.fullmatch(container)
    return found[1] if found else container


def service_of_file(path: Path) -> str:
    """What a log file is called without what rotation adds: `orders-api.log.2.gz` is `orders-api`."""
    name = re.sub(r"\.(gz|bz2|xz|zst)$", "", path.name)
    name = re.sub(r"\.(log|txt|out|err|ndjson|jsonl?|csv|parquet)(\b.*)?$", "", name)
    if _IIS.fullmatch(name):
        return "iis"
    name = re.sub(r"[-_.](?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)$", "", name)
    return re.sub(r"[-_.]\d{4}[-_]?\d\d[-_]?\d\d.*$|\.\d+$", "", name) or path.stem


def names_of_file(path: Path) -> FileNames:
    """Service, pod and namespace as the path of a file says, in the layouts of Kubernetes and Docker too."""
    pods = _PODS_FOLDER.fullmatch(path.parent.parent.name)
    stem = service_of_file(path)
    if pods and _ROTATED.fullmatch(stem):
        return FileNames(service_of_container(path.parent.name, pods[2]), pods[2], pods[1])
    if found := _CONTAINERS_FILE.fullmatch(stem):
        return FileNames(service_of_container(found[3], found[1]), found[1], found[2])
    if _ROTATED.fullmatch(stem) or _CONTAINER_ID.fullmatch(stem.removesuffix("-json")):
        return FileNames(_service_of_folder(path.parent))
    for pattern in (_POD_OF_DEPLOYMENT, _LOOSE_POD):
        if found := pattern.fullmatch(stem):
            return FileNames(found[1], stem)
    ordinal = _ORDINAL.fullmatch(stem)
    if ordinal and _has_siblings(path, stem, ordinal[1]):
        return FileNames(ordinal[1], stem)
    return FileNames(stem)


def _service_of_folder(folder: Path) -> str:
    """The nearest folder that is neither part of a usual log layout nor an id."""
    for part in (folder, *folder.parents):
        name = part.name
        if name and name not in _FOLDERS_OF_LOGS and not _CONTAINER_ID.fullmatch(name):
            return name
        if name in ("containers", "pods"):
            return ""
    return ""


def _has_siblings(path: Path, stem: str, workload: str) -> bool:
    """Whether other ordinals of the same name lie beside the file."""
    others = (service_of_file(other) for other in path.parent.glob(f"{workload[:60]}[-_]*"))
    return any(
        other != stem and (found := _ORDINAL.fullmatch(other)) is not None and found[1] == workload
        for other in others
    )

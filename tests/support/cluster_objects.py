"""Kubernetes objects as the API gives them, small enough to read in a test."""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.analysis.cluster.deviation import Analyzer, ClusterView, Deviation
from opsleuth.analysis.cluster.documents import whole_objects
from opsleuth.analysis.cluster.model import Cluster
from opsleuth.analysis.cluster.objects import ClusterObject
from opsleuth.analysis.records import (
    AlertFacts,
    ObjectState,
    PlatformEvent,
    Recording,
    ServiceDependency,
    TimeRange,
)

READ_AT = 1_767_600_000.0  # 2026-01-05T08:00:00Z
WINDOW = TimeRange(READ_AT - 3600.0, READ_AT)
ONSET = READ_AT - 1800.0
NAMESPACE = "store"
FAILING = AlertFacts("requests to web fail", service="web", onset=ONSET)

Document = dict[str, Any]


def whole(kind: str, name: str, spec: Mapping[str, Any] | None = None, **parts: Any) -> Document:
    """An object; `namespace=None` for one that lies in none, `metadata` adds to its metadata."""
    namespace = parts.pop("namespace", NAMESPACE)
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
    return {
        "kind": kind,
        "metadata": metadata,
        "spec": dict(spec or {}),
        "status": parts.pop("status", {}),
        **parts,
    }


def pod(app: str, *, ready: bool = True, node: str = "node-a", number: int = 1, **more: Any) -> Document:
    state = {"name": app, "ready": ready, "state": {"running": {"startedAt": "2026-01-05T06:00:00Z"}}}
    status = {
        "phase": "Running",
        "podIP": f"10.1.0.{number}",
        "conditions": [{"type": "Ready", "status": str(ready)}],
        "containerStatuses": [state],
        **more.pop("status", {}),
    }
    spec = {"nodeName": node, "containers": [{"name": app}], **more.pop("spec", {})}
    labels = {"labels": {"app": app, **more.pop("labels", {})}, **more.pop("metadata", {})}
    return whole("Pod", f"{app}-6d5c7f8b4-x{number}k2p", spec, status=status, metadata=labels, **more)


def deployment(
    app: str,
    *,
    replicas: int = 1,
    ready: int | None = None,
    template: Mapping[str, Any] | None = None,
    **more: Any,
) -> Document:
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": app}},
        "template": {"spec": {"containers": [{"name": app}], **(template or {})}},
        **more.pop("spec", {}),
    }
    status = {
        "replicas": replicas,
        "readyReplicas": replicas if ready is None else ready,
        **more.pop("status", {}),
    }
    return whole(more.pop("kind", "Deployment"), app, spec, status=status, **more)


def service(app: str, selects: str | None = None, **spec: Any) -> Document:
    ports = [{"port": 80, "targetPort": 8080}]
    return whole("Service", app, {"selector": {"app": selects or app}, "ports": ports, **spec})


SHOP = (deployment("web"), pod("web"), deployment("cart"), pod("cart", number=2))
"""A service and the one that it calls."""


def objects(*documents: Document) -> list[ClusterObject]:
    return [found for document in documents for found in whole_objects(document, READ_AT)]


def states(*documents: Document) -> list[ObjectState]:
    """The objects as rows of a recording, each whole."""
    return [
        ObjectState(
            time=READ_AT,
            kind=d["kind"],
            name=d["metadata"]["name"],
            status=d["status"],
            namespace=d["metadata"].get("namespace"),
            spec=d["spec"],
            labels=d["metadata"].get("labels"),
            extra={k: v for k, v in d.items() if k not in {"kind", "spec", "status"}},
        )
        for d in documents
    ]


def view(
    *documents: Document,
    calls: Sequence[tuple[str, str]] = (),
    events: Sequence[PlatformEvent] = (),
    alert: AlertFacts | None = None,
) -> ClusterView:
    return ClusterView(
        Cluster(objects(*documents)),
        events,
        [ServiceDependency(*pair) for pair in calls],
        alert or FAILING,
        WINDOW,
    )


def found_by(analyzer: Analyzer, looked_at: ClusterView) -> list[Deviation]:
    return list(analyzer(looked_at))


def told(about: str, reason: str, message: str, **more: Any) -> PlatformEvent:
    return PlatformEvent(
        time=more.pop("time", ONSET), source="kubernetes", object=about, type=more.pop("type", "Warning"),
        reason=reason, message=message, **more,
    )  # fmt: skip


def recorded(*documents: Document, **more: Any) -> Recording:
    alert = more.pop("alert", FAILING)
    calls = more.pop("calls", ())
    return Recording(
        alert,
        WINDOW,
        objects=states(*documents),
        topology=[ServiceDependency(*pair) for pair in calls],
        **more,
    )

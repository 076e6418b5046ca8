"""What each backend over HTTP answers, as its public API document says: with data, and with none.

Where a real server or an independent re-implementation can be had, other tests hold the source against it; these
answers are for what all sources have in common.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract_server import Asked, Reply
from kube_cluster import cluster, kubeconfig

from opsleuth.tools.sources.source_protocols import Capability

NANO = 1_000_000_000
AT = 1_772_546_400  # 2026-03-03T14:00:00Z
TRACE, SPAN_ID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@dataclass(frozen=True)
class Backend:
    """Settings besides the address, a capability that it serves, and its answers."""

    capability: Capability
    answering: Callable[[Asked], Reply]
    nothing: Callable[[Asked], Reply]
    more: Mapping[str, Any] = field(default_factory=dict)


def settings_of(kind: str, url: str, folder: Path) -> dict[str, Any]:
    """How a source of this kind is configured to look at `url`."""
    if kind == "kubernetes":
        return {"kind": kind, "kubeconfig": str(kubeconfig(folder, url))}
    return {"kind": kind, "url": url, **BACKENDS[kind].more}


def as_toml(settings: Mapping[str, Any]) -> str:
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())


def _paths(answers: Mapping[str, Any], fallback: Any) -> Callable[[Asked], Reply]:
    """The answer by how the path ends."""

    def answering(asked: Asked) -> Reply:
        found = next((body for end, body in answers.items() if asked.path.endswith(end)), fallback)
        return Reply(found)

    return answering


def _prometheus(result: list[Any], names: list[str]) -> Callable[[Asked], Reply]:
    data = {"resultType": "matrix", "result": result}
    return _paths({"/values": {"status": "success", "data": names}, "/metadata": {"status": "success", "data": {}}},
                  {"status": "success", "data": data})  # fmt: skip


def _search(hits: list[Any]) -> Callable[[Asked], Reply]:
    return _paths({}, {"timed_out": False, "_shards": {"total": 1, "failed": 0}, "hits": {"hits": hits}})


def _loki(streams: list[Any], labels: list[str]) -> Callable[[Asked], Reply]:
    data = {"resultType": "streams", "result": streams}
    return _paths({"/labels": {"status": "success", "data": labels}, "/values": {"status": "success", "data": ["cart"]}},
                  {"status": "success", "data": data})  # fmt: skip


_JAEGER_SPAN = {
    "traceID": TRACE, "spanID": SPAN_ID, "operationName": "GET /cart", "references": [], "startTime": AT * 1_000_000,
    "duration": 120_000, "tags": [{"key": "error", "type": "bool", "value": True}], "processID": "p1",
}  # fmt: skip
_JAEGER_TRACE = {"traceID": TRACE, "spans": [_JAEGER_SPAN], "processes": {"p1": {"serviceName": "cart"}}}
_OTLP = {
    "batches": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "cart"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": b64encode(bytes.fromhex(TRACE)).decode(),
                            "spanId": b64encode(bytes.fromhex(SPAN_ID)).decode(),
                            "name": "GET /cart",
                            "startTimeUnixNano": str(AT * NANO),
                            "endTimeUnixNano": str(AT * NANO + 120_000_000),
                            "status": {"code": "STATUS_CODE_ERROR"},
                        }
                    ]
                }
            ],
        }
    ]
}
_DEPLOYMENT = {
    "id": 1, "sha": "a84d88e7554fc1fa21bcbc4efae3c782a70d2b9d", "ref": "v2.14.0", "environment": "production",
    "description": "nightly", "created_at": "2026-03-03T14:00:00Z", "creator": {"login": "ada"},
}  # fmt: skip
_PULL = {
    "number": 7, "title": "Cache of 4 GB", "merged_at": "2026-03-03T13:58:00Z", "updated_at": "2026-03-03T14:01:00Z",
    "user": {"login": "ada"}, "merge_commit_sha": "a84d88e7554fc1fa21bcbc4efae3c782a70d2b9d",
}  # fmt: skip
_GITLAB_DEPLOYMENT = {
    "id": 1, "iid": 1, "ref": "v2.14.0", "sha": "a84d88e7554fc1fa21bcbc4efae3c782a70d2b9d", "status": "success",
    "created_at": "2026-03-03T21:59:00.000+08:00", "finished_at": "2026-03-03T22:00:00.000+08:00",
    "environment": {"name": "production"}, "user": {"username": "ada"},
}  # fmt: skip
_MERGE = {
    "iid": 7, "title": "Cache of 4 GB", "merged_at": "2026-03-03T13:58:00Z", "author": {"username": "ada"},
    "merge_commit_sha": "a84d88e7554fc1fa21bcbc4efae3c782a70d2b9d",
}  # fmt: skip
_ALERT = {
    "labels": {"alertname": "CartSlow", "service": "cart", "severity": "page"}, "annotations": {"summary": "p95 above 1 s"},
    "startsAt": "2026-03-03T14:00:00.000Z", "updatedAt": "2026-03-03T14:10:00.000Z", "endsAt": "2026-03-03T14:30:00.000Z",
    "status": {"state": "active", "silencedBy": [], "inhibitedBy": []}, "fingerprint": "1",
}  # fmt: skip

BACKENDS: Mapping[str, Backend] = {
    "prometheus": Backend(
        "metrics",
        _prometheus([{"metric": {"service": "cart", "__name__": "up"}, "values": [[AT, "1"], [AT + 30, "0"]]}], ["up"]),
        _prometheus([], []),
    ),
    "opensearch": Backend(
        "logs",
        _search([{"_source": {"@timestamp": "2026-03-03T22:00:00+08:00", "message": "full", "service": "cart"}, "sort": [AT * 1000]}]),
        _search([]),
    ),
    "loki": Backend(
        "logs",
        _loki([{"stream": {"app": "cart", "level": "error"}, "values": [[str(AT * NANO), "full"]]}], ["app", "pod"]),
        _loki([], ["app"]),
    ),
    "jaeger": Backend(
        "traces",
        _paths({"/services": {"data": ["cart"]}, "/traces": {"data": [_JAEGER_TRACE]},
                "/dependencies": {"data": [{"parent": "web", "child": "cart", "callCount": 7}]}}, {"data": None}),
        _paths({}, {"data": []}),
    ),
    "tempo": Backend(
        "traces",
        _paths({"/search": {"traces": [{"traceID": TRACE, "rootServiceName": "cart"}], "metrics": {}}}, _OTLP),
        _paths({}, {"metrics": {"inspectedBytes": "0"}}),
    ),
    "github": Backend(
        "changes",
        _paths({"/deployments": [_DEPLOYMENT], "/pulls": [_PULL]}, {"full_name": "shop/cart"}),
        _paths({}, []),
        {"repository": "shop/cart"},
    ),
    "gitlab": Backend(
        "changes",
        _paths({"/deployments": [_GITLAB_DEPLOYMENT], "/merge_requests": [_MERGE]}, {"path_with_namespace": "shop/cart"}),
        _paths({}, []),
        {"project": "shop/cart"},
    ),
    "grafana": Backend(
        "changes",
        _paths({"/annotations": [{"id": 1, "time": AT * 1000, "text": "<b>deploy</b> cart 2.14.0", "tags": ["deploy", "service:cart"],
                                  "login": "ada"}]}, {"version": "11.5.0"}),
        _paths({}, []),
    ),
    "alertmanager": Backend(
        "events",
        _paths({"/alerts": [_ALERT], "/silences": []}, {"versionInfo": {"version": "0.28.0"}}),
        _paths({}, []),
    ),
    "kubernetes": Backend("logs", cluster, _paths({}, {"metadata": {}, "items": []})),
}  # fmt: skip
KINDS = sorted(BACKENDS)

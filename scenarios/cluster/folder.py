"""A cluster world as a case folder: objects, events, changes, metrics, logs, traces and topology."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_utc, parse_epoch
from opsleuth.scenarios.cluster.scene import ClusterScene
from opsleuth.scenarios.cluster.state import Manifest
from opsleuth.scenarios.fault_propagation import compute_levels
from opsleuth.scenarios.invented_names import choose_person, invent_versions
from opsleuth.scenarios.log_rows import draw_arrivals
from opsleuth.scenarios.metric_rows import DIALECTS, MetricDialect, MonitoringSetup, write_metrics
from opsleuth.scenarios.span_rows import write_requests

_ROUTINE = (
    ("Pulled", "Normal", 'Container image "{image}" already present on machine'),
    ("Created", "Normal", "Created container: {name}"),
    ("Scheduled", "Normal", "Successfully assigned {namespace}/{pod} to {node}"),
    ("Unhealthy", "Warning", "Readiness probe failed: HTTP probe failed with statuscode: 503"),
)
_FILES = {
    "objects": ("objects.jsonl",),
    "events": ("events.jsonl",),
    "traces": ("traces.jsonl", "traces_baseline.jsonl"),
    "logs": ("logs.jsonl", "logs_baseline.jsonl"),
}


AlertSignal = Literal["latency", "requests", "errors"]
# The place of a signal's metric in any dialect.
_PLACES: dict[AlertSignal, int] = {"latency": 1, "requests": 2, "errors": 3}


@dataclass(frozen=True, slots=True)
class ClusterAlert:
    """What was sent; `service` and `signal` None where it names none."""

    text: str
    service: str | None
    signal: AlertSignal | None


def write_cluster_case(
    cluster: ClusterScene, alert: ClusterAlert, folder: Path, *, without: Collection[str] = ()
) -> None:
    """Write all files below `folder`, without those of the sources in `without`."""
    random = cluster.random
    monitoring = MonitoringSetup(
        random.choice(tuple(DIALECTS.values())), per_pod=False, baseline=random.random() < 0.5
    )
    case = CaseFolderWriter(_describe_incident(cluster, alert, monitoring.dialect, folder.name))
    write_metrics(cluster.base, monitoring, case)
    write_requests(cluster.base, case, spans=True, baseline=monitoring.baseline)
    _add_peers(cluster, case)
    _silence_the_gone(cluster, case)
    _rename_pods(cluster, case)
    _write_lines(cluster, case)
    _write_objects(cluster, case)
    _write_events(cluster, case)
    _write_changes(cluster, case)
    for call in cluster.base.world.calls:
        case.add("topology.csv", caller=call.caller, callee=call.callee)
    for source in without:
        for file in _FILES[source]:
            case.tables.pop(file, None)
    case.write(folder)


def _describe_incident(
    cluster: ClusterScene, alert: ClusterAlert, dialect: MetricDialect, name: str
) -> Manifest:
    timing, random = cluster.base.timing, cluster.random
    sent: dict[str, Any] = {"text": alert.text, "fired_at": format_utc(timing.fired)}
    sent |= {"service": alert.service} if alert.service else {}
    # Half of all alerts carry the metric of their rule, the others its text only.
    if alert.signal and random.random() < 0.5:
        sent["metric"] = dialect.app[_PLACES[alert.signal]].name
    return {
        "id": name,
        "question": random.choice(
            (
                "Why did this alert fire?",
                "What is the cause, and which object must change?",
                "What is wrong here?",
            )
        ),
        "application": f"{cluster.namespace} on Kubernetes",
        "alert": sent | {"severity": random.choice(("warning", "critical"))},
        "alert_start_utc": format_utc(timing.fired - random.uniform(60, 150)),
        "window": {
            "start": format_utc(timing.start),
            "end": format_utc(timing.end),
            "step_seconds": timing.step,
        },
        "services": [s.name for s in cluster.base.world.services],
    }


def _add_peers(cluster: ClusterScene, case: CaseFolderWriter) -> None:
    """Give spans their kind, and client spans their peer, as instrumentation does."""
    for file in ("traces.jsonl", "traces_baseline.jsonl"):
        for row in case.tables.get(file, ()):
            callee = str(row["operation"]).removeprefix("call ")
            client = callee != row["operation"]
            row["kind"] = "client" if client else "server"
            if client:
                row["operation"] = cluster.random.choice(("GET", "POST"))
                row["peer"] = f"{callee}:{cluster.ports.get(callee, 443)}"


def _silence_the_gone(cluster: ClusterScene, case: CaseFolderWriter) -> None:
    """Of what does not run, nothing is measured and nothing is logged."""
    for file in ("metrics.csv", "logs.jsonl"):
        rows = case.tables.get(file, [])
        case.tables[file] = [r for r in rows if not _is_gone(cluster, r)]
    timed = {metric.name for dialect in DIALECTS.values() for metric in dialect.app[:2]}
    unheard = _find_unheard(cluster)
    case.tables["metrics.csv"] = [
        r
        for r in case.tables["metrics.csv"]
        if r["metric"] not in timed
        or parse_epoch(r["timestamp"]) < unheard.get(r["service"], cluster.base.timing.end + 1)
    ]


def _find_unheard(cluster: ClusterScene) -> dict[str, float]:
    """From when no request arrives at a service any more, so that there is no latency to measure."""
    base = cluster.base
    now = compute_levels(base.world, base.effects, base.timing.end)
    return {name: base.timing.onset + 60 for name, level in now.items() if level.rps < 1e-6}


def _is_gone(cluster: ClusterScene, row: Manifest) -> bool:
    since = cluster.gone.get(row["service"])
    return since is not None and parse_epoch(row["timestamp"]) > since + 45


def _rename_pods(cluster: ClusterScene, case: CaseFolderWriter) -> None:
    """After a roll-out lines come from the new pods, and always with their namespace."""
    for file in ("logs.jsonl", "logs_baseline.jsonl"):
        for row in case.tables.get(file, ()):
            row["namespace"] = cluster.namespace
            successor = cluster.renamed.get(row.get("pod") or "")
            if successor and parse_epoch(row["timestamp"]) >= successor[0]:
                row["pod"] = successor[1]


def _write_lines(cluster: ClusterScene, case: CaseFolderWriter) -> None:
    """The lines of callers, servers and the platform, each at its rate."""
    end = cluster.base.timing.end
    for source in cluster.lines:
        pods = [source.pod] if source.pod else _pod_names(cluster, source.service, source.namespace)
        for moment in draw_arrivals(cluster.random, source.per_minute, source.since, end):
            case.add(
                "logs.jsonl",
                timestamp=format_utc(moment),
                service=source.service,
                namespace=source.namespace,
                pod=cluster.random.choice(pods) if pods else None,
                level=source.level or None,
                message=source.text(cluster.random),
            )


def _pod_names(cluster: ClusterScene, service: str, namespace: str) -> list[str | None]:
    pods = cluster.state.of_kind("Pod", namespace)
    return [p["metadata"]["name"] for p in pods if p["spec"]["containers"][0].get("name") == service]


def _write_objects(cluster: ClusterScene, case: CaseFolderWriter) -> None:
    """Every object whole, with the columns of the case format."""
    captured = format_utc(cluster.base.timing.end)
    for manifest in cluster.state:
        metadata = manifest["metadata"]
        row = {"captured_at": captured, "kind": manifest["kind"], "name": metadata["name"]}
        row |= {
            "namespace": metadata.get("namespace"),
            "labels": metadata.get("labels") or None,
            "status": {},
        }
        case.add("objects.jsonl", **(row | manifest))


def _write_events(cluster: ClusterScene, case: CaseFolderWriter) -> None:
    for row in cluster.events:
        case.add("events.jsonl", **row)
    random, timing = cluster.random, cluster.base.timing
    pods = [
        p
        for p in cluster.state.of_kind("Pod")
        if p["status"].get("phase") == "Running"
        and "httpGet" in p["spec"]["containers"][0].get("readinessProbe", {})
    ]
    for _ in range(random.randrange(6, 14)):
        pod = random.choice(pods)
        reason, kind, message = random.choice(_ROUTINE)
        at = random.uniform(timing.end - 3500, timing.end - 30)
        own, container = pod["metadata"], pod["spec"]["containers"][0]
        text = message.format(
            image=container["image"],
            name=container["name"],
            namespace=own["namespace"],
            pod=own["name"],
            node=pod["spec"]["nodeName"],
        )
        row = {
            "timestamp": format_utc(at),
            "first_timestamp": format_utc(at),
            "source": "kubernetes",
            "object": f"Pod/{own['name']}",
        }
        case.add(
            "events.jsonl", **row, namespace=own["namespace"], type=kind, reason=reason, message=text, count=1
        )


def _write_changes(cluster: ClusterScene, case: CaseFolderWriter) -> None:
    """What people did, among releases of other services that did no harm."""
    if not cluster.keeps_changes:
        return
    for row in cluster.changes:
        case.add("changes.jsonl", **row)
    random, timing = cluster.random, cluster.base.timing
    apps = [s.name for s in cluster.base.world.with_role("app", "edge")]
    for _ in range(random.randrange(1, 4)):
        service = random.choice(apps)
        before, after = invent_versions(random)
        at = random.choice(
            (timing.onset - random.uniform(300, 1500), timing.start - random.uniform(3600, 60_000))
        )
        summary = f"{service} {after} (from {before}): dependencies updated"
        row = {
            "timestamp": format_utc(at),
            "service": service,
            "kind": "deploy",
            "version": after,
            "summary": summary,
        }
        case.add(
            "changes.jsonl", **row, id=f"CHG-{random.randrange(10**4, 10**5)}", author=choose_person(random)
        )

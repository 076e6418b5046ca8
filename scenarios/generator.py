"""Incidents of any kind and strength with a known cause: the same arguments give the same bytes."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NotRequired, TypedDict

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_utc
from opsleuth.scenarios.cluster_rows import write_cluster
from opsleuth.scenarios.decoys import PlacedDecoys, add_decoys
from opsleuth.scenarios.fault_propagation import compute_levels
from opsleuth.scenarios.faults import FAULTS, FaultAnswer, FaultKind
from opsleuth.scenarios.healthy_scenes import HEALTHY
from opsleuth.scenarios.log_rows import write_chatter
from opsleuth.scenarios.metric_rows import DIALECTS, MetricDialect, MonitoringSetup, write_metrics
from opsleuth.scenarios.scene import Scene, draw_scene
from opsleuth.scenarios.span_rows import write_aggregates, write_requests
from opsleuth.scenarios.statement_rows import write_statements
from opsleuth.scenarios.synthetic_system import draw_world

# Strength of a fault in spreads of the baseline.
LEVELS = {"high": 8.0, "middle": 4.0, "low": 2.0}
# Spreads above the usual level from which samples in a row are no chance, as a monitor is set up.
ALERTING = 2.0
HEALTHY_KIND, TWO_KIND = "healthy", "two_causes"
KINDS: Sequence[str] = (*FAULTS, HEALTHY_KIND, TWO_KIND)
# Faults that stand beside each other without hiding each other: one of these, one of those.
_FIRST = ("cpu", "latency", "errors", "exception", "network_delay", "deploy", "out_of_memory", "config")
_SECOND = ("slow_query", "disk", "locks", "storage_full", "connections", "failover")
_COMPRESSED = ("metrics.csv", "metrics_baseline.csv", "logs.jsonl", "traces.jsonl", "traces_baseline.jsonl")


class KeyCause(TypedDict):
    """One of several causes."""

    service: str
    kind: str


class AnswerKey(TypedDict):
    """The right answer to a case, as `answers.json` has it."""

    verdict: str
    root_cause_service: str | None
    acceptable_services: list[str]
    kind: str | None
    acceptable_kinds: list[str]
    must_not_blame: list[str]
    fault_type: str
    source_label: dict[str, Any]
    notes: str
    causes: NotRequired[list[KeyCause]]


@dataclass(frozen=True, slots=True)
class RecordedSources:
    """What this system records beyond logs, changes and topology.

    `spans` is `raw`, `aggregates`, `both` or empty; `compress` writes the large tables as `.gz`.
    """

    monitoring: MonitoringSetup
    spans: str
    platform: bool
    statements: bool
    compress: bool


@dataclass(frozen=True, slots=True)
class GeneratedAlert:
    """What was sent; it names a service that suffers, and what of it."""

    text: str
    service: str
    metric: str | None


def generate_incident(kind: str, level: str, seed: int, folder: Path, *, decoys: bool = True) -> AnswerKey:
    """Write one case below `folder` (made if absent) and return its key, which is nowhere in the folder.

    `kind` is one of KINDS, `level` one of LEVELS. Raises ValueError for any other.
    """
    if kind not in KINDS:
        raise ValueError(f"no generator for kind {kind!r}; choose from {', '.join(KINDS)}")
    if level not in LEVELS:
        raise ValueError(f"no level {level!r}; choose from {', '.join(LEVELS)}")
    random = Random(f"{kind}/{level}/{seed}")
    faults = _choose_faults(random, kind)
    scene = draw_scene(random, draw_world(random, {role for f in faults for role in f.needs}), LEVELS[level])
    sources = _draw_sources(random, {source for f in faults for source in f.shows})
    label = {"kind": kind, "level": level, "size": LEVELS[level], "seed": seed, "decoys": decoys}
    if kind == HEALTHY_KIND:
        key, alert = _make_healthy_case(scene, sources, label)
    else:
        key, alert = _make_faulty_case(scene, sources, faults, label, decoys=decoys)
    _write_incident_folder(scene, sources, alert, folder)
    return key


def _choose_faults(random: Random, kind: str) -> list[FaultKind]:
    if kind == TWO_KIND:
        return [FAULTS[random.choice(_FIRST)], FAULTS[random.choice(_SECOND)]]
    return [] if kind == HEALTHY_KIND else [FAULTS[kind]]


def _draw_sources(random: Random, shown: Collection[str]) -> RecordedSources:
    """What is recorded; whatever the fault's traces are in is recorded always."""
    spans = random.choice(("raw", "aggregates", "both", "both" if "traces" in shown else ""))
    return RecordedSources(
        monitoring=MonitoringSetup(
            dialect=random.choice(tuple(DIALECTS.values())),
            per_pod=random.random() < 0.2,
            baseline=random.random() < 0.75,
        ),
        spans=spans,
        platform=random.random() < 0.7 or "platform" in shown,
        statements=random.random() < 0.6 or "statements" in shown,
        compress=random.random() < 0.5,
    )


def _make_healthy_case(
    scene: Scene, sources: RecordedSources, label: dict[str, Any]
) -> tuple[AnswerKey, GeneratedAlert]:
    variant = scene.random.choice(tuple(HEALTHY))
    notes = HEALTHY[variant](scene)
    service = scene.random.choice([s for s in scene.world.services if s.role in {"edge", "app"}])
    metric = scene.random.choice(sources.monitoring.dialect.app[:2])
    key = AnswerKey(
        verdict="healthy",
        root_cause_service=None,
        acceptable_services=[],
        kind=None,
        acceptable_kinds=[],
        must_not_blame=[],
        fault_type=f"healthy:{variant}",
        source_label=label,
        notes=notes,
    )
    return key, GeneratedAlert(
        f"{metric.name} of {service.name} above its usual range.", service.name, metric.name
    )


def _make_faulty_case(
    scene: Scene,
    sources: RecordedSources,
    faults: Sequence[FaultKind],
    label: dict[str, Any],
    *,
    decoys: bool,
) -> tuple[AnswerKey, GeneratedAlert]:
    answers = [fault.apply(scene) for fault in faults]
    causes = [answer.service for answer in answers]
    involved = list(dict.fromkeys([*causes, *(name for answer in answers for name in answer.also)]))
    astray = add_decoys(scene, causes, involved) if decoys else PlacedDecoys((), "")
    kinds = [*(f.kind for f in faults), *(kind for answer in answers for kind in answer.also_kinds)]
    key = AnswerKey(
        verdict="cause_found",
        root_cause_service=causes[0],
        acceptable_services=involved,
        kind=faults[0].kind,
        acceptable_kinds=list(dict.fromkeys(kinds)),
        must_not_blame=[name for name in astray.blameless if name not in involved],
        fault_type="+".join(f.kind for f in faults),
        source_label=label,
        notes=" ".join(answer.notes for answer in answers).strip(),
    )
    if len(faults) > 1:
        key["causes"] = [KeyCause(service=s, kind=f.kind) for s, f in zip(causes, faults, strict=True)]
    alert = _draw_alert(scene, sources.monitoring.dialect, answers)
    return key, GeneratedAlert(f"{alert.text} {astray.text}".strip(), alert.service, alert.metric)


def _draw_alert(scene: Scene, dialect: MetricDialect, answers: Sequence[FaultAnswer]) -> GeneratedAlert:
    """The platform's own alert about the cause, or one about whoever suffers: mostly the entry."""
    first = answers[0]
    if first.alert and scene.random.random() < 0.4:
        return GeneratedAlert(first.alert, first.service, None)
    touched = [name for answer in answers for name in (answer.service, *scene.world.upstream(answer.service))]
    victims = _find_suffering_services(
        scene, [n for n in touched if scene.world.service(n).role != "external"]
    )
    entry = scene.random.random() < 0.6 and scene.world.edge.name in victims
    service = scene.world.edge.name if entry else scene.random.choice(victims)
    slower, failing = _measure_strain(scene, service)
    metric = dialect.app[3 if failing > slower else 1].name
    return GeneratedAlert(f"{metric} of {service} above its usual range for 3 minutes.", service, metric)


def _find_suffering_services(scene: Scene, names: Sequence[str]) -> list[str]:
    """Those whose latency or failures left their range, so that the alert is true; failing that, the most strained.

    An alert about a service that is as usual would make every such case the same as a healthy one.
    """
    strains = {name: max(_measure_strain(scene, name)) for name in names}
    return [n for n, strain in strains.items() if strain >= ALERTING] or [
        max(strains, key=strains.__getitem__)
    ]


def _measure_strain(scene: Scene, service: str) -> tuple[float, float]:
    """By how many of its usual spreads a service is slower, and fails more, ten minutes after the onset."""
    before = scene.rest[service]
    after = compute_levels(scene.world, scene.effects, scene.timing.onset + 600)[service]
    slower = after.latency_ms * after.tail / (before.latency_ms * before.tail) - 1
    failing = (after.fail_share - before.fail_share) / scene.spread(service, "fail")
    return slower / scene.world.service(service).noise, failing


def _write_incident_folder(
    scene: Scene, sources: RecordedSources, alert: GeneratedAlert, folder: Path
) -> None:
    case = CaseFolderWriter(_build_incident_document(scene, sources, alert, folder.name))
    write_metrics(scene, sources.monitoring, case)
    write_requests(scene, case, spans=sources.spans in {"raw", "both"}, baseline=sources.monitoring.baseline)
    write_chatter(scene, case)
    if sources.spans in {"aggregates", "both"}:
        write_aggregates(scene, case)
    if sources.statements:
        write_statements(scene, case)
    _add_old_change(scene)
    write_cluster(scene, case, platform=sources.platform)
    for call in scene.world.calls:
        case.add("topology.csv", caller=call.caller, callee=call.callee)
    case.write(folder, compress=_COMPRESSED if sources.compress else ())


def _add_old_change(scene: Scene) -> None:
    """A release of some earlier hour, as any history has it."""
    service = scene.random.choice(scene.world.with_role("app"))
    scene.deploy(scene.timing.start - scene.random.uniform(7200, 40_000), service.name, "monthly release")


def _build_incident_document(
    scene: Scene, sources: RecordedSources, alert: GeneratedAlert, name: str
) -> dict[str, Any]:
    timing = scene.timing
    document: dict[str, Any] = {
        "id": name,
        "application": f"{scene.world.namespace} on Kubernetes",
        "alert": {
            "text": alert.text,
            "service": alert.service,
            "metric": alert.metric,
            "severity": scene.random.choice(("warning", "critical")),
            "fired_at": format_utc(timing.fired),
        },
        "alert_start_utc": format_utc(timing.fired - scene.random.uniform(60, 150)),
        "window": {
            "start": format_utc(timing.start),
            "end": format_utc(timing.end),
            "step_seconds": timing.step,
        },
        "services": [s.name for s in scene.world.services],
    }
    if sources.monitoring.baseline:
        end = timing.baseline + 60 * timing.baseline_minutes
        note = "A fault-free hour of the same system on an earlier day."
        document["baseline"] = {"start": format_utc(timing.baseline), "end": format_utc(end), "note": note}
    return document


def generate_incident_set(
    folder: Path,
    *,
    per: int,
    seed: int,
    kinds: Sequence[str] = KINDS,
    levels: Collection[str] = tuple(LEVELS),
    decoys: bool = True,
) -> dict[str, AnswerKey]:
    """Write `per` cases of each kind and level below `folder`, and `answers.json` beside them; return the keys.

    Healthy worlds have no level: there are `per` for each level of the others.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keys: dict[str, AnswerKey] = {}
    for number, (kind, level, place) in enumerate(_shuffle_case_plan(per, seed, kinds, levels), start=1):
        # The name of a case tells nothing about its cause.
        name = f"generated-{number:04}"
        keys[name] = generate_incident(kind, level, place, folder / name, decoys=decoys)
    (folder / "answers.json").write_text(json.dumps(keys, indent=1, ensure_ascii=False) + "\n")
    return keys


def _shuffle_case_plan(
    per: int, seed: int, kinds: Sequence[str], levels: Collection[str]
) -> Iterator[tuple[str, str, int]]:
    plan = [(kind, level, seed * 1000 + i) for kind in kinds for level in levels for i in range(per)]
    Random(seed).shuffle(plan)
    return iter(plan)

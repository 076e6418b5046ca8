"""Incidents of any kind and strength with a known cause: the same arguments give the same bytes."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, NotRequired, TypedDict

from opsleuth.scenarios.case_folder import CaseFolder, utc
from opsleuth.scenarios.cluster_rows import write_cluster
from opsleuth.scenarios.decoys import Decoys, add_decoys
from opsleuth.scenarios.faults import FAULTS, Answer, Fault
from opsleuth.scenarios.healthy import HEALTHY
from opsleuth.scenarios.log_rows import write_chatter
from opsleuth.scenarios.metric_rows import DIALECTS, Dialect, Monitoring, write_metrics
from opsleuth.scenarios.physics import levels
from opsleuth.scenarios.scene import Scene, draw_scene
from opsleuth.scenarios.span_rows import write_aggregates, write_requests
from opsleuth.scenarios.statement_rows import write_statements
from opsleuth.scenarios.world import draw_world

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


class Cause(TypedDict):
    """One of several causes."""

    service: str
    kind: str


class Key(TypedDict):
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
    causes: NotRequired[list[Cause]]


@dataclass(frozen=True, slots=True)
class Sources:
    """What this system records beyond logs, changes and topology.

    `spans` is `raw`, `aggregates`, `both` or empty; `compress` writes the large tables as `.gz`.
    """

    monitoring: Monitoring
    spans: str
    platform: bool
    statements: bool
    compress: bool


@dataclass(frozen=True, slots=True)
class Alert:
    """What was sent; it names a service that suffers, and what of it."""

    text: str
    service: str
    metric: str | None


def generate(kind: str, level: str, seed: int, folder: Path, *, decoys: bool = True) -> Key:
    """Write one case below `folder` (made if absent) and return its key, which is nowhere in the folder.

    `kind` is one of KINDS, `level` one of LEVELS. Raises ValueError for any other.
    """
    if kind not in KINDS:
        raise ValueError(f"no generator for kind {kind!r}; choose from {', '.join(KINDS)}")
    if level not in LEVELS:
        raise ValueError(f"no level {level!r}; choose from {', '.join(LEVELS)}")
    random = Random(f"{kind}/{level}/{seed}")
    faults = _faults(random, kind)
    scene = draw_scene(random, draw_world(random, {role for f in faults for role in f.needs}), LEVELS[level])
    sources = _draw_sources(random, {source for f in faults for source in f.shows})
    label = {"kind": kind, "level": level, "size": LEVELS[level], "seed": seed, "decoys": decoys}
    if kind == HEALTHY_KIND:
        key, alert = _healthy(scene, sources, label)
    else:
        key, alert = _faulty(scene, sources, faults, label, decoys=decoys)
    _write(scene, sources, alert, folder)
    return key


def _faults(random: Random, kind: str) -> list[Fault]:
    if kind == TWO_KIND:
        return [FAULTS[random.choice(_FIRST)], FAULTS[random.choice(_SECOND)]]
    return [] if kind == HEALTHY_KIND else [FAULTS[kind]]


def _draw_sources(random: Random, shown: Collection[str]) -> Sources:
    """What is recorded; whatever the fault's traces are in is recorded always."""
    spans = random.choice(("raw", "aggregates", "both", "both" if "traces" in shown else ""))
    return Sources(
        monitoring=Monitoring(
            dialect=random.choice(tuple(DIALECTS.values())),
            per_pod=random.random() < 0.2,
            baseline=random.random() < 0.75,
        ),
        spans=spans,
        platform=random.random() < 0.7 or "platform" in shown,
        statements=random.random() < 0.6 or "statements" in shown,
        compress=random.random() < 0.5,
    )


def _healthy(scene: Scene, sources: Sources, label: dict[str, Any]) -> tuple[Key, Alert]:
    variant = scene.random.choice(tuple(HEALTHY))
    notes = HEALTHY[variant](scene)
    service = scene.random.choice([s for s in scene.world.services if s.role in {"edge", "app"}])
    metric = scene.random.choice(sources.monitoring.dialect.app[:2])
    key = Key(
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
    return key, Alert(f"{metric.name} of {service.name} above its usual range.", service.name, metric.name)


def _faulty(
    scene: Scene, sources: Sources, faults: Sequence[Fault], label: dict[str, Any], *, decoys: bool
) -> tuple[Key, Alert]:
    answers = [fault.apply(scene) for fault in faults]
    causes = [answer.service for answer in answers]
    involved = list(dict.fromkeys([*causes, *(name for answer in answers for name in answer.also)]))
    astray = add_decoys(scene, causes, involved) if decoys else Decoys((), "")
    kinds = [*(f.kind for f in faults), *(kind for answer in answers for kind in answer.also_kinds)]
    key = Key(
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
        key["causes"] = [Cause(service=s, kind=f.kind) for s, f in zip(causes, faults, strict=True)]
    alert = _alert(scene, sources.monitoring.dialect, answers)
    return key, Alert(f"{alert.text} {astray.text}".strip(), alert.service, alert.metric)


def _alert(scene: Scene, dialect: Dialect, answers: Sequence[Answer]) -> Alert:
    """The platform's own alert about the cause, or one about whoever suffers: mostly the entry."""
    first = answers[0]
    if first.alert and scene.random.random() < 0.4:
        return Alert(first.alert, first.service, None)
    touched = [name for answer in answers for name in (answer.service, *scene.world.upstream(answer.service))]
    victims = _suffering(scene, [n for n in touched if scene.world.service(n).role != "external"])
    entry = scene.random.random() < 0.6 and scene.world.edge.name in victims
    service = scene.world.edge.name if entry else scene.random.choice(victims)
    slower, failing = _strain(scene, service)
    metric = dialect.app[3 if failing > slower else 1].name
    return Alert(f"{metric} of {service} above its usual range for 3 minutes.", service, metric)


def _suffering(scene: Scene, names: Sequence[str]) -> list[str]:
    """Those whose latency or failures left their range, so that the alert is true; failing that, the most strained.

    An alert about a service that is as usual would make every such case the same as a healthy one.
    """
    strains = {name: max(_strain(scene, name)) for name in names}
    return [n for n, strain in strains.items() if strain >= ALERTING] or [
        max(strains, key=strains.__getitem__)
    ]


def _strain(scene: Scene, service: str) -> tuple[float, float]:
    """By how many of its usual spreads a service is slower, and fails more, ten minutes after the onset."""
    before = scene.rest[service]
    after = levels(scene.world, scene.effects, scene.timing.onset + 600)[service]
    slower = after.latency_ms * after.tail / (before.latency_ms * before.tail) - 1
    failing = (after.fail_share - before.fail_share) / scene.spread(service, "fail")
    return slower / scene.world.service(service).noise, failing


def _write(scene: Scene, sources: Sources, alert: Alert, folder: Path) -> None:
    case = CaseFolder(_incident(scene, sources, alert, folder.name))
    write_metrics(scene, sources.monitoring, case)
    write_requests(scene, case, spans=sources.spans in {"raw", "both"}, baseline=sources.monitoring.baseline)
    write_chatter(scene, case)
    if sources.spans in {"aggregates", "both"}:
        write_aggregates(scene, case)
    if sources.statements:
        write_statements(scene, case)
    _old_change(scene)
    write_cluster(scene, case, platform=sources.platform)
    for call in scene.world.calls:
        case.add("topology.csv", caller=call.caller, callee=call.callee)
    case.write(folder, compress=_COMPRESSED if sources.compress else ())


def _old_change(scene: Scene) -> None:
    """A release of some earlier hour, as any history has it."""
    service = scene.random.choice(scene.world.with_role("app"))
    scene.deploy(scene.timing.start - scene.random.uniform(7200, 40_000), service.name, "monthly release")


def _incident(scene: Scene, sources: Sources, alert: Alert, name: str) -> dict[str, Any]:
    timing = scene.timing
    document: dict[str, Any] = {
        "id": name,
        "application": f"{scene.world.namespace} on Kubernetes",
        "alert": {
            "text": alert.text,
            "service": alert.service,
            "metric": alert.metric,
            "severity": scene.random.choice(("warning", "critical")),
            "fired_at": utc(timing.fired),
        },
        "alert_start_utc": utc(timing.fired - scene.random.uniform(60, 150)),
        "window": {"start": utc(timing.start), "end": utc(timing.end), "step_seconds": timing.step},
        "services": [s.name for s in scene.world.services],
    }
    if sources.monitoring.baseline:
        end = timing.baseline + 60 * timing.baseline_minutes
        note = "A fault-free hour of the same system on an earlier day."
        document["baseline"] = {"start": utc(timing.baseline), "end": utc(end), "note": note}
    return document


def generate_set(
    folder: Path,
    *,
    per: int,
    seed: int,
    kinds: Sequence[str] = KINDS,
    levels: Collection[str] = tuple(LEVELS),
    decoys: bool = True,
) -> dict[str, Key]:
    """Write `per` cases of each kind and level below `folder`, and `answers.json` beside them; return the keys.

    Healthy worlds have no level: there are `per` for each level of the others.
    """
    folder.mkdir(parents=True, exist_ok=True)
    keys: dict[str, Key] = {}
    for number, (kind, level, place) in enumerate(_plan(per, seed, kinds, levels), start=1):
        # The name of a case tells nothing about its cause.
        name = f"generated-{number:04}"
        keys[name] = generate(kind, level, place, folder / name, decoys=decoys)
    (folder / "answers.json").write_text(json.dumps(keys, indent=1, ensure_ascii=False) + "\n")
    return keys


def _plan(
    per: int, seed: int, kinds: Sequence[str], levels: Collection[str]
) -> Iterator[tuple[str, str, int]]:
    plan = [(kind, level, seed * 1000 + i) for kind in kinds for level in levels for i in range(per)]
    Random(seed).shuffle(plan)
    return iter(plan)

"""Log lines of a scene: what services write every day, and what a fault makes them write."""

from collections.abc import Callable, Mapping
from random import Random

from opsleuth.scenarios.case_folder import CaseFolder, utc
from opsleuth.scenarios.names import letters
from opsleuth.scenarios.physics import Effects
from opsleuth.scenarios.scene import Chatter, Scene
from opsleuth.scenarios.world import Service

Line = tuple[str, Callable[[Random, Service], str]]

# By runtime: the level and the text of lines that a service writes when nothing is wrong.
_USUAL: Mapping[str, tuple[Line, ...]] = {
    "jvm": (
        ("INFO", lambda r, s: f"[http-nio-8080-exec-{r.randrange(1, 40)}] RequestLog - POST /{_path(s)}/{r.randrange(10**6)} 200 {r.randrange(5, 90)}ms"),
        ("INFO", lambda r, s: f"[http-nio-8080-exec-{r.randrange(1, 40)}] {_path(s).title()}Handler - completed {_path(s)} id={r.randrange(10**7)}"),
        ("INFO", lambda r, _: f"[scheduling-1] HikariPool-1 - Pool stats (total=10, active={r.randrange(6)}, idle={r.randrange(4, 10)}, waiting=0)"),
        ("WARN", lambda r, _: f"[http-nio-8080-exec-{r.randrange(1, 40)}] Validation - rejected request {letters(r, 12)}: field 'email' is not an address"),
    ),
    "go": (
        ("info", lambda r, s: f'msg="request handled" method=GET path=/{_path(s)}/{r.randrange(10**6)} status=200 took={r.randrange(3, 70)}ms'),
        ("info", lambda r, s: f'msg="{_path(s)} stored" id={r.randrange(10**7)}'),
        ("info", lambda r, _: f'msg="cache refreshed" entries={r.randrange(800, 1400)}'),
    ),
    "python": (
        ("INFO", lambda r, s: f"{s.pods[0]}:app.access GET /{_path(s)}/{r.randrange(10**6)} HTTP/1.1 200 {r.randrange(200, 9000)} {r.randrange(4, 80)}ms"),
        ("INFO", lambda r, s: f"app.{_path(s)} finished job {letters(r, 10)} in {r.randrange(20, 400)} ms"),
        ("WARNING", lambda r, _: f"urllib3.connectionpool Connection pool is full, discarding connection. Connection pool size: {r.choice((10, 20))}"),
    ),
    "node": (
        ("info", lambda r, s: f"GET /{_path(s)}/{letters(r, 8)} 200 {r.randrange(4, 80)} ms - {r.randrange(200, 9000)}"),
        ("info", lambda r, s: f"published {_path(s)}.updated to topic, partition {r.randrange(12)}"),
    ),
    "postgres": (
        ("LOG", lambda r, _: f"checkpoint complete: wrote {r.randrange(900, 4000)} buffers ({r.uniform(1, 6):.1f}%); write={r.uniform(20, 90):.3f} s, sync=0.0{r.randrange(1, 9)} s"),
        ("LOG", lambda r, _: f'automatic vacuum of table "app.public.t{r.randrange(9)}": index scans: 1, pages: 0 removed, {r.randrange(10**4)} remain'),
    ),
    "redis": (("*", lambda r, _: f"{r.randrange(100, 900)} changes in 300 seconds. Saving..."),),
    "external": (),
}  # fmt: skip


def _path(service: Service) -> str:
    return service.name.split("-")[0].split(".")[0]


def write_logs(scene: Scene, case: CaseFolder, *, baseline: bool) -> None:
    """Add `logs.jsonl` from half an hour before the onset, and a quarter of an hour of `logs_baseline.jsonl`."""
    timing = scene.timing
    first = max(timing.start, timing.onset - 1800)
    _usual(scene, case, "logs.jsonl", first, timing.end, scene.effects)
    for chatter in scene.chatter:
        _caused(scene, case, chatter)
    if baseline:
        _usual(scene, case, "logs_baseline.jsonl", timing.baseline, timing.baseline + 900, Effects())


def _usual(scene: Scene, case: CaseFolder, file: str, start: float, end: float, effects: Effects) -> None:
    random = scene.random
    for service in scene.world.services:
        lines = _USUAL[service.runtime]
        moment = start
        while lines:
            moment += random.expovariate(3 / 60)
            if moment >= end:
                break
            if random.random() < effects.at(service.name, "hush", moment):
                continue
            level, text = random.choices(lines, [4, 3, 1, 0.3][: len(lines)])[0]
            _add(case, file, moment, service, level, text(random, service), _pod(random, service))


def _caused(scene: Scene, case: CaseFolder, chatter: Chatter) -> None:
    """Lines at the chatter's rate, thinned by its shape (a Poisson process)."""
    moment = scene.timing.start
    service = scene.world.service(chatter.service)
    while chatter.per_minute > 0:
        moment += scene.random.expovariate(chatter.per_minute / 60)
        if moment >= scene.timing.end:
            return
        if scene.random.random() < chatter.shape(moment):
            text, pod = chatter.text(scene.random), chatter.pod or _pod(scene.random, service)
            _add(case, "logs.jsonl", moment, service, chatter.level, text, pod)


def _pod(random: Random, service: Service) -> str | None:
    return random.choice(service.pods) if service.pods else None


def _add(
    case: CaseFolder, file: str, moment: float, service: Service, level: str, message: str, pod: str | None
) -> None:
    case.add(file, timestamp=utc(moment), service=service.name, pod=pod, level=level, message=message)

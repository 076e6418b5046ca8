"""Log lines of a scene: what services write every day, and what a fault makes them write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from opsleuth.scenarios.case_folder import CaseFolder, utc
from opsleuth.scenarios.names import letters
from opsleuth.scenarios.scene import Chatter, Scene
from opsleuth.scenarios.world import Service


@dataclass(frozen=True, slots=True)
class Request:
    """One request that a service handled: `end` in seconds since the epoch, `took` in ms."""

    service: Service
    end: float
    took: float
    failed: bool
    trace_id: str | None


# Written for each request: level and text. What stands in the second tuple is only written if it went well.
_Text = Callable[[Random, Request], str]
_Line = tuple[str, _Text]
_PER_REQUEST: Mapping[str, tuple[tuple[_Line, ...], tuple[_Line, ...]]] = {
    "jvm": (
        (("INFO", lambda r, q: f"[http-nio-8080-exec-{r.randrange(1, 40)}] RequestLog - POST /{_path(q)}/{r.randrange(10**6)} {_code(q)} {q.took:.0f}ms"),),
        (("INFO", lambda r, q: f"[http-nio-8080-exec-{r.randrange(1, 40)}] {_path(q).title()}Handler - completed {_path(q)} id={r.randrange(10**7)}"),),
    ),
    "go": (
        (("info", lambda r, q: f'msg="request handled" method=GET path=/{_path(q)}/{r.randrange(10**6)} status={_code(q)} took={q.took:.0f}ms'),),
        (("info", lambda r, q: f'msg="{_path(q)} stored" id={r.randrange(10**7)}'),),
    ),
    "python": (
        (("INFO", lambda r, q: f"app.access GET /{_path(q)}/{r.randrange(10**6)} HTTP/1.1 {_code(q)} {r.randrange(200, 9000)} {q.took:.0f}ms"),),
        (("INFO", lambda r, q: f"app.{_path(q)} finished job {letters(r, 10)}"),),
    ),
    "node": (
        (("info", lambda r, q: f"GET /{_path(q)}/{letters(r, 8)} {_code(q)} {q.took:.0f} ms - {r.randrange(200, 9000)}"),),
        (("info", lambda r, q: f"published {_path(q)}.updated to topic, partition {r.randrange(12)}"),),
    ),
}  # fmt: skip

# Written now and then, whatever the requests do: lines a minute, level, text. Each system has its usual errors.
_NOW_AND_THEN: Mapping[str, tuple[tuple[float, str, Callable[[Random], str]], ...]] = {
    "jvm": (
        (0.5, "INFO", lambda r: f"[scheduling-1] HikariPool-1 - Pool stats (total=10, active={r.randrange(6)}, idle={r.randrange(4, 10)}, waiting=0)"),
        (0.2, "WARN", lambda r: f"[http-nio-8080-exec-{r.randrange(1, 40)}] Validation - rejected request {letters(r, 12)}: field 'email' is not an address"),
        (0.05, "ERROR", lambda r: f"[http-nio-8080-exec-{r.randrange(1, 40)}] ClientAbortException: java.io.IOException: Broken pipe"),
    ),
    "go": (
        (0.4, "info", lambda r: f'msg="cache refreshed" entries={r.randrange(800, 1400)}'),
        (0.06, "error", lambda _: 'msg="write response" err="client disconnected"'),
    ),
    "python": (
        (0.2, "WARNING", lambda r: f"urllib3.connectionpool Connection pool is full, discarding connection. Connection pool size: {r.choice((10, 20))}"),
        (0.05, "ERROR", lambda r: f"app.mail cannot deliver {letters(r, 10)}: mailbox unavailable"),
    ),
    "node": (
        (0.15, "warn", lambda r: f"slow event loop: {r.randrange(50, 90)} ms"),
        (0.05, "error", lambda _: "socket hang up while sending analytics, dropped"),
    ),
    "postgres": (
        (0.2, "LOG", lambda r: f"checkpoint complete: wrote {r.randrange(900, 4000)} buffers ({r.uniform(1, 6):.1f}%); write={r.uniform(20, 90):.3f} s, sync=0.0{r.randrange(1, 9)} s"),
        (0.3, "LOG", lambda r: f'automatic vacuum of table "app.public.t{r.randrange(9)}": index scans: 1, pages: 0 removed, {r.randrange(10**4)} remain'),
        (0.04, "ERROR", lambda r: f'duplicate key value violates unique constraint "uq_{r.randrange(4)}"'),
    ),
    "redis": ((0.3, "*", lambda r: f"{r.randrange(100, 900)} changes in 300 seconds. Saving..."),),
    "external": (),
}  # fmt: skip


def _path(request: Request) -> str:
    return request.service.name.split("-")[0]


def _code(request: Request) -> int:
    return 500 if request.failed else 200


def write_request(scene: Scene, case: CaseFolder, file: str, request: Request) -> None:
    """Add the lines that one request leaves at the service that handled it."""
    always, if_well = _PER_REQUEST.get(request.service.runtime, ((), ()))
    for level, text in (*(() if request.failed else if_well), *always):
        message, pod = text(scene.random, request), _pod(scene.random, request.service)
        case.add(
            file,
            timestamp=utc(request.end),
            service=request.service.name,
            pod=pod,
            level=level,
            message=message,
            trace_id=request.trace_id,
        )


def write_background(scene: Scene, case: CaseFolder, file: str, start: float, end: float) -> None:
    """Add what services write now and then, in `[start, end)`."""
    for service in scene.world.services:
        for per_minute, level, text in _NOW_AND_THEN[service.runtime]:
            for moment in arrivals(scene.random, per_minute, start, end):
                _add(case, file, moment, service, level, text(scene.random), _pod(scene.random, service))


def write_chatter(scene: Scene, case: CaseFolder) -> None:
    """Add the lines that the fault causes, each kind at its rate, thinned by its shape."""
    for chatter in scene.chatter:
        _caused(scene, case, chatter)


def _caused(scene: Scene, case: CaseFolder, chatter: Chatter) -> None:
    service = scene.world.service(chatter.service)
    for moment in arrivals(scene.random, chatter.per_minute, scene.timing.start, scene.timing.end):
        if scene.random.random() < chatter.shape(moment):
            text, pod = chatter.text(scene.random), chatter.pod or _pod(scene.random, service)
            _add(case, "logs.jsonl", moment, service, chatter.level, text, pod)


def arrivals(random: Random, per_minute: float, start: float, end: float) -> list[float]:
    """Moments of a Poisson process in `[start, end)`."""
    moments: list[float] = []
    moment = start
    while per_minute > 0:
        moment += random.expovariate(per_minute / 60)
        if moment >= end:
            break
        moments.append(moment)
    return moments


def _pod(random: Random, service: Service) -> str | None:
    return random.choice(service.pods) if service.pods else None


def _add(
    case: CaseFolder, file: str, moment: float, service: Service, level: str, message: str, pod: str | None
) -> None:
    case.add(file, timestamp=utc(moment), service=service.name, pod=pod, level=level, message=message)

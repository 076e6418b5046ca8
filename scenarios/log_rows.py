"""Log lines of a scene: what services write every day, and what a fault makes them write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_utc
from opsleuth.scenarios.invented_names import draw_letters
from opsleuth.scenarios.scene import FaultLogLines, Scene
from opsleuth.scenarios.synthetic_system import SyntheticService


@dataclass(frozen=True, slots=True)
class HandledRequest:
    """One request that a service handled: `end` in seconds since the epoch, `took` in ms."""

    service: SyntheticService
    end: float
    took: float
    failed: bool
    trace_id: str | None


# Written for each request: level and text. What stands in the second tuple is only written if it went well.
_Text = Callable[[Random, HandledRequest], str]
_Line = tuple[str, _Text]
_PER_REQUEST: Mapping[str, tuple[tuple[_Line, ...], tuple[_Line, ...]]] = {
    "jvm": (
        (("INFO", lambda r, q: f"[http-nio-8080-exec-{r.randrange(1, 40)}] RequestLog - POST /{_path_of_request(q)}/{r.randrange(10**6)} {_status_of_request(q)} {q.took:.0f}ms"),),
        (("INFO", lambda r, q: f"[http-nio-8080-exec-{r.randrange(1, 40)}] {_path_of_request(q).title()}Handler - completed {_path_of_request(q)} id={r.randrange(10**7)}"),),
    ),
    "go": (
        (("info", lambda r, q: f'msg="request handled" method=GET path=/{_path_of_request(q)}/{r.randrange(10**6)} status={_status_of_request(q)} took={q.took:.0f}ms'),),
        (("info", lambda r, q: f'msg="{_path_of_request(q)} stored" id={r.randrange(10**7)}'),),
    ),
    "python": (
        (("INFO", lambda r, q: f"app.access GET /{_path_of_request(q)}/{r.randrange(10**6)} HTTP/1.1 {_status_of_request(q)} {r.randrange(200, 9000)} {q.took:.0f}ms"),),
        (("INFO", lambda r, q: f"app.{_path_of_request(q)} finished job {draw_letters(r, 10)}"),),
    ),
    "node": (
        (("info", lambda r, q: f"GET /{_path_of_request(q)}/{draw_letters(r, 8)} {_status_of_request(q)} {q.took:.0f} ms - {r.randrange(200, 9000)}"),),
        (("info", lambda r, q: f"published {_path_of_request(q)}.updated to topic, partition {r.randrange(12)}"),),
    ),
}  # fmt: skip

# Written now and then, whatever the requests do: lines a minute, level, text. Each system has its usual errors.
_NOW_AND_THEN: Mapping[str, tuple[tuple[float, str, Callable[[Random], str]], ...]] = {
    "jvm": (
        (0.5, "INFO", lambda r: f"[scheduling-1] HikariPool-1 - Pool stats (total=10, active={r.randrange(6)}, idle={r.randrange(4, 10)}, waiting=0)"),
        (0.2, "WARN", lambda r: f"[http-nio-8080-exec-{r.randrange(1, 40)}] Validation - rejected request {draw_letters(r, 12)}: field 'email' is not an address"),
        (0.05, "ERROR", lambda r: f"[http-nio-8080-exec-{r.randrange(1, 40)}] ClientAbortException: java.io.IOException: Broken pipe"),
    ),
    "go": (
        (0.4, "info", lambda r: f'msg="cache refreshed" entries={r.randrange(800, 1400)}'),
        (0.06, "error", lambda _: 'msg="write response" err="client disconnected"'),
    ),
    "python": (
        (0.2, "WARNING", lambda r: f"urllib3.connectionpool Connection pool is full, discarding connection. Connection pool size: {r.choice((10, 20))}"),
        (0.05, "ERROR", lambda r: f"app.mail cannot deliver {draw_letters(r, 10)}: mailbox unavailable"),
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


def _path_of_request(request: HandledRequest) -> str:
    return request.service.name.split("-")[0]


def _status_of_request(request: HandledRequest) -> int:
    return 500 if request.failed else 200


def write_request(scene: Scene, case: CaseFolderWriter, file: str, request: HandledRequest) -> None:
    """Add the lines that one request leaves at the service that handled it."""
    always, if_well = _PER_REQUEST.get(request.service.runtime, ((), ()))
    for level, text in (*(() if request.failed else if_well), *always):
        message, pod = text(scene.random, request), _choose_pod(scene.random, request.service)
        case.add(
            file,
            timestamp=format_utc(request.end),
            service=request.service.name,
            pod=pod,
            level=level,
            message=message,
            trace_id=request.trace_id,
        )


def write_background(scene: Scene, case: CaseFolderWriter, file: str, start: float, end: float) -> None:
    """Add what services write now and then, in `[start, end)`."""
    for service in scene.world.services:
        for per_minute, level, text in _NOW_AND_THEN[service.runtime]:
            for moment in draw_arrivals(scene.random, per_minute, start, end):
                _add_log_row(
                    case, file, moment, service, level, text(scene.random), _choose_pod(scene.random, service)
                )


def write_chatter(scene: Scene, case: CaseFolderWriter) -> None:
    """Add the lines that the fault causes, each kind at its rate, thinned by its shape."""
    for chatter in scene.chatter:
        _write_fault_lines(scene, case, chatter)


def _write_fault_lines(scene: Scene, case: CaseFolderWriter, chatter: FaultLogLines) -> None:
    service = scene.world.service(chatter.service)
    for moment in draw_arrivals(scene.random, chatter.per_minute, scene.timing.start, scene.timing.end):
        if scene.random.random() < chatter.shape(moment):
            text, pod = chatter.text(scene.random), chatter.pod or _choose_pod(scene.random, service)
            _add_log_row(case, "logs.jsonl", moment, service, chatter.level, text, pod)


def draw_arrivals(random: Random, per_minute: float, start: float, end: float) -> list[float]:
    """Moments of a Poisson process in `[start, end)`."""
    moments: list[float] = []
    moment = start
    while per_minute > 0:
        moment += random.expovariate(per_minute / 60)
        if moment >= end:
            break
        moments.append(moment)
    return moments


def _choose_pod(random: Random, service: SyntheticService) -> str | None:
    return random.choice(service.pods) if service.pods else None


def _add_log_row(
    case: CaseFolderWriter,
    file: str,
    moment: float,
    service: SyntheticService,
    level: str,
    message: str,
    pod: str | None,
) -> None:
    case.add(file, timestamp=format_utc(moment), service=service.name, pod=pod, level=level, message=message)

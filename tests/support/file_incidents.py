"""Ten incidents that exist only as files, as the programs themselves write them: what is there, and what is the cause."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 11, 29, 13, 30, tzinfo=UTC)
ONSET = 1_500
"""Seconds of calm before the trouble."""
END = 2_400


@dataclass(frozen=True, slots=True)
class FileIncident:
    """What `write` puts into a folder, and the kinds and words of a right answer. `path` is what a person names."""

    name: str
    path: str
    write: Callable[[Path, random.Random], None]
    kinds: frozenset[str]
    words: str
    question: str = ""


def moment(second: float) -> datetime:
    return START + timedelta(seconds=second)


def iso(second: float) -> str:
    return f"{moment(second):%Y-%m-%dT%H:%M:%S}.{int(second * 1000) % 1000:03d}Z"


def arrivals(rng: random.Random, per_second: float) -> Iterator[float]:
    """Seconds at which something happens, at random with this rate."""
    second = rng.expovariate(per_second)
    while second < END:
        yield second
        second += rng.expovariate(per_second)


def access_log(folder: Path, rng: random.Random) -> None:
    """Nginx as a proxy whose upstream went away: most requests end in 502."""
    with (folder / "access.log").open("w") as file:
        for second in arrivals(rng, 2):
            path = rng.choice(("/", "/api/cart", "/api/cart/items", "/static/app.js", "/login"))
            failing = second > ONSET and path.startswith("/api") and rng.random() < 0.95
            status, size = (502, 157) if failing else (rng.choice((200, 200, 200, 304, 404)), rng.randrange(200, 9_000))  # fmt: skip
            file.write(
                f'10.2.{rng.randrange(9)}.{rng.randrange(250)} - - [{moment(second):%d/%b/%Y:%H:%M:%S} +0000] "GET {path} HTTP/1.1" {status} {size} '
                '"-" "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"\n'
            )


def slow_log(folder: Path, rng: random.Random) -> None:
    """MySQL's slow log: one statement lost its index."""
    with (folder / "mysql-slow.log").open("w") as file:
        file.write("/usr/sbin/mysqld, Version: 8.0.36 (MySQL Community Server - GPL). started with:\n")
        file.write("Tcp port: 3306  Unix socket: /var/run/mysqld/mysqld.sock\n")
        file.write("Time                 Id Command    Argument\n")
        for second in arrivals(rng, 0.15):
            bad = second > ONSET and rng.random() < 0.8
            seconds = rng.uniform(7, 16) if bad else rng.uniform(1.0, 1.4)
            statement = (
                f"SELECT * FROM orders WHERE customer_email = 'c{rng.randrange(10**6)}@example.com' ORDER BY created_at DESC LIMIT 20;"
                if bad
                else f"SELECT COUNT(*) FROM sessions WHERE last_seen < {rng.randrange(10**6)};"
            )
            examined = rng.randrange(4_000_000, 5_000_000) if bad else rng.randrange(9_000, 12_000)
            file.write(
                f"# Time: {moment(second):%Y-%m-%dT%H:%M:%S}.{rng.randrange(10**6):06d}Z\n# User@Host: shop[shop] @ app-1 [10.0.3.7]  Id: {rng.randrange(900)}\n"
                f"# Query_time: {seconds:.6f}  Lock_time: 0.000003 Rows_sent: 20  Rows_examined: {examined}\n"
                f"SET timestamp={int(moment(second).timestamp())};\n{statement}\n"
            )


def gc_log(folder: Path, rng: random.Random) -> None:
    """A JVM whose heap fills up: ever longer full collections stop it."""
    with (folder / "gc.log").open("w") as file:
        for number, second in enumerate(arrivals(rng, 0.25)):
            stamp = f"[{moment(second):%Y-%m-%dT%H:%M:%S}.{rng.randrange(1000):03d}+0000][{second:.3f}s][info][gc] GC({number})"
            if second > ONSET and rng.random() < 0.7:
                file.write(
                    f"{stamp} Pause Full (Allocation Failure) {4090 + rng.randrange(5)}M->{4070 + rng.randrange(15)}M(4096M) {rng.uniform(6_000, 9_500):.3f}ms\n"
                )
            else:
                file.write(
                    f"{stamp} Pause Young (Normal) (G1 Evacuation Pause) {1500 + rng.randrange(800)}M->{700 + rng.randrange(90)}M(4096M) {rng.uniform(8, 25):.3f}ms\n"
                )


def deadlock(folder: Path, rng: random.Random) -> None:
    """PostgreSQL ends deadlocks between two kinds of transactions."""
    with (folder / "postgresql.log").open("w") as file:
        for second in arrivals(rng, 0.5):
            head = f"{moment(second):%Y-%m-%d %H:%M:%S}.{rng.randrange(1000):03d} UTC [{4000 + rng.randrange(60)}] shop@orders"
            if second > ONSET and rng.random() < 0.4:
                pid = rng.randrange(4000, 4060)
                file.write(
                    f"{head} ERROR:  deadlock detected\n"
                    f"{head} DETAIL:  Process {pid} waits for ShareLock on transaction {rng.randrange(10**6)}; blocked by process {pid + 1}.\n"
                    f"{head} HINT:  See server log for query details.\n"
                    f"{head} STATEMENT:  UPDATE stock SET reserved = reserved + 1 WHERE sku = {rng.randrange(900)}\n"
                )
            else:
                file.write(f"{head} LOG:  duration: {rng.uniform(1, 9):.3f} ms  statement: SELECT id FROM orders WHERE id = {rng.randrange(10**5)}\n")  # fmt: skip


def oom_in_dmesg(folder: Path, rng: random.Random) -> None:
    """`dmesg -T` of a machine on which the kernel killed a process."""
    with (folder / "dmesg.txt").open("w") as file:
        for second in arrivals(rng, 0.02):
            if second < ONSET:
                file.write(f"[{moment(second):%a %b %d %H:%M:%S %Y}] eth0: link up, 1000 Mbps\n")
        for second in (ONSET, ONSET + 300, ONSET + 600):
            stamp = f"[{moment(second):%a %b %d %H:%M:%S %Y}]"
            pid = rng.randrange(20_000, 30_000)
            file.write(
                f"{stamp} java invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0\n"
                f"{stamp} CPU: 1 PID: {pid} Comm: java Not tainted 6.8.0-45-generic #45-Ubuntu\n"
                f"{stamp} Mem-Info:\n"
                f"{stamp} oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/catalog.service,task=java,pid={pid},uid=1001\n"
                f"{stamp} Out of memory: Killed process {pid} (java) total-vm:9871236kB, anon-rss:7823412kB, file-rss:0kB, shmem-rss:0kB, UID:1001 pgtables:16012kB oom_score_adj:0\n"
            )


def full_disk(folder: Path, rng: random.Random) -> None:
    """A Python service that can no longer write its uploads."""
    with (folder / "uploads.log").open("w") as file:
        for second in arrivals(rng, 0.5):
            head = f"{moment(second):%Y-%m-%d %H:%M:%S},{rng.randrange(1000):03d}"
            if second > ONSET and rng.random() < 0.7:
                file.write(
                    f"{head} ERROR uploads.store: cannot write part {rng.randrange(10**6)}\nTraceback (most recent call last):\n"
                    '  File "/srv/uploads/store.py", line 88, in write\n    handle.flush()\n'
                    "OSError: [Errno 28] No space left on device\n"
                )
            else:
                file.write(f"{head} INFO uploads.store: stored part {rng.randrange(10**6)} in {rng.randrange(5, 60)} ms\n")  # fmt: skip


def expired_certificate(folder: Path, rng: random.Random) -> None:
    """A Go service whose calls fail since a certificate ran out."""
    with (folder / "billing.jsonl").open("w") as file:
        for second in arrivals(rng, 0.5):
            row = {"level": "info", "ts": moment(second).timestamp(), "logger": "charge", "msg": "charged", "invoice": rng.randrange(10**6)}  # fmt: skip
            if second > ONSET:
                row |= {
                    "level": "error",
                    "msg": "charge failed",
                    "error": 'Post "https://bank.example.com/v2/charges": tls: failed to verify certificate: x509: certificate has expired or is not yet '
                    f"valid: current time {moment(second):%Y-%m-%dT%H:%M:%SZ} is after 2026-11-29T13:55:00Z",
                }
            file.write(json.dumps(row) + "\n")


def name_resolution(folder: Path, rng: random.Random) -> None:
    """A Node service that cannot resolve a name, now and then, then mostly."""
    with (folder / "cart.log").open("w") as file:
        for second in arrivals(rng, 0.6):
            if second > ONSET and rng.random() < 0.8:
                file.write(f"{iso(second)} error: request to http://pricing.shop.svc.cluster.local/quote failed, reason: getaddrinfo EAI_AGAIN pricing.shop.svc.cluster.local\n")  # fmt: skip
            else:
                file.write(f"{iso(second)} info: quoted basket {rng.randrange(10**6)} in {rng.randrange(9, 40)} ms\n")  # fmt: skip


def crash_loop(folder: Path, rng: random.Random) -> None:
    """A container that starts, panics and starts again, as the kubelet keeps its log."""
    place = folder / "pods" / "shop_ledger-7c9f7d5b8-x2k4p_0f1e" / "ledger"
    place.mkdir(parents=True)
    with (place / "0.log").open("w") as file:

        def say(second: float, stream: str, text: str) -> None:
            file.write(f"{moment(second):%Y-%m-%dT%H:%M:%S}.{rng.randrange(10**9):09d}Z {stream} F {text}\n")

        for second in arrivals(rng, 0.4):
            if second < ONSET:
                say(second, "stdout", f'level=info msg="booked entry" id={rng.randrange(10**6)}')
        for second in range(ONSET, END, 60):
            say(second, "stdout", 'level=info msg="starting ledger" version=3.4.0')
            say(second + 1, "stdout", 'level=info msg="loading rules" file=/etc/ledger/rules.yaml')
            for line in (
                "panic: runtime error: invalid memory address or nil pointer dereference",
                "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x6f2a31]",
                "",
                "goroutine 1 [running]:",
                "main.(*Rules).Load(0x0, {0xc00012a000, 0x19})",
                "\t/src/ledger/rules.go:41 +0x31",
            ):
                say(second + 2, "stderr", line)


def slow_call(folder: Path, rng: random.Random) -> None:
    """Jaeger's JSON of a checkout that waits for its payments service."""
    traces = []
    for number, second in enumerate(arrivals(rng, 0.15)):
        slow = second > ONSET
        begin = int(moment(second).timestamp() * 1e6)
        pay = int(rng.uniform(2_500, 4_000) * 1000) if slow else int(rng.uniform(30, 60) * 1000)
        stock = int(rng.uniform(8, 15) * 1000)
        trace = f"{number + 1:032x}"

        def span(name: str, process: str, start: int, length: int, parent: str = "", kind: str = "server", trace: str = trace) -> dict[str, object]:  # fmt: skip
            own = f"{int(trace, 16) * 16 + int(process[1:]):016x}"
            references = [{"refType": "CHILD_OF", "traceID": trace, "spanID": parent}] if parent else []
            return {"traceID": trace, "spanID": own, "operationName": name, "references": references, "startTime": start, "duration": length,
                    "tags": [{"key": "span.kind", "type": "string", "value": kind}], "logs": [], "processID": process}  # fmt: skip

        root = span("POST /checkout", "p1", begin, pay + stock + 9_000)
        first = span("GET /stock", "p2", begin + 2_000, stock, str(root["spanID"]))
        second_call = span("POST /charge", "p3", begin + 4_000 + stock, pay, str(root["spanID"]))
        processes = {f"p{n}": {"serviceName": name, "tags": []} for n, name in enumerate(("checkout", "stock", "payments"), 1)}  # fmt: skip
        traces.append({"traceID": trace, "spans": [root, first, second_call], "processes": processes})
    (folder / "traces.json").write_text(json.dumps({"data": traces, "total": 0, "limit": 0, "offset": 0}))


INCIDENTS = (
    FileIncident(
        "access log with 502s", "access.log", access_log, frozenset({"errors", "dependency"}), "502"
    ),
    FileIncident("slow log", "mysql-slow.log", slow_log, frozenset({"slow_query"}), "customer_email"),
    FileIncident(
        "collector stops the program", "gc.log", gc_log, frozenset({"memory", "out_of_memory"}), "Pause Full"
    ),
    FileIncident("deadlock", "postgresql.log", deadlock, frozenset({"locks"}), "deadlock detected"),
    FileIncident("out of memory in dmesg", "dmesg.txt", oom_in_dmesg, frozenset({"out_of_memory"}), "oom"),
    FileIncident(
        "full disk", "uploads.log", full_disk, frozenset({"storage_full"}), "No space left on device"
    ),
    FileIncident(
        "expired certificate",
        "billing.jsonl",
        expired_certificate,
        frozenset({"certificate"}),
        "certificate has expired",
    ),
    FileIncident("name resolution", "cart.log", name_resolution, frozenset({"dns"}), "EAI_AGAIN"),
    FileIncident("crash loop", "pods", crash_loop, frozenset({"crash", "exception"}), "SIGSEGV"),
    FileIncident(
        "slow call in traces", "traces.json", slow_call, frozenset({"latency", "dependency"}), "payments"
    ),
)


def write_incident(incident: FileIncident, folder: Path, seed: int = 7) -> Path:
    """The incident's files in the folder; the path that a person would name."""
    incident.write(folder, random.Random(f"{incident.name}-{seed}"))
    return folder / incident.path

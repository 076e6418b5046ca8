"""Formats of frameworks and of servers that are met less often."""

from opsleuth.analysis.zone_offsets import ZONE
from opsleuth.tools.sources.log_formats.declaration import DIGITS, ISO_TIME, WORDS, LogFormat

_LEVEL = r"(?P<level>TRACE|DEBUG|VERBOSE|INFO|LOG|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|UNKNOWN|ANY)"
_SHORT_LEVELS = {
    "VRB": "VERBOSE",
    "DBG": "DEBUG",
    "INF": "INFO",
    "WRN": "WARNING",
    "ERR": "ERROR",
    "FTL": "FATAL",
}
_CONSOLE_LEVELS = {
    "trce": "TRACE",
    "dbug": "DEBUG",
    "info": "INFO",
    "warn": "WARNING",
    "fail": "ERROR",
    "crit": "CRITICAL",
}
_LOGRUS_LEVELS = {
    "TRAC": "TRACE",
    "DEBU": "DEBUG",
    "WARN": "WARNING",
    "ERRO": "ERROR",
    "FATA": "FATAL",
    "PANI": "PANIC",
}

PROCESS_ENVELOPE = LogFormat(
    name="procfile",
    title="Foreman and honcho",
    begins=DIGITS,
    start=r"(?P<clock>\d\d:\d\d:\d\d) (?P<service>[a-z][\w-]*?)(?:\.\d+)?\s+\| (?P<inner>.*)",
    verbatim=False,
    examples=(
        "14:00:02 tills.1 | 2026-11-29T14:00:02.149Z ERROR charge failed",
        '14:00:03 ledger.2 | {"time":"2026-11-29T14:00:03.001Z","level":"INFO","msg":"started"}',
        "14:00:04 redis.1  | 31:M 29 Nov 2026 14:00:04.500 * DB saved on disk",
    ),
)
TIMESTAMP_ENVELOPE = LogFormat(
    name="container-timestamps",
    title="kubectl logs --timestamps, docker logs --timestamps",
    begins=DIGITS,
    start=rf"(?P<time>\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(?P<frac>\d{{9}})(?P<zone>{ZONE}) (?P<inner>.*)",
    verbatim=False,
    examples=(
        "2026-11-29T14:00:02.149313117Z 2026-11-29 14:00:02,149 [main] ERROR com.shop.tills.ChargeService - charge failed",
        '2026-11-29T14:00:03.001000000Z {"level":"info","msg":"started"}',
        "2026-11-29T15:00:04.500000000+01:00 pool is nearly empty: 2 left",
    ),
)
"""Tried after all others: loggers that write nanoseconds have formats of their own."""
RARER_FORMATS: tuple[LogFormat, ...] = (
    LogFormat(
        name="spring-sleuth",
        title="Spring Boot with trace ids (Sleuth)",
        begins=DIGITS,
        start=rf"{ISO_TIME}\s+{_LEVEL} \[(?P<service>[\w.-]+),(?P<trace>[\da-f]*)(?:,[^\]]*)?\]\s+(?P<pid>\d+) --- \[(?P<thread>[^\]]*)\] (?P<logger>\S+)\s+: (?P<message>.*)",
        examples=(
            "2026-11-29 14:00:02.149 ERROR [tills,7f3ad4d19d0c4b8f,8a556c1a9b3f2e10] 1 --- [nio-8080-exec-7] c.shop.tills.ChargeController : charge failed",
            "2026-11-29 14:00:03.001  INFO [tills,,] 1 --- [           main] c.shop.tills.Main : started",
            "2026-11-29 14:00:04.500  WARN [tills,7f3ad4d19d0c4b8f,8a556c1a9b3f2e10,true] 1 --- [scheduling-1] c.z.hikari.pool.HikariPool : Thread starvation detected",
        ),
    ),
    LogFormat(
        name="serilog-text",
        title="Serilog, text",
        begins="[" + DIGITS,
        start=rf"\[?{ISO_TIME} \[?(?P<level>VRB|DBG|INF|WRN|ERR|FTL)\] (?P<message>.*)",
        levels=_SHORT_LEVELS,
        examples=(
            "2026-11-29 14:00:02.149 +00:00 [ERR] charge failed",
            "2026-11-29 14:00:03.001 +00:00 [INF] started",
            "[2026-11-29 14:00:04.500 WRN] pool is nearly empty: 2 left",
        ),
    ),
    LogFormat(
        name="dotnet",
        title=".NET console, two lines: a time only where one is set",
        begins="tdiwfc" + DIGITS,
        start=rf"(?:{ISO_TIME} )?(?P<level>trce|dbug|info|warn|fail|crit): (?P<message>(?P<logger>[\w.`+]+)\[\d+\].*)",
        levels=_CONSOLE_LEVELS,
        examples=(
            "fail: Shop.Tills.ChargeService[0]\n      charge failed: connection refused",
            "2026-11-29T14:00:03.001Z info: Microsoft.Hosting.Lifetime[14]\n      Now listening on: http://[::]:8080",
            "2026-11-29 14:00:04.500 warn: Shop.Tills.Pool[3] 2 left",
        ),
    ),
    LogFormat(
        name="nest",
        title="NestJS",
        begins="[",
        form="american_slash",
        start=rf"\[Nest\] (?P<pid>\d+)\s+- (?P<time>\d\d/\d\d/\d{{4}}, \d{{1,2}}:\d\d:\d\d[ \u202f][AP]M)\s+{_LEVEL} (?:\[(?P<logger>[^\]]+)\] )?(?P<message>.*)",
        examples=(
            "[Nest] 31  - 11/29/2026, 2:00:02 PM   ERROR [ExceptionsHandler] charge failed",
            "[Nest] 31  - 11/29/2026, 2:00:03 PM     LOG [NestFactory] Starting Nest application...",
            "[Nest] 31  - 11/29/2026, 2:00:04 PM    WARN pool is nearly empty",
        ),
    ),
    LogFormat(
        name="ruby",
        title="Ruby and Rails",
        begins="DIWEFUA",
        start=rf"[DIWEFUA], \[{ISO_TIME} #(?P<pid>\d+)\]\s+{_LEVEL} -- (?P<logger>[^:]*): (?P<message>.*)",
        examples=(
            "E, [2026-11-29T14:00:02.149313 #31] ERROR -- : charge failed",
            "I, [2026-11-29T14:00:03.001000 #31]  INFO -- : Started GET /basket",
            "W, [2026-11-29T14:00:04.500000 #31]  WARN -- tills: pool is nearly empty",
        ),
    ),
    LogFormat(
        name="airflow",
        title="Airflow",
        begins="[",
        start=rf"\[{ISO_TIME}\] \{{(?P<source>[^}}]+:\d+)\}} {_LEVEL} - (?P<message>.*)",
        examples=(
            "[2026-11-29T14:00:02.149+0000] {taskinstance.py:1824} ERROR - Task failed with exception",
            "[2026-11-29T14:00:03.001+0000] {local_task_job.py:208} INFO - Task exited with return code 0",
            "[2026-11-29 14:00:04,500] {dagbag.py:500} WARNING - 2 left",
        ),
    ),
    LogFormat(
        name="rust-env",
        title="Rust, env_logger",
        begins="[",
        start=rf"\[{ISO_TIME} {_LEVEL}\s+(?P<logger>[\w:.-]+)\] (?P<message>.*)",
        examples=(
            "[2026-11-29T14:00:02Z ERROR tills::charge] charge failed: connection refused",
            "[2026-11-29T14:00:03Z INFO  tills] started",
            "[2026-11-29T14:00:04.500Z WARN  tills::pool] 2 left",
        ),
    ),
    LogFormat(
        name="mongo-old",
        title="MongoDB before 4.4",
        begins=DIGITS,
        start=rf"{ISO_TIME} (?P<level>[DIWEF])\d? +(?P<module>[A-Z_-]+) +\[(?P<thread>[^\]]*)\] (?P<message>.*)",
        levels=WORDS,
        examples=(
            "2026-11-29T14:00:02.149+0000 E STORAGE  [initandlisten] WiredTiger error (28) No space left on device",
            "2026-11-29T14:00:03.001+0000 I NETWORK  [listener] connection accepted from 10.0.0.1:51532 #12",
            "2026-11-29T14:00:04.500+0000 W -        [conn31] 2 left",
        ),
    ),
    LogFormat(
        name="cockroach",
        title="CockroachDB",
        begins="IWEF",
        form="compact",
        start=r"(?P<level>[IWEF])(?P<time>\d{6} \d\d:\d\d:\d\d)\.(?P<frac>\d{6}) (?P<tid>\d+) (?:\d+@)?(?P<source>[\w./@-]+:\d+) +(?:\u22ee )?(?P<message>.*)",
        levels=WORDS,
        examples=(
            "E261129 14:00:02.149313 31 kv/kvserver/store.go:42 \u22ee [n1,s1] 7  disk stall detected",
            "I261129 14:00:03.001000 1 1@server/server.go:131 \u22ee [n1] 8  node started",
            "W261129 14:00:04.500000 77 gossip/gossip.go:9  [n1] 2 left",
        ),
    ),
    LogFormat(
        name="android-year",
        title="Android logcat with a year (logcat -v year)",
        begins=DIGITS,
        start=rf"{ISO_TIME}\s+(?:[\w]+\s+)?(?P<pid>\d+)\s+(?P<tid>\d+) (?P<level>[VDIWEFA]) (?P<service>[^\s:][^:]*?)\s*: (?P<message>.*)",
        levels=WORDS,
        examples=(
            "2026-11-29 14:00:02.149  1702  2395 E ActivityManager: ANR in com.shop.tills",
            "2026-11-29 14:00:03.001  1000  1702 17632 I ActivityManager: Start proc 31:com.shop.tills/u0a9",
            "2026-11-29 14:00:04.500 +0000  2227  2227 W PhoneStatusBar: Entering expanded mode",
        ),
    ),
    LogFormat(
        name="logrus-console",
        title="Go, logrus for people: no time",
        begins="TDIWEFP",
        start=r"(?P<level>TRAC|DEBU|INFO|WARN|ERRO|FATA|PANI)\[(?P<uptime>\d{4,})\] (?P<message>.*)",
        levels=_LOGRUS_LEVELS,
        examples=(
            'ERRO[0012] charge failed                                 error="connection refused"',
            "INFO[0000] started",
            "WARN[0013] pool is nearly empty                          left=2",
        ),
    ),
)

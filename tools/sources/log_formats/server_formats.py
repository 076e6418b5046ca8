"""Formats of servers and systems: web servers, proxies, syslog, the kernel, databases, caches."""

from opsleuth.analysis.zone_offsets import ZONE
from opsleuth.tools.sources.log_formats.declaration import (
    DIGITS,
    FRACTION,
    ISO_TIME,
    ISO_TIME_IN_ZONE,
    LogFormat,
    read_priority,
)
from opsleuth.tools.sources.log_formats.multiline import (
    finish_csvlog,
    finish_journal_export,
    finish_slow_query,
)

_MONTH_DAY = r"(?P<time>[A-Z][a-z]{2} [ \d]?\d (?:\d{4} )?\d\d:\d\d:\d\d)(?:\.(?P<frac>\d{1,9}))?"
_PROGRAM = r"(?:-- )?(?P<service>[\w./@+-]+)(?:\([\w.-]+\))?(?: \d[\w.]*)?(?:\[(?P<pid>[\w.-]+)\])?(?: \([^)]{1,60}\))?: ?(?P<message>.*)"
_POSTGRES_LEVEL = r"(?P<level>DEBUG[1-5]?|INFO|NOTICE|WARNING|ERROR|LOG|FATAL|PANIC|DETAIL|HINT|STATEMENT|CONTEXT|QUERY|LOCATION):  "
_LEVEL_WORDS = "(?i:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|SEVERE|FATAL|CRITICAL|PANIC)"
_WEB_TIME = (
    r"\[(?P<time>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d)(?:\.(?P<frac>\d{1,9}))?(?: (?P<zone>[+-]\d{4}))?\]"
)

SERVER_FORMATS: tuple[LogFormat, ...] = (
    LogFormat(
        name="nginx-error",
        title="nginx, errors",
        begins=DIGITS,
        start=r"(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d) \[(?P<level>[a-z]+)\] (?P<pid>\d+)#(?P<tid>\d+): (?:\*(?P<connection>\d+) )?(?P<message>.*)",
        examples=(
            '2026/11/29 14:00:02 [error] 31#31: *1042 connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.1, server: tills, request: "GET / HTTP/1.1", upstream: "http://10.0.0.7:8080/"',
            "2026/11/29 14:00:03 [notice] 1#1: start worker process 31",
            "2026/11/29 14:00:04 [crit] 31#31: *1043 open() failed (24: Too many open files)",
        ),
    ),
    LogFormat(
        name="access",
        title="nginx and Apache, access (common and combined, with a host before them or figures behind)",
        start=rf"(?:(?P<virtual_host>[\w.:-]+) )?(?P<client>[\w.:%-]+) \S+ (?P<user>\S+(?: \S+)?) {_WEB_TIME} \"(?P<request>(?:[^\"\\]|\\.)*)\" (?P<status>\d{{3}}) (?P<bytes>\d+|-)(?: \"(?P<referer>(?:[^\"\\]|\\.)*)\" \"(?P<agent>(?:[^\"\\]|\\.)*)\")?(?: \"?(?P<request_time>\d+\.\d+)\"?)?(?=\s|$)",
        form="day_first",
        examples=(
            '10.0.0.1 - - [29/Nov/2026:14:00:02 +0000] "GET /basket HTTP/1.1" 502 157 "-" "curl/8.5.0"',
            '10.0.0.1 - anna [29/Nov/2026:15:00:03 +0100] "POST /charge HTTP/2.0" 200 31',
            'tills.example.com:443 10.0.0.1 - - [29/Nov/2026:14:00:04 +0000] "GET / HTTP/1.1" 200 612 "-" "Mozilla/5.0" 0.042',
        ),
    ),
    LogFormat(
        name="apache-error",
        title="Apache, errors",
        begins="[",
        form="syslog",
        start=r"\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)(?:\.(?P<frac>\d{1,6}))?(?P<year> \d{4})\] \[(?:(?P<module>[\w-]*):)?(?P<level>[a-z]+\d?)\] (?:\[pid (?P<pid>\d+)(?::tid (?P<tid>\d+))?\] )?(?:\[client (?P<client>[^\]]+)\] )?(?P<message>.*)",
        examples=(
            "[Sun Nov 29 14:00:02.149313 2026] [proxy:error] [pid 31:tid 140213] (111)Connection refused: AH00957: HTTP: attempt to connect to 10.0.0.7:8080 failed",
            "[Sun Nov 29 14:00:03 2026] [notice] Apache/2.2.3 configured -- resuming normal operations",
            "[Sun Nov 29 14:00:04.500000 2026] [core:warn] [pid 31] [client 10.0.0.1:51532] AH00124: Request exceeded the limit",
        ),
    ),
    LogFormat(
        name="haproxy",
        title="HAProxy, requests",
        start=rf"(?:{_MONTH_DAY.replace('?P<time>', '?P<written>').replace('?P<frac>', '?P<written_part>')} (?P<host>\S+) )?(?:(?P<service>haproxy)\[(?P<pid>\d+)\]: )?(?P<message>(?P<client>[\w.:]+:\d+) {_WEB_TIME} (?P<frontend>\S+) (?P<backend>\S+)/(?P<server>\S+) (?P<timers>[-+\d/]+) (?:(?P<status>-?\d{{1,3}}) )?(?P<bytes>\+?\d+) .*)",
        form="day_first",
        examples=(
            'Nov 29 14:00:02 lb-1 haproxy[31]: 10.0.0.1:51532 [29/Nov/2026:14:00:02.149] web tills/tills-1 0/0/-1/-1/3 503 217 - - SC-- 12/11/0/0/3 0/0 "GET /basket HTTP/1.1"',
            '10.0.0.1:51532 [29/Nov/2026:14:00:03.001] web tills/tills-2 0/0/1/42/43 200 1612 - - ---- 12/11/3/1/0 0/0 "GET / HTTP/1.1"',
            "Nov 29 14:00:04 lb-1 haproxy[31]: 10.0.0.1:51533 [29/Nov/2026:14:00:04.500] db pg/pg-1 1/0/5012 4231 -- 3/3/2/1/0 0/0",
        ),
    ),
    LogFormat(
        name="syslog-5424",
        title="syslog, RFC 5424",
        begins="<",
        start=rf"<(?P<level>\d{{1,3}})>1 (?:{ISO_TIME}|-) (?P<host>\S+) (?P<service>\S+) (?P<pid>\S+) (?P<msgid>\S+) (?:-|(?P<data>(?:\[(?:[^\]\\]|\\.)*\])+))(?: \ufeff?(?P<message>.*))?$",
        levels=read_priority,
        examples=(
            "<11>1 2026-11-29T14:00:02.149Z node-1 tills 31 - - charge failed: connection refused",
            '<14>1 2026-11-29T15:00:03.001+01:00 node-1 tills 31 ID47 [exampleSDID@32473 iut="3"] started',
            "<12>1 2026-11-29T14:00:04.500000Z node-1 pool - - - 2 connections left",
        ),
    ),
    LogFormat(
        name="syslog",
        title="syslog without a year",
        begins="<JFMASOND",
        form="syslog",
        start=rf"(?:<(?P<level>\d{{1,3}})>)?{_MONTH_DAY} (?P<host>[\w.:/-]+)\s+{_PROGRAM}",
        levels=read_priority,
        examples=(
            "Nov 29 14:00:02 node-1 tills[31]: charge failed: connection refused",
            "<30>Nov 29 14:00:03 node-1 systemd[1]: Started tills.service - Tills.",
            "Nov  9 14:00:04 node-1 kernel: Out of memory: Killed process 31 (tills)",
        ),
    ),
    LogFormat(
        name="syslog-iso",
        title="syslog with a year (rsyslog, journalctl -o short-iso)",
        begins="<" + DIGITS,
        start=rf"(?:<(?P<level>\d{{1,3}})>)?{ISO_TIME} (?!{_LEVEL_WORDS}\b)(?P<host>[\w.-]+) (?!{_LEVEL_WORDS}\b)(?P<service>[\w./@+-]+)(?:\[(?P<pid>\d+)\]:|:(?=\s(?! *:))) (?P<message>.*)",
        levels=read_priority,
        examples=(
            "2026-11-29T14:00:02.149313+00:00 node-1 tills[31]: charge failed: connection refused",
            "2026-11-29T14:00:03+0000 node-1 systemd[1]: Started tills.service - Tills.",
            "2026-11-29T14:00:04.500000+00:00 node-1 kernel: Out of memory: Killed process 31 (tills)",
        ),
    ),
    LogFormat(
        name="dmesg",
        title="the kernel's messages, with dates (dmesg -T)",
        begins="[kudsla",
        form="syslog",
        start=r"(?:(?P<facility>[a-z]+)\s*:(?P<level>[a-z]+)\s*: )?\[(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\] (?P<message>.*)",
        examples=(
            "[Sun Nov 29 14:00:02 2026] Out of memory: Killed process 31 (tills) total-vm:2097152kB, anon-rss:1048576kB",
            "[Sun Nov 29 14:00:03 2026] EXT4-fs (sda1): mounted filesystem with ordered data mode",
            "kern  :err   : [Sun Nov 29 14:00:04 2026] blk_update_request: I/O error, dev sda, sector 1048576",
        ),
    ),
    LogFormat(
        name="dmesg-uptime",
        title="the kernel's messages, in seconds since the start: no time",
        begins="[kudsla<",
        start=r"(?:<(?P<priority>\d+)>)?(?:(?P<facility>[a-z]+)\s*:(?P<level>[a-z]+)\s*: )?\[\s*(?P<uptime>\d{1,9}\.\d{6})\] (?P<message>.*)",
        examples=(
            "[ 3142.117313] Out of memory: Killed process 31 (tills) total-vm:2097152kB, anon-rss:1048576kB",
            "[    0.000000] Linux version 6.1.0-18-amd64",
            "kern  :err   : [ 3143.001000] blk_update_request: I/O error, dev sda, sector 1048576",
        ),
    ),
    LogFormat(
        name="envoy-access",
        title="Envoy, requests",
        begins="[",
        start=rf"\[{ISO_TIME}\] \"(?P<request>[^\"]*)\" (?P<status>\d{{1,3}}) (?P<flags>[\w,-]+) .*?(?P<bytes_received>\d+) (?P<bytes>\d+) (?P<duration_ms>\d+|-) (?P<upstream_ms>\d+|-) (?:\"[^\"]*\" ?)*",
        examples=(
            '[2026-11-29T14:00:02.149Z] "GET /basket HTTP/1.1" 503 UF,URX 0 91 12 - "-" "curl/8.5.0" "7f3ad4d1-9d0c-4b8f-8a55-6c1a9b3f2e10" "tills:8080" "10.0.0.7:8080"',
            '[2026-11-29T14:00:03.001Z] "POST /charge HTTP/2" 200 - 31 612 42 41 "10.0.0.1" "Mozilla/5.0" "0b1d" "tills" "10.0.0.7:8080"',
            '[2026-11-29T14:00:04.500Z] "GET / HTTP/1.1" 504 UT via_upstream - "-" 0 24 15000 - "-" "curl/8.5.0" "aa" "tills" "10.0.0.8:8080"',
        ),
    ),
    LogFormat(
        name="envoy",
        title="Envoy, its own log",
        begins="[",
        start=rf"\[{ISO_TIME}\]\[(?P<tid>\d+)\]\[(?P<level>[a-z]+)\]\[(?P<logger>[\w ]+)\] (?:\[(?P<source>[^\]]+:\d+)\] )?(?P<message>.*)",
        examples=(
            "[2026-11-29 14:00:02.149][31][warning][upstream] [source/common/upstream/health_checker_impl.cc:314] host 10.0.0.7:8080 is unhealthy",
            "[2026-11-29 14:00:03.001][1][info][main] [source/server/server.cc:868] starting main dispatch loop",
            "[2026-11-29 14:00:04.500][31][critical][assert] [source/common/http/conn_pool.cc:12] assert failure",
        ),
    ),
    LogFormat(
        name="redis",
        title="Redis and Valkey",
        begins="[" + DIGITS,
        form="day_first",
        start=r"(?:(?P<pid>\d+):(?P<role>[XCSM])|\[\d+\]) (?P<time>\d\d [A-Z][a-z]{2} (?:\d{4} )?\d\d:\d\d:\d\d)\.(?P<frac>\d{3}) (?P<level>[.\-*#]) (?P<message>.*)",
        levels={".": "debug", "-": "verbose", "*": "notice", "#": "warning"},
        examples=(
            "1:M 29 Nov 2026 14:00:02.149 # Can't save in background: fork: Cannot allocate memory",
            "1:C 29 Nov 2026 14:00:03.001 * DB saved on disk",
            "31:S 29 Nov 2026 14:00:04.500 - Client closed connection",
        ),
    ),
    LogFormat(
        name="mysql-slow",
        title="MySQL and MariaDB, slow statements",
        begins="#",
        start=r"# (?:Time: (?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(?P<frac>\d+))?(?P<zone>Z|[+-]\d\d:\d\d)?|Time: (?P<old_time>\d{6} +\d{1,2}:\d\d:\d\d)|User@Host: )(?P<message>.*)",
        finish=finish_slow_query,
        verbatim=False,
        examples=(
            "# Time: 2026-11-29T14:00:02.149313Z\n# User@Host: shop[shop] @  [10.0.0.1]  Id:    31\n# Query_time: 12.000149  Lock_time: 0.000031 Rows_sent: 1  Rows_examined: 1048576\nSET timestamp=1795960802;\nSELECT * FROM baskets WHERE note LIKE '%x%';",
            "# Time: 261129 14:00:03\n# User@Host: shop[shop] @ web-1 [10.0.0.1]\n# Query_time: 3.5  Lock_time: 3.0 Rows_sent: 0  Rows_examined: 1\nSET timestamp=1795960803;\nUPDATE baskets SET paid = 1;",
            "# User@Host: shop[shop] @  [10.0.0.1]  Id:    32\n# Query_time: 1.0  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 10\nSET timestamp=1795960804;\nSELECT 1;",
        ),
    ),
    LogFormat(
        name="mysql-error",
        title="MySQL, MariaDB and Galera, errors",
        begins=DIGITS,
        start=rf"(?P<time>\d{{4}}-\d\d-\d\d[T ][ \d]\d:\d\d:\d\d){FRACTION}(?: ?(?P<zone>{ZONE}))? (?P<thread>\d+) \[(?P<level>[A-Z][a-z]+|ERROR)\] (?:\[(?P<code>MY-\d+)\] \[(?P<subsystem>\w+)\] )?(?P<message>.*)",
        levels={"Note": "NOTE"},
        examples=(
            "2026-11-29T14:00:02.149313Z 31 [ERROR] [MY-012592] [InnoDB] Operating system error number 28 in a file operation.",
            "2026-11-29 14:00:03 0 [Note] WSREP: Quorum results: version = 6, component = PRIMARY",
            "2026-11-29  4:00:04 0 [Warning] InnoDB: Retry attempts for writing partial data failed.",
        ),
    ),
    LogFormat(
        name="mysql-old",
        title="MySQL and MariaDB before 5.7, errors",
        begins=DIGITS,
        form="compact",
        start=r"(?P<time>\d{6} [ \d]\d:\d\d:\d\d)\s+(?:\[(?P<level>[A-Z][a-z]+|ERROR)\] |(?=InnoDB: |mysqld))(?P<message>.*)",
        levels={"Note": "NOTE"},
        examples=(
            "261129 14:00:02 [ERROR] mysqld: Table './shop/baskets' is marked as crashed and should be repaired",
            "261129 14:00:03 [Note] WSREP: New cluster view: global state: 7",
            "261129 14:00:04  InnoDB: Completed initialization of buffer pool",
        ),
    ),
    LogFormat(
        name="postgres-csv",
        title="PostgreSQL, csvlog",
        begins=DIGITS,
        start=rf"{ISO_TIME_IN_ZONE},(?P<message>(?:\"(?:[^\"]|\"\")*\"|[^,\"]*),(?:\"(?:[^\"]|\"\")*\"|[^,\"]*),\d+,.*)",
        finish=finish_csvlog,
        verbatim=False,
        examples=(
            '2026-11-29 14:00:02.149 UTC,"shop","shop",314,"10.0.0.1:51532",6565aa,3,"INSERT",2026-11-29 13:00:00 UTC,4/12,731,ERROR,23505,"duplicate key value violates unique constraint ""baskets_pkey""","Key (id)=(7) already exists.",,,,,"INSERT INTO baskets VALUES (7)",,,"tills","client backend",,0',
            '2026-11-29 14:00:03.001 UTC,,,1,,6565ab,1,,2026-11-29 13:00:00 UTC,,0,LOG,00000,"database system is ready to accept connections",,,,,,,,,"","postmaster",,0',
            '2026-11-29 15:00:04.500 CET,"shop","shop",315,"[local]",6565ac,1,"idle",2026-11-29 14:00:00 CET,5/1,0,FATAL,53300,"sorry, too many clients already",,,,,,,,,"tills","client backend",,0',
        ),
    ),
    LogFormat(
        name="postgres",
        title="PostgreSQL, with any prefix that holds a time",
        start=rf"(?:[\w\[\]()@.,:=/<> -]{{0,120}}?(?<!\d))??(?:{ISO_TIME_IN_ZONE}|(?P<epoch>\d{{10}}\.\d{{3}}))(?P<prefix>.{{0,200}}?){_POSTGRES_LEVEL}(?P<message>.*)",
        continuing=frozenset({"DETAIL", "HINT", "STATEMENT", "CONTEXT", "QUERY", "LOCATION"}),
        examples=(
            "2026-11-29 15:00:02.149 CET [314] ERROR:  charge failed: ledger: connection refused",
            "2026-11-29 14:00:03 UTC:10.0.0.1(51532):shop@shop:[314]:LOG:  duration: 4012.313 ms  statement: UPDATE baskets SET paid = true",
            "2026-11-29 14:00:04.500 UTC [314] shop@shop FATAL:  remaining connection slots are reserved",
        ),
    ),
    LogFormat(
        name="journal-export",
        title="the journal, exported",
        begins="_",
        start=r"__CURSOR=.*(?P<message>)$",
        finish=finish_journal_export,
        verbatim=False,
        examples=(
            "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795960802149313\n_HOSTNAME=node-1\nPRIORITY=3\n_SYSTEMD_UNIT=tills.service\nSYSLOG_IDENTIFIER=tills\nMESSAGE=charge failed",
            "__CURSOR=s=2\n__REALTIME_TIMESTAMP=1795960803001000\nPRIORITY=6\nSYSLOG_IDENTIFIER=systemd\nMESSAGE=Started tills.service",
            "__CURSOR=s=3\n__REALTIME_TIMESTAMP=1795960804500000\n_TRANSPORT=kernel\nPRIORITY=4\nSYSLOG_IDENTIFIER=kernel\nMESSAGE=Out of memory",
        ),
    ),
)
"""Tried in this order where several match."""

ENVELOPES: tuple[LogFormat, ...] = (
    LogFormat(
        name="cri",
        title="containers, as a runtime writes them (CRI)",
        begins=DIGITS,
        start=rf"{ISO_TIME} (?P<stream>stdout|stderr) (?P<part>[FP])(?::\S*)? ?(?P<inner>.*)",
        examples=(
            '2026-11-29T14:00:02.149000001Z stderr F {"level":"error","msg":"ledger says no"}',
            "2026-11-29T14:00:03.001000001Z stdout F started",
            "2026-11-29T15:00:04.500000001+01:00 stdout P a long line, the rest of which ",
        ),
    ),
    LogFormat(
        name="gh-run",
        title="gh run view --log",
        start=r"(?P<container>[^\t]{1,80})\t(?P<step>[^\t]{1,120})\t\ufeff?(?P<inner>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z .*)",
        examples=(
            "test\tRun tests\t2026-11-29T14:00:02.1493131Z ##[error]Process completed with exit code 1.",
            "test\tRun tests\t2026-11-29T14:00:03.0010000Z collected 31 items",
            "build\tSet up job\t2026-11-29T14:00:04.5000000Z Runner name: 'runner-1'",
        ),
    ),
    LogFormat(
        name="kubectl-prefix",
        title="kubectl logs --prefix",
        begins="[",
        start=r"\[pod/(?P<pod>[\w.-]+)/(?P<container>[\w.-]+)\] (?P<inner>.*)",
        examples=(
            "[pod/tills-5c7d9b8f6d-x2x9p/tills] 2026-11-29T14:00:02.149Z ERROR charge failed",
            '[pod/tills-5c7d9b8f6d-x2x9p/tills] {"level":"info","msg":"started","ts":1795960803.001}',
            "[pod/ledger-0/postgres] 2026-11-29 14:00:04.500 UTC [314] LOG:  checkpoint starting: time",
        ),
    ),
    LogFormat(
        name="compose",
        title="docker compose logs",
        start=r"(?P<container>[A-Za-z][\w.-]*?)\s+\| (?P<inner>.*)",
        examples=(
            "tills-1   | 2026-11-29T14:00:02.149Z ERROR charge failed",
            'ledger-1  | {"level":"info","msg":"started","ts":1795960803.001}',
            "shop_db_1 | 2026-11-29 14:00:04.500 UTC [314] LOG:  checkpoint starting: time",
        ),
    ),
    LogFormat(
        name="stern",
        title="stern",
        start=r"(?:(?P<namespace>[a-z][\w-]*) )?(?P<pod>[a-z][\w.-]*-(?:[a-z\d]{5,10}-[a-z\d]{5}|[a-z\d]{5}|\d{1,3})) (?:\u203a )?(?P<container>[a-z][\w-]*) (?=[\[{<\d\"A-Z])(?P<inner>.*)",
        examples=(
            "tills-5c7d9b8f6d-x2x9p tills 2026-11-29T14:00:02.149Z ERROR charge failed",
            'tills-5c7d9b8f6d-x2x9p tills {"level":"info","msg":"started","ts":1795960803.001}',
            "ledger-0 postgres 2026-11-29 14:00:04.500 UTC [314] LOG:  checkpoint starting: time",
        ),
    ),
)
"""A line of another format in what a carrier puts before it."""

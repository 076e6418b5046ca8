"""Spellings that real programs use beside the usual one of their format: time, level, service and message at first sight."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from log_samples import FIRST_LIST, START, FormatCase

from opsleuth.analysis.records import LogLine
from opsleuth.tools.sources.log_formats.log_file import LogFile, ReadingRules

WRITTEN = datetime(2026, 9, 21, 14, tzinfo=UTC).timestamp()


class Spelling(NamedTuple):
    """A record as it is written, and what should be read; times are UTC, messages None where all of the line is one."""

    name: str
    text: str
    time: str | None
    level: str | None
    message: str | None
    service: str = "app"


SPELLINGS = (
    Spelling("tomcat, Italian", "15-Jan-2026 16:13:21.551 INFORMAZIONI [main] org.apache.catalina.startup.Catalina.start Server startup in 733 ms", "2026-01-15T16:13:21.551", "INFO", "Server startup in 733 ms"),
    Spelling("tomcat, German", "15-Jan-2026 16:13:21.551 SCHWERWIEGEND [main] org.apache.catalina.core.StandardService.initInternal no connector", "2026-01-15T16:13:21.551", "SEVERE", "no connector"),
    Spelling("jul, Chinese", "Feb 12, 2026 10:00:01 AM com.shop.Tills pay\n严重: charge failed", "2026-02-12T10:00:01.000", "SEVERE", "charge failed"),
    Spelling("redis without a year", "7217:M 09 Jan 15:07:53.265 * Ready to accept connections", "2026-01-09T15:07:53.265", "notice", "Ready to accept connections"),
    Spelling("redis 2", "[1234] 15 Aug 07:23:35.718 # Server started", "2026-08-15T07:23:35.718", "warning", "Server started"),
    Spelling("haproxy without a time before", 'haproxy[31]: 10.0.1.2:33317 [06/Feb/2026:12:14:14.655] web tills/t1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"', "2026-02-06T12:14:14.655", None, '10.0.1.2:33317 [06/Feb/2026:12:14:14.655] web tills/t1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"', "haproxy"),
    Spelling("mariadb at night", "2026-02-28  3:02:36 0 [Warning] InnoDB: Retry attempts for writing partial data failed.", "2026-02-28T03:02:36.000", "Warning", "InnoDB: Retry attempts for writing partial data failed."),
    Spelling("galera", "2026-02-28 13:02:36 140213 [Note] WSREP: Member 1.0 (db2) synced with group.", "2026-02-28T13:02:36.000", "NOTE", "WSREP: Member 1.0 (db2) synced with group."),
    Spelling("a fork's slow log", "# Time: 2026-02-12T19:33:56.571953+08:00\n# Txn_start_ts: 406315\n# User@Host: root[root] @ localhost [127.0.0.1]\n# Conn_ID: 6\n# Query_time: 4.895492\nselect * from t;", "2026-02-12T11:33:56.572", None, "# Txn_start_ts: 406315\n# User@Host: root[root] @ localhost [127.0.0.1]\n# Conn_ID: 6\n# Query_time: 4.895492\nselect * from t;"),
    Spelling("serilog, text", "2026-05-01 10:15:02.113 +02:00 [ERR] order 12 failed", "2026-05-01T08:15:02.113", "ERROR", "order 12 failed"),
    Spelling("dotnet with a time", "2026-05-01 10:15:02.113 fail: Shop.Worker[0] no broker", "2026-05-01T10:15:02.113", "ERROR", "Shop.Worker[0] no broker"),
    Spelling("dotnet", "fail: Shop.Worker[13]\n      no broker", None, "ERROR", "Shop.Worker[13]\n      no broker"),
    Spelling("mongo before 4.4", "2026-03-11T12:04:49.066+0000 I NETWORK  [listener] connection accepted from 127.0.0.1:54380 #12", "2026-03-11T12:04:49.066", "INFO", "connection accepted from 127.0.0.1:54380 #12"),
    Spelling("honcho", "15:31:35 redis_cache.1 | 1420:M 13 Jul 2026 15:31:35.042 * Ready to accept connections", "2026-07-13T15:31:35.042", "notice", "Ready to accept connections", "redis_cache"),
    Spelling("nest", "[Nest] 31  - 02/12/2026, 10:00:01 AM   ERROR [ExceptionsHandler] no such property", "2026-02-12T10:00:01.000", "ERROR", "no such property"),
    Spelling("sleuth", "2026-02-12 10:00:01.123 ERROR [tills,64f1e0,8e1a] 1 --- [nio-8080-exec-1] c.s.Charge : charge failed", "2026-02-12T10:00:01.123", "ERROR", "charge failed", "tills"),
    Spelling("django", '[12/Feb/2026 10:00:01] "GET /basket HTTP/1.1" 500 1234', "2026-02-12T10:00:01.000", None, None),
    Spelling("structlog", "2026-02-12 10:00:01 [error    ] charge failed    basket=1", "2026-02-12T10:00:01.000", "error", "[error    ] charge failed    basket=1"),
    Spelling("airflow", "[2026-02-12T10:00:01.123+0000] {taskinstance.py:1824} ERROR - Task failed with exception", "2026-02-12T10:00:01.123", "ERROR", "Task failed with exception"),
    Spelling("ruby", "E, [2026-02-12T10:00:01.123456 #12] ERROR -- : charge failed", "2026-02-12T10:00:01.123", "ERROR", "charge failed"),
    Spelling("rust", "[2026-02-12T10:00:01Z ERROR tills::db] charge failed", "2026-02-12T10:00:01.000", "ERROR", "charge failed"),
    Spelling("istio", "2026-02-12T10:00:01.123456Z\twarning\tenvoy config external/envoy/x.cc:152\tstream closed\tthread=12", "2026-02-12T10:00:01.123", "warning", "stream closed"),
    Spelling("cockroach", "E260212 10:00:01.123456 12 server/x.go:12 ⋮ [n1] 1  disk stall", "2026-02-12T10:00:01.123", "ERROR", "[n1] 1  disk stall"),
    Spelling("logrus on a terminal", "ERRO[0012] cannot bind       port=8080", None, "ERROR", "cannot bind       port=8080"),
    Spelling("winston, simple", 'error: charge failed {"timestamp":"2026-02-12T10:00:01.123Z"}', "2026-02-12T10:00:01.123", "error", None),
    Spelling("fluent bit", '{"date":1770890401.123,"stream":"stderr","log":"ERROR charge failed","kubernetes":{"pod_name":"tills-1","container_name":"tills"}}', "2026-02-12T10:00:01.123", "ERROR", "ERROR charge failed", "tills"),
    Spelling("mongo in syslog", 'May 19 11:54:37 node-1 mongod[5501]: {"t":{"$date":"2026-05-19T11:54:37.966Z"},"s":"E",  "c":"CONTROL",  "id":7484500, "ctx":"-","msg":"no data directory"}', "2026-05-19T11:54:37.000", "ERROR", "no data directory", "mongod"),
    Spelling("kubectl --timestamps, log4j", "2026-02-12T10:00:02.149313117Z 2026-02-12 10:00:02,149 [main] ERROR com.shop.Charge - charge failed", "2026-02-12T10:00:02.149", "ERROR", "charge failed"),
    Spelling("kubectl --timestamps, JSON", '2026-02-12T10:00:02.149313117Z {"level":"error","msg":"charge failed","service":"tills"}', "2026-02-12T10:00:02.149", "error", "charge failed", "tills"),
    Spelling("docker --timestamps, words", "2026-02-12T15:30:02.149313117+05:30 connection refused", "2026-02-12T10:00:02.149", None, "connection refused"),
    Spelling("otlp by number", '{"timeUnixNano":"1770890401123000000","severityNumber":17,"body":{"stringValue":"charge failed"},"resource":{"service.name":"tills"}}', "2026-02-12T10:00:01.123", "ERROR", "charge failed", "tills"),
    Spelling("cloudwatch", '{"timestamp":1770890401123,"message":"2026-02-12T10:00:01.123Z ERROR charge failed","logStreamName":"x"}', "2026-02-12T10:00:01.123", "ERROR", "ERROR charge failed"),
    Spelling("gelf", '{"version":"1.1","host":"node-1","short_message":"charge failed","timestamp":1770890401.123,"level":3,"_service":"tills"}', "2026-02-12T10:00:01.123", "error", "charge failed", "tills"),
    Spelling("logcat with a year", "2026-03-17 16:13:38.811  1702  2395 E WindowManager: no window", "2026-03-17T16:13:38.811", "ERROR", "no window", "WindowManager"),
    Spelling("logcat with a user", "03-17 16:13:38.811  1000  1702  2395 E WindowManager: no window", "2026-03-17T16:13:38.811", "ERROR", "no window", "WindowManager"),
    Spelling("rds", "2026-02-12 10:00:01 UTC:10.0.0.1(5555):app@shop:[12]:ERROR:  deadlock detected", "2026-02-12T10:00:01.000", "ERROR", "deadlock detected"),
)  # fmt: skip


def read_repeated(folder: Path, text: str, times: int = 12) -> list[LogLine]:
    path = folder / "app.log"
    path.write_text(f"{text}\n" * times, encoding="utf-8")
    os.utime(path, (WRITTEN, WRITTEN))
    file = LogFile(path, ReadingRules())
    with file.open() as raws:
        return list(file.records(raws))


def written_time(line: LogLine) -> str | None:
    if line.time is None:
        return None
    return datetime.fromtimestamp(round(line.time, 3), UTC).isoformat(timespec="milliseconds")[:23]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.name)
def test_a_spelling_is_read_right(spelling: Spelling, tmp_path: Path) -> None:
    lines = read_repeated(tmp_path, spelling.text)
    assert len(lines) == 12
    for line in lines:
        assert (written_time(line), line.level, line.service) == (
            spelling.time,
            spelling.level,
            spelling.service,
        )
        assert line.message == (spelling.text if spelling.message is None else spelling.message)


INSIDE = [case for case in FIRST_LIST if case.name in ("logback", "redis", "nginx-error", "access", "spring", "zap-console", "klog", "python", "go")]  # fmt: skip


@pytest.mark.parametrize("case", INSIDE, ids=lambda case: case.name)
@pytest.mark.parametrize("zone", ["Z", "+05:30"])
def test_a_format_inside_a_containers_line_is_read_whatever_it_begins_with(
    case: FormatCase, zone: str, tmp_path: Path
) -> None:
    records = list(case.records())[:12]
    text = "\n".join(f"{START:%Y-%m-%dT%H:%M:%S.%f}000{zone} stderr F {line}" for line, _ in records)
    lines = read_repeated(tmp_path, text, times=1)
    assert [line.message for line in lines] == [expected.message for _, expected in records]
    assert [line.level for line in lines] == [expected.level for _, expected in records]

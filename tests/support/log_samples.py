"""Realistic lines of every log format: built from messages as services write them, with what should be read from them.

Times begin at 2026-11-29T14:00:02.149Z; each case says how its format writes one. Nothing is copied from anyone's log.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

START = datetime(2026, 11, 29, 14, 0, 2, 149_000, tzinfo=UTC)
LEVELS = ("debug", "info", "warn", "error")
MESSAGES = (
    ("info", "listening on 0.0.0.0:8080"),
    ("error", "charge failed: ledger: connection refused"),
    ("info", "basket 1042 settled in 43 ms"),
    ("warn", "pool [main] is nearly empty: 2 of 50 left"),
    ("error", "cannot parse response: unexpected token '<' at position 0"),
    ("debug", 'cache miss for key "user:7f3ad4d1-9d0c-4b8f-8a55-6c1a9b3f2e10"'),
    ("info", "GET /basket/1042?full=true 200 in 0.042 s"),
    ("warn", "retrying (attempt 3/5) after 250ms, cause=timeout peer=10.0.0.7:5432"),
    ("info", "retry policy: on ERROR wait 5 s, then give up | see docs"),
    ("error", "Zahlung für Bestellung 4711 fehlgeschlagen – 余额不足"),
    ("info", "worker=3 queue=baskets depth=128 lag_ms=17"),
    ("error", "java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available, request timed out after 30000ms."),
)  # fmt: skip

Render = Callable[[datetime, str, str], str]


@dataclass(frozen=True)
class Expected:
    """What should be read from one record."""

    time: float | None
    level: str | None
    service: str
    message: str


@dataclass(frozen=True)
class FormatCase:
    """A format: how a line is written, which word stands for a level and how it is read, what else is expected.

    `digits` are those of a second's fraction that the format writes. `read_message` tells what of a message arrives.
    """

    name: str
    render: Render
    levels: Mapping[str, tuple[str, str | None]]
    digits: int = 3
    service: str = "tills"
    file: str = "tills.log"
    timed: bool = True
    read_message: Callable[[str, str], str] = lambda message, line: message
    messages: tuple[tuple[str, str], ...] = MESSAGES

    def records(self, count: int = 36) -> Iterator[tuple[str, Expected]]:
        """`count` records with what should be read from each, one every 7.3 s."""
        for number in range(count):
            kind, message = self.messages[number % len(self.messages)]
            moment = START + timedelta(seconds=7.3 * number)
            written, level = self.levels[kind]
            line = self.render(moment, written, message)
            unit = 10**self.digits
            time = int(moment.timestamp() * unit + 1e-3) / unit if self.timed else None
            yield line, Expected(time, level, self.service, self.read_message(message, line))


def same(*words: str) -> dict[str, tuple[str, str | None]]:
    """Levels that are read as they are written: debug, info, warn, error."""
    return {level: (word, word) for level, word in zip(LEVELS, words, strict=True)}


def none_read(*words: str) -> dict[str, tuple[str, str | None]]:
    return {level: (word, None) for level, word in zip(LEVELS, words, strict=True)}


def read_as(written: str, read: str) -> dict[str, tuple[str, str | None]]:
    return {level: (w, r) for level, w, r in zip(LEVELS, written.split(), read.split(), strict=True)}


def ms(t: datetime) -> str:
    return f"{t.microsecond // 1000:03d}"


def stamp(t: datetime, separator: str = " ", point: str = ",") -> str:
    return f"{t:%Y-%m-%d}{separator}{t:%H:%M:%S}{point}{ms(t)}"


def js(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _epoch(t: datetime) -> float:
    return round(t.timestamp(), 3)


def _cet(t: datetime) -> datetime:
    return t.astimezone(timezone(timedelta(hours=1)))


def _kathmandu(t: datetime) -> datetime:
    return t.astimezone(timezone(timedelta(hours=5, minutes=45)))


def _csvlog(t: datetime, level: str, message: str) -> str:
    row = ["" for _ in range(26)]
    row[0], row[1], row[2], row[3], row[11], row[12], row[13] = (
        f"{stamp(t, point='.')} UTC",
        "shop",
        "shop",
        "314",
        level,
        "00000",
        message,
    )
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(row)
    return text.getvalue()


def _slow(t: datetime, level: str, message: str) -> str:
    del level
    return (
        f"# Time: {t:%Y-%m-%dT%H:%M:%S}.{ms(t)}000Z\n# User@Host: shop[shop] @ web-1 [10.0.0.1]  Id:    31\n"
        f"# Query_time: 12.{ms(t)}000  Lock_time: 0.000031 Rows_sent: 1  Rows_examined: 1048576\n"
        f"SET timestamp={int(t.timestamp())};\nSELECT note /* {message} */ FROM baskets;"
    )


def _export(t: datetime, level: str, message: str) -> str:
    return (
        f"__CURSOR=s=1;i={t:%M%S}\n__REALTIME_TIMESTAMP={int(t.timestamp() * 1000)}000\n_HOSTNAME=node-1\nPRIORITY={level}\n"
        f"_SYSTEMD_UNIT=tills.service\nSYSLOG_IDENTIFIER=tills\nMESSAGE={message}"
    )


def _web(status: str) -> str:
    return {"debug": "304", "info": "200", "warn": "404", "error": "502"}[status]


JAVA = same("DEBUG", "INFO", "WARN", "ERROR")
PYTHON = same("DEBUG", "INFO", "WARNING", "ERROR")
LOWER = same("debug", "info", "warn", "error")
SYSLOG = read_as("15 14 12 11", "debug info warning error")
POSTGRES = same("DEBUG1", "LOG", "WARNING", "ERROR")
STATUS = none_read("304", "200", "404", "502")
WHOLE = lambda message, line: line  # noqa: E731 - a table reads better with it

FIRST_LIST: tuple[FormatCase, ...] = (
    FormatCase("klog", lambda t, v, m: f"{v}{t:%m%d %H:%M:%S}.{ms(t)}000       1 charge.go:147] {m}", read_as("I I W E", "INFO INFO WARNING ERROR")),
    FormatCase("cri", lambda t, v, m: f"{stamp(t, 'T', '.')}000001Z stderr F {js(level=v, msg=m)}", LOWER, file="mall_tills-5c7d9b8f6d-x2x9p_0a1b/tills/0.log"),
    FormatCase("cri-text", lambda t, v, m: f"{stamp(t, 'T', '.')}000001Z stdout F {v} {m}", JAVA, file="mall_tills-5c7d9b8f6d-x2x9p_0a1b/tills/0.log", read_message=lambda m, line: line.split(" F ", 1)[1]),
    FormatCase("docker", lambda t, v, m: js(log=js(level=v, msg=m) + "\n", stream="stdout", time=f"{stamp(t, 'T', '.')}313117Z"), LOWER),
    FormatCase("compose", lambda t, v, m: f"tills-1   | {stamp(t, 'T', '.')}Z {v} {m}", JAVA, file="compose.log", read_message=lambda m, line: line.split("Z ", 1)[1]),
    FormatCase("compose-v1", lambda t, v, m: f"shop_tills_2  | {js(level=v, time=stamp(t, 'T', '.') + 'Z', msg=m)}", LOWER, file="up.log"),
    FormatCase("stern", lambda t, v, m: f"tills-5c7d9b8f6d-x2x9p tills {stamp(t)} [main] {v} c.s.tills.Charge - {m}", JAVA, file="stern.log"),
    FormatCase("kubectl-prefix", lambda t, v, m: f"[pod/tills-5c7d9b8f6d-x2x9p/tills] {js(ts=_epoch(t), level=v, msg=m)}", LOWER, file="all.log"),
    FormatCase("nginx-error", lambda t, v, m: f"{t:%Y/%m/%d %H:%M:%S} [{v}] 31#31: *1042 {m}", same("debug", "notice", "warn", "error"), digits=0),
    FormatCase("nginx-access", lambda t, v, m: f'10.0.0.1 - - [{_cet(t):%d/%b/%Y:%H:%M:%S +0100}] "GET /basket HTTP/1.1" {v} 157 "-" "curl/8.5.0"', STATUS, digits=0, read_message=WHOLE),
    FormatCase("apache-error", lambda t, v, m: f"[{t:%a %b %d %H:%M:%S}.{ms(t)}000 2026] [proxy:{v}] [pid 31:tid 140213] [client 10.0.0.1:51532] AH00957: {m}", same("debug", "notice", "warn", "error"), read_message=lambda m, line: f"AH00957: {m}"),
    FormatCase("apache-access", lambda t, v, m: f'tills.example.com:443 10.0.0.1 - anna [{t:%d/%b/%Y:%H:%M:%S +0000}] "POST /charge HTTP/2.0" {v} -', STATUS, digits=0, read_message=WHOLE),
    FormatCase("syslog", lambda t, v, m: f"{t:%b %e %H:%M:%S} node-1 tills[31]: {m}", none_read(*LEVELS), digits=0, messages=tuple(x for x in MESSAGES if "ERROR" not in x[1])),
    FormatCase("syslog-pri", lambda t, v, m: f"<{v}>{t:%b %e %H:%M:%S} node-1 tills: {m}", SYSLOG, digits=0),
    FormatCase("syslog-year", lambda t, v, m: f"<{v}>{stamp(_cet(t), 'T', '.')}000+01:00 node-1 tills[31]: {m}", SYSLOG),
    FormatCase("syslog-5424", lambda t, v, m: f'<{v}>1 {stamp(t, "T", ".")}Z node-1 tills 31 ID47 [origin ip="10.0.0.1" note="a \\] b"] \ufeff{m}', SYSLOG),
    FormatCase("journal-export", _export, read_as("7 6 4 3", "debug info warning error")),
    FormatCase("journal-json", lambda t, v, m: js(__REALTIME_TIMESTAMP=str(int(t.timestamp() * 1e6)), PRIORITY=v, _SYSTEMD_UNIT="tills.service", SYSLOG_IDENTIFIER="tills", _HOSTNAME="node-1", MESSAGE=m), read_as("7 6 4 3", "debug info warning error"), file="journal.json"),
    FormatCase("log4j", lambda t, v, m: f"{stamp(t)} {v:5} [http-nio-8080-exec-7] com.shop.tills.ChargeService - {m}", JAVA),
    FormatCase("logback", lambda t, v, m: f"{stamp(t, point='.')} [main] {v:5} c.s.t.ChargeService - {m}", JAVA),
    FormatCase("logback-colon", lambda t, v, m: f"{stamp(t)} {v} [main] org.apache.hadoop.mapreduce.v2.app.MRAppMaster: {m}", JAVA),
    FormatCase("spring", lambda t, v, m: f"{stamp(_kathmandu(t), 'T', '.')}+05:45 {v:>5} 1 --- [tills] [nio-8080-exec-7] c.s.tills.ChargeController             : {m}", JAVA, file="app.log"),
    FormatCase("jul", lambda t, v, m: f"{t:%b %d, %Y} {int(t.strftime('%I'))}:{t:%M:%S %p} com.shop.tills.ChargeService charge\n{v}: {m}", same("FINE", "INFO", "WARNING", "SEVERE"), digits=0),
    FormatCase("tomcat", lambda t, v, m: f"{t:%d-%b-%Y %H:%M:%S}.{ms(t)} {v} [main] org.apache.catalina.startup.Catalina.start {m}", same("FINE", "INFO", "WARNING", "SEVERE")),
    FormatCase("python", lambda t, v, m: f"{stamp(t)} - tills.charge - {v} - {m}", PYTHON),
    FormatCase("python-level-first", lambda t, v, m: f"{stamp(t)} {v} tills.charge: {m}", PYTHON),
    FormatCase("python-basic", lambda t, v, m: f"{v}:tills.charge:{m}", PYTHON, timed=False),
    FormatCase("gunicorn", lambda t, v, m: f"[{_cet(t):%Y-%m-%d %H:%M:%S} +0100] [31] [{v}] {m}", PYTHON, digits=0),
    FormatCase("go", lambda t, v, m: f"{t:%Y/%m/%d %H:%M:%S} charge.go:42: {m}", none_read(*LEVELS), digits=0, messages=tuple(x for x in MESSAGES if "ERROR" not in x[1])),
    FormatCase("zap", lambda t, v, m: js(level=v, ts=_epoch(t), caller="tills/charge.go:42", msg=m, basket=1042), LOWER),
    FormatCase("zap-console", lambda t, v, m: f'{stamp(t, "T", ".")}Z\t{v}\ttills/charge.go:42\t{m}\t{{"basket": 1042}}', JAVA),
    FormatCase("logfmt", lambda t, v, m: f"time={stamp(t, 'T', '.')}Z level={v} msg={json.dumps(m, ensure_ascii=False)} basket=1042", LOWER),
    FormatCase("logfmt-ts", lambda t, v, m: f"ts={_epoch(t)} caller=charge.go:42 level={v} component=ledger msg={json.dumps(m, ensure_ascii=False)}", LOWER),
    FormatCase("pino", lambda t, v, m: f'{{"level":{v},"time":{int(t.timestamp() * 1000)},"pid":31,"hostname":"tills-5c7d9b8f6d-x2x9p","msg":{json.dumps(m)}}}', read_as("20 30 40 50", "debug info warn error")),
    FormatCase("bunyan", lambda t, v, m: f'{{"name":"tills","hostname":"node-1","pid":31,"level":{v},"msg":{json.dumps(m)},"time":"{stamp(t, "T", ".")}Z","v":0}}', read_as("20 30 40 50", "debug info warn error"), file="node.log"),
    FormatCase("ecs", lambda t, v, m: js(**{"@timestamp": stamp(t, "T", ".") + "Z", "log.level": v, "message": m, "ecs.version": "1.2.0", "service.name": "tills", "log.logger": "tills.charge"}), JAVA, file="ecs.json"),
    FormatCase("ecs-nested", lambda t, v, m: js(**{"@timestamp": stamp(t, "T", ".") + "Z", "log": {"level": v, "logger": "main"}, "message": m, "service": {"name": "tills"}, "ecs": {"version": "8.11"}}), LOWER, file="ecs2.json"),
    FormatCase("serilog", lambda t, v, m: js(**{"@t": stamp(t, "T", ".") + "1234Z", "@m": m, "@l": v, "Application": "tills"}), same("Debug", "Information", "Warning", "Error"), file="clef.json"),
    FormatCase("gcp-text", lambda t, v, m: js(textPayload=m, severity=v, timestamp=stamp(t, "T", ".") + "313117Z", resource={"type": "k8s_container", "labels": {"container_name": "tills", "pod_name": "tills-5c7d9b8f6d-x2x9p"}}, insertId="a1"), PYTHON, file="gcp.json"),
    FormatCase("gcp-json", lambda t, v, m: js(jsonPayload={"message": m, "basket": 1042}, severity=v, timestamp=stamp(t, "T", ".") + "Z", resource={"type": "cloud_run_revision", "labels": {"service_name": "tills"}}), PYTHON, file="gcp2.json"),
    FormatCase("otlp", lambda t, v, m: js(resourceLogs=[{"resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "tills"}}]}, "scopeLogs": [{"logRecords": [{"timeUnixNano": str(int(t.timestamp() * 1000) * 1_000_000), "severityText": v, "body": {"stringValue": m}}]}]}]), JAVA, file="otlp.jsonl"),
    FormatCase("mongodb", lambda t, v, m: js(t={"$date": stamp(t, "T", ".") + "+00:00"}, s=v, c="STORAGE", id=22435, ctx="conn31", msg=m, attr={"error": 28}), read_as("D1 I W E", "DEBUG INFO WARNING ERROR")),
    FormatCase("postgres", lambda t, v, m: f"{stamp(t, point='.')} UTC [314] {v}:  {m}", POSTGRES),
    FormatCase("postgres-rds", lambda t, v, m: f"{t:%Y-%m-%d %H:%M:%S} UTC:10.0.0.1(51532):shop@shop:[314]:{v}:  {m}", POSTGRES, digits=0),
    FormatCase("postgres-user", lambda t, v, m: f"{stamp(_cet(t), point='.')} CET [314] user=shop,db=shop,app=[unknown],client=10.0.0.1 {v}:  {m}", POSTGRES),
    FormatCase("postgres-late", lambda t, v, m: f"[314-1] shop@shop {stamp(t, point='.')} GMT {v}:  {m}", POSTGRES),
    FormatCase("postgres-csv", _csvlog, POSTGRES, file="tills.csv"),
    FormatCase("postgres-json", lambda t, v, m: js(timestamp=stamp(t, point=".") + " UTC", user="shop", pid=314, error_severity=v, message=m), POSTGRES),
    FormatCase("cnpg", lambda t, v, m: js(level="info", ts=stamp(t, "T", ".") + "Z", logger="postgres", msg="record", logging_pod="pg-1", record={"log_time": stamp(t, point=".") + " UTC", "error_severity": v, "message": m}), POSTGRES),
    FormatCase("mysql-error", lambda t, v, m: f"{stamp(t, 'T', '.')}000Z 31 [{v}] [MY-012592] [InnoDB] {m}", same("Note", "System", "Warning", "ERROR") | {"debug": ("Note", "NOTE")}),
    FormatCase("mariadb-error", lambda t, v, m: f"{t:%Y-%m-%d %H:%M:%S} 0 [{v}] {m}", same("Note", "Note", "Warning", "ERROR") | {"debug": ("Note", "NOTE"), "info": ("Note", "NOTE")}, digits=0),
    FormatCase("mysql-slow", _slow, none_read(*LEVELS), read_message=lambda m, line: line.split("\n", 1)[1], messages=tuple(x for x in MESSAGES if "ERROR" not in x[1])),
    FormatCase("haproxy", lambda t, v, m: f'{t:%b %e %H:%M:%S} lb-1 haproxy[31]: 10.0.0.1:51532 [{t:%d/%b/%Y:%H:%M:%S}.{ms(t)}] web tills/tills-1 0/0/1/42/43 {v} 217 - - ---- 12/11/0/0/0 0/0 "GET /basket HTTP/1.1"', STATUS, service="haproxy", read_message=lambda m, line: line.split("]: ", 1)[1]),
    FormatCase("envoy-access", lambda t, v, m: f'[{stamp(t, "T", ".")}Z] "GET /basket HTTP/1.1" {v} - 0 91 12 11 "-" "curl/8.5.0" "7f3a" "tills:8080" "10.0.0.7:8080"', STATUS, read_message=WHOLE),
    FormatCase("envoy", lambda t, v, m: f"[{stamp(t, point='.')}][31][{v}][upstream] [source/common/upstream/health_checker_impl.cc:314] {m}", same("debug", "info", "warning", "error")),
    FormatCase("redis", lambda t, v, m: f"1:M {t:%d %b %Y %H:%M:%S}.{ms(t)} {v} {m}", read_as(". * # #", "debug notice warning warning")),
    FormatCase("dmesg", lambda t, v, m: f"[{t:%a %b %e %H:%M:%S %Y}] {m}", none_read(*LEVELS), digits=0, messages=tuple(x for x in MESSAGES if "ERROR" not in x[1])),
    FormatCase("dmesg-uptime", lambda t, v, m: f"[{t.minute * 60 + t.second:>5}.{ms(t)}000] {m}", none_read(*LEVELS), timed=False, messages=tuple(x for x in MESSAGES if "ERROR" not in x[1])),
)  # fmt: skip
"""Formats that have to be read right."""

SECOND_LIST: tuple[FormatCase, ...] = (
    FormatCase("hdfs", lambda t, v, m: f"{t:%y%m%d %H%M%S} 143 {v} dfs.DataNode$DataXceiver: {m}", JAVA, digits=0),
    FormatCase("hadoop", lambda t, v, m: f"{stamp(t)} {v} [main] org.apache.hadoop.yarn.event.AsyncDispatcher: {m}", JAVA),
    FormatCase("spark", lambda t, v, m: f"{t:%y/%m/%d %H:%M:%S} {v} storage.BlockManager: {m}", JAVA, digits=0),
    FormatCase("zookeeper", lambda t, v, m: f"{stamp(t)} - {v:5} [QuorumPeer[myid=1]/0:0:0:0:0:0:0:0:2181:FastLeaderElection@774] - {m}", JAVA),
    FormatCase("openstack", lambda t, v, m: f"{stamp(t, point='.')} 2931 {v} nova.compute.manager [req-3ea4052c - - - - -] {m}", PYTHON),
    FormatCase("gc", lambda t, v, m: f"[{stamp(t, 'T', '.')}+0000][{v}][gc] {m}", same("debug", "info", "warning", "error")),
    FormatCase("galera", lambda t, v, m: f"{t:%Y-%m-%d %H:%M:%S} 2 [{v}] WSREP: {m}", same("Note", "Note", "Warning", "ERROR") | {"debug": ("Note", "NOTE"), "info": ("Note", "NOTE")}, digits=0, read_message=lambda m, line: f"WSREP: {m}"),
    FormatCase("iis", lambda t, v, m: f"{t:%Y-%m-%d %H:%M:%S} 10.0.0.7 GET /basket - 443 - 10.0.0.1 curl/8.5.0 {v} 0 0 42", STATUS, digits=0, read_message=WHOLE),
    FormatCase("android", lambda t, v, m: f"{t:%m-%d %H:%M:%S}.{ms(t)}  1702  2395 {v} ActivityManager: {m}", read_as("D I W E", "DEBUG INFO WARNING ERROR"), service="ActivityManager"),
    FormatCase("windows-cbs", lambda t, v, m: f"{t:%Y-%m-%d %H:%M:%S}, {v:21} CBS    {m}", same("Info", "Info", "Warning", "Error"), digits=0, service="CBS"),
    FormatCase("kafka", lambda t, v, m: f"[{stamp(t)}] {v} {m} (kafka.server.ReplicaManager)", JAVA, read_message=lambda m, line: f"{m} (kafka.server.ReplicaManager)"),
    FormatCase("elasticsearch", lambda t, v, m: f"[{stamp(t, 'T')}][{v:5}][o.e.n.Node               ] [node-1] {m}", JAVA),
)  # fmt: skip
HEADS = {"iis": "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status sc-substatus sc-win32-status time-taken\n"}  # fmt: skip
"""What stands at the beginning of a file."""


def written(case: FormatCase, count: int = 36) -> tuple[str, list[Expected]]:
    """A file of the format, and what should be read from it."""
    lines, expected = zip(*case.records(count), strict=True)
    between = "\n\n" if case.name == "journal-export" else "\n"
    return HEADS.get(case.name, "") + between.join(lines) + between, list(expected)

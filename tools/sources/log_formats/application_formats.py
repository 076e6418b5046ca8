"""Formats of applications and their frameworks: Java, Python, Go, logfmt. Rare ones are in `rarer_formats.py`."""

from opsleuth.tools.sources.log_formats.declaration import DIGITS, ISO_TIME, JAVA_LEVELS, WORDS, LogFormat
from opsleuth.tools.sources.log_formats.multiline import finish_jul

_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE|CONFIG|FINE|FINER|FINEST)"
_ANY_LEVEL = rf"(?i:{_LEVEL})"
# A failure's own name before a colon is not a logger: it belongs to the message.
_NO_FAILURE = r"(?!\S*(?:Exception|Error|Throwable|Failure):)"
_LOGGER = r"(?P<logger2>[\w$\[\]/-]+(?:\.[\w$\[\]/-]+)+|[A-Z][a-z\d]+[A-Z][\w$]*)"

APPLICATION_FORMATS: tuple[LogFormat, ...] = (
    LogFormat(
        name="github-actions",
        title="GitHub Actions and Azure Pipelines",
        begins=DIGITS,
        start=rf"{ISO_TIME} ##\[(?P<level>error|warning|notice|debug|group|endgroup|section|command)\](?P<message>.*)",
        levels={"group": "info", "endgroup": "info", "section": "info", "command": "info"},
        examples=(
            "2026-11-29T14:00:02.1493131Z ##[error]Process completed with exit code 1.",
            "2026-11-29T14:00:03.0010000Z ##[group]Run make test",
            "2026-11-29T14:00:04.5000000Z ##[warning]Node.js 16 actions are deprecated.",
        ),
    ),
    LogFormat(
        name="gitlab-ci",
        title="GitLab CI with times",
        begins=DIGITS,
        start=rf"{ISO_TIME} (?P<stream>\d\d[OE])[+ ] ?(?P<message>.*)",
        examples=(
            "2026-11-29T14:00:02.149313Z 01E ERROR: Job failed: exit code 1",
            "2026-11-29T14:00:03.001000Z 00O Running with gitlab-runner 17.0.0",
            "2026-11-29T14:00:04.500000Z 01O $ make test",
        ),
    ),
    LogFormat(
        name="klog",
        title="Kubernetes components and glog",
        begins="IWEF",
        form="klog",
        start=r"(?P<level>[IWEF])(?P<time>\d{4} \d\d:\d\d:\d\d)\.(?P<frac>\d{6})\s+(?P<pid>\d+) (?P<source>[^\s\]]+:\d+)\] (?P<message>.*)",
        levels=WORDS,
        examples=(
            "E1129 14:00:02.149313       1 reflector.go:147] k8s.io/client-go/informers/factory.go:150: Failed to watch *v1.Pod: connection refused",
            'I1129 14:00:03.000121       1 controller.go:615] "Observed a panic" pod="mall/tills-0"',
            "W1129 14:00:04.500000   31042 handler_proxy.go:99] no RequestInfo found in the context",
        ),
    ),
    LogFormat(
        name="spring",
        title="Spring Boot",
        begins=DIGITS,
        start=rf"{ISO_TIME}\s+{_LEVEL}\s+(?P<pid>\d+) --- (?:\[(?P<service>[\w.-]+)\] (?=\[))?\[(?P<thread>[^\]]*)\](?: \[(?P<trace>[^\]]*)\])? (?P<logger>\S+)\s+: (?P<message>.*)",
        examples=(
            "2026-11-29T14:00:02.149Z ERROR 1 --- [tills] [nio-8080-exec-7] c.shop.tills.ChargeController     : charge failed",
            "2026-11-29 14:00:03.001  INFO 31 --- [           main] o.s.b.w.embedded.tomcat.TomcatWebServer  : Tomcat started on port(s): 8080 (http)",
            "2026-11-29T15:00:04.500+01:00  WARN 1 --- [tills] [scheduling-1] com.zaxxer.hikari.pool.HikariPool        : HikariPool-1 - Thread starvation or clock leap detected",
        ),
    ),
    LogFormat(
        name="zookeeper",
        title="ZooKeeper",
        begins=DIGITS,
        start=rf"{ISO_TIME} (?:\[myid:[^\]]*\] )?- {_LEVEL}\s+\[(?P<thread>.+?)\] - (?P<message>.*)",
        examples=(
            "2026-11-29 14:00:02,149 - WARN  [SendWorker:188978561024:QuorumCnxManager$SendWorker@679] - Interrupted while waiting for message on queue",
            "2026-11-29 14:00:03,001 - INFO  [QuorumPeer[myid=1]/0:0:0:0:0:0:0:0:2181:FastLeaderElection@774] - Notification time out: 3200",
            "2026-11-29 14:00:04,500 [myid:1] - ERROR [main:QuorumPeerMain@89] - Unexpected exception, exiting abnormally",
        ),
    ),
    LogFormat(
        name="python-dashed",
        title="Python logging, `time - logger - LEVEL - message`",
        begins=DIGITS,
        start=rf"{ISO_TIME} - (?P<logger>\S+) - {_LEVEL} - (?P<message>.*)",
        examples=(
            "2026-11-29 14:00:02,149 - tills.charge - ERROR - charge failed: connection refused",
            "2026-11-29 14:00:03,001 - root - INFO - started",
            "2026-11-29 14:00:04,500 - urllib3.connectionpool - WARNING - Retrying (Retry(total=2)) after connection broken",
        ),
    ),
    LogFormat(
        name="loguru",
        title="Python, loguru",
        begins=DIGITS,
        start=rf"{ISO_TIME} \| (?P<level>[A-Z]+)\s*\| (?P<logger>[\w.<>]+:[\w.<>]+:\d+) - (?P<message>.*)",
        examples=(
            "2026-11-29 14:00:02.149 | ERROR    | tills.charge:run:42 - charge failed",
            "2026-11-29 14:00:03.001 | INFO     | __main__:<module>:7 - started",
            "2026-11-29 14:00:04.500 | WARNING  | tills.pool:take:88 - pool is nearly empty: 2 left",
        ),
    ),
    LogFormat(
        name="gunicorn",
        title="gunicorn",
        begins="[",
        start=rf"\[{ISO_TIME}\] \[(?P<pid>\d+)\] \[{_LEVEL}\] (?P<message>.*)",
        examples=(
            "[2026-11-29 14:00:02 +0000] [31] [CRITICAL] WORKER TIMEOUT (pid:77)",
            "[2026-11-29 14:00:03 +0000] [31] [INFO] Booting worker with pid: 78",
            "[2026-11-29 15:00:04 +0100] [31] [WARNING] Worker with pid 77 was terminated due to signal 9",
        ),
    ),
    LogFormat(
        name="celery",
        title="Celery",
        begins="[",
        start=rf"\[{ISO_TIME}: {_LEVEL}/(?P<process>[^\]]+)\] (?P<message>.*)",
        examples=(
            "[2026-11-29 14:00:02,149: ERROR/ForkPoolWorker-3] Task tills.charge[8a533bf9] raised unexpected: ConnectionError()",
            "[2026-11-29 14:00:03,001: INFO/MainProcess] Connected to redis://redis:6379/0",
            "[2026-11-29 14:00:04,500: WARNING/MainProcess] consumer: Connection to broker lost.",
        ),
    ),
    LogFormat(
        name="python-basic",
        title="Python logging as it is without settings, and uvicorn: no time",
        begins="DIWEC",
        start=r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):(?:(?P<logger>[\w.-]+):|\s{2,})(?P<message>.*)",
        examples=(
            "ERROR:tills.charge:charge failed: connection refused",
            "WARNING:root:pool is nearly empty",
            'INFO:     10.0.0.1:51532 - "GET /basket HTTP/1.1" 200 OK',
        ),
    ),
    LogFormat(
        name="elasticsearch",
        title="Elasticsearch and OpenSearch, text",
        begins="[",
        start=rf"\[{ISO_TIME}\]\[{_LEVEL}\s*\]\[(?P<logger>[^\]]+?)\s*\] (?:\[(?P<node>[^\]]*)\] )?(?P<message>.*)",
        examples=(
            "[2026-11-29T14:00:02,149][ERROR][o.e.b.Bootstrap          ] [node-1] node validation exception",
            "[2026-11-29T14:00:03,001][INFO ][o.e.n.Node               ] [node-1] started",
            "[2026-11-29T14:00:04,500][WARN ][o.e.m.j.JvmGcMonitorService] [node-1] [gc][young][2311][12] duration [1.2s], collections [1]/[1.5s]",
        ),
    ),
    LogFormat(
        name="kafka",
        title="Kafka and others of log4j, `[time] LEVEL message (logger)`",
        begins="[",
        start=rf"\[{ISO_TIME}\] {_LEVEL}\s+(?P<message>.*)",
        examples=(
            "[2026-11-29 14:00:02,149] ERROR [ReplicaManager broker=1] Error processing append operation on partition baskets-3 (kafka.server.ReplicaManager)",
            "[2026-11-29 14:00:03,001] INFO [GroupCoordinator 1]: Stabilized group tills generation 7 (kafka.coordinator.group.GroupCoordinator)",
            "[2026-11-29 14:00:04,500] WARN [Producer clientId=tills-1] Connection to node -1 could not be established. (org.apache.kafka.clients.NetworkClient)",
        ),
    ),
    LogFormat(
        name="log4j",
        title="log4j and logback, `time [thread] LEVEL logger - message`; Python with the level before the logger",
        begins=DIGITS,
        start=rf"{ISO_TIME}:?\s+(?:\[(?P<thread>[^\]]*)\]\s+)?\[?{_LEVEL}\]?\s+(?:\[(?P<task>[^\]]*)\]\s+)?(?:(?P<logger>[\w.$\[\]/-]+)(?::(?P<row>\d+))?\s+-|{_NO_FAILURE}{_LOGGER}(?:\s:|:)) (?P<message>.*)",
        examples=(
            "2026-11-29 14:00:02,149 [http-nio-8080-exec-7] ERROR com.shop.tills.ChargeService - charge failed",
            "2026-11-29 14:00:03,001 INFO [main] org.apache.hadoop.mapreduce.v2.app.MRAppMaster: Created MRAppMaster for application appattempt_1445144423722_0020_000001",
            "2026-11-29 14:00:04.500 WARN  c.s.t.PoolWatcher - pool is nearly empty: 2 left",
        ),
    ),
    LogFormat(
        name="log4j-level-first",
        title="log4j, `LEVEL [thread] time place - message` (Cassandra)",
        begins="TDIWEF",
        start=rf"{_LEVEL}\s+(?:\[(?P<thread>[^\]]*)\] )?{ISO_TIME} (?P<source>\S+:\d+) - (?P<message>.*)",
        examples=(
            "ERROR [ReadStage-2] 2026-11-29 14:00:02,149 CassandraDaemon.java:226 - Exception in thread Thread[ReadStage-2,5,main]",
            "INFO  [main] 2026-11-29 14:00:03,001 StorageService.java:653 - Token metadata: ",
            "WARN  [ScheduledTasks:1] 2026-11-29 14:00:04,500 MonitoringTask.java:173 - 3 operations were slow in the last 4998 msecs",
        ),
    ),
    LogFormat(
        name="logback-clock",
        title="logback as it is without settings: a clock and no date",
        begins=DIGITS,
        start=rf"(?P<clock>\d\d:\d\d:\d\d[.,]\d{{3}}) (?:\[(?P<thread>[^\]]*)\] )?{_LEVEL}\s+(?P<logger>[\w.$]+) -(?:- |\s)(?P<message>.*)",
        examples=(
            "14:00:02.149 [main] ERROR com.shop.tills.ChargeService - charge failed",
            "14:00:03.001 [main] INFO  c.s.t.Main - started",
            "14:00:04.500 [pool-1-thread-3] DEBUG c.s.t.PoolWatcher -- 2 left",
        ),
    ),
    LogFormat(
        name="jul",
        title="java.util.logging, two lines",
        begins="JFMASOND",
        form="american",
        start=r"(?P<time>[A-Z][a-z]{2} \d{1,2}, \d{4} \d{1,2}:\d\d:\d\d[ \u202f][AP]M) (?P<logger>[\w.$]+)(?: (?P<method>[\w$<>]+))?(?P<message>)$",
        finish=finish_jul,
        verbatim=False,
        examples=(
            "Nov 29, 2026 2:00:02 PM com.shop.tills.ChargeService charge\nSEVERE: charge failed: connection refused",
            "Nov 29, 2026 2:00:03 PM org.apache.catalina.startup.Catalina start\nINFO: Server startup in 4131 ms",
            "Nov 29, 2026 2:00:04 PM com.shop.tills.PoolWatcher lambda$run\nWARNING: pool is nearly empty: 2 left",
        ),
    ),
    LogFormat(
        name="tomcat",
        title="Tomcat",
        begins=DIGITS,
        form="day_first",
        start=r"(?P<time>\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d)\.(?P<frac>\d{3}) (?P<level>[^\W\d_]{2,14}) \[(?P<thread>[^\]]*)\] (?P<logger>[\w.$]+) (?P<message>.*)",
        levels=JAVA_LEVELS,
        examples=(
            "29-Nov-2026 14:00:02.149 SEVERE [http-nio-8080-exec-7] org.apache.catalina.core.StandardWrapperValve.invoke Servlet.service() for servlet [tills] threw exception",
            "29-Nov-2026 14:00:03.001 INFO [main] org.apache.catalina.startup.Catalina.start Server startup in [4131] milliseconds",
            "29-Nov-2026 14:00:04.500 WARNING [main] org.apache.tomcat.util.digester.SetPropertiesRule.begin Match [Server/Service] failed",
        ),
    ),
    LogFormat(
        name="zap-console",
        title="Go, zap for people",
        begins=DIGITS,
        start=rf"{ISO_TIME}\t(?P<level>(?i:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|DPANIC|PANIC|FATAL))\t(?:(?P<logger>[\w.-]+(?: [\w.-]+)?)(?:\t| (?=[\w./-]+:\d+\t)))?(?:(?P<source>[\w./-]+:\d+)\t)?(?P<message>[^\t]*)(?:\t(?P<fields>\{{.*\}}|[\w.]+=[^\t]*))?(?P<stack>\n.*)?$",
        examples=(
            '2026-11-29T14:00:02.149Z\tERROR\ttills/charge.go:42\tcharge failed\t{"error": "connection refused", "basket": 1042}',
            "2026-11-29T14:00:03.001Z\tINFO\tsetup\tstarting manager",
            '2026-11-29T15:00:04.500+0100\tWARN\ttills.pool\tpool/pool.go:88\tpool is nearly empty\t{"left": 2}',
        ),
    ),
    LogFormat(
        name="go",
        title="Go's own log",
        begins=DIGITS,
        start=r"(?P<time>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)(?:\.(?P<frac>\d{1,9}))? (?!\[[a-z]+\] \d+#)(?:(?P<source>[\w./-]+\.go:\d+): )?(?P<message>.*)",
        examples=(
            "2026/11/29 14:00:02 charge failed: dial tcp 10.0.0.7:5432: connect: connection refused",
            "2026/11/29 14:00:03.001213 main.go:31: listening on :8080",
            "2026/11/29 14:00:04 http: TLS handshake error from 10.0.0.1:51532: EOF",
        ),
    ),
    LogFormat(
        name="spark",
        title="Spark",
        begins=DIGITS,
        form="short_year",
        start=rf"(?P<time>\d\d/\d\d/\d\d \d\d:\d\d:\d\d) {_LEVEL}\s+(?P<logger>[\w.$]+): (?P<message>.*)",
        examples=(
            "26/11/29 14:00:02 ERROR executor.Executor: Exception in task 3.0 in stage 7.0 (TID 42)",
            "26/11/29 14:00:03 INFO storage.BlockManager: Found block rdd_42_20 locally",
            "26/11/29 14:00:04 WARN scheduler.TaskSetManager: Lost task 3.0 in stage 7.0",
        ),
    ),
    LogFormat(
        name="hdfs",
        title="Hadoop's file system",
        begins=DIGITS,
        form="compact",
        start=rf"(?P<time>\d{{6}} \d{{6}}) (?P<thread>\d+) {_LEVEL} (?P<logger>[\w.$]+): (?P<message>.*)",
        examples=(
            "261129 140002 143 WARN dfs.DataNode$DataXceiver: 10.251.43.115:50010:Got exception while serving blk_-6670958622368987959",
            "261129 140003 19 INFO dfs.FSNamesystem: BLOCK* ask 10.250.14.38:50010 to delete blk_-5140072410813878235",
            "261129 140004 13 ERROR dfs.DataNode$PacketResponder: PacketResponder 1 for block blk_38865049064139660 terminating",
        ),
    ),
    LogFormat(
        name="openstack",
        title="OpenStack (oslo.log)",
        begins="",
        start=rf"(?:(?P<service>[\w-]+)\.log\S* )?{ISO_TIME} (?P<pid>\d+) {_LEVEL} (?P<logger>[\w.]+) \[(?P<request>[^\]]*)\] (?P<message>.*)",
        examples=(
            "2026-11-29 14:00:02.149 2931 ERROR nova.compute.manager [req-3ea4052c-895d-4b64-9e2d-04d64c4d94ab - - - - -] Instance failed to spawn",
            "nova-api.log.1.2026-11-29_13:53:08 2026-11-29 14:00:03.001 25746 INFO nova.osapi_compute.wsgi.server [req-38101a0b - - -] 10.11.10.1 status: 200 len: 1893 time: 0.2477829",
            "2026-11-29 14:00:04.500 2931 WARNING nova.virt.libvirt.imagecache [-] Unknown base file: /var/lib/nova/instances/_base/a4",
        ),
    ),
    LogFormat(
        name="gc",
        title="Garbage collection of the JVM (unified logging)",
        begins="[",
        start=rf"\[{ISO_TIME}\](?:\[(?P<uptime>[\d.,]+s)\])?(?:\[\d+\])*\[(?P<level>trace|debug|info|warning|error)\s*\]\[(?P<tags>[\w,]+)\s*\] (?P<message>.*)",
        examples=(
            "[2026-11-29T14:00:02.149+0000][info][gc] GC(311) Pause Full (G1 Compaction Pause) 2044M->2041M(2048M) 4113.252ms",
            "[2026-11-29T14:00:03.001+0000][17.311s][info][gc,start     ] GC(312) Pause Young (Normal) (G1 Evacuation Pause)",
            "[2026-11-29T14:00:04.500+0000][warning][gc,alloc] tills-worker-3: Retried waiting for GCLocker too often allocating 131074 words",
        ),
    ),
    LogFormat(
        name="gc-old",
        title="Garbage collection of the JVM before 9",
        begins=DIGITS,
        start=rf"{ISO_TIME}: (?P<uptime>\d+\.\d{{3}}): (?P<message>(?:#\d+: )?(?:\[|Total time|Application time).*)",
        examples=(
            "2026-11-29T14:00:02.149+0000: 3142.117: [Full GC (Ergonomics) [PSYoungGen: 1024K->0K(2048K)] 4096K->3900K(8192K), 4.1132520 secs]",
            "2026-11-29T14:00:03.001+0000: 3143.002: [GC (Allocation Failure) 4096K->3900K(8192K), 0.0132520 secs]",
            "2026-11-29T14:00:04.500+0000: 3144.500: Total time for which application threads were stopped: 4.1140 seconds, Stopping threads took: 0.0001 seconds",
        ),
    ),
    LogFormat(
        name="android",
        title="Android logcat",
        begins=DIGITS,
        form="android",
        start=r"(?P<time>\d\d-\d\d \d\d:\d\d:\d\d)\.(?P<frac>\d{3})\s+(?:\w+\s+)?(?P<pid>\d+)\s+(?P<tid>\d+) (?P<level>[VDIWEFA]) (?P<service>.*?)\s*: (?P<message>.*)",
        levels=WORDS,
        examples=(
            "11-29 14:00:02.149  1702  2395 E ActivityManager: ANR in com.shop.tills",
            "11-29 14:00:03.001  1702 17632 I ActivityManager: Start proc 31:com.shop.tills/u0a9",
            "11-29 14:00:04.500  2227  2227 W PhoneStatusBar: Entering expanded mode",
        ),
    ),
    LogFormat(
        name="windows-cbs",
        title="Windows servicing (CBS)",
        begins=DIGITS,
        start=rf"{ISO_TIME}, (?P<level>Info|Error|Warning|Perf)\s+(?P<service>[A-Z][A-Z\d]+)\s+(?P<message>.*)",
        examples=(
            "2026-11-29 14:00:02, Error                 CBS    Failed to load package [HRESULT = 0x800f0805 - CBS_E_INVALID_PACKAGE]",
            "2026-11-29 14:00:03, Info                  CBS    Loaded Servicing Stack v6.1.7601.23505",
            "2026-11-29 14:00:04, Warning               CSI    00000031 Overlap: Duplicate ownership for directory",
        ),
    ),
)

"""Formats of JSON objects, one to a line; anything that is not listed is read by the names that most loggers use."""

from opsleuth.tools.sources.log_formats.declaration import (
    WORDS,
    JsonFormat,
    read_numeric_level,
    read_otlp_severity,
    read_priority,
    read_priority_or_word,
)

GENERIC = JsonFormat(
    name="json",
    title="JSON (zap, zerolog, logrus, slog, logback, python-json-logger and others)",
    time=(
        "timestamp", "@timestamp", "time", "ts", "datetime", "date", "asctime", "eventTime", "time_iso8601", "Timestamp", "timestampMs",
        "instant", "created", "t", "@t", "log_time", "start_time", "StartUTC", "EventTime", "DateTime",
    ),
    level=(
        "level", "severity", "lvl", "log.level", "loglevel", "levelname", "log_level", "severity_text", "severityText", "Level", "Severity",
        "levelName", "level_name", "LogLevel", "status_level", "@l",
    ),
    message=(
        "message", "msg", "log", "text", "event", "MESSAGE", "Message", "body", "@m", "@mt", "textPayload", "short_message", "RenderedMessage",
        "MessageTemplate", "log.message", "fields.message", "data.message", "event.original",
    ),
    service=(
        "service", "service.name", "service_name", "app", "application", "container_name", "logger_service", "serviceName", "appName", "app_name",
        "application.name", "application_name", "Application", "resource.service.name", "resource.attributes.service.name", "dd.service",
        "kubernetes.labels.app", "kubernetes.labels.app.kubernetes.io/name", "kubernetes.container_name", "kubernetes.container.name",
        "container.name", "program", "SYSLOG_IDENTIFIER", "ServiceName",
    ),
    pod=("pod", "pod_name", "kubernetes.pod_name", "kubernetes.pod.name", "k8s.pod.name", "container_id"),
    examples=(
        '{"level":"error","ts":1795960802.149,"caller":"tills/charge.go:42","msg":"charge failed","error":"connection refused"}',
        '{"time":"2026-11-29T14:00:03.001Z","level":"INFO","msg":"started","service":"tills"}',
        '{"asctime":"2026-11-29 14:00:04,500","levelname":"WARNING","name":"tills.pool","message":"pool is nearly empty"}',
    ),
)  # fmt: skip
NAMESPACE_FIELDS = ("namespace", "kubernetes.namespace_name", "kubernetes.namespace", "k8s.namespace.name")
HOST_FIELDS = ("hostname", "host.name", "host", "_HOSTNAME")
TRACE_FIELDS = ("trace_id", "traceId", "trace.id", "traceID", "TraceId", "dd.trace_id", "@tr")
STACK_FIELDS = ("stack_trace", "stacktrace", "exception.stacktrace", "error.stack_trace", "error.stack", "exc_info", "@x", "stack", "err.stack")  # fmt: skip
"""Where a stack trace stands: it belongs to the message."""

JSON_FORMATS: tuple[JsonFormat, ...] = (
    JsonFormat(
        name="docker",
        title="Docker's json-file",
        marks=("log", "stream", "time"),
        time=("time",),
        message=("log",),
        service=("attrs.com.docker.compose.service", "attrs.tag"),
        envelope=True,
        examples=(
            '{"log":"2026-11-29T14:00:02.149Z ERROR charge failed\\n","stream":"stderr","time":"2026-11-29T14:00:02.149313117Z"}',
            '{"log":"{\\"level\\":\\"info\\",\\"msg\\":\\"started\\"}\\n","stream":"stdout","time":"2026-11-29T14:00:03.001Z"}',
            '{"log":"plain words\\n","stream":"stdout","attrs":{"tag":"tills"},"time":"2026-11-29T14:00:04.5Z"}',
        ),
    ),
    JsonFormat(
        name="fluent-bit",
        title="Fluent Bit and Fluentd, a container's line with its labels",
        marks=("log", "kubernetes"),
        message=("log",),
        envelope=True,
        examples=(
            '{"date":1795960802.149,"stream":"stderr","log":"ERROR charge failed","kubernetes":{"pod_name":"tills-5c7d9b8f6d-x2x9p","container_name":"tills","namespace_name":"shop"}}',
            '{"@timestamp":"2026-11-29T14:00:03.001Z","log":"{\\"level\\":\\"info\\",\\"msg\\":\\"started\\"}\\n","kubernetes":{"container_name":"tills"}}',
            '{"date":1795960804.5,"log":"plain words","kubernetes":{"labels":{"app":"tills"}}}',
        ),
    ),
    JsonFormat(
        name="cloudwatch",
        title="CloudWatch Logs, events as JSON",
        marks=("timestamp", "message"),
        any_of=("logStreamName", "ingestionTime", "eventId"),
        time=("timestamp",),
        message=("message",),
        envelope=True,
        examples=(
            '{"timestamp":1795960802149,"message":"2026-11-29T14:00:02.149Z ERROR charge failed","logStreamName":"tills/1","ingestionTime":1795960802900}',
            '{"timestamp":1795960803001,"message":"{\\"level\\":\\"info\\",\\"msg\\":\\"started\\"}","eventId":"37"}',
            '{"timestamp":1795960804500,"message":"REPORT RequestId: 7f3a Duration: 3000.00 ms","logStreamName":"tills/1"}',
        ),
    ),
    JsonFormat(
        name="gelf",
        title="Graylog (GELF)",
        marks=("version", "short_message"),
        time=("timestamp",),
        message=("full_message", "short_message"),
        service=("_service", "_app", "_application", "_container_name", "facility"),
        levels=read_priority_or_word,
        examples=(
            '{"version":"1.1","host":"node-1","short_message":"charge failed","timestamp":1795960802.149,"level":3,"_service":"tills"}',
            '{"version":"1.1","host":"node-1","short_message":"started","timestamp":1795960803.001,"level":6}',
            '{"version":"1.1","host":"node-1","short_message":"2 left","timestamp":1795960804.5,"level":4,"_app":"tills"}',
        ),
    ),
    JsonFormat(
        name="cnpg",
        title="CloudNativePG",
        marks=("logger", "record"),
        time=("record.log_time", "ts"),
        level=("record.error_severity", "level"),
        message=("record.message",),
        service=("logging_cluster",),
        pod=("logging_pod",),
        examples=(
            '{"level":"info","ts":"2026-11-29T14:00:02.15Z","logger":"postgres","msg":"record","logging_pod":"pg-1","record":{"log_time":"2026-11-29 14:00:02.149 UTC","user_name":"shop","process_id":"314","error_severity":"ERROR","sql_state_code":"40P01","message":"deadlock detected"}}',
            '{"level":"info","ts":"2026-11-29T14:00:03.01Z","logger":"postgres","msg":"record","logging_pod":"pg-1","record":{"log_time":"2026-11-29 14:00:03.001 UTC","error_severity":"LOG","message":"checkpoint starting: time"}}',
            '{"level":"info","ts":"2026-11-29T14:00:04.51Z","logger":"postgres","msg":"record","logging_pod":"pg-2","record":{"log_time":"2026-11-29 14:00:04.500 UTC","error_severity":"FATAL","message":"the database system is starting up"}}',
        ),
    ),
    JsonFormat(
        name="postgres-json",
        title="PostgreSQL, jsonlog",
        marks=("timestamp", "error_severity"),
        level=("error_severity",),
        service=(),
        examples=(
            '{"timestamp":"2026-11-29 14:00:02.149 UTC","user":"shop","dbname":"shop","pid":314,"error_severity":"ERROR","state_code":"23505","message":"duplicate key value violates unique constraint","detail":"Key (id)=(7) already exists."}',
            '{"timestamp":"2026-11-29 14:00:03.001 UTC","pid":1,"error_severity":"LOG","message":"database system is ready to accept connections","backend_type":"postmaster"}',
            '{"timestamp":"2026-11-29 15:00:04.500 CET","pid":315,"error_severity":"FATAL","message":"sorry, too many clients already"}',
        ),
    ),
    JsonFormat(
        name="bunyan",
        title="bunyan",
        marks=("v", "level", "pid", "hostname", "name"),
        service=("name",),
        levels=read_numeric_level,
        examples=(
            '{"name":"tills","hostname":"node-1","pid":31,"level":50,"msg":"charge failed","time":"2026-11-29T14:00:02.149Z","v":0}',
            '{"name":"tills","hostname":"node-1","pid":31,"level":30,"msg":"started","time":"2026-11-29T14:00:03.001Z","v":0}',
            '{"name":"tills","hostname":"node-1","pid":31,"level":40,"msg":"pool is nearly empty","time":"2026-11-29T14:00:04.500Z","v":0}',
        ),
    ),
    JsonFormat(
        name="pino",
        title="pino",
        marks=("level", "time", "pid", "hostname"),
        service=("service", "service.name", "app", "name"),
        levels=read_numeric_level,
        examples=(
            '{"level":50,"time":1795960802149,"pid":31,"hostname":"tills-5c7d9b8f6d-x2x9p","msg":"charge failed","err":{"type":"Error","message":"connection refused"}}',
            '{"level":30,"time":1795960803001,"pid":31,"hostname":"node-1","name":"tills","msg":"started"}',
            '{"level":40,"time":1795960804500,"pid":31,"hostname":"node-1","msg":"pool is nearly empty"}',
        ),
    ),
    JsonFormat(
        name="ecs",
        title="Elastic Common Schema",
        marks=("@timestamp",),
        any_of=("ecs.version", "ecs", "log.level", "log"),
        time=("@timestamp",),
        level=("log.level",),
        service=("service.name",),
        examples=(
            '{"@timestamp":"2026-11-29T14:00:02.149Z","log.level":"ERROR","message":"charge failed","ecs.version":"1.2.0","service.name":"tills","log.logger":"tills.charge"}',
            '{"@timestamp":"2026-11-29T14:00:03.001Z","log":{"level":"info","logger":"main"},"message":"started","service":{"name":"tills"},"ecs":{"version":"8.11"}}',
            '{"@timestamp":"2026-11-29T14:00:04.500Z","log":{"level":"warn"},"message":"pool is nearly empty","service":{"name":"tills"},"trace":{"id":"65f0"}}',
        ),
    ),
    JsonFormat(
        name="serilog",
        title="Serilog, compact",
        marks=("@t",),
        time=("@t",),
        level=("@l",),
        message=("@m", "@mt"),
        service=("Application", "ServiceName", "service.name", "App"),
        level_if_absent="Information",
        examples=(
            '{"@t":"2026-11-29T14:00:02.1493130Z","@mt":"charge of {Basket} failed","@l":"Error","Basket":1042,"Application":"tills"}',
            '{"@t":"2026-11-29T14:00:03.0010000Z","@m":"started","@i":"7f3a"}',
            '{"@t":"2026-11-29T14:00:04.5000000Z","@m":"pool is nearly empty","@l":"Warning","SourceContext":"Tills.Pool"}',
        ),
    ),
    JsonFormat(
        name="gcp",
        title="Google Cloud Logging",
        any_of=("textPayload", "jsonPayload", "protoPayload"),
        time=("timestamp", "receiveTimestamp", "jsonPayload.timestamp"),
        level=("severity", "jsonPayload.level", "jsonPayload.severity"),
        message=("textPayload", "jsonPayload.message", "jsonPayload.msg", "protoPayload.status.message", "protoPayload.methodName"),
        service=(
            "labels.k8s-pod/app", "resource.labels.container_name", "resource.labels.service_name", "resource.labels.configuration_name",
            "resource.labels.function_name", "resource.labels.module_id",
        ),
        pod=("resource.labels.pod_name", "resource.labels.instance_id"),
        examples=(
            '{"textPayload":"charge failed","severity":"ERROR","timestamp":"2026-11-29T14:00:02.149313117Z","resource":{"type":"k8s_container","labels":{"container_name":"tills","pod_name":"tills-5c7d9b8f6d-x2x9p","namespace_name":"mall"}},"insertId":"a1"}',
            '{"jsonPayload":{"message":"started","basket":1042},"severity":"INFO","timestamp":"2026-11-29T14:00:03.001Z","resource":{"type":"cloud_run_revision","labels":{"service_name":"tills"}}}',
            '{"jsonPayload":{"msg":"pool is nearly empty","level":"warn"},"timestamp":"2026-11-29T14:00:04.5Z","resource":{"labels":{"container_name":"tills"}}}',
        ),
    ),
    JsonFormat(
        name="otlp-record",
        title="OpenTelemetry, one record to a line",
        any_of=("timeUnixNano", "observedTimeUnixNano"),
        time=("timeUnixNano", "observedTimeUnixNano"),
        level=("severityText", "severityNumber"),
        levels=read_otlp_severity,
        message=("body.stringValue", "body"),
        service=("resource.service.name", "resource.attributes.service.name", "service.name"),
        examples=(
            '{"timeUnixNano":"1795960802149313117","severityText":"ERROR","body":{"stringValue":"charge failed"},"traceId":"65f0"}',
            '{"timeUnixNano":"1795960803001000000","severityText":"INFO","body":{"stringValue":"started"},"resource":{"service.name":"tills"}}',
            '{"observedTimeUnixNano":"1795960804500000000","severityText":"WARN","body":"pool is nearly empty"}',
        ),
    ),
    JsonFormat(
        name="mongodb",
        title="MongoDB",
        marks=("t", "s", "c", "ctx", "msg"),
        time=("t",),
        level=("s",),
        message=("msg",),
        levels={**WORDS, **{f"D{n}": "DEBUG" for n in range(1, 6)}},
        examples=(
            '{"t":{"$date":"2026-11-29T14:00:02.149+00:00"},"s":"E","c":"STORAGE","id":22435,"ctx":"conn31","msg":"WiredTiger error","attr":{"error":28,"message":"No space left on device"}}',
            '{"t":{"$date":"2026-11-29T14:00:03.001+00:00"},"s":"I","c":"NETWORK","id":22943,"ctx":"listener","msg":"Connection accepted","attr":{"remote":"10.0.0.1:51532","connectionCount":31}}',
            '{"t":{"$date":"2026-11-29T15:00:04.500+01:00"},"s":"W","c":"COMMAND","id":20525,"ctx":"conn31","msg":"Slow query","attr":{"ns":"shop.baskets","durationMillis":4012}}',
        ),
    ),
    JsonFormat(
        name="journal",
        title="the journal, as JSON",
        marks=("__REALTIME_TIMESTAMP", "MESSAGE"),
        time=("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"),
        level=("PRIORITY",),
        message=("MESSAGE",),
        service=("SYSLOG_IDENTIFIER", "_SYSTEMD_UNIT"),
        levels=read_priority,
        examples=(
            '{"__REALTIME_TIMESTAMP":"1795960802149313","PRIORITY":"3","_SYSTEMD_UNIT":"tills.service","SYSLOG_IDENTIFIER":"tills","_HOSTNAME":"node-1","MESSAGE":"charge failed"}',
            '{"__REALTIME_TIMESTAMP":"1795960803001000","PRIORITY":"6","SYSLOG_IDENTIFIER":"systemd","_HOSTNAME":"node-1","MESSAGE":"Started tills.service"}',
            '{"__REALTIME_TIMESTAMP":"1795960804500000","PRIORITY":"4","_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"Out of memory"}',
        ),
    ),
    GENERIC,
)  # fmt: skip
"""The first whose keys an object has is its format."""

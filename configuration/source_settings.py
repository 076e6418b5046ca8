"""The settings of each kind of source, one strict model per kind, without its code.

```toml
[options]
environment = "prod"                              # used unless --environment names another

[environments.prod.sources.metrics]
kind = "prometheus"
url = "https://prometheus.example.com"
token = { env = "PROMETHEUS_TOKEN" }

[environments.prod.sources.orders-db]
kind = "postgres"
dsn = "host=db.example.com dbname=orders user=opsleuth"
password = { file = "~/.secrets/orders-db" }

[services."orders-api"]
aliases = ["订单接口"]
calls = ["orders-db", "payments"]
```
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from opsleuth.configuration.secret_references import Secret
from opsleuth.state.base import FrozenModel, Name, Sentence

Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s@?#]+$", max_length=2_000)]
Target = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,60}$")]
Seconds = Annotated[float, Field(gt=0, le=60)]
Bytes = Annotated[int, Field(ge=10_000, le=500_000_000)]
Before = Annotated[float, Field(ge=0, le=604_800)]
Lines = Annotated[int, Field(ge=100, le=1_000_000)]
Fields = Annotated[tuple[Name, ...], Field(min_length=1, max_length=50)]
FilePatterns = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=4_096)], ...],
    Field(min_length=1, max_length=5_000),
]


def _checked_pattern(pattern: str) -> str:
    """Raises ValueError for anything that is not a regular expression of a line."""
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise ValueError(f"not a regular expression: {error.msg} at position {error.pos}") from None
    if not groups.keys() & {"time", "message"}:
        raise ValueError("a pattern of lines needs a group (?P<time>…) or (?P<message>…)")
    return pattern


LogFormatName = Annotated[str, StringConstraints(pattern=r"^[a-z\d-]{1,40}$")]
LinePattern = Annotated[
    str, StringConstraints(min_length=1, max_length=2_000), AfterValidator(_checked_pattern)
]


class CommonSettings(FrozenModel):
    """`target` names the cluster, host or region that the source reads; sources of different targets are never mixed.

    `services` maps a name that this source uses to the service's own name.
    """

    target: Target | None = None
    services: dict[Name, Name] = Field(default_factory=dict)


class HttpSettings(CommonSettings):
    """Whatever speaks HTTP. `timeout` in seconds of one request; `max_bytes` of one answer, after unpacking.

    `headers` are plain; one that is a secret (`{ env = … }`) appears in `secret_headers`.
    """

    url: Url
    token: Secret | None = None
    user: Name | None = None
    password: Secret | None = None
    headers: dict[Name, Sentence] = Field(default_factory=dict)
    secret_headers: dict[Name, Secret] = Field(default_factory=dict)
    ca_file: Name | None = None
    client_cert: Name | None = None
    client_key: Name | None = None
    proxy: Sentence | None = None
    timeout: Seconds = 8.0
    max_bytes: Bytes = 50_000_000

    @model_validator(mode="after")
    def _complete(self) -> "HttpSettings":
        if (self.user is None) is not (self.password is None):
            raise ValueError("user and password belong together")
        if self.token is not None and self.user is not None:
            raise ValueError("give a token or a user with a password, not both")
        if self.client_key is not None and self.client_cert is None:
            raise ValueError("client_key needs client_cert")
        return self


class MetricQuerySettings(FrozenModel):
    """One metric by its own query; the result's labels say of which service (`service_labels`), unless it is given."""

    metric: Name
    query: Annotated[str, StringConstraints(min_length=1, max_length=4_000)]
    unit: Annotated[str, StringConstraints(max_length=40)] = ""
    service: Name | None = None


class PrometheusSettings(HttpSettings):
    """Prometheus, or what speaks its API (VictoriaMetrics, Thanos, Mimir).

    Without `queries` the metrics that carry a service label are found by themselves: counters as rates,
    histograms as quantiles. The first of `service_labels` that a series has names its service. `match` narrows
    what is looked at. `before` is how much of the time before the window is read too. `step` in seconds is the least; rates and quantiles are
    taken over `rate` seconds at least, some four scrapes.
    """

    kind: Literal["prometheus"] = "prometheus"
    queries: Annotated[tuple[MetricQuerySettings, ...], Field(max_length=500)] = ()
    service_labels: Annotated[tuple[Name, ...], Field(min_length=1, max_length=20)] = (
        "service",
        "service_name",
        "app",
        "app_kubernetes_io_name",
        "job",
    )
    instance_label: Name | None = None
    match: Annotated[str, StringConstraints(max_length=1_000)] = ""
    units: dict[Name, Annotated[str, StringConstraints(max_length=40)]] = Field(default_factory=dict)
    step: Annotated[float, Field(ge=1, le=3_600)] = 30.0
    rate: Annotated[float, Field(ge=2, le=3_600)] = 120.0
    before: Before = 3_600.0
    max_metrics: Annotated[int, Field(ge=1, le=5_000)] = 250
    max_series: Annotated[int, Field(ge=1, le=50_000)] = 5_000


class GitSettings(CommonSettings):
    """A repository as the history of changes.

    A commit's trailers (`Service:`, `Kind:`, `Version:`) say what it changed. Without them: tags such as
    `orders-api-v2.14.0` are deploys (`tag_pattern`, with the groups service and version), and so are commits whose
    subject fits `deploy_pattern`. `paths` maps folders to services, `service` is that of the whole repository.
    """

    kind: Literal["git"] = "git"
    path: Name
    service: Name | None = None
    paths: dict[Name, Name] = Field(default_factory=dict)
    branch: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._/][A-Za-z0-9._/-]*$", max_length=300)] = (
        "HEAD"
    )
    tag_pattern: Annotated[str, StringConstraints(max_length=500)] = (
        r"^(?:(?P<service>[A-Za-z][\w.-]*?)[-/@_])?v?(?P<version>\d+(?:\.\d+)+\S*)$"
    )
    deploy_pattern: Annotated[str, StringConstraints(max_length=500)] = (
        r"^(?:deploy|release)\b:? +(?P<service>[\w.-]+)[ @:]+v?(?P<version>\d\S*)"
    )
    before: Annotated[float, Field(ge=0, le=31_536_000)] = 7 * 86_400.0
    diffs: bool = True


class JournalSettings(CommonSettings):
    """The systemd journal: this machine's, or `files`, or a `folder` of recorded ones. `match` are journalctl's FIELD=VALUE."""

    kind: Literal["journal"] = "journal"
    files: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    folder: Name | None = None
    match: Annotated[
        tuple[Annotated[str, StringConstraints(pattern=r"^[A-Z_0-9]+=")], ...], Field(max_length=50)
    ] = ()
    service_fields: Annotated[tuple[Name, ...], Field(min_length=1, max_length=20)] = (
        "CONTAINER_NAME",
        "_SYSTEMD_UNIT",
        "SYSLOG_IDENTIFIER",
        "_COMM",
    )  # fmt: skip
    before: Before = 3_600.0
    max_lines: Lines = 200_000


class LogFilesSettings(CommonSettings):
    """Log files by glob patterns, rotated and packed too (`.gz`, `.bz2`, `.xz`; `.zst` with the extra); tables of CSV and Parquet. `service` names that of all, else a line's own field or the file's name does.

    `zone` is the UTC offset in hours of times that carry none, `zones` what abbreviations mean (`IST = "+05:30"`). How
    a file is read is found out from its lines; `format` names a format instead, `pattern` is a regular expression with
    the groups of one (time, level, service, message), `encoding` is that of all files.
    """

    kind: Literal["logfiles"] = "logfiles"
    files: FilePatterns
    service: Name | None = None
    zone: Annotated[float, Field(ge=-14, le=14)] = 0.0
    zones: dict[Name, Annotated[str, StringConstraints(pattern=r"^(?:Z|[+-]\d\d:?\d\d)$")]] = Field(
        default_factory=dict
    )
    format: LogFormatName | None = None
    pattern: LinePattern | None = None
    encoding: Literal["utf-8", "utf-16-le", "utf-16-be", "latin-1"] | None = None
    before: Before = 3_600.0
    max_lines: Lines = 200_000


class MetricFilesSettings(CommonSettings):
    """Samples of metrics by glob patterns: CSV, long or wide (Grafana, CloudWatch), Prometheus' text and query answers, Parquet with the extra.

    `service` is that of series which name none, else the file's name is. `zone` is the UTC offset in hours of times that
    carry none.
    """

    kind: Literal["metricfiles"] = "metricfiles"
    files: FilePatterns
    service: Name | None = None
    zone: Annotated[float, Field(ge=-14, le=14)] = 0.0
    before: Before = 3_600.0


class TraceFiles(CommonSettings):
    """Traces by glob patterns (`.gz` too): JSON of Jaeger and Zipkin, OTLP as JSON, one document or one to a line."""

    kind: Literal["tracefiles"] = "tracefiles"
    files: FilePatterns
    before: Before = 3_600.0


class ClusterFilesSettings(CommonSettings):
    """Objects and events of a cluster by glob patterns: what `kubectl get -o json` or `-o yaml` printed, support bundles."""

    kind: Literal["clusterfiles"] = "clusterfiles"
    files: FilePatterns
    before: Before = 3_600.0


class RecordFilesSettings(CommonSettings):
    """Rows of the case format by glob patterns (JSONL or CSV, `.gz` too): changes, calls between services, events, spans, statements."""

    kind: Literal["recordfiles"] = "recordfiles"
    files: FilePatterns


class SearchSettings(HttpSettings):
    """Elasticsearch or OpenSearch. `index` is a pattern of indices; `match` narrows it, as a query string.

    Of each list of fields the first that a document has counts; parts of a name are parted by dots. An API key goes
    into `secret_headers`.
    """

    kind: Literal["elasticsearch", "opensearch"] = "opensearch"
    index: Annotated[str, StringConstraints(pattern=r"^[^\s/?#]+$", max_length=500)] = "*"
    match: Annotated[str, StringConstraints(max_length=2_000)] = ""
    time_field: Name = "@timestamp"
    message_fields: Fields = ("message", "log", "msg", "body", "event.original")
    level_fields: Fields = ("log.level", "level", "severity", "severity_text", "severityText", "loglevel")
    service_fields: Fields = (
        "service.name",
        "service",
        "resource.attributes.service.name",
        "kubernetes.labels.app",
        "kubernetes.container.name",
        "container.name",
        "app",
    )  # fmt: skip
    pod_fields: Fields = ("kubernetes.pod.name", "kubernetes.pod_name", "pod", "container.id")
    host_fields: Fields = ("host.name", "host.hostname", "host", "hostname")
    trace_fields: Fields = ("trace.id", "trace_id", "traceId")
    before: Before = 3_600.0
    max_lines: Lines = 200_000


class LokiSettings(HttpSettings):
    """Grafana Loki.

    `match` is a stream selector, with stages of a pipeline if you like; by default it is every stream that has the
    first of `service_labels` that any has. Labels name service, level, pod and host of a line.
    """

    kind: Literal["loki"] = "loki"
    match: Annotated[str, StringConstraints(max_length=2_000)] = ""
    service_labels: Fields = ("service_name", "service", "app", "container", "job")
    level_labels: Fields = ("level", "detected_level", "severity")
    pod_labels: Fields = ("pod", "k8s_pod_name")
    host_labels: Fields = ("node_name", "node", "host", "hostname")
    before: Before = 3_600.0
    max_lines: Lines = 200_000


class JaegerSettings(HttpSettings):
    """Jaeger's query API. `only` are the services that are asked about (default: all that it knows)."""

    kind: Literal["jaeger"] = "jaeger"
    only: Annotated[tuple[Name, ...], Field(max_length=200)] = ()
    before: Before = 3_600.0
    max_traces: Annotated[int, Field(ge=1, le=5_000)] = 200


class TempoSettings(HttpSettings):
    """Grafana Tempo. `match` is a TraceQL query of the traces that are looked at."""

    kind: Literal["tempo"] = "tempo"
    match: Annotated[str, StringConstraints(max_length=2_000)] = "{}"
    before: Before = 3_600.0
    max_traces: Annotated[int, Field(ge=1, le=1_000)] = 100


class GitHubSettings(HttpSettings):
    """A repository (`owner/name`) of GitHub: deployments, and what was merged. `service` is what it deploys.

    `environments` narrows which deployments count. For a server of your own, url ends with /api/v3.
    """

    kind: Literal["github"] = "github"
    url: Url = "https://api.github.com"
    repository: Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$", max_length=200)]
    service: Name | None = None
    environments: Annotated[tuple[Name, ...], Field(max_length=50)] = ()
    before: Before = 7 * 86_400.0


class GitLabSettings(HttpSettings):
    """A project (`group/name`) of GitLab: deployments, and what was merged. The token goes into `token`."""

    kind: Literal["gitlab"] = "gitlab"
    url: Url = "https://gitlab.com"
    project: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    service: Name | None = None
    environments: Annotated[tuple[Name, ...], Field(max_length=50)] = ()
    before: Before = 7 * 86_400.0


class GrafanaSettings(HttpSettings):
    """Annotations of Grafana, as people and pipelines set them. A tag `service:cart` names the service of one."""

    kind: Literal["grafana"] = "grafana"
    tags: Annotated[tuple[Name, ...], Field(max_length=50)] = ()
    service_tag: Name = "service"
    before: Before = 86_400.0


class AlertmanagerSettings(HttpSettings):
    """Alerts that are firing, and silences that keep quiet about some."""

    kind: Literal["alertmanager"] = "alertmanager"
    service_labels: Fields = ("service", "service_name", "app", "app_kubernetes_io_name", "job")


class KubernetesSettings(CommonSettings):
    """A cluster, by the `context` (default: the current one) of a kubeconfig (default: where kubectl looks).

    `namespaces` are those that are looked at; without any all are, or that of the context where only it is allowed.
    A service is called by the first of `service_labels` that a workload has, else by the workload's name.
    `max_pods` and `max_lines` bound the logs that are read: those of pods that are not ready come first. Of Secrets
    only metadata is requested; with `secret_keys` the names of their keys are kept too, as managedFields hold them:
    values are never asked for.
    """

    kind: Literal["kubernetes"] = "kubernetes"
    kubeconfig: Name | None = None
    context: Name | None = None
    namespaces: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    service_labels: Annotated[tuple[Name, ...], Field(max_length=20)] = ()
    proxy: Sentence | None = None
    timeout: Seconds = 8.0
    max_bytes: Bytes = 50_000_000
    before: Before = 3_600.0
    max_pods: Annotated[int, Field(ge=1, le=1_000)] = 60
    max_lines: Lines = 100_000
    secret_keys: bool = False


class RunbookSettings(CommonSettings):
    """A folder of runbooks, Markdown files with front matter or a telling title."""

    kind: Literal["runbooks"] = "runbooks"
    folder: Name


class DeclaredTopologySettings(CommonSettings):
    """What the configuration itself says of services: whom each calls."""

    kind: Literal["declared"] = "declared"
    calls: dict[Name, Annotated[tuple[Name, ...], Field(max_length=1_000)]]

"""`opsleuth init`: find what can be read from here and write a commented configuration for it."""

import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from opsleuth.configuration.config_file import PROJECT_FILE, read_config_file
from opsleuth.configuration.folders import expand_home
from opsleuth.configuration.project_trust import trust_file
from opsleuth.console.detected_source import DetectedSource
from opsleuth.console.local_files import (
    describe_local_files,
    find_local_files,
    ready_run_command,
    sources_from_files,
)
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.state.errors import UsageError

_LOCAL_PROMETHEUS = "http://127.0.0.1:9090"
_PROBE_SECONDS = 0.5
CONFIGURATION_HEAD = """\
# What opsleuth may look at. Secrets are never written here: name the place where each is found,
# { env = "VARIABLE" }, { file = "~/.secrets/x" }, { command = ["pass", "show", "x"] } or { keyring = "x", user = "y" }.
# After a change: opsleuth trust, then opsleuth doctor.

[options]
environment = "default"
"""
ADDRESS_VARIABLES = (
    ("ALERTMANAGER_URL", "alerts", "alertmanager"),
    ("LOKI_ADDR", "loki", "loki"),
    ("OPENSEARCH_URL", "search", "opensearch"),
    ("ELASTICSEARCH_URL", "search", "elasticsearch"),
    ("JAEGER_URL", "traces", "jaeger"),
    ("TEMPO_URL", "tempo", "tempo"),
    ("GRAFANA_URL", "notes", "grafana"),
)
REPOSITORY_NAME = re.compile(r"[\w.-]+/[\w.-]+")
CONFIGURATION_EXAMPLES = """
# [environments.default.sources.metrics]
# kind = "prometheus"                  # also VictoriaMetrics, Thanos, Mimir
# url = "https://prometheus.example.com"
# token = { env = "PROMETHEUS_TOKEN" }
# service_labels = ["service", "app"]  # the first that a series has names its service

# [environments.default.sources.orders-db]
# kind = "postgres"                    # role: pg_monitor; needs pip install 'opsleuth[postgres]'
# dsn = "host=db.example.com dbname=orders user=opsleuth"
# password = { env = "PGPASSWORD" }

# [environments.default.sources.carts-db]
# kind = "mariadb"                     # or "mysql"; needs pip install 'opsleuth[mysql]'
# host = "carts-db.example.com"
# user = "opsleuth"
# password = { env = "CARTS_DB_PASSWORD" }

# [environments.default.sources.cache]
# kind = "redis"                       # needs pip install 'opsleuth[redis]'
# url = "redis://cache.example.com:6379/0"

# [environments.default.sources.runbooks]
# kind = "runbooks"                    # Markdown files that fit an alert by front matter or title
# folder = "runbooks"

# [environments.default.sources.logs]
# kind = "logfiles"                    # or loki, opensearch, elasticsearch, kubernetes, each with its url
# files = ["/var/log/app/*.log*"]

# Further kinds: jaeger, tempo, github, gitlab, grafana, alertmanager.

# What people call a service, and whom it calls.
# [services."orders-api"]
# aliases = ["orders", "订单接口"]
# calls = ["orders-db", "payments"]
"""


@click.command(
    "init",
    cls=CliCommand,
    help="Find what can be read from here, and write .opsleuth/config.toml for it.",
)
def write_configuration() -> int:
    """Raises UsageError where there is a configuration already."""
    options = current_options()
    path = Path.cwd() / PROJECT_FILE
    if path.exists():
        raise UsageError(f"{path} is there already: edit it, or remove it first")
    files = find_local_files(Path.cwd())
    found = [*detect_sources(os.environ, Path.cwd()), *sources_from_files(files)]
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(render_configuration(found), encoding="utf-8")
    path.chmod(0o600)
    trust_file(path, read_config_file("project", path).digest)
    screen = screen_for_options(options)
    for source in found:
        screen.line(f"{source.name:<10} {source.how}")
    for line in describe_local_files(files):
        screen.line(line)
    if not found:
        screen.line("nothing was found from here: the file holds examples to fill in")
    if command := ready_run_command(files):
        screen.line(f"ready to run: {command}")
    write_note(f"wrote {path}. Next: opsleuth doctor")
    return 0


def render_configuration(found: list[DetectedSource]) -> str:
    parts = [CONFIGURATION_HEAD]
    for source in found:
        lines = "\n".join(source.lines)
        parts.append(f"\n[environments.default.sources.{source.name}]  # {source.how}\n{lines}\n")
    return "".join([*parts, CONFIGURATION_EXAMPLES])


def detect_sources(variables: Mapping[str, str], here: Path) -> Iterator[DetectedSource]:
    yield from detect_prometheus(variables)
    yield from detect_postgres(variables)
    yield from detect_redis(variables)
    yield from detect_addresses(variables)
    yield from detect_cluster(variables)
    if any((folder / ".git").exists() for folder in (here, *here.parents)):
        top = next(folder for folder in (here, *here.parents) if (folder / ".git").exists())
        lines = ('kind = "git"', f'path = "{top}"', '# service = "orders-api"   # of the whole repository, or paths = { "folder/" = "service" }')  # fmt: skip
        yield DetectedSource("changes", lines, f"this repository, {top}")
    for folder in ("runbooks", "docs/runbooks"):
        if any((here / folder).glob("**/*.md")):
            yield DetectedSource(
                "runbooks", ('kind = "runbooks"', f'folder = "{folder}"'), f"the folder {folder}"
            )
            break
    if journal_is_readable():
        yield DetectedSource("journal", ('kind = "journal"',), "the journal of this machine")


def detect_prometheus(variables: Mapping[str, str]) -> Iterator[DetectedSource]:
    url = variables.get("PROMETHEUS_URL", "").rstrip("/")
    how = "PROMETHEUS_URL"
    if not url and url_answers(f"{_LOCAL_PROMETHEUS}/-/ready"):
        url, how = _LOCAL_PROMETHEUS, "a Prometheus on this machine"
    if url.startswith(("http://", "https://")) and "@" not in url and '"' not in url:
        yield DetectedSource("metrics", ('kind = "prometheus"', f'url = "{url}"'), how)


def detect_addresses(variables: Mapping[str, str]) -> Iterator[DetectedSource]:
    """Backends whose address appears in the variable that their own tools read, or that pipelines set."""
    for variable, name, kind in ADDRESS_VARIABLES:
        url = variables.get(variable, "").rstrip("/")
        if url.startswith(("http://", "https://")) and "@" not in url and '"' not in url:
            yield DetectedSource(name, (f'kind = "{kind}"', f'url = "{url}"'), variable)
    if REPOSITORY_NAME.fullmatch(repository := variables.get("GITHUB_REPOSITORY", "")):
        token = ('token = { env = "GITHUB_TOKEN" }',) if variables.get("GITHUB_TOKEN") else ()
        yield DetectedSource(
            "github", ('kind = "github"', f'repository = "{repository}"', *token), "GITHUB_REPOSITORY"
        )


def detect_cluster(variables: Mapping[str, str]) -> Iterator[DetectedSource]:
    listed = [part for part in variables.get("KUBECONFIG", "").split(os.pathsep) if part]
    files = [Path(part) for part in listed] or [expand_home("~/.kube/config")]
    if found := next((file for file in files if file.is_file()), None):
        lines = ('kind = "kubernetes"', '# context = "…"           # without it the current one', '# namespaces = ["shop"]')  # fmt: skip
        yield DetectedSource("cluster", lines, f"the kubeconfig {found}")


def detect_postgres(variables: Mapping[str, str]) -> Iterator[DetectedSource]:
    if variables.get("DATABASE_URL", "").startswith(("postgres://", "postgresql://")):
        yield DetectedSource(
            "database", ('kind = "postgres"', 'dsn = { env = "DATABASE_URL" }'), "DATABASE_URL"
        )
    elif variables.get("PGHOST") or variables.get("PGSERVICE"):
        lines = (
            'kind = "postgres"',
            'dsn = "application_name=opsleuth"   # the rest from PGHOST, PGUSER, PGDATABASE',
        )
        yield DetectedSource("database", lines, "the PG… variables")


def detect_redis(variables: Mapping[str, str]) -> Iterator[DetectedSource]:
    if variables.get("REDIS_URL", "").startswith(("redis://", "rediss://")):
        yield DetectedSource("cache", ('kind = "redis"', 'url = { env = "REDIS_URL" }'), "REDIS_URL")


def journal_is_readable() -> bool:
    program = shutil.which("journalctl")
    if program is None:
        return False
    try:
        done = subprocess.run(  # a fixed command
            [program, "--lines=1", "--quiet", "--no-pager"],
            capture_output=True,
            timeout=2,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())


def url_answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=_PROBE_SECONDS) as answer:  # loopback, fixed
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False

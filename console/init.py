"""`init`: finds what there is to look at from here and writes a commented configuration for it."""

import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opsleuth.console.options import Options
from opsleuth.console.output import note, screen_of
from opsleuth.state.configfile import PROJECT_FILE, read_file
from opsleuth.state.errors import UsageError
from opsleuth.state.folders import expanded
from opsleuth.state.trust import trust

_LOCAL_PROMETHEUS = "http://127.0.0.1:9090"
_PROBE_SECONDS = 0.5
_HEAD = """\
# What opsleuth may look at. Secrets are never written here: name the place where each is found,
# { env = "VARIABLE" }, { file = "~/.secrets/x" }, { command = ["pass", "show", "x"] } or { keyring = "x", user = "y" }.
# After a change: opsleuth trust, then opsleuth doctor.

[options]
environment = "default"
"""
_VARIABLES = (
    ("ALERTMANAGER_URL", "alerts", "alertmanager"),
    ("LOKI_ADDR", "loki", "loki"),
    ("OPENSEARCH_URL", "search", "opensearch"),
    ("ELASTICSEARCH_URL", "search", "elasticsearch"),
    ("JAEGER_URL", "traces", "jaeger"),
    ("TEMPO_URL", "tempo", "tempo"),
    ("GRAFANA_URL", "notes", "grafana"),
)
_PLAIN = re.compile(r"[\w.-]+/[\w.-]+")
_EXAMPLES = """
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


@dataclass(frozen=True, slots=True)
class Found:
    """Something that can be a source: its name, its lines of configuration, and how it was noticed."""

    name: str
    lines: tuple[str, ...]
    how: str


def init(options: Options) -> int:
    """`init`: raises UsageError where there is a configuration already."""
    path = Path.cwd() / PROJECT_FILE
    if path.exists():
        raise UsageError(f"{path} is there already: edit it, or remove it first")
    found = list(_around(os.environ, Path.cwd()))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(_text(found), encoding="utf-8")
    path.chmod(0o600)
    trust(path, read_file("project", path).digest)
    screen = screen_of(options)
    for source in found:
        screen.line(f"{source.name:<10} {source.how}")
    if not found:
        screen.line("nothing was found from here: the file holds examples to fill in")
    note(f"wrote {path}. Next: opsleuth doctor")
    return 0


def _text(found: list[Found]) -> str:
    parts = [_HEAD]
    for source in found:
        lines = "\n".join(source.lines)
        parts.append(f"\n[environments.default.sources.{source.name}]  # {source.how}\n{lines}\n")
    return "".join([*parts, _EXAMPLES])


def _around(variables: Mapping[str, str], here: Path) -> Iterator[Found]:
    yield from _prometheus(variables)
    yield from _postgres(variables)
    yield from _redis(variables)
    yield from _addresses(variables)
    yield from _cluster(variables)
    if any((folder / ".git").exists() for folder in (here, *here.parents)):
        top = next(folder for folder in (here, *here.parents) if (folder / ".git").exists())
        lines = ('kind = "git"', f'path = "{top}"', '# service = "orders-api"   # of the whole repository, or paths = { "folder/" = "service" }')  # fmt: skip
        yield Found("changes", lines, f"this repository, {top}")
    for folder in ("runbooks", "docs/runbooks"):
        if any((here / folder).glob("**/*.md")):
            yield Found("runbooks", ('kind = "runbooks"', f'folder = "{folder}"'), f"the folder {folder}")
            break
    if _journal():
        yield Found("journal", ('kind = "journal"',), "the journal of this machine")


def _prometheus(variables: Mapping[str, str]) -> Iterator[Found]:
    url = variables.get("PROMETHEUS_URL", "").rstrip("/")
    how = "PROMETHEUS_URL"
    if not url and _answers(f"{_LOCAL_PROMETHEUS}/-/ready"):
        url, how = _LOCAL_PROMETHEUS, "a Prometheus on this machine"
    if url.startswith(("http://", "https://")) and "@" not in url and '"' not in url:
        yield Found("metrics", ('kind = "prometheus"', f'url = "{url}"'), how)


def _addresses(variables: Mapping[str, str]) -> Iterator[Found]:
    """Backends whose address stands in the variable that their own tools read, or that pipelines set."""
    for variable, name, kind in _VARIABLES:
        url = variables.get(variable, "").rstrip("/")
        if url.startswith(("http://", "https://")) and "@" not in url and '"' not in url:
            yield Found(name, (f'kind = "{kind}"', f'url = "{url}"'), variable)
    if _PLAIN.fullmatch(repository := variables.get("GITHUB_REPOSITORY", "")):
        token = ('token = { env = "GITHUB_TOKEN" }',) if variables.get("GITHUB_TOKEN") else ()
        yield Found(
            "github", ('kind = "github"', f'repository = "{repository}"', *token), "GITHUB_REPOSITORY"
        )


def _cluster(variables: Mapping[str, str]) -> Iterator[Found]:
    given = [part for part in variables.get("KUBECONFIG", "").split(os.pathsep) if part]
    files = [Path(part) for part in given] or [expanded("~/.kube/config")]
    if found := next((file for file in files if file.is_file()), None):
        lines = ('kind = "kubernetes"', '# context = "…"           # without it the current one', '# namespaces = ["shop"]')  # fmt: skip
        yield Found("cluster", lines, f"the kubeconfig {found}")


def _postgres(variables: Mapping[str, str]) -> Iterator[Found]:
    if variables.get("DATABASE_URL", "").startswith(("postgres://", "postgresql://")):
        yield Found("database", ('kind = "postgres"', 'dsn = { env = "DATABASE_URL" }'), "DATABASE_URL")
    elif variables.get("PGHOST") or variables.get("PGSERVICE"):
        lines = (
            'kind = "postgres"',
            'dsn = "application_name=opsleuth"   # the rest from PGHOST, PGUSER, PGDATABASE',
        )
        yield Found("database", lines, "the PG… variables")


def _redis(variables: Mapping[str, str]) -> Iterator[Found]:
    if variables.get("REDIS_URL", "").startswith(("redis://", "rediss://")):
        yield Found("cache", ('kind = "redis"', 'url = { env = "REDIS_URL" }'), "REDIS_URL")


def _journal() -> bool:
    program = shutil.which("journalctl")
    if program is None:
        return False
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [program, "--lines=1", "--quiet", "--no-pager"],
            capture_output=True,
            timeout=2,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and bool(done.stdout.strip())


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=_PROBE_SECONDS) as answer:  # noqa: S310 - loopback, fixed
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False

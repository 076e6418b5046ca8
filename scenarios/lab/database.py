"""The orders' database: a PostgreSQL of its own with as many orders as wanted, and snapshots of its statements."""

import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg

from opsleuth.scenarios.lab.orders_api import PRODUCTS
from opsleuth.scenarios.lab.processes import LabProgram, LabStartError

CUSTOMERS = 10_000
INDEX = "CREATE INDEX orders_customer ON orders (customer_id, created_at)"
_SETTINGS = (
    "listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_preload_libraries=pg_stat_statements",
    "fsync=off", "shared_buffers=192MB", "max_connections=60", "max_parallel_workers_per_gather=0", "jit=off",
    "log_timezone=UTC", "log_line_prefix=%m [%p] ", "log_statement=ddl", "log_lock_waits=on",
    "deadlock_timeout=1s", "log_checkpoints=off", "autovacuum=off",
)  # fmt: skip
_SCHEMA = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE stock (product_id int PRIMARY KEY, reserved int NOT NULL DEFAULT 0);
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY, customer_id int NOT NULL, product_id int NOT NULL,
    total_cents int NOT NULL, created_at timestamptz NOT NULL DEFAULT now(), remark text);
CREATE TABLE statement_snapshots (
    captured_at timestamptz NOT NULL, queryid bigint, statement text NOT NULL, calls float8 NOT NULL, total_ms float8 NOT NULL);
CREATE ROLE watcher LOGIN;
GRANT pg_monitor TO watcher;
GRANT SELECT ON statement_snapshots TO watcher;
"""
_FILL = """
INSERT INTO orders (customer_id, product_id, total_cents, created_at, remark)
SELECT (i * 7919::bigint) %% %(customers)s, i %% %(products)s, 500 + i %% 90000, now() - i * interval '3 seconds', 'leave at the door'
FROM generate_series(1, %(orders)s) AS i
"""
_SNAPSHOT = """
INSERT INTO statement_snapshots
SELECT now(), queryid, min(query), sum(calls), sum(total_exec_time) FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query !~ 'pg_stat'
GROUP BY queryid
"""
HISTORY = (
    "SELECT captured_at, statement, calls, total_ms FROM statement_snapshots "
    "WHERE captured_at BETWEEN %(start)s AND %(end)s"
)


class LabDatabase:
    """A PostgreSQL in `folder`, which is made."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self.user = _choose_postgres_user()

    def dsn(self, user: str) -> str:
        return f"host=127.0.0.1 port={self._port} dbname=postgres user={user}"

    def create(self) -> None:
        """Raises NotStarted."""
        self._folder.mkdir(mode=0o700)
        if self.user != "-":
            shutil.chown(self._folder, self.user)
        argv = [
            find_program("initdb"), "-D", str(self._folder), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"
        ]  # fmt: skip
        done = subprocess.run(  # a fixed command
            argv,
            capture_output=True,
            text=True,
            check=False,
            user=None if self.user == "-" else self.user,
            cwd="/",
        )
        if done.returncode:
            raise LabStartError(
                f"PostgreSQL cannot be set up in {self._folder}: {done.stderr.strip()[-500:]}"
                + (
                    f" (it runs as {self.user}, who must be able to reach that folder)"
                    if self.user != "-"
                    else ""
                )
            )

    def server(self, log: Path) -> LabProgram:
        """The server, which writes its log to this file."""
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        argv = [find_program("postgres"), "-D", str(self._folder), "-p", str(self._port), *settings]
        return LabProgram(
            name="orders-db",
            argv=argv,
            ready=self._accepts,
            port=self._port,
            user=self.user,
            stop=signal.SIGINT,
            output=log,
        )

    def fill(self, orders: int) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(_SCHEMA)
            connection.execute(
                "INSERT INTO stock SELECT i, 0 FROM generate_series(0, %(last)s) AS i", {"last": PRODUCTS - 1}
            )
            connection.execute(_FILL, {"customers": CUSTOMERS, "products": PRODUCTS, "orders": orders})
            connection.execute(INDEX)
            connection.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
            connection.execute("VACUUM ANALYZE")
            connection.execute("SELECT pg_stat_statements_reset()")

    def snapshot(self) -> None:
        """Keep what each statement has done so far."""
        with psycopg.connect(self.dsn("postgres"), connect_timeout=3) as connection:
            connection.execute(_SNAPSHOT)

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True, application_name="psql") as connection:
            connection.execute(statement)

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.dsn("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def find_program(name: str) -> str:
    """The path of a program, PostgreSQL's own folders included. Raises NotStarted with what to install."""
    newest = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = shutil.which(name) or (str(newest[-1]) if newest else None)
    if found is None:
        raise LabStartError(f"the lab needs the program {name}: apt-get install {_PACKAGES.get(name, name)}")
    return found


_PACKAGES = {
    "initdb": "postgresql",
    "postgres": "postgresql",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "git": "git",
}


def _choose_postgres_user() -> str:
    """PostgreSQL refuses to run as root: then it runs as somebody else. Raises NotStarted where there is nobody."""
    if os.geteuid() != 0:
        return "-"
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise LabStartError(
        "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as"
    )

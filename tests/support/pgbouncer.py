"""A real PgBouncer before a PostgreSQL, which lends each server connection for one transaction, and an application behind it."""

import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from psycopg.conninfo import conninfo_to_dict
from servers import free_port, listens, need, not_root, running, until

_WRITER = """
    import sys, time
    import psycopg

    dsn, writes, stop, pause = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    hurt = 0
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS sold (id int)")
        print("writing", flush=True)
        done = 0
        while done < writes or not __import__("os").path.exists(stop):
            done += 1
            try:
                connection.execute("INSERT INTO sold VALUES (%s)", (done,))
            except psycopg.Error as error:
                hurt += 1
                print(f"hurt: {error}", flush=True)
            time.sleep(pause)
    print(f"{hurt} of {done}", flush=True)
"""


class Pool(NamedTuple):
    """`dsn` leads through the pooler, `direct` to the server behind it."""

    dsn: str
    direct: str

    @property
    def url(self) -> str:
        """The pooler's address in the form of a URL."""
        parts = conninfo_to_dict(self.dsn)
        return f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{parts['dbname']}"


@contextmanager
def pgbouncer(
    server_dsn: str, *, mode: str = "transaction", size: int = 1, settings: str = ""
) -> Iterator[Pool]:
    """A PgBouncer in this mode before that server, with so many connections to it."""
    [program] = need("pgbouncer")
    server, port, user = conninfo_to_dict(server_dsn), free_port(), not_root()
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        folder = Path(name)
        (folder / "users.txt").write_text(f'"{server["user"]}" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={server['host']} port={server['port']}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {folder}/users.txt\npool_mode = {mode}\ndefault_pool_size = {size}\n{settings}\n"
        )
        if user:
            for path in (folder, *folder.iterdir()):
                shutil.chown(path, user)
        argv = [program, str(folder / "pgbouncer.ini")]
        with running(argv, folder, listens(port), user):
            dsn = f"host=127.0.0.1 port={port} user={server['user']} dbname={server['dbname']}"
            yield Pool(dsn, server_dsn)


class Application:
    """A process that writes one row after the other, until it has written enough and may stop."""

    def __init__(self, dsn: str, folder: Path, writes: int, pause: float) -> None:
        self._stop, self._log = folder / "stop", folder / "application.log"
        argv = [sys.executable, "-c", textwrap.dedent(_WRITER), dsn, str(writes), str(self._stop), str(pause)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT)
        until(lambda: "writing" in self._log.read_text() or self._process.poll() is not None)

    def end(self) -> str:
        """Its last word, `HURT of WRITTEN`, after what it says of each failed write."""
        self._stop.touch()
        self._process.wait(120)
        return self._log.read_text().removeprefix("writing\n").strip()


@contextmanager
def application(
    dsn: str, folder: Path, *, writes: int = 1_000, pause: float = 0.002
) -> Iterator[Application]:
    """An application that writes through this address while the block runs."""
    started = Application(dsn, folder, writes, pause)
    try:
        yield started
    finally:
        started.end()

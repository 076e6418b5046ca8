"""Places to keep runs in, for tests that hold for all of them: a file, and a database on a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import servers

from opsleuth.checkpoints.database_urls import Place, PostgresServer, is_server
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock


@pytest.fixture(scope="session")
def postgres() -> Iterator[servers.Postgres]:
    """A PostgreSQL for all tests of a process. Who stops it starts it again."""
    with servers.postgres() as started:
        yield started


@pytest.fixture(scope="session")
def schema(postgres: servers.Postgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database with our tables and nothing in them: to copy it is faster than to make them anew."""
    url = postgres.database()
    with Store.open(PostgresServer(url, tmp_path_factory.mktemp("schema")), SystemClock(), Redactor()):
        return url


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place where no run was ever kept."""
    if request.param == "sqlite":
        return tmp_path / "data" / "opsleuth.db"
    started: servers.Postgres = request.getfixturevalue("postgres")
    return _on(started.database(request.getfixturevalue("schema")), tmp_path)


@pytest.fixture
def server(postgres: servers.Postgres, schema: str, tmp_path: Path) -> PostgresServer:
    """The same, always on PostgreSQL."""
    return _on(postgres.database(schema), tmp_path)


@pytest.fixture
def empty_server(postgres: servers.Postgres, tmp_path: Path) -> PostgresServer:
    """A database without any table."""
    return _on(postgres.database(), tmp_path)


def _on(url: str, tmp_path: Path) -> PostgresServer:
    (tmp_path / "data").mkdir(exist_ok=True)
    return PostgresServer(url, tmp_path / "data")


def place_of(text: str, folder: str = ".") -> Place:
    """For programs of tests, which are told on their command line."""
    return PostgresServer(text, Path(folder)) if is_server(text) else Path(text)


def told(place: Place) -> str:
    """As `place_of` reads it."""
    return place.url if isinstance(place, PostgresServer) else str(place)

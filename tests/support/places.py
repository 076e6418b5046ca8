"""Places to keep runs in, for tests that hold for all of them: a file, and a database on a real PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import servers

from opsleuth.checkpoints.places import Place, Server, is_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[servers.Postgres]:
    """A PostgreSQL for all tests of a process. Who stops it starts it again."""
    with servers.postgres() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place where nothing was ever kept."""
    if request.param == "sqlite":
        return tmp_path / "data" / "opsleuth.db"
    return _on(request.getfixturevalue("postgres"), tmp_path)


@pytest.fixture
def server(postgres: servers.Postgres, tmp_path: Path) -> Server:
    """The same, always on PostgreSQL."""
    return _on(postgres, tmp_path)


def _on(started: servers.Postgres, tmp_path: Path) -> Server:
    (tmp_path / "data").mkdir(exist_ok=True)
    return Server(started.database(), tmp_path / "data")


def place_of(text: str, folder: str = ".") -> Place:
    """For programs of tests, which are told on their command line."""
    return Server(text, Path(folder)) if is_server(text) else Path(text)


def told(place: Place) -> str:
    """As `place_of` reads it."""
    return place.url if isinstance(place, Server) else str(place)

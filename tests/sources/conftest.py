"""The built-in incident as a folder and in real servers, each started once per session and process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
from rude_server import RudeServer, rude_server
from stored_elsewhere import bulk, journal_export, openmetrics, rows, store_changes, store_statements

from opsleuth.scenarios.orders_incident import write_case


@pytest.fixture(scope="session")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in incident as a case folder."""
    return write_case(tmp_path_factory.mktemp("case"))


@pytest.fixture(scope="session")
def prometheus(case: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with the metrics of the built-in incident; its address."""
    with servers.prometheus(
        tmp_path_factory.mktemp("prometheus"), openmetrics(rows(case / "metrics.csv"))
    ) as url:
        yield url


@pytest.fixture(scope="session")
def victoria(case: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A VictoriaMetrics with the metrics of the built-in incident; its address."""
    samples = openmetrics(rows(case / "metrics.csv"))
    with servers.victoria_metrics(tmp_path_factory.mktemp("victoria"), samples) as url:
        yield url


@pytest.fixture(scope="session")
def opensearch(case: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A re-implemented OpenSearch with the log lines of the built-in incident; its address."""
    with servers.opensearch(tmp_path_factory.mktemp("opensearch"), bulk(rows(case / "logs.jsonl"))) as url:
        yield url


@pytest.fixture(scope="session")
def postgres(case: Path) -> Iterator[str]:
    """A PostgreSQL with the statement history of the built-in incident; how its superuser connects."""
    with servers.postgres() as server:
        store_statements(server.dsn, rows(case / "statements.jsonl"))
        yield server.dsn


@pytest.fixture(scope="session")
def journal(case: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal file with the log lines of the built-in incident."""
    return servers.journal(tmp_path_factory.mktemp("journal"), journal_export(rows(case / "logs.jsonl")))


@pytest.fixture(scope="session")
def repository(case: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the changes of the built-in incident."""
    return store_changes(tmp_path_factory.mktemp("repository"), rows(case / "changes.jsonl"))


@pytest.fixture
def rude() -> Iterator[RudeServer]:
    with rude_server() as server:
        yield server

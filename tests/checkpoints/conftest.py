"""A store in each place that there is, a clock that stands still, and a run in it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock

RUN = "inv-20261129-7k3f"
Open = Callable[[], Store]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 11, 29, 14, 5, tzinfo=UTC))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of tests that are about the file."""
    return tmp_path / "data" / "opsleuth.db"


@pytest.fixture
def store(place: Place, clock: FakeClock) -> Iterator[Store]:
    with Store.open(place, clock, Redactor()) as opened:
        yield opened


@pytest.fixture
def second(store: Store, place: Place, clock: FakeClock) -> Iterator[Store]:
    """The same database through a connection of its own, as another process has it."""
    with Store.open(place, clock, Redactor()) as opened:
        yield opened


@pytest.fixture
def run(store: Store) -> str:
    return store.runs.create(RunRow(id=RUN, question="checkout 5xx")).id

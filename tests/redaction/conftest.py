"""A file to keep a store in, and a clock that stands still."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from opsleuth.state.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 11, 29, 14, 5, tzinfo=UTC))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of tests that are about the file."""
    return tmp_path / "data" / "opsleuth.db"

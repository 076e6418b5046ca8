"""An API over a store of its own."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from service_rig import Api, folder_store, serving

from opsleuth.state.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 11, 29, 14, 5, tzinfo=UTC))


@pytest.fixture
async def api(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Api]:
    async with serving(folder_store(tmp_path), clock) as running:
        yield running

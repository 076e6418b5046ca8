"""Tiers, time limits, and the PostgreSQL that all tests of a worker share."""

import pytest
from places import empty_server, place, postgres, schema, server

__all__ = ["empty_server", "place", "postgres", "schema", "server"]

LIMITS = {
    "browser": 180,
    "chaos": 900,
    "faults": 300,
    "harm": 600,
    "kubernetes": 300,
    "lab": 600,
    "model": 1_800,
    "slow": 300,
}
"""Seconds that a test with this marker may take. Each of them keeps a test out of the fast tier, `-m "not slow"`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        own = [limit for marker, limit in LIMITS.items() if item.get_closest_marker(marker)]
        if own:
            item.add_marker("slow")
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(max(own)))

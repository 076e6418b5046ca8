"""Tiers, time limits, and the PostgreSQL that all tests of a worker share."""

import pytest
from hypothesis import HealthCheck, settings
from places import empty_server, place, postgres, schema, server

__all__ = ["empty_server", "place", "postgres", "schema", "server"]

LIMITS = {
    "browser": 180,
    "chaos": 900,
    "exhaustive": 600,
    "harm": 600,
    "kubernetes": 300,
    "lab": 600,
    "model": 1_800,
    "slow": 300,
}
"""Seconds that a test with this marker may take. Each of them keeps a test out of the fast tier, `-m "not slow"`."""


# An example that takes long on a busy machine is not wrong: the limits above end what hangs.
settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        own = [limit for marker, limit in LIMITS.items() if item.get_closest_marker(marker)]
        if own:
            item.add_marker("slow")
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(max(own)))

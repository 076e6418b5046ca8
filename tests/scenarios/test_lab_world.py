"""The lab's services as the control plane tells of them, without any process."""

from opsleuth.scenarios.lab.world import MonitoredService, next_version


def service(*versions: str, wrong: list[str] | None = None) -> MonitoredService:
    history = [(float(i), version) for i, version in enumerate(versions)]
    return MonitoredService("orders-api", history, 1, wrong=lambda: wrong or [])


def test_nobody_is_offered_a_release_that_was_taken_back() -> None:
    assert service("1.0.0", "1.1.0").document()["versions"] == ["1.0.0", "1.1.0"]
    assert service("1.0.0", "1.1.0", "1.0.0").document()["versions"] == ["1.0.0"]
    assert service("1.0.0", "1.1.0", "1.0.0", "1.2.0").document()["versions"] == ["1.0.0", "1.2.0"]


def test_health_is_what_the_monitoring_says() -> None:
    assert service("1.0.0").document()["health"] == "healthy"
    assert service("1.0.0", wrong=["slow", "failing"]).document()["health"] == "slow, failing"


def test_each_release_has_a_version_of_its_own() -> None:
    assert next_version("2.13.1", 1, "deploy") == "2.14.0"
    assert next_version("2.13.1", 3, "config") == "2.13.4"

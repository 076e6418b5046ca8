"""Deliveries as a document or as printed text."""

import pytest

from opsleuth.analysis import argocd_delivery
from opsleuth.analysis.records import ObjectState

TEXT = "Name:  argocd/shop\nSync Status:  Synced to v1 (abc)\nHealth Status:  Healthy\n"


def _read(status: object) -> argocd_delivery.DeliveryState | None:
    return argocd_delivery.read_delivery_state(ObjectState(0.0, "Application", "argocd/shop", status))  # type: ignore[arg-type]


def test_a_delivery_in_order() -> None:
    found = _read(TEXT)
    assert found == argocd_delivery.DeliveryState("shop", "Synced", "Healthy")
    assert not found.failed


def test_a_failed_operation_ends_the_summary_with_its_message() -> None:
    found = _read(
        {
            "sync": {"status": "OutOfSync"},
            "health": {"status": "Missing"},
            "operationState": {"phase": "Failed", "message": "namespace missing"},
        }
    )
    assert found is not None
    assert found.failed
    assert found.summary == "sync OutOfSync, health Missing, last operation Failed: namespace missing"


@pytest.mark.parametrize("health", ["Degraded", "Missing"])
def test_what_is_absent_or_broken_has_failed(health: str) -> None:
    found = _read(TEXT.replace("Healthy", health))
    assert found is not None
    assert found.failed


@pytest.mark.parametrize("status", ["", "Name: web\nStatus: Running\n", {}, {"sync": "yes", "health": "no"}])
def test_other_objects_are_no_deliveries(status: object) -> None:
    assert _read(status) is None

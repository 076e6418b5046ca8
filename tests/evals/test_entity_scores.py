"""The object that a report names, held against the one that a key accepts."""

from typing import Any

import pytest

from opsleuth.evals.cases import accepted_entities
from opsleuth.evals.score import fits_entity

CART: dict[str, Any] = {"kind": "Service", "namespace": "store", "name": "cart"}
POD: dict[str, Any] = {"kind": "Pod", "namespace": "store", "name": "cart-6d5c7f8b4-x7k2p"}


@pytest.mark.parametrize(
    ("accepted", "named", "fits"),
    [
        ("Service", CART, True),
        ("Service/cart", CART, True),
        ("Service/store/cart", CART, True),
        ("Service/other/cart", CART, False),
        ("Service/car", CART, False),
        ("Deployment/cart", CART, False),
        ("Pod/cart", POD, True),
        ("Pod/car", POD, False),
        ("Service", None, False),
    ],
)
def test_kind_fits_and_name_and_namespace_where_the_key_has_them(
    accepted: str, named: dict[str, Any] | None, fits: bool
) -> None:
    assert fits_entity(accepted, named) is fits


def test_listed_entities_come_before_the_one_of_the_source() -> None:
    label = {"entity": "Node"}
    assert accepted_entities({"source_label": label}) == ("Node",)
    assert accepted_entities({"source_label": label, "acceptable_entities": ["Pod/a", "Node"]}) == (
        "Pod/a",
        "Node",
    )
    assert accepted_entities({"source_label": "free text"}) == ()
    assert accepted_entities({}) == ()

"""Parameters of a full product of which the fast tier runs a diagonal."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def full_product(*axes: Sequence[Any]) -> list[Any]:
    """Every combination, as parameters; `faults` marks those off the diagonal, on which each value stands at least once."""
    longest = max(map(len, axes))
    diagonal = {tuple(place % len(axis) for axis in axes) for place in range(longest)}
    return [
        pytest.param(*values, marks=() if places in diagonal else pytest.mark.faults)
        for places, values in zip(product(*(range(len(axis)) for axis in axes)), product(*axes), strict=True)
    ]

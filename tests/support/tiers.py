"""What keeps the tiers small: a diagonal of a full product, and settings for examples that cost something."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

COSTLY = settings(
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=(
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ),
)
"""For examples that ask servers or start processes. They are not shrunk: that goes on for up to five minutes, and where the
time limit of the test ends it, hypothesis reports a flaky test instead of what was wrong."""


def full_product(*axes: Sequence[Any]) -> list[Any]:
    """Every combination, as parameters; `exhaustive` marks those off the diagonal, on which each value stands at least once."""
    longest = max(map(len, axes))
    diagonal = {tuple(place % len(axis) for axis in axes) for place in range(longest)}
    return [
        pytest.param(*values, marks=() if places in diagonal else pytest.mark.exhaustive)
        for places, values in zip(product(*(range(len(axis)) for axis in axes)), product(*axes), strict=True)
    ]

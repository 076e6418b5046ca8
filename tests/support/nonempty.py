"""For assertions about every element: they say nothing where there is no element."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def nonempty(items: Iterable[T]) -> list[T]:
    """All items; fails where there are none."""
    found = list(items)
    assert found, "nothing to check: the collection is empty"
    return found

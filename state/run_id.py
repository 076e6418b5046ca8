"""The id of a run: `inv-20261129-7k3f`, the UTC date and letters and digits that cannot be mistaken for each other."""

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

ALPHABET = "23456789abcdefghjkmnpqrstvwxyz"
"""Without 0, 1, i, l, o and u."""

Choose = Callable[[Sequence[str]], str]


def new_run_id(now: datetime, choose: Choose = secrets.choice, length: int = 4) -> str:
    """A fresh id. It may be taken: then draw another one."""
    tail = "".join(choose(ALPHABET) for _ in range(length))
    return f"inv-{now.astimezone(UTC):%Y%m%d}-{tail}"

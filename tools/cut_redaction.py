"""Redaction before a text is cut: half a secret cannot be recognised, and a tool cuts before the executor sees its record."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Redact = Callable[[Any], tuple[Any, int]]

_redact: ContextVar[Redact | None] = ContextVar("redact_before_cutting", default=None)


@contextmanager
def redacting_cuts(redact: Redact) -> Iterator[None]:
    """While this is entered, what `redact_before_cut` is given passes `redact`."""
    token = _redact.set(redact)
    try:
        yield
    finally:
        _redact.reset(token)


def redact_before_cut(text: str) -> str:
    """The text without secrets, where a run is under way."""
    redact = _redact.get()
    return str(redact(text)[0]) if redact else text

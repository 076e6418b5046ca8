"""One spelling for equal JSON values, so that equal calls have equal digests."""

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """JSON text with sorted keys and no spaces; 1.0 and 1 are spelt alike, as JSON numbers they are equal."""
    return json.dumps(
        _plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def from_json(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a JSON text. Raises ValueError, also for one that is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def digest(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """SHA-256 of the canonical form, as 64 hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value

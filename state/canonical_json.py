"""One spelling for equal JSON values, so that equal calls have equal digests."""

import hashlib
import json

from opsleuth.state.json_types import JSON


def to_canonical_json(value: JSON) -> str:
    """JSON text with sorted keys and no spaces; 1.0 and 1 are spelt alike, as JSON numbers they are equal."""
    return json.dumps(
        _normalize_numbers(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def parse_json_text(text: str | bytes) -> JSON:
    """The value of a JSON text. Raises ValueError, also for one that is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def canonical_sha256(value: JSON) -> str:
    """SHA-256 of the canonical form, as 64 hex digits."""
    return hashlib.sha256(to_canonical_json(value).encode()).hexdigest()


def _normalize_numbers(value: JSON) -> JSON:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _normalize_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_normalize_numbers(item) for item in value]
    return value

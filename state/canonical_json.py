"""One spelling for equal JSON values, so that equal calls have equal digests."""

import hashlib
import json
import re

from opsleuth.state.json_types import JSON

_WHOLE_FLOAT = re.compile(r"\.0(?![^\],}])")
"""How `json` writes a float that is whole and below 2**53; a string may hold the same characters."""


def to_canonical_json(value: JSON) -> str:
    """JSON text with sorted keys and no spaces; 1.0 and 1 are spelt alike, as JSON numbers they are equal."""
    text = _dump_sorted(value)
    return _dump_sorted(json.loads(text, parse_float=_parse_number)) if _WHOLE_FLOAT.search(text) else text


def parse_json_text(text: str | bytes) -> JSON:
    """The value of a JSON text. Raises ValueError, also for one that is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None


def canonical_sha256(value: JSON) -> str:
    """SHA-256 of the canonical form, as 64 hex digits."""
    return hashlib.sha256(to_canonical_json(value).encode()).hexdigest()


def _dump_sorted(value: JSON) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _parse_number(text: str) -> float:
    """A whole number as an integer, as far as floats can count."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number

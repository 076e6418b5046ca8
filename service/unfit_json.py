"""Documents that parse as JSON but cannot be accepted."""

import math

from opsleuth.state.json_types import JSON

DEEPEST_JSON = 60
"""Levels of a document that is taken in."""


def describe_unfit_json(document: JSON) -> str | None:
    """What of a document cannot be stored or sent on: too deep, half a character, no number; None where it is fit."""
    level: list[JSON] = [document]
    for _ in range(DEEPEST_JSON):
        below: list[JSON] = []
        for value in level:
            if isinstance(value, dict):
                below += [*value, *value.values()]
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str) and not _is_encodable(value):
                return "a text holds a lone surrogate (half of a UTF-16 pair): send valid Unicode"
            elif isinstance(value, float) and not math.isfinite(value):
                return f"{value} is not a JSON number: send a finite number or null"
        if not below:
            return None
        level = below
    return f"the document has more than {DEEPEST_JSON} levels: send a flatter one"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

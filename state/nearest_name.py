"""The nearest valid name, for error texts that help: never used to guess."""

import difflib
from collections.abc import Iterable


def find_nearest_names(name: str, valid: Iterable[str], count: int = 3) -> list[str]:
    """Up to `count` of `valid` that look like `name`, best first; case, spaces, dots, `_` and `-` do not matter."""
    by_key: dict[str, list[str]] = {}
    for candidate in valid:
        by_key.setdefault(_comparison_key(candidate), []).append(candidate)
    key = _comparison_key(name)
    close = difflib.get_close_matches(key, by_key, n=count, cutoff=0.6)
    close += [k for k in by_key if key and key in k and k not in close]
    return [candidate for k in close for candidate in by_key[k]][:count]


def suggest_names(name: str, valid: Iterable[str], most: int = 12) -> str:
    """`nearest: a, b` or, where nothing is near, the choices themselves."""
    choices = sorted(set(valid))
    if near := find_nearest_names(name, choices):
        return f"nearest: {', '.join(near)}"
    shown = ", ".join(choices[:most]) or "none"
    return f"choices: {shown}" + (f" and {len(choices) - most} more" if len(choices) > most else "")


def _comparison_key(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())
